"""`explain --report`: what is sent about a failure, that it is shown before, and that it is sent once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from cli import main
from patternmill.ledger.feedback_log import ANSWERED
from patternmill.ledger.leases import this_process
from patternmill.ledger.records import Attempt
from patternmill.states import AttemptState
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, FOX, REFUSED, BegunRun, Past

KEY = "sk_live_c4nary00key1234567890abcdef"
CANARIES = ("c4nary", "ann@mail.example")
#: A canary in everything that a row, a service or a person can put one into.
LEAKY = [
    "L-1,herons for ann@mail.example see https://x.example/y?token=c4nary1 password=c4nary2,Mug,11oz,,",
    f"L-1,herons with Bearer c4nary3 {KEY},Mug,11oz,,",
]
LEAKY_REASON = f"no {KEY} at https://u:c4nary4@h.example/p?c4nary5 for ann@mail.example; secret: c4nary6"


@dataclass
class Desk:
    """Where reports arrive, and what is answered: a status, `lost` (kept, then no answer), or `slow`."""

    url: str = ""
    answers: str = "200"
    arrived: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)


class Reports(BaseHTTPRequestHandler):
    """A service of one operation."""

    desk: Desk

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.desk.raw.append(self.requestline.encode() + b"\n" + body)
        if self.path == "/v1/feedback/create" and self.desk.answers in ("200", "lost"):
            self.desk.arrived.append(json.loads(body))
        if self.desk.answers == "lost":
            self.connection.close()
            return
        answer = json.dumps({"requestId": json.loads(body).get("requestId")}).encode()
        self.send_response(int(self.desk.answers))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing on the error output."""


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Reports)
    monkeypatch.setattr(Reports, "desk", desk, raising=False)
    desk.url = f"http://127.0.0.1:{server.server_port}/v1"
    profile = {"url": desk.url, "key": KEY, "formerly": ["http://127.0.0.1:9/v1"]}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield desk
    server.shutdown()
    thread.join()
    server.server_close()


def answered(run: BegunRun, attempt: Attempt, operation: str, status: int, body: Any) -> None:
    """As the engine keeps it."""
    exchange = {"operation": operation, "status": status, "durationMs": 35.5}
    exchange |= {} if body is None else {"body": body}
    with run.ledger.transaction():
        run.ledger.record_event(run.record.run_id, ANSWERED, attempt.request_id, detail=json.dumps(exchange))


def failed(past: Past, row: str = FERN, *, error: str = "the loom broke", body: Any = None) -> Attempt:
    """A run whose only row's pattern failed, and the attempt."""
    run = past.begin(row, versions={"patternmill": "0.0.9"})
    attempt = run.attempt(run.pattern(row.partition(",")[0]), AttemptState.FAILED, error=error)
    answered(run, attempt, "jobs/get", 200, body or {"status": "failed", "error": {"message": error}})
    run.end()
    return attempt


def kinds(past: Past, attempt: Attempt) -> list[str]:
    """The events about reports."""
    rows = past.ledger.database.rows(
        "SELECT kind FROM events WHERE request_id = :request_id AND kind LIKE 'feedback%' ORDER BY seq",
        {"request_id": attempt.request_id},
    )
    return [kind for (kind,) in rows]


def run(*arguments: str) -> int:
    return main.run(["explain", *arguments, "--report"])


def test_report_has_what_the_ledger_knows(past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """And what was shown is what was sent."""
    attempt = failed(past)
    assert run("F-1", "--yes") == 0
    (report,) = desk.arrived
    assert report["procedure"] == "patterns/create"
    assert report["request"] == {"body": json.loads(attempt.body), "userAgent": "patternmill/0.0.9"}
    assert report["response"] == {
        "status": 200,
        "durationMs": 35.5,
        "body": {"status": "failed", "error": {"message": "the loom broke"}},
    }
    assert report["agent"].startswith("patternmill/")
    assert report["reportedAt"].startswith("2027-01-15T12:")
    for part in ("Expected: patterns/create", "the loom broke", attempt.request_id, attempt.job_id):
        assert part is not None and part in report["text"]
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") : printed.rindex("}") + 1]) == report
    assert kinds(past, attempt) == ["feedback_intended", "feedback_sent"]
    assert list(problems(past.ledger)) == []


