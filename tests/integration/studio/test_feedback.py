"""`feedback/create`: exactly the bounds of the interface, and what is kept of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from studio.testing import Studio, post_json

from .in_process import InProcess

LEAST = {"requestId": "f", "text": "t"}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess.open(tmp_path_factory.mktemp("feedback")) as made:
        yield made


WITHIN: list[dict[str, Any]] = [
    {},
    {"requestId": " "},
    {"requestId": "r" * 128},
    {"text": "t" * 4000},
    {"procedure": "p" * 200},
    {"request": {"body": None, "userAgent": ""}},
    {"request": {"body": [1, {"a": "b"}], "userAgent": "u" * 500}},
    {"response": {"status": 0, "body": "x", "durationMs": 0}},
    {"response": {"status": 599, "body": {}, "durationMs": 1e9}},
    {"agent": "a" * 100},
    {"reportedAt": "2026-01-31T12:00:00Z"},
    {"reportedAt": "2026-01-31T12:00:00.5+02:00"},
]
BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"requestId": ""}, "requestId"),
    ({"requestId": "r" * 129}, "requestId"),
    ({"text": ""}, "text"),
    ({"text": "t" * 4001}, "text"),
    ({"procedure": "p" * 201}, "procedure"),
    ({"request": []}, "request"),
    ({"request": {"userAgent": "u" * 501}}, "request.userAgent"),
    ({"response": {"status": -1}}, "response.status"),
    ({"response": {"status": 600}}, "response.status"),
    ({"response": {"durationMs": -0.1}}, "response.durationMs"),
    ({"agent": "a" * 101}, "agent"),
    ({"reportedAt": "yesterday"}, "reportedAt"),
    ({"requestId": None}, "requestId"),
    ({"text": None}, "text"),
]


def test_reports_within_the_bounds_are_accepted(studio: InProcess) -> None:
    """The answer echoes the report's identifier."""
    for fields in WITHIN:
        report = {**LEAST, **fields}
        assert studio.ask("feedback/create", **report) == {"requestId": report["requestId"]}
        assert studio.service.store.feedback.all()[-1].report["text"] == report["text"]


def test_reports_beyond_the_bounds_are_refused(studio: InProcess) -> None:
    for fields, field in BEYOND:
        answer = studio.request("feedback/create", {**LEAST, **fields})
        assert answer.status_code == 400, fields
        assert [fault["field"] for fault in answer.json()["error"]["fields"]] == [field]


def test_delivered_twice_is_kept_twice(studio: InProcess) -> None:
    """The requestId names a report; it is no idempotency key."""
    before = len(studio.service.store.feedback.all())
    for text in ("one", "one", "another"):
        studio.ask("feedback/create", requestId="twice", text=text)

    assert len(studio.service.store.feedback.all()) == before + 3


def test_secrets_are_removed_before_it_is_kept(studio: InProcess) -> None:
    """No byte of them is in the file."""
    secret = "c4nary-in-feedback"
    studio.ask(
        "feedback/create",
        requestId="s",
        text=f"GET https://host/x?key={secret} with Bearer {secret}",
        request={"body": {"deep": [{"password": secret}]}, "userAgent": f"x api_key={secret}"},
        response={"body": f'{{"token": "{secret}"}}', "headers": {"set-cookie": secret}},
    )

    report = studio.service.store.feedback.all()[-1].report
    assert report["request"] == {"body": {"deep": [{}]}, "userAgent": "x api_key=[removed]"}
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert secret.encode() not in written
    assert b"https://host/x" in written


def test_it_may_be_unavailable(instruments: Studio) -> None:
    """As a fault says; the key is looked at before."""
    refuse = {"kind": "refuse", "status": 503, "code": "feedback_unavailable"}
    instruments.faults.use({"on": "feedback/create", "first": 1, "effect": refuse})
    url = f"{instruments.base_url}/feedback/create"
    assert post_json(url, f"{instruments.key}x", LEAST)[0] == 401

    status, answer = instruments.ask("feedback/create", **LEAST)
    assert (status, answer["error"]["code"]) == (503, "feedback_unavailable")
    assert instruments.ask("feedback/create", **LEAST)[0] == 200
