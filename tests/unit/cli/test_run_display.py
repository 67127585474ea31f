"""What is shown of a run while it goes on."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cli.run_display import Display, ending_lines
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.planning.plan import Cost
from patternmill.runs.results_files import FAILURES_BOOK, Results
from patternmill.runs.run import Run
from patternmill.runs.run_text import progress_line
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.totals import Cause


class ShownRun(SimpleNamespace):
    @property
    def waiting(self) -> str:
        return cast(str, self.writer.waiting)


def run_with(writer: object, queued: int = 0, **counts: Any) -> Run:
    engine = SimpleNamespace(is_paused=False)
    shown = ShownRun(progress=Progress(**counts), writer=writer, halt=Halt(), engine=engine, queued=queued)
    return cast(Run, shown)


@pytest.mark.parametrize(
    ("waiting", "halt", "counts", "pattern"),
    [
        # The reason comes last; nothing is said of waiting while the run is well.
        ("waiting for the ledger since 12 s", "", {}, "; waiting for the ledger since 12 s$"),
        ("", "", {"to_do": 24, "ended": 24}, ", ending$"),
        # Else 200 would seem to be made where it runs twelve.
        ("", "", {"queued": 1_188, "in_flight": 1_200}, ", 12 in flight, 1,188 waiting to be sent, "),
        # They may be waiting, in doubt or held: only the results say that they failed.
        ("", "", {"to_do": 4, "ended": 2, "failed": 2}, "^(?!.*failed).*, 2 not made, "),
        (
            "",
            "",
            {"to_do": 1234, "made": Counter({Stage.PATTERN: 1}), "done_before": 2, "refused": 3},
            "^0 of 1,234 rows, 2 more needed nothing, 3 refused, 1 pattern, 0 products, 0 not made, 0 in flight, "
            ".*time left not known yet$",
        ),
        ("", "Stopped by X.", {"to_do": 40, "ended": 8}, "^(?!.*left).*; stopping: Stopped by X.$"),
    ],
)
def test_progress_line(waiting: str, halt: str, counts: dict[str, Any], pattern: str) -> None:
    run = run_with(SimpleNamespace(waiting=waiting), **counts)
    if halt:
        run.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", halt))
    assert re.search(pattern, progress_line(run))


@pytest.mark.parametrize("terminal", [True, False])
def test_terminals_have_a_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redrawn with the line below it; without a terminal only plain lines, and messages stay."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=200)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    monkeypatch.setattr("cli.run_display._LINE_EVERY", 0.01)
    display = Display()
    display.run = run_with(SimpleNamespace(waiting=""), to_do=4, ended=3, started=0)
    with display.showing():
        display.print("[b]4 rows[/b]")
        deadline = monotonic() + 10
        while "3 of 4 rows" not in screen.getvalue() and monotonic() < deadline:
            sleep(0.01)
    shown = screen.getvalue()
    assert "3 of 4 rows" in shown and "[b]4 rows[/b]" in shown
    assert bool(re.search("rows .*━", shown)) is terminal
    assert ("\x1b" in shown) is terminal


def test_end_at_once_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor is there again, and nothing is drawn below the last line."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    display = Display()
    display.run = run_with(SimpleNamespace(waiting=""), to_do=4, ended=3, started=0)
    with display.showing():
        display.end("Ended at once.")
        shown = screen.getvalue()
    assert shown.endswith("Ended at once.\n")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l") > -1


APPROVED = Path(__file__).parent / "last_lines_of_runs.txt"
CAUSES = [Cause("unknown_category", 2, (), f"category `{number}`", "") for number in range(19)]
WAITS, FAILURES = {RowStatus.TO_CHOOSE: 3, RowStatus.DISCARDED: 2}, Outcome.COMPLETED_WITH_FAILURES
BEGUN = {RowStatus.SUCCEEDED: 3, RowStatus.CANCELLED: 2}
NEW, REFUSED, FAILED = {RowStatus.NOT_STARTED: 2}, {RowStatus.REFUSED: 1}, {RowStatus.FAILED: 1}
DOUBT, ONE_WAITS = {RowStatus.IN_DOUBT: 3}, {RowStatus.WAITING: 1}
MORE = "Run again: what is left needs another approval."
#: Outcome, rows by status, and what else differs: `left` are the rows that a retry takes up, if not all.
ENDINGS: dict[str, tuple[Outcome, dict[RowStatus, int], dict[str, Any]]] = {
    "more causes than are listed": (FAILURES, {}, {"causes": CAUSES}),
    "no import decides about what waits for a choice": (Outcome.COMPLETED, WAITS, {"left": {}}),
    "other rows wait beside it": (Outcome.COMPLETED, WAITS | ONE_WAITS, {"left": ONE_WAITS}),
    "a limit": (Outcome.BUDGET_REACHED, NEW, {"reason": "Raise --budget."}),
    "an approval that is used up": (Outcome.BUDGET_REACHED, NEW, {"reason": MORE}),
    "a pause": (Outcome.PAUSED, NEW, {}),
    "a person decides": (FAILURES, DOUBT, {"to_decide": 2}),
    "a person and a run go on": (FAILURES, DOUBT, {"to_decide": 2, "resumed": 1}),
    "a run goes on": (FAILURES, DOUBT, {"resumed": 3}),
    "stopped as all was begun": (Outcome.CANCELLED, BEGUN, {}),
    "stopped": (Outcome.CANCELLED, BEGUN | {RowStatus.NOT_STARTED: 7}, {}),
    "refused and failed": (FAILURES, REFUSED | FAILED, {}),
    "refused rows of a workbook": (FAILURES, REFUSED, {"files": (FAILURES_BOOK,)}),
    "failed": (FAILURES, FAILED, {}),
    "failed, and its pattern was rejected meanwhile": (FAILURES, FAILED, {"left": {}}),
    "made": (FAILURES, {RowStatus.SUCCEEDED: 1, RowStatus.HELD: 1}, {"left": {}, "made": 2}),
}


def ended_run(
    outcome: Outcome,
    rows: dict[RowStatus, int],
    left: dict[RowStatus, int] | None = None,
    *,
    causes: Sequence[Cause] = (),
    files: tuple[str, ...] = (),
    reason: str | None = None,
    to_decide: int = 0,
    resumed: int = 0,
    made: int = 0,
) -> Run:
    """A run that has ended, as far as its last lines read it."""
    now = datetime(2026, 9, 1, tzinfo=UTC)
    record = SimpleNamespace(
        run_id="r1",
        catalog="spring",
        environment="staging",
        reason=reason,
        options={},
        started_at=now,
        ended_at=now,
    )
    spent = SimpleNamespace(amounts={"EUR": 1_040}, items=Counter({Stage.PRODUCT: made}))
    ending = SimpleNamespace(
        outcome=outcome, rows=rows, record=record, spent=spent, to_decide=to_decide, resumed=resumed
    )
    results = Results(Path("results"), files, cast(Any, None), tuple(causes), rows if left is None else left)
    spec = SimpleNamespace(options=SimpleNamespace(prices={Stage.PATTERN: 40}))
    values = {
        "record": record,
        "ending": ending,
        "results": results,
        "spec": spec,
        "cost": Cost(1_000, 2_000, "EUR"),
    }
    return cast(Run, SimpleNamespace(progress=Progress(), **values))


def test_last_lines_of_runs(approved: Callable[[str, Path], None]) -> None:
    """What was made and spent, where the files are, and who goes on how: a command is named where it does something."""
    lost = run_with(SimpleNamespace(waiting=""))
    lost.ending = None
    lost.halt.begin(HaltReason(Outcome.FAILED, "ledger", "The ledger cannot be used: the disk is full."))
    runs = {name: ended_run(outcome, rows, **more) for name, (outcome, rows, more) in ENDINGS.items()} | {
        "a full disk": lost
    }
    parts = [
        [f"== {name}", *ending_lines(run, "", lambda: "patternmill import a.csv")]
        for name, run in runs.items()
    ]
    approved("\n\n".join("\n".join(lines) for lines in parts) + "\n", APPROVED)
