"""States and messages in the Prefect UI: of runs, of groups of rows, of what a person cancels, and what is next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect import State
from prefect.client.schemas.objects import StateType

from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.errors import RowFailed
from patternmill.ledger.spending import Spent
from patternmill.runs.results_files import Results
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.totals import Cause
from tasks import flow_runs
from tasks.prefect_states import ending_message, group_state, state_of
from tasks.run_page import next_steps, share_done

FAILED = RowFailed("the loom broke", code="loom", remedy="Import failures.csv.")
WHY = "S-1: loom: the loom broke. Import failures.csv"
GAVE_UP = RowFailed("It took too long.", code="gave_up_waiting")
STOPPED = "Stopped by Ctrl-C."
TOO_LATE = "Cancelled in the Prefect UI when nothing was left to be kept from being bought."


@pytest.mark.parametrize(
    ("made", "failures", "is_halted", "state"),
    [
        (3, [], True, ("COMPLETED", "Completed", "3 of 3 products")),
        (2, [FAILED], True, ("FAILED", "Failed", f"2 of 3 products. {WHY}.")),
        (1, [FAILED], True, ("FAILED", "Failed", f"1 of 3 products. {WHY}. {STOPPED}")),
        (
            0,
            [GAVE_UP, FAILED, FAILED],
            False,
            ("FAILED", "Failed", "0 of 3 products. 2 loom, 1 gave_up_waiting"),
        ),
        (2, [], True, ("CANCELLED", "NotStarted", f"2 of 3 products. {STOPPED}")),
        (0, [FAILED] * 2, True, ("FAILED", "Failed", f"0 of 3 products. 2 loom. {STOPPED}")),
    ],
)
def test_group_ends_by_its_rows(
    made: int, failures: list[RowFailed], is_halted: bool, state: tuple[str, str, str]
) -> None:
    """A stop counts only where it left rows out."""
    halt = Halt()
    if is_halted:
        halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", STOPPED))
    failed = [(SimpleNamespace(sku="S-1"), failure) for failure in failures]
    engine: Any = SimpleNamespace(made=lambda group: made, failures=lambda group: failed, halt=halt)
    group: Any = SimpleNamespace(rows=(1, 2, 3))
    ended = group_state(engine, group)
    assert (ended.type.value, ended.name, ended.message) == state


@pytest.mark.parametrize(
    ("made", "ended", "share"),
    [(0, 0, 0.0), (4, 0, 0.5), (6, 2, 0.75), (6, 4, 1.0)],
    ids=["nothing", "every pattern and no row", "two rows more", "the others have failed"],
)
def test_progress_counts_patterns_before_rows(made: int, ended: int, share: float) -> None:
    assert share_done(Progress(to_do=4, ended=ended, made=Counter({Stage.PATTERN: made})), 8) == share


@pytest.mark.parametrize(
    ("outcome", "now", "shown"),
    [
        (Outcome.FAILED, StateType.CANCELLING, ("CANCELLED", "Failed", f"4 rows. {TOO_LATE}")),
        (Outcome.COMPLETED, StateType.RUNNING, ("COMPLETED", "Completed", "4 rows.")),
        (Outcome.BUDGET_REACHED, StateType.CANCELLING, ("CANCELLED", "BudgetReached", "4 rows.")),
    ],
)
def test_run_that_is_being_cancelled_keeps_its_outcome_and_numbers(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, now: StateType, shown: tuple[str, str, str]
) -> None:
    """The server lets it end as cancelled only, and would say no more than that."""

    async def current() -> State[Any]:
        return State(type=now)

    monkeypatch.setattr(flow_runs, "_current_state", current)
    state = asyncio.run(flow_runs.final_state(state_of(outcome, "4 rows.")))
    assert (state.type.value, state.name, state.message) == shown


def ending(rows: Mapping[RowStatus, int], reason: str | None = None, **amounts: int) -> Any:
    record = SimpleNamespace(options={}, reason=reason, catalog="spring", environment="production")
    return SimpleNamespace(record=record, rows=rows, spent=Spent(amounts=Counter(amounts)))


def test_message_of_an_end_is_the_notifications() -> None:
    """What was paid; the failure that was paid for before the word that nobody knows; what waits for a choice."""
    rows = {RowStatus.SUCCEEDED: 1, RowStatus.TO_CHOOSE: 4, RowStatus.DISCARDED: 2}
    assert ending_message(ending(rows), []) == "7 rows: 1 succeeded, 4 to choose, 2 discarded"
    word = Cause("unknown_value", 2, ("A", "B"), "unknown value `Samt` for option `fabric`", "")
    other = Cause("empty_prompt", 1, ("C",), "the prompt is empty", "")
    paid = Cause("product_failed", 1, ("D",), "the loom broke", "")
    stopped = ending({RowStatus.REFUSED: 3, RowStatus.FAILED: 1}, "It was stopped.", EUR=1250)
    assert ending_message(stopped, [word, other, paid]) == (
        "4 rows: 1 failed, 3 refused. €12.50 spent. It was stopped. 1 × the loom broke. "
        "2 × unknown value `Samt` for option `fabric`"
    )


@pytest.mark.parametrize(
    ("rows", "to_retry", "retry", "correct"),
    [
        ({RowStatus.SUCCEEDED: 3}, {}, False, False),
        ({RowStatus.REFUSED: 2}, {}, False, True),
        ({RowStatus.WAITING: 2}, {}, False, False),
        ({RowStatus.TO_CHOOSE: 2, RowStatus.DISCARDED: 1}, {}, False, False),
        ({RowStatus.FAILED: 2}, {RowStatus.FAILED: 1}, True, True),
        ({RowStatus.IN_DOUBT: 2}, {RowStatus.IN_DOUBT: 2}, True, False),
    ],
)
def test_next_steps_do_something(
    rows: Mapping[RowStatus, int], to_retry: Mapping[RowStatus, int], *, retry: bool, correct: bool
) -> None:
    lookup: Any = None
    text = " ".join(next_steps(ending(rows), Results(Path("results"), (), lookup, (), to_retry)))
    command = "`retry-failed`, or patternmill retry --catalog spring --environment production,"
    assert (command in text, "failures.csv" in text) == (retry, correct)
    assert ("2 rows to choose: patternmill look spring" in text) is (RowStatus.TO_CHOOSE in rows)
