"""What a terminal shows: texts, steps, questions, a run in progress, and its last lines."""

from __future__ import annotations

import io
import re
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cli.run_display import Display, ending_lines
from cli.terminal import Steps, echo
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.planning.plan import Cost
from patternmill.runs.results_files import FAILURES_BOOK, Results
from patternmill.runs.run import Run
from patternmill.runs.run_text import progress_line
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.totals import Cause
from tests.hostile.texts import HOSTILE_TEXTS

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")


def test_no_text_is_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are escaped, and line breaks stay."""
    for name, text in HOSTILE_TEXTS.items():
        echo(text, err=True)
        shown = capsys.readouterr().err
        assert not OBEYED.search(shown), name
        assert shown.count("\n") == text.count("\n") + 1, name


@pytest.mark.parametrize(("terminal", "text"), [("xterm", "\r\x1b[KReading …"), ("dumb", "Reading …\n")])
def test_step_replaces_the_line_where_a_terminal_can(
    terminal: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", terminal)
    Steps().show("Reading …")
    assert screen.getvalue() == text


def run_with(waiting: str = "", queued: int = 0, **counts: Any) -> Run:
    engine = SimpleNamespace(is_paused=False)
    run = SimpleNamespace(
        progress=Progress(**counts), waiting=waiting, halt=Halt(), engine=engine, queued=queued
    )
    return cast(Run, run)


@pytest.mark.parametrize(
    ("waiting", "halt", "counts", "pattern"),
    [
        # Otherwise 1,200 would seem to be in flight, not twelve; the reason for waiting comes last.
        (
            "waiting for the ledger since 12 s",
            "",
            {"queued": 1_188, "in_flight": 1_200},
            ", 12 in flight, 1,188 waiting to be sent, .*; waiting for the ledger since 12 s$",
        ),
        # They may be waiting, in doubt or held: only the results say that they failed.
        ("", "", {"to_do": 4, "ended": 4, "failed": 2}, "^(?!.*failed).*, 2 not made, .*, ending$"),
        ("", "", {"to_do": 1234, "done_before": 2}, "^0 of 1,234 rows, 2 more .*, time left not known yet$"),
        ("", "Stopped by X.", {"to_do": 40, "ended": 8}, "^(?!.*left).*; stopping: Stopped by X.$"),
    ],
)
def test_progress_line(waiting: str, halt: str, counts: dict[str, Any], pattern: str) -> None:
    run = run_with(waiting, **counts)
    if halt:
        run.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", halt))
    assert re.search(pattern, progress_line(run))


class Screen(io.StringIO):
    """A stream that sets an event once the progress is written."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def write(self, text: str) -> int:
        if "3 of 4 rows" in text:
            self.drawn.set()
        return super().write(text)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_of_a_run(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a bar above a line on a terminal, else plain lines. Prints stay, and the cursor is back at the end."""
    screen = Screen()
    console = Console(file=screen, force_terminal=is_terminal, width=200)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    monkeypatch.setattr("cli.run_display._LINE_EVERY", 0.01)
    display = Display()
    display.run = run_with(to_do=4, ended=3, started=0)
    with display.showing():
        assert screen.drawn.wait(30)
        display.print("[b]4 rows[/b]")
        display.end("Ended at once.")
        shown = screen.getvalue()
    assert "[b]4 rows[/b]" in shown and shown.endswith("Ended at once.\n")
    assert bool(re.search("rows .*━", shown)) is is_terminal
    assert ("\x1b" in shown) is is_terminal
    assert not is_terminal or shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l") > -1


APPROVED = Path(__file__).parent / "last_lines_of_runs.txt"
CAUSES = tuple(Cause("unknown_category", 2, (), f"category `{number}`", "") for number in range(19))
WAITS, FAILURES = {RowStatus.TO_CHOOSE: 3, RowStatus.DISCARDED: 2}, Outcome.COMPLETED_WITH_FAILURES
BEGUN = {RowStatus.SUCCEEDED: 3, RowStatus.CANCELLED: 2}
NEW, REFUSED, FAILED = {RowStatus.NOT_STARTED: 2}, {RowStatus.REFUSED: 1}, {RowStatus.FAILED: 1}
DOUBT = {RowStatus.IN_DOUBT: 3}
MORE = "Run again: what is left needs another approval."
#: The outcome, the rows by status, and what else differs: `left` are the rows that a retry takes up, if not all.
ENDINGS: dict[str, tuple[Outcome, dict[RowStatus, int], dict[str, Any]]] = {
    "more causes than are listed": (FAILURES, {}, {"causes": CAUSES}),
    "no import decides about what waits for a choice": (Outcome.COMPLETED, WAITS, {"left": {}}),
    "a limit": (Outcome.BUDGET_REACHED, NEW, {"reason": "Raise --budget."}),
    "an approval that is used up": (Outcome.BUDGET_REACHED, NEW, {"reason": MORE}),
    "a pause": (Outcome.PAUSED, NEW, {}),
    "a person decides": (FAILURES, DOUBT, {"to_decide": 2}),
    "a person and a run go on": (FAILURES, DOUBT, {"to_decide": 2, "resumed": 1}),
    "stopped": (Outcome.CANCELLED, BEGUN | {RowStatus.NOT_STARTED: 7}, {}),
    "refused and failed": (FAILURES, REFUSED | FAILED, {}),
    "refused rows of a workbook": (FAILURES, REFUSED, {"files": (FAILURES_BOOK,)}),
    "failed": (FAILURES, FAILED, {}),
    "failed, and its pattern was rejected meanwhile": (FAILURES, FAILED, {"left": {}}),
    "made": (FAILURES, {RowStatus.SUCCEEDED: 1, RowStatus.HELD: 1}, {"left": {}, "made": 2}),
}


def ended_run(outcome: Outcome, rows: dict[RowStatus, int], more: dict[str, Any]) -> Run:
    """Return an ended run with as much as its last lines read."""
    now = datetime(2026, 9, 1, tzinfo=UTC)
    record = SimpleNamespace(run_id="r1", catalog="spring", environment="staging", reason=more.get("reason"))
    vars(record).update(options={}, started_at=now, ended_at=now)
    spent = SimpleNamespace(amounts={"EUR": 1_040}, items=Counter({Stage.PRODUCT: more.get("made", 0)}))
    ending = SimpleNamespace(outcome=outcome, rows=rows, record=record, spent=spent)
    vars(ending).update(to_decide=more.get("to_decide", 0), resumed=more.get("resumed", 0))
    files, causes = more.get("files", ()), more.get("causes", ())
    results = Results(Path("results"), files, cast(Any, None), causes, more.get("left", rows))
    spec = SimpleNamespace(options=SimpleNamespace(prices={Stage.PATTERN: 40}))
    run = SimpleNamespace(progress=Progress(), record=record, ending=ending, results=results, spec=spec)
    vars(run).update(cost=Cost(1_000, 2_000, "EUR"))
    return cast(Run, run)


def test_last_lines_of_runs(approved: Callable[[str, Path], None]) -> None:
    """They say what was made and spent, where the files are, and how to go on: only useful commands are named."""
    lost = run_with()
    lost.ending = None
    lost.halt.begin(HaltReason(Outcome.FAILED, "ledger", "The ledger cannot be used: the disk is full."))
    runs = {name: ended_run(*ending) for name, ending in ENDINGS.items()} | {"a full disk": lost}
    parts = (
        "\n".join([f"== {name}", *ending_lines(run, "", "patternmill import a.csv")])
        for name, run in runs.items()
    )
    approved("\n\n".join(parts) + "\n", APPROVED)
