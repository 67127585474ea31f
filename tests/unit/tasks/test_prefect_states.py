"""How the task run of a group of rows ends."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from patternmill.engine.progress import Halt, HaltReason
from patternmill.errors import RowFailed
from patternmill.ledger.spending import Spent
from patternmill.states import Outcome, RowStatus
from patternmill.tables.totals import Cause
from tasks.prefect_states import ending_message, group_state, state_of

FAILED = RowFailed("It was refused.", code="content_policy")
GAVE_UP = RowFailed("It took too long.", code="gave_up_waiting")
STOPPED = "Stopped by Ctrl-C."


@pytest.mark.parametrize(
    ("made", "failures", "is_halted", "state"),
    [
        (3, [], True, ("COMPLETED", "Completed", "3 of 3 products")),
        (2, [FAILED], True, ("FAILED", "Failed", "2 of 3 products. S-1: content_policy: It was refused.")),
        (
            0,
            [GAVE_UP, FAILED, FAILED],
            False,
            ("FAILED", "Failed", "0 of 3 products. 2 content_policy, 1 gave_up_waiting"),
        ),
        (2, [], True, ("CANCELLED", "NotStarted", f"2 of 3 products. {STOPPED}")),
        (0, [FAILED] * 2, True, ("FAILED", "Failed", f"0 of 3 products. 2 content_policy. {STOPPED}")),
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
    found = group_state(engine, cast(Any, SimpleNamespace(rows=(1, 2, 3))))
    assert (found.type.value, found.name, found.message) == state


def test_run_whose_rows_wait_for_a_choice_is_complete() -> None:
    """What a person has still to choose is neither a failure nor red."""
    rows = {RowStatus.SUCCEEDED: 1, RowStatus.TO_CHOOSE: 4, RowStatus.DISCARDED: 2}
    ending = cast(
        Any, SimpleNamespace(record=SimpleNamespace(options={}, reason=None), rows=rows, spent=Spent())
    )
    state = state_of(Outcome.COMPLETED, ending_message(ending, []))
    assert (state.type.value, state.name) == ("COMPLETED", "Completed")
    assert state.message == "7 rows: 1 succeeded, 4 to choose, 2 discarded"


def test_run_that_ends_says_what_it_paid_and_why_rows_failed() -> None:
    """Its message is the notification's: the failure that was paid for comes before the word that nobody knows."""
    rows = {RowStatus.REFUSED: 3, RowStatus.FAILED: 1}
    spent = Spent(amounts=Counter({"EUR": 1250}))
    ending = cast(
        Any,
        SimpleNamespace(record=SimpleNamespace(options={}, reason="It was stopped."), rows=rows, spent=spent),
    )
    word = Cause("unknown_value", 2, ("A", "B"), "unknown value `Samt` for option `fabric`", "")
    other = Cause("empty_prompt", 1, ("C",), "the prompt is empty", "")
    paid = Cause("product_failed", 1, ("D",), "the loom broke", "")
    assert ending_message(ending, [word, other, paid]) == (
        "4 rows: 1 failed, 3 refused. €12.50 spent. It was stopped. 1 × the loom broke. "
        "2 × unknown value `Samt` for option `fabric`"
    )
