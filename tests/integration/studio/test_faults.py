"""Faults of a plan as a client meets them, over a real socket."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from studio.inspector import Inspector
from studio.store.exchange_table import Filter
from studio.testing import Studio

from .conftest import wait_for


@pytest.fixture(scope="module")
def running() -> Iterator[Studio]:
    with Studio(clock="2026-01-31T12:00:00Z", pace="realistic") as studio:
        yield studio


@pytest.fixture
def studio(running: Studio) -> Studio:
    running.reset()
    return running


def pattern(studio: Studio, request_id: str = "1", prompt: str = "ferns") -> tuple[int, dict[str, Any]]:
    return studio.ask("patterns/create", requestId=request_id, prompt=prompt)


def raw(
    studio: Studio, operation: str, body: object, key: str = ""
) -> tuple[http.client.HTTPResponse, bytes]:
    parts = urlsplit(studio.base_url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=20)
    headers = {"Authorization": f"Bearer {key or studio.key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", f"{parts.path}/{operation}", json.dumps(body), headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def verdicts(studio: Studio) -> int:
    """How many purchases were accepted."""
    return len(studio.meter.read()["purchases"])


def test_refused_call_is_not_accepted(studio: Studio) -> None:
    """In the studio's own shape, with Retry-After as seconds or as a date; the next call is accepted."""
    refuse = {"kind": "refuse", "status": 503, "retryAfter": 7}
    studio.faults.use(
        {"on": "patterns/create", "nth": [1], "effect": refuse},
        {"on": "patterns/create", "nth": [2], "effect": {**refuse, "status": 429, "asDate": True}},
        {"on": "jobs/get", "effect": {"kind": "refuse", "status": 404, "message": "gone"}},
    )
    body = {"requestId": "1", "prompt": "ferns"}

    first, content = raw(studio, "patterns/create", body)
    assert (first.status, first.headers["Retry-After"]) == (503, "7")
    assert json.loads(content)["error"]["code"] == "unavailable"
    second, content = raw(studio, "patterns/create", body)
    assert json.loads(content)["error"]["code"] == "rate_limited"
    assert parsedate_to_datetime(second.headers["Retry-After"]).tzinfo is not None
    assert verdicts(studio) == 0

    assert pattern(studio)[0] == 200
    assert studio.ask("jobs/get", jobId="x")[1] == {"error": {"code": "unknown_job", "message": "gone"}}
    assert studio.faults.unfired == []


@pytest.mark.parametrize(("when", "accepted"), [("before", 0), ("after", 1)])
def test_lost_answer(studio: Studio, when: str, accepted: int) -> None:
    """The connection ends without a byte; sent again, the request is the one job."""
    studio.faults.use({"on": "creates", "nth": [1], "effect": {"kind": "close", "when": when}})

    with pytest.raises(http.client.RemoteDisconnected):
        pattern(studio)
    assert verdicts(studio) == accepted
    assert pattern(studio)[0] == 200
    assert verdicts(studio) == 1


def test_answer_to_a_repeated_request_is_lost(studio: Studio) -> None:
    """And only that one."""
    studio.faults.use({"on": "creates", "repeated": True, "first": 1, "effect": {"kind": "close"}})

    job = pattern(studio)[1]
    with pytest.raises(http.client.RemoteDisconnected):
        pattern(studio)
    assert pattern(studio)[1] == job


@pytest.mark.parametrize("form", ["truncated", "malformed", "html", "empty"])
def test_answer_that_cannot_be_read(studio: Studio, form: str) -> None:
    """The job is accepted all the same."""
    studio.faults.use({"on": "creates", "nth": [1], "effect": {"kind": "body", "form": form}})
    body = {"requestId": "1", "prompt": "ferns"}

    if form == "truncated":
        with pytest.raises(http.client.IncompleteRead):
            raw(studio, "patterns/create", body)
    else:
        response, content = raw(studio, "patterns/create", body)
        assert response.status == 200
        assert ("html" in str(response.headers["Content-Type"])) == (form == "html")
        with pytest.raises(ValueError):
            json.loads(content)
    assert verdicts(studio) == 1
    assert pattern(studio)[0] == 200


def test_delayed_calls() -> None:
    """One is accepted after its delay, the other before it; both are answered after it."""
    with Studio() as studio:
        studio.faults.use(
            {"on": "creates", "requestId": "1", "effect": {"kind": "delay", "before": 0.3}},
            {"on": "creates", "requestId": "2", "effect": {"kind": "delay", "after": 0.3}},
        )
        instants = [datetime.now(UTC)]
        for request_id in ("1", "2"):
            assert pattern(studio, request_id)[0] == 200
            instants.append(datetime.now(UTC))
        listed = studio.ask("jobs/list")[1]["jobs"]
        second, first = (datetime.fromisoformat(job["createdAt"]) for job in listed)

    # The answers' instants are cut to milliseconds, and a sleep may end a moment early.
    assert first - instants[0] > timedelta(seconds=0.25)
    assert instants[2] - second > timedelta(seconds=0.25)