@pytest.mark.parametrize("row", LEAKY)
def test_no_secret_is_sent(row: str, past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Not in any field: prompt, reason, answer, a person's own text; and none is shown."""
    attempt = failed(past, row, error=LEAKY_REASON, body={"message": LEAKY_REASON, "api_key": "c4nary7"})
    text = f"please mail ann@mail.example {KEY} token=c4nary8"
    desk.answers = "503"
    assert run("L-1", "--yes", "--text", text) == 1
    desk.answers = "200"
    assert run("L-1", "--yes") == 0
    printed = capsys.readouterr()
    assert len(desk.raw) == 2
    for content in [*(raw.decode() for raw in desk.raw), printed.out, printed.err]:
        assert [canary for canary in CANARIES if canary in content] == []
    assert "herons" in desk.arrived[0]["request"]["body"]["prompt"]
    events = past.ledger.database.rows(
        "SELECT detail FROM events WHERE request_id = :request_id AND kind LIKE 'feedback%'",
        {"request_id": attempt.request_id},
    )
    assert len(events) == 4


def test_reason_of_a_person_is_not_sent(past: Past, desk: Desk) -> None:
    """Who gave an item up, and why, is nobody else's business."""
    run_ = past.begin(FERN)
    attempt = run_.attempt(run_.pattern("F-1"), AttemptState.HELD)
    with past.ledger.transaction():
        past.ledger.purchases.change(
            run_.record.run_id,
            attempt.request_id,
            AttemptState.FAILED,
            error_code="written_off",
            error="Written off by A. Weaver: refunded",
        )
    run_.end()
    assert run("F-1", "--yes") == 0
    assert "Weaver" not in desk.raw[0].decode()


@pytest.mark.parametrize(
    ("answers", "code", "last", "message"),
    [("422", 1, "feedback_not_sent", "422"), ("lost", 3, "feedback_in_doubt", "may have arrived")],
)
def test_report_is_sent_once(
    answers: str,
    code: int,
    last: str,
    message: str,
    past: Past,
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever comes back; and the person sees it."""
    attempt = failed(past)
    desk.answers = answers
    assert run("F-1", "--yes") == code
    assert message in capsys.readouterr().err
    assert len(desk.raw) == 1
    assert kinds(past, attempt) == ["feedback_intended", last]


def test_failure_is_reported_once(past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """The item's story shows it; what was certainly not delivered may be reported again."""
    failed(past)
    desk.answers = "503"
    assert run("F-1", "--yes") == 1
    desk.answers = "200"
    assert run("F-1", "--yes") == 0
    capsys.readouterr()
    assert run("F-1", "--yes") == 2
    assert "was reported before" in capsys.readouterr().err
    (report,) = desk.arrived
    assert main.run(["explain", "F-1"]) == 0
    story = capsys.readouterr().out
    assert f"was begun ({report['requestId']})" in story
    assert f"reported to the service's operators (The service has the report {report['requestId']}.)" in story
    assert "what was answered (jobs/get: 200, after 36 ms)" in story


def test_nothing_is_sent_without_a_yes(
    past: Past, desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No terminal, or a no."""
    attempt = failed(past)
    assert run("F-1") == 2
    assert "--yes" in capsys.readouterr().err
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    assert run("F-1") == 2
    assert (desk.raw, kinds(past, attempt)) == ([], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["X-1"], "did not fail at the service"),
        (["R-1"], "did not fail at the service"),
        (["Z-9"], "Nothing in this ledger is called"),
        (["F-1", "--text", "  "], "empty"),
    ],
)
def test_nothing_to_report_is_refused(
    arguments: list[str], message: str, past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was made, what our own checks refused, what is unknown."""
    run_ = past.begin(FERN, FOX, REFUSED)
    run_.make("X-1")
    run_.attempt(run_.pattern("F-1"), AttemptState.FAILED)
    run_.end()
    assert run(*arguments, "--yes") == 2
    assert message in capsys.readouterr().err
    assert desk.raw == []


def test_report_goes_to_the_service_of_the_request(
    past: Past, desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one learns nothing of it."""
    attempt = failed(past)
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": {"url": desk.url, "key": KEY}}))
    assert run("F-1", "--yes") == 2
    assert "The request went to http://127.0.0.1:9/v1" in capsys.readouterr().err
    assert (desk.raw, kinds(past, attempt)) == ([], [])


def test_open_request_of_a_run_that_goes_on_is_not_reported(
    past: Past, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may still be answered; what failed may be reported at once."""
    run_ = past.begin(FERN, FOX)
    run_.attempt(run_.pattern("F-1"), AttemptState.ACCEPTED)
    run_.attempt(run_.pattern("X-1"), AttemptState.FAILED)
    holder = json.dumps(this_process())
    with past.ledger.transaction():
        past.ledger.catalogs.claim_lease("staging", "spring", run_.record.run_id, holder, over=None)
    assert run("F-1", "--yes") == 2
    assert "goes on" in capsys.readouterr().err
    assert run("X-1", "--yes") == 0
