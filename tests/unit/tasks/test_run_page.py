"""What the page of a flow run shows of its progress."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.runs.run import Run
from patternmill.states import Outcome
from tasks.run_page import progress_text


def run_with(progress: Progress) -> Run:
    shown = SimpleNamespace(
        progress=progress, halt=Halt(), waiting="", in_flight="2 in flight", time_left=(1.0, 90.0)
    )
    return cast(Run, shown)


def test_stopped_run_has_no_time_left() -> None:
    """What it left out does not end; the page stays, and says why instead."""
    run = run_with(Progress(to_do=40, ended=8))
    assert progress_text(run).startswith("up to 2 min left; 8 of 40 rows ended")
    run.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", "Stopped by SIGTERM."))
    text = progress_text(run)
    assert "left" not in text
    assert text.endswith("; Stopped by SIGTERM")
