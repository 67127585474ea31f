"""The states and task runs that an ended run should have, where the Prefect server lost them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from patternmill.runs.run import Run
from tasks.prefect_states import step_states
from tasks.run_steps import check_rows, choose_rows, plan_items, publish, read_file, send_reports


def test_every_step_is_known() -> None:
    """Those of a retry too, so that none of them counts as unknown; and reports, where the run has sent any."""
    run: Any = SimpleNamespace(results=object(), reported="No report sent.")
    steps = (choose_rows, read_file, check_rows, plan_items, publish, send_reports)
    names = {step.task_run_name for step in steps} | {step.name for step in steps}
    assert set(step_states(cast(Run, run))) == names
