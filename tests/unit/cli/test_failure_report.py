"""`explain --report`: what is sent about a failure, that it is shown first, and that it is sent only once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from cli import main
from patternmill.ledger.events import ANSWERED
from patternmill.ledger.records import Attempt, this_process
from patternmill.states import AttemptState
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, FOX, REFUSED, Past

KEY = "sk_live_c4nary00key1234567890abcdef"
CANARIES = ("c4nary", "ann@mail.example")
#: Rows with a canary in everything that a row, a service or a person can put one into.
LEAKY = [
    "L-1,herons for ann@mail.example see https://x.example/y?token=c4nary1 password=c4nary2,Mug,11oz,,",
    f"L-1,herons with Bearer c4nary3 {KEY},Mug,11oz,,",
]
LEAKY_REASON = f"no {KEY} at https://u:c4nary4@h.example/p?c4nary5 for ann@mail.example; secret: c4nary6"


@dataclass
class Desk:
    """The desk where reports arrive, which answers with a status, or loses the answer if that is None."""

    status: int | None = 200
    arrived: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.arrived.append(json.loads(request.content))
        if self.status is None:
            raise httpx.ReadError("the connection was lost")
        return httpx.Response(self.status, content=self._content())

    async def _content(self) -> AsyncIterator[bytes]:
        yield json.dumps({"requestId": self.arrived[-1]["requestId"]}).encode()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    monkeypatch.setattr("patternmill.service.client._transport", lambda url: httpx.MockTransport(desk))
    profile = {"url": "http://127.0.0.1:9/v1", "key": KEY}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
    return desk


def failed(past: Past, row: str = FERN, *, error: str = "the loom broke", body: Any = None) -> Attempt:
    """Put a run on record whose only row's pattern failed; return the attempt."""
    run = past.begin(row, versions={"patternmill": "0.0.9"})
    attempt = run.attempt(run.pattern(row.partition(",")[0]), AttemptState.FAILED, error=error)
    body = body or {"status": "failed", "error": {"message": error}}
    exchange = {"operation": "jobs/get", "status": 200, "durationMs": 35.5, "body": body}
    with past.ledger.transaction():
        past.ledger.record_event(run.record.run_id, ANSWERED, attempt.request_id, detail=json.dumps(exchange))
    run.end()
    return attempt


def reports(past: Past, attempt: Attempt) -> list[str]:
    """Return the events about reports."""
    rows = past.ledger.database.rows(
        "SELECT kind, detail FROM events WHERE request_id = :id AND kind LIKE 'feedback%' ORDER BY seq",
        {"id": attempt.request_id},
    )
    assert not any(canary in str(detail) for _, detail in rows for canary in CANARIES)
    return [kind.removeprefix("feedback_") for kind, _ in rows]


def run(*arguments: str) -> int:
    return main.run(["explain", *arguments, "--report"])


def test_report_has_what_the_ledger_knows(past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """What is sent is what was shown; it is sent once, and the item's story has it."""
    attempt = failed(past)
    assert run("F-1", "--yes") == 0
    (report,) = desk.arrived
    assert report["procedure"] == "patterns/create"
    assert report["request"] == {"body": json.loads(attempt.body), "userAgent": "patternmill/0.0.9"}
    body = {"status": "failed", "error": {"message": "the loom broke"}}
    assert report["response"] == {"status": 200, "durationMs": 35.5, "body": body}
    assert report["agent"].startswith("patternmill/") and report["reportedAt"].startswith("2027-01-15T12:")
    for part in ("Expected: patterns/create", "the loom broke", attempt.request_id, attempt.job_id):
        assert part is not None and part in report["text"]
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") : printed.rindex("}") + 1]) == report
    assert run("F-1", "--yes") == 2
    assert "was reported before" in capsys.readouterr().err
    assert len(desk.arrived) == 1 and reports(past, attempt) == ["intended", "sent"]
    assert list(problems(past.ledger)) == []
    assert main.run(["explain", "F-1"]) == 0
    story = capsys.readouterr().out
    assert f"reported to the service's operators (The service has the report {report['requestId']}.)" in story
    assert "what was answered (jobs/get: 200, after 36 ms)" in story


@pytest.mark.parametrize("row", LEAKY)
def test_no_secret_is_sent(row: str, past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """None is shown or recorded either, whether from the prompt, the reason, the response or a person's own text."""
    attempt = failed(past, row, error=LEAKY_REASON, body={"message": LEAKY_REASON, "api_key": "c4nary7"})
    desk.status = 503
    assert run("L-1", "--yes", "--text", f"please mail ann@mail.example {KEY} token=c4nary8") == 1
    # What was certainly not delivered may be reported again.
    desk.status = 200
    assert run("L-1", "--yes") == 0
    assert reports(past, attempt) == ["intended", "not_sent", "intended", "sent"]
    for text in [*map(str, desk.arrived), *capsys.readouterr()]:
        assert [canary for canary in CANARIES if canary in text] == []
    assert "herons" in desk.arrived[0]["request"]["body"]["prompt"]


@pytest.mark.parametrize(
    ("status", "code", "last", "message"),
    [(422, 1, "not_sent", "422"), (None, 3, "in_doubt", "may have arrived")],
)
def test_report_is_sent_once_whatever_comes_back(
    status: int | None,
    code: int,
    last: str,
    message: str,
    past: Past,
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
) -> None:
    attempt = failed(past)
    desk.status = status
    assert run("F-1", "--yes") == code
    assert message in capsys.readouterr().err
    assert len(desk.arrived) == 1 and reports(past, attempt) == ["intended", last]


def test_nothing_is_sent_without_a_yes(
    past: Past, desk: Desk, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is sent to a service other than that of the request either."""
    attempt = failed(past)
    answers.append("n")
    assert run("F-1") == 2
    with pytest.MonkeyPatch.context() as patch:
        profile = {"url": "http://127.0.0.1:8/v1", "key": KEY}
        patch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
        assert run("F-1", "--yes") == 2
    assert "The request went to http://127.0.0.1:9/v1" in capsys.readouterr().err
    assert (desk.arrived, reports(past, attempt)) == ([], [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("X-1", "did not fail at the service"),
        ("R-1", "did not fail at the service"),
        ("Z-9", "Nothing in this ledger is called"),
        ("F-1", "goes on"),
    ],
)
def test_nothing_to_report_is_refused(
    words: str, message: str, past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is reported about what was made, refused by our own checks or unknown, or what may still be answered."""
    begun = past.begin(FERN, FOX, REFUSED, "O-1,owls,Mug,11oz,,")
    begun.make("X-1")
    begun.attempt(begun.pattern("F-1"), AttemptState.ACCEPTED)
    written_off = begun.attempt(begun.pattern("O-1"), AttemptState.HELD)
    holder = json.dumps(this_process())
    with past.ledger.transaction():
        past.ledger.catalogs.claim_lease("staging", "spring", begun.record.run_id, holder, over=None)
        reason = {"error_code": "written_off", "error": "Written off by A. Weaver: refunded"}
        change = past.ledger.purchases.change
        change(begun.record.run_id, written_off.request_id, AttemptState.FAILED, **reason)
    assert run(words, "--yes") == 2
    assert message in capsys.readouterr().err and desk.arrived == []
    # What has failed may be reported at once; the reason that a person gave is left out.
    assert run("O-1", "--yes") == 0
    assert "Weaver" not in str(desk.arrived)
