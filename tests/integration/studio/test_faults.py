"""Faults of a plan as a client meets them, over a real socket."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from studio.testing import Studio


@pytest.fixture
def studio(instruments: Studio) -> Studio:
    return instruments


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
    """In the studio's own shape, with Retry-After; the next call is accepted."""
    refuse = {"kind": "refuse", "status": 503, "retryAfter": 7}
    studio.faults.use(
        {"on": "patterns/create", "nth": [1], "effect": refuse},
        {"on": "patterns/create", "nth": [2], "effect": {**refuse, "status": 429}},
        {"on": "jobs/get", "effect": {"kind": "refuse", "status": 404, "message": "gone"}},
    )
    body = {"requestId": "1", "prompt": "ferns"}

    first, content = raw(studio, "patterns/create", body)
    assert (first.status, first.headers["Retry-After"]) == (503, "7")
    assert json.loads(content)["error"]["code"] == "unavailable"
    second, content = raw(studio, "patterns/create", body)
    assert json.loads(content)["error"]["code"] == "rate_limited"
    assert second.status == 429
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
