"""`settle --job`: a job that a person names is looked at on the service before it counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import orjson
import pytest

from cli import main
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.integrity import problems
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.service.jobs import Job
from patternmill.states import AttemptState
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
        ("pattern", {"kind": "product"}),
        ("pattern", {"kind": "refine"}),
        ("product", {"kind": "product", "status": "succeeded", "result": {"patternId": "pat-9"}}),
        ("pattern", {"status": "succeeded", "result": {"productId": "prod-9"}}),
        ("pattern", {"requestId": "another"}),
        ("pattern", {"request": {"requestId": "another"}}),
        ("pattern", {"prompt": "green ferns"}),
        ("pattern", {"input": {"prompt": "green ferns"}}),
        ("product", {"patternId": "pat-2"}),
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
    assert past.ledger.attempt(before.request_id) == before
    assert on_record(past, before.request_id) == ["intended", "held"]


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("pattern", {}),
        ("pattern", {"kind": "Pattern", "status": "running", "result": None}),
        ("pattern", {"status": "succeeded", "result": {"patternId": "pat-9"}, "prompt": " blue herons "}),
        ("pattern", {"status": "failed", "error": {"message": "broke"}, "prompt": None, "requestId": ""}),
        ("product", {"kind": "product_build"}),
        ("product", {"result": {"patternId": PATTERN_ID, "productId": "prod-9"}, "request": ASKED}),
        ("product", {"meta": {"requestId": "the-http-request"}, "input": "H-2"}),
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
    assert past.ledger.attempt(before.request_id) == before


def test_job_that_cannot_be_read_is_refused(past: Past) -> None:
    """Unknown, or no answer: nothing is changed, and the remedy is named."""
    _, before = held(past, "pattern")
    settlement = Settlement(before.request_id, Decision.JOB, "found", "A. Weaver", "job-found")

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
            asyncio.run(settle(past.ledger, settlement, limit=LIMIT, look_up=look_up))
        assert said in str(caught.value) and "Nothing was changed" in str(caught.value)
    assert on_record(past, before.request_id) == ["intended", "held"]


class Jobs(BaseHTTPRequestHandler):
    """Knows the jobs of the test."""

    known: dict[str, dict[str, Any]] = {}

    def do_POST(self) -> None:
        asked = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        job = self.known.get(asked["jobId"])
        answer = orjson.dumps(job or {"error": "no such job"})
        self.send_response(200 if job else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    """A service on this machine that answers `jobs/get` from what it is given."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Jobs)
    monkeypatch.setattr(Jobs, "known", {})
    url = f"http://127.0.0.1:{server.server_port}/v1"
    profile = {"url": url, "key": "key", "formerly": ["http://127.0.0.1:9/v1"]}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Jobs.known
    server.shutdown()
    thread.join()
    server.server_close()


def test_command_asks_the_service(past: Past, service: dict[str, dict[str, Any]]) -> None:
    """A pattern's job at a product, and an unknown one, are refused with exit code 2; the right one counts."""
    _, before = held(past, "product")
    service["job-p"] = {"jobId": "job-p", "kind": "pattern", "status": "running", "result": None}
    service["job-b"] = {"jobId": "job-b", "kind": "product", "status": "running", "result": None}
    for job_id, code in (("job-p", 2), ("job-x", 2), ("job-b", 0)):
        assert main.run(["settle", before.request_id, "--job", job_id, "--reason", "found"]) == code
    after = past.ledger.attempt(before.request_id)
    assert after is not None and after.job_id == "job-b"


def test_another_service_is_refused(
    past: Past,
    service: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It may have a job of the same name."""
    _, before = held(past, "product")
    elsewhere = {"url": "http://127.0.0.1:8/v1", "key": "key"}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": elsewhere}))
    service["job-b"] = {"jobId": "job-b", "kind": "product", "status": "running", "result": None}
    assert main.run(["settle", before.request_id, "--job", "job-b", "--reason", "found"]) == 2
    assert "another service" in capsys.readouterr().err
    assert on_record(past, before.request_id) == ["intended", "held"]


def test_command_needs_the_service_of_the_request(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """No address is set, and an embedded studio never knew the job."""
    _, before = held(past, "pattern")
    assert main.run(["settle", before.request_id, "--job", "job-p", "--reason", "found"]) == 2
    assert "PATTERNMILL_STUDIO_URL" in capsys.readouterr().err
    assert on_record(past, before.request_id) == ["intended", "held"]