def test_fates_of_jobs(studio: Studio) -> None:
    """One fails with its message, one never ends, one takes as long as the plan says."""
    studio.faults.use(
        {"on": "creates", "requestId": "fails", "effect": {"kind": "job_fails", "message": "no ink"}},
        {"on": "creates", "requestId": "hangs", "effect": {"kind": "job_never_ends"}},
        {"on": "creates", "prompt": "MOSS", "effect": {"kind": "job_takes", "seconds": 3600}},
    )
    jobs = {name: pattern(studio, name, name)[1]["jobId"] for name in ("fails", "hangs", "moss")}
    assert studio.faults.unfired == []

    def poll(name: str) -> dict[str, Any]:
        return studio.ask("jobs/get", jobId=jobs[name])[1]

    studio.clock.advance(3599)
    assert (poll("fails")["status"], poll("fails")["error"]) == ("failed", {"message": "no ink"})
    assert poll("moss")["status"] == "running"
    studio.clock.advance(1)
    assert poll("moss")["status"] == "succeeded"
    assert not studio.clock.advance_to_next_job_end()
    studio.clock.advance(1e9)
    assert poll("hangs")["status"] == "running"


def test_job_that_is_unknown_for_a_while(studio: Studio) -> None:
    """By the studio's clock, or to its first polls."""
    unknown = {"kind": "refuse", "status": 404}
    studio.faults.use(
        {"on": "polls", "prompt": "ferns", "younger": 30, "effect": unknown},
        {"on": "polls", "prompt": "moons", "first": 2, "per": "object", "effect": unknown},
    )
    ferns, moons = (pattern(studio, prompt, prompt)[1]["jobId"] for prompt in ("ferns", "moons"))

    statuses = [studio.ask("jobs/get", jobId=job)[0] for job in (ferns, moons, moons, moons)]
    assert statuses == [404, 404, 404, 200]
    studio.clock.advance(30)
    assert studio.ask("jobs/get", jobId=ferns)[0] == 200


def test_calls_without_a_valid_key_meet_no_fault(studio: Studio) -> None:
    """They are refused, and take no number."""
    studio.faults.use({"on": "all", "nth": [1], "effect": {"kind": "close"}})

    assert raw(studio, "jobs/list", {}, key="wrong")[0].status == 401
    assert studio.faults.report()[0]["calls"] == 0


def test_plan_that_makes_no_sense_is_refused(studio: Studio) -> None:
    """By field; the plan before goes on."""
    studio.faults.use({"name": "first", "on": "creates", "effect": {"kind": "close"}})
    with pytest.raises(Exception, match=r"faults\.0: 'on' names no operation: 'create'"):
        studio.faults.use({"on": "create", "effect": {"kind": "close"}})
    assert studio.faults.unfired == ["first"]


def test_answers_change_their_shape_while_it_runs(studio: Studio) -> None:
    """Categories, repeated requests and errors, each for itself; large and broken bodies as well."""
    job = pattern(studio)[1]
    studio.clock.advance(120)
    studio.use_shapes(categories="bare", repeat="first")
    assert isinstance(json.loads(raw(studio, "categories/list", {})[1]), list)
    assert pattern(studio)[1] == job
    assert studio.ask("jobs/get", jobId=job["jobId"])[1]["status"] == "succeeded"

    studio.use_shapes(repeat="conflict", errors="problem")
    response, content = raw(studio, "patterns/create", {"requestId": "1", "prompt": "ferns"})
    assert response.headers["Content-Type"] == "application/problem+json"
    assert (response.status, json.loads(content)["jobId"]) == (409, job["jobId"])
    assert isinstance(json.loads(raw(studio, "categories/list", {})[1]), list)
    studio.use_shapes(errors="html", categories="paged")
    assert b"<h1>404</h1>" in raw(studio, "categories/list", {"cursor": "nowhere"})[1]
    assert raw(studio, "patterns/create", "x" * 1_100_000)[0].status == 413
    assert b"<h1>401</h1>" in raw(studio, "jobs/list", {}, key="wrong")[1]


@pytest.mark.parametrize(
    ("method", "operation", "body"),
    [
        ("POST", "categories/list", b"{}"),
        ("POST", "jobs/get", b'{"jobId": "x"}'),
        ("POST", "patterns/create", b"{"),
        ("POST", "patterns/create", b""),
        ("POST", "patterns/create", b'"' + b"x" * 1_100_000 + b'"'),
        ("POST", "no/operation", b"{}"),
        ("GET", "jobs/list", b""),
        ("HEAD", "jobs/list", b""),
    ],
)
def test_fault_that_does_not_fire_changes_nothing(
    studio: Studio, method: str, operation: str, body: bytes
) -> None:
    """Status, headers and body are the same to the byte."""

    def answer() -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(studio.base_url)
        headers = {"Authorization": f"Bearer {studio.key}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=20)) as connection:
            connection.request(method, f"{parts.path}/{operation}", body, headers)
            response = connection.getresponse()
            sent = {name.lower(): text for name, text in response.getheaders() if name.lower() != "date"}
            return response.status, sent, response.read()

    before = answer()
    studio.faults.use({"on": "all", "nth": [1000], "effect": {"kind": "close"}})
    assert answer() == before


def test_inspector_has_the_faults_that_fired(studio: Studio) -> None:
    """On the exchange, and on the job that it started."""
    studio.faults.use(
        {"name": "slow", "on": "creates", "effect": {"kind": "delay", "after": 0.01}},
        {"name": "no ink", "on": "creates", "effect": {"kind": "job_fails"}},
    )
    pattern(studio, "inspected")
    with closing(Inspector(studio.home / "inspector.db")) as inspector:
        which = Filter(("default",), request_id="inspected")
        wait_for(lambda: inspector.page(which, None, 5), "the exchange is written")
        kept = inspector.page(which, None, 5)
    assert [(one.status, one.fault) for one in kept] == [(200, "slow; no ink")]
