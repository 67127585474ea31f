"""How the task run of a group of rows ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from patternmill.engine.progress import Halt, HaltReason
from patternmill.errors import RowFailed
from patternmill.states import Outcome
from tasks.prefect_states import group_state

FAILED = RowFailed("It was refused.", code="content_policy")
GAVE_UP = RowFailed("It took too long.", code="gave_up_waiting")
STOPPED = "Stopped by SIGINT."


@pytest.mark.parametrize(
    ("made", "failures", "is_halted", "state"),
    [
        (3, [], True, ("COMPLETED", "Completed", "3 of 3 products")),
        (2, [FAILED], True, ("FAILED", "Failed", "2 of 3 products. 1 content_policy")),
        (
            0,
            [GAVE_UP, FAILED, FAILED],
            False,
            ("FAILED", "Failed", "0 of 3 products. 2 content_policy, 1 gave_up_waiting"),
        ),
        (2, [], True, ("CANCELLED", "NotStarted", f"2 of 3 products. {STOPPED}")),
        (1, [FAILED], True, ("FAILED", "Failed", f"1 of 3 products. 1 content_policy. {STOPPED}")),
    ],
)
def test_group_ends_by_its_rows(
    made: int, failures: list[RowFailed], is_halted: bool, state: tuple[str, str, str]
) -> None:
    """A stop counts only where it left rows out."""
    halt = Halt()
    if is_halted:
        halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", STOPPED))
    failed = [(None, failure) for failure in failures]
    engine: Any = SimpleNamespace(made=lambda group: made, failures=lambda group: failed, halt=halt)
    found = group_state(engine, cast(Any, SimpleNamespace(rows=(1, 2, 3))))
    assert (found.type.value, found.name, found.message) == state
