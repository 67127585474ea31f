"""`settle --job`: a job that a person names is looked at on the service before it counts."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, Self

import pytest

from cli import main
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.records import Attempt
from patternmill.runs.settlement import Decision, Settlement, requested, settle
from patternmill.service.jobs import Job, read_job
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, HERON_MUG, PATTERN_ID, BegunRun, Past
from tests.unit.cli.test_settle import LIMIT, decide, on_record


def held(past: Past, stage: str) -> tuple[BegunRun, Attempt]:
    run = past.begin(HERON_MUG)
    if stage == "pattern":
        return run, run.attempt(run.pattern("H-2"), AttemptState.HELD)
    run.attempt(run.pattern("H-2"), AttemptState.SUCCEEDED)
    return run, run.attempt(run.product("H-2"), AttemptState.HELD)


ASKED: dict[str, Any] = {"patternId": PATTERN_ID, "categoryId": "cat_2", "selections": {"size": "11oz"}}


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("product", {"kind": "pattern"}),
        ("pattern", {"kind": "refine"}),
        ("product", {"kind": "product", "status": "succeeded", "result": {"patternId": "pat-9"}}),
        ("pattern", {"prompt": "green ferns"}),
        ("product", {"request": {"categoryId": "cat_tote"}}),
        ("product", {"input": {"selections": {"size": "15oz"}}}),
        ("product", {"jobId": "another"}),
    ],
)
def test_job_of_another_kind_or_content_is_refused(past: Past, stage: str, answer: dict[str, Any]) -> None:
    """By kind, by result, by content; and nothing is changed."""
    _, before = held(past, stage)
    with pytest.raises(ConfigurationError, match="is not of request"):
        decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)
    assert past.ledger.purchases.attempt(before.request_id) == before
    assert on_record(past, before.request_id) == ["intended", "held"]


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("pattern", {}),
        ("pattern", {"status": "succeeded", "result": {"patternId": "pat-9"}, "prompt": " blue herons "}),
        ("pattern", {"status": "failed", "error": {"message": "broke"}, "prompt": None, "requestId": ""}),
        ("product", {"kind": "product_build"}),
        ("product", {"result": {"patternId": PATTERN_ID, "productId": "prod-9"}, "request": ASKED}),
        ("product", {"requestId": "the-http-request", "input": "H-2"}),
        ("product", {"selections": {"size": "11oz", "wrap": "none"}}),
    ],
)
def test_job_without_contradiction_is_accepted(past: Past, stage: str, answer: dict[str, Any]) -> None:
    """What the service leaves out is no contradiction, nor are both IDs in one result."""
    _, before = held(past, stage)
    after = decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)
    assert (after.state, after.job_id) == (AttemptState.ACCEPTED, "job-found")
    assert list(problems(past.ledger)) == []


@pytest.mark.parametrize("stage", ["pattern", "product"])
def test_result_of_another_request_is_refused(past: Past, stage: str) -> None:
    run = past.begin(FERN)
    other = run.attempt(
        run.pattern("F-1") if stage == "pattern" else run.product("F-1"), AttemptState.SUCCEEDED
    )
    _, before = held(past, stage)
    answer = {"status": "succeeded", "result": {f"{stage}Id": other.result_id}}
    with pytest.raises(ConfigurationError, match="belongs to request"):
        decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)
    assert past.ledger.purchases.attempt(before.request_id) == before


def test_job_that_names_another_request_of_ours_is_refused(past: Past) -> None:
    run = past.begin(FERN)
    other = run.attempt(run.pattern("F-1"), AttemptState.SUCCEEDED)
    _, before = held(past, "pattern")
    answer = {"request": {"requestId": other.request_id}}
    with pytest.raises(ConfigurationError, match="another one of ours"):
        decide(past, before.request_id, Decision.JOB, job_id="job-found", answer=answer)


def test_job_that_cannot_be_read_is_refused(past: Past) -> None:
    """Unknown, or no answer: nothing is changed, and the remedy is named."""
    _, before = held(past, "pattern")
    items = [requested(past.ledger, before.request_id)]
    settlement = Settlement(Decision.JOB, "found", "A. Weaver", "job-found")

    async def unknown(job_id: str) -> Job | None:
        return None

    async def away(job_id: str) -> Job | None:
        raise ServiceStopped("No answer from the service.")

    for look_up, said in (
        (unknown, "knows no job"),
        (away, "decide again"),
        (None, "could not be looked at"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            asyncio.run(settle(past.ledger, items, settlement, limit=LIMIT, look_up=look_up))
        assert said in str(caught.value) and "Nothing was changed" in str(caught.value)
    assert on_record(past, before.request_id) == ["intended", "held"]


class Jobs:
    """A service that knows some jobs."""

    known: ClassVar[dict[str, str]] = {"job-p": "pattern", "job-b": "product"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def job(self, job_id: str) -> Job | None:
        kind = self.known.get(job_id)
        return (
            read_job({"jobId": job_id, "kind": kind, "status": "running", "result": None}) if kind else None
        )


@pytest.mark.parametrize(
    ("profile", "codes", "message"),
    [
        # A pattern's job at a product, and an unknown one, are refused; the right one counts.
        ({"url": "http://127.0.0.1:9/v1"}, {"job-p": 2, "job-x": 2, "job-b": 0}, "knows no job"),
        # Another service may have a job of the same name.
        ({"url": "http://127.0.0.1:8/v1"}, {"job-b": 2}, "another service"),
        # An embedded studio never knew the job.
        (None, {"job-b": 2}, "PATTERNMILL_STUDIO_URL"),
    ],
)
def test_command_asks_the_service_of_the_request(
    past: Past,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profile: dict[str, str] | None,
    codes: dict[str, int],
    message: str,
) -> None:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: Jobs())
    if profile is not None:
        monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile | {"key": "key"}}))
    _, before = held(past, "product")
    for job_id, code in codes.items():
        assert main.run(["settle", before.request_id, "--job", job_id, "--reason", "found"]) == code
    assert message in capsys.readouterr().err
    after = past.ledger.purchases.attempt(before.request_id)
    assert after is not None and after.job_id == ("job-b" if 0 in codes.values() else None)
