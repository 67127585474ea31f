"""The states that an ended run's task runs have, where the Prefect server lost them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from patternmill.runs.run import Run
from tasks.prefect_states import task_run_states
from tasks.run_steps import check_rows, choose_rows, plan_items, publish, read_file


def run_of(*items: tuple[str, object]) -> Run:
    """A run that ended with these items, by name, and their failures."""
    ended = [(SimpleNamespace(describe=lambda name=name: name), failed) for name, failed in items]
    engine: Any = SimpleNamespace(ended_items=lambda: ended)
    return cast(Run, SimpleNamespace(results=object(), engine=engine))


def test_every_step_is_known() -> None:
    """Those of a retry too, so that none of them counts as unknown."""
    steps = (choose_rows, read_file, check_rows, plan_items, publish)
    assert set(task_run_states(run_of())) == {step.task_run_name for step in steps}


def test_a_name_with_two_ends_is_unknown() -> None:
    failed = SimpleNamespace(code="pattern_failed", message="no", job_id=None, request_id=None)
    states = task_run_states(run_of(("herons", None), ("ferns", None), ("herons", failed)))
    assert "herons" not in states
    assert states["ferns"].is_completed()
