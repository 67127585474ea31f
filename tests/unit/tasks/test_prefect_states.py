"""The states and task runs that an ended run should have, where the Prefect server lost them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from patternmill.engine.progress import Halt, HaltReason
from patternmill.runs.run import Run
from patternmill.states import Outcome
from tasks.prefect_states import shard_state, step_states
from tasks.run_steps import check_rows, choose_rows, plan_items, publish, read_file


def test_every_step_is_known() -> None:
    """Those of a retry too, so that none of them counts as unknown; and reports, where the run has sent any."""
    run: Any = SimpleNamespace(results=object(), unpublished=None)
    steps = (choose_rows, read_file, check_rows, plan_items, publish)
    names = {step.task_run_name for step in steps} | {step.name for step in steps}
    assert set(step_states(cast(Run, run))) == names


@pytest.mark.parametrize(
    ("made", "is_halted", "is_unfinished", "state"),
    [
        (3, True, False, ("COMPLETED", "Completed", "3 of 3 products")),
        (2, False, False, ("FAILED", "CompletedWithFailures", "2 of 3 products")),
        (2, True, True, ("CANCELLED", "Cancelled", "2 of 3 products. Stopped by SIGINT.")),
        (2, True, False, ("FAILED", "CompletedWithFailures", "2 of 3 products")),
    ],
)
def test_shard_ends_as_its_run(
    made: int, is_halted: bool, is_unfinished: bool, state: tuple[str, str, str]
) -> None:
    """Where rows were left out by a stop; one whose rows had all ended before it has its own failures alone."""
    halt = Halt()
    if is_halted:
        halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", "Stopped by SIGINT."))
    engine: Any = SimpleNamespace(
        made=lambda shard: made, halt=halt, has_unfinished_rows=lambda shard: is_unfinished
    )
    found = shard_state(engine, cast(Any, SimpleNamespace(rows=(1, 2, 3))))
    assert (found.type.value, found.name, found.message) == state
