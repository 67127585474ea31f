"""What is shown of a run while it goes on."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cli.run_display import Display, ending_lines
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.planning.plan import Cost
from patternmill.results.results_files import FAILURES_BOOK, Results
from patternmill.results.summary import Cause
from patternmill.runs.run import Run
from patternmill.runs.run_text import progress_line
from patternmill.states import UNDECIDED, Outcome, RowStatus, Stage


class ShownRun(SimpleNamespace):
    @property
    def waiting(self) -> str:
        return cast(str, self.writer.waiting)

    in_flight, time_left = Run.in_flight, Run.time_left


def run_with(writer: object, queued: int = 0, **counts: Any) -> Run:
    studio = SimpleNamespace(queued=queued)
    engine = SimpleNamespace(is_paused=False)
    shown = ShownRun(progress=Progress(**counts), writer=writer, halt=Halt(), engine=engine, _studio=studio)
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


def test_run_without_an_end_says_why() -> None:
    """With a full disk neither its end can be written, nor what the Prefect server was to show of it."""
    run = run_with(SimpleNamespace(waiting=""))
    run.ending = None
    run.halt.begin(HaltReason(Outcome.FAILED, "ledger", "The ledger cannot be used: the disk is full."))
    assert list(ending_lines(run, "", "patternmill import spring.csv")) == [
        "The ledger cannot be used: the disk is full.",
        "The run ended before it was complete. To go on: patternmill import spring.csv",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_terminals_have_a_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redrawn with the line below it; without a terminal only plain lines, and messages stay."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=200)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    monkeypatch.setattr("cli.run_display._LINE_EVERY", 0.01)
    display = Display()
    display.watch(run_with(SimpleNamespace(waiting=""), to_do=4, ended=3, started=0))
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
    display.watch(run_with(SimpleNamespace(waiting=""), to_do=4, ended=3, started=0))
    with display.showing():
        display.end("Ended at once.")
        shown = screen.getvalue()
    assert shown.endswith("Ended at once.\n")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l") > -1


def results_of(
    *causes: Cause, files: tuple[str, ...] = (), to_retry: Mapping[RowStatus, int] = MappingProxyType({})
) -> Results:
    return Results(Path("results"), files, cast(Any, None), causes, to_retry)


def ended_run(outcome: Outcome, rows: dict[RowStatus, int] | None = None, **changes: Any) -> Run:
    """A run that has ended, as far as its last lines read it."""
    now = datetime(2026, 9, 1, tzinfo=UTC)
    record = SimpleNamespace(run_id="r1", catalog="spring", environment="staging", reason=None, options={})
    record.started_at = record.ended_at = now
    spent = SimpleNamespace(amounts={"EUR": 1_040})
    values: dict[str, Any] = {
        "record": record,
        "ending": SimpleNamespace(
            outcome=outcome, rows=rows or {}, record=record, spent=spent, to_decide=0, resumed=0
        ),
        "results": results_of(to_retry=rows or {}),
        "progress": Progress(),
        "reported": "",
        "spec": SimpleNamespace(options=SimpleNamespace(prices={})),
    }
    return cast(Run, SimpleNamespace(**values | changes))


def last_lines(run: Run) -> list[str]:
    return list(ending_lines(run, "", "patternmill import spring.csv"))


def test_end_of_a_run_says_where_the_other_causes_are() -> None:
    """Ten are listed; how many more there are, of how many rows, and which file has them."""
    causes = [
        Cause("unknown_category", f"unknown category `{n}`", 2, (), f"category `{n}`", "") for n in range(19)
    ]
    lines = last_lines(ended_run(Outcome.COMPLETED_WITH_FAILURES, results=results_of(*causes)))
    assert lines[0].startswith("Completed with failures: ")
    assert f"  and 9 more causes of 18 rows, in {Path('results/failures.csv')}" in lines


@pytest.mark.parametrize("others", [0, 1])
def test_rows_that_wait_for_a_choice_are_gone_on_with_by_looking(others: int) -> None:
    """No import decides; what waits for anything else goes on with it."""
    cause, rows = Cause(UNDECIDED, "", 3, (), "", ""), {RowStatus.WAITING: 3 + others}
    results = results_of(cause, to_retry={RowStatus.WAITING: others})
    lines = last_lines(ended_run(Outcome.COMPLETED_WITH_FAILURES, rows, results=results))
    assert "To decide: patternmill look spring" in lines
    assert ("To go on: patternmill import spring.csv" in lines) is bool(others)


def test_end_of_a_run_says_what_was_spent_and_how_to_go_on() -> None:
    """The command is the very one to type; a limit that was reached is to be raised."""
    spec = SimpleNamespace(options=SimpleNamespace(prices={Stage.PATTERN: 40}))
    cost = Cost(1_000, 2_000, "EUR")
    run = ended_run(Outcome.BUDGET_REACHED, {RowStatus.NOT_STARTED: 2}, cost=cost, spec=spec)
    cast(Any, run.record).reason = "Raise PATTERNMILL_DAY_BUDGET and run the same command again."
    lines = last_lines(run)
    assert "Money: €10.40 spent; expected at least €10.00, at most €20.00 if jobs fail" in lines
    assert lines[-1] == "To go on, with a higher limit: patternmill import spring.csv"


@pytest.mark.parametrize(
    ("reason", "typed", "line"),
    [
        (
            "Raise --budget and run the same command again.",
            "--budget '€ 10' --max-items 4",
            ", with a higher limit: patternmill import a.csv --budget … --max-items 4",
        ),
        (
            "Raise --max-items and run the same command again.",
            "--max-items=4",
            ", with a higher limit: patternmill import a.csv --max-items=…",
        ),
        ("Run again: what is left needs another approval.", "", ": patternmill import a.csv"),
    ],
)
def test_limit_that_was_reached_is_not_printed_again(reason: str, typed: str, line: str) -> None:
    run = ended_run(Outcome.BUDGET_REACHED, {RowStatus.NOT_STARTED: 2})
    cast(Any, run.record).reason = reason
    lines = list(ending_lines(run, "", f"patternmill import a.csv {typed}".strip()))
    assert lines[-1] == f"To go on{line}"


@pytest.mark.parametrize(("left", "goes_on"), [((2, 0), False), ((2, 1), True), ((0, 3), True)])
def test_end_of_a_run_leads_to_whoever_can_go_on(left: tuple[int, int], goes_on: bool) -> None:
    """What is too old to be resent waits for a person, whatever is run again."""
    run = ended_run(Outcome.COMPLETED_WITH_FAILURES, {RowStatus.IN_DOUBT: 3})
    cast(Any, run.ending).to_decide, cast(Any, run.ending).resumed = left
    lines = last_lines(run)
    decide = "To decide, as no run resends 2 requests: patternmill settle"
    assert (decide in lines, lines[-1].startswith("To go on: ")) == (bool(left[0]), goes_on)


@pytest.mark.parametrize("rest", [0, 7])
def test_end_of_a_stopped_run_says_what_is_kept(rest: int) -> None:
    """And what the next command does."""
    rows = {RowStatus.SUCCEEDED: 3, RowStatus.CANCELLED: 2, RowStatus.NOT_STARTED: rest}
    lines = last_lines(ended_run(Outcome.CANCELLED, rows))
    assert lines[0] == f"Cancelled: 3 succeeded, {f'{rest} not started, ' if rest else ''}2 not finished"
    assert lines[-2:] == [
        "What was made or begun is kept, and is not bought again: the next command finishes 2 rows"
        f"{f', and begins {rest}' if rest else ''}.",
        "To go on: patternmill import spring.csv",
    ]


@pytest.mark.parametrize(
    ("statuses", "files", "step"),
    [
        ([RowStatus.REFUSED, RowStatus.FAILED], (), "correct failures.csv, then patternmill import "),
        ([RowStatus.REFUSED], (FAILURES_BOOK,), "correct failures.xlsx, then patternmill import "),
        ([RowStatus.FAILED], (), "patternmill retry --catalog spring --environment staging; or correct "),
        ([RowStatus.SUCCEEDED, RowStatus.HELD, RowStatus.NOT_STARTED], (), None),
        # Its pattern was rejected meanwhile.
        ([RowStatus.FAILED], None, None),
    ],
)
def test_end_of_a_run_says_what_to_do_about_its_failures(
    statuses: list[RowStatus], files: tuple[str, ...] | None, step: str | None
) -> None:
    to_retry = dict.fromkeys(statuses, 1) if files is not None else {}
    results = results_of(files=files or (), to_retry=to_retry)
    lines = last_lines(
        ended_run(Outcome.COMPLETED_WITH_FAILURES, dict.fromkeys(statuses, 1), results=results)
    )
    assert [one.startswith(f"Next: {step}") for one in lines if one.startswith("Next: ")] == [True] * bool(
        step
    )
