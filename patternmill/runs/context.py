"""What flows find in the process that runs them, besides their parameters: those are stored in clear, and are few."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from patternmill.runs.run import ActiveRun, Run
from patternmill.runs.spec import RunSpec


@dataclass(frozen=True)
class Launch:
    """A run that this process launches as a flow of its own."""

    spec: RunSpec
    on_begin: Callable[[Run], None]


#: None in a flow that a worker runs: it makes the spec from its parameters.
launched: ContextVar[Launch | None] = ContextVar("launched", default=None)
#: The run, or part of one, whose rows are driven: how a nested flow finds the engine that its parent opened.
driven: ContextVar[ActiveRun] = ContextVar("driven")


def announce(run: Run) -> None:
    """Show a run that has begun to the launch in this process, if any."""
    launch = launched.get()
    if launch is not None:
        launch.on_begin(run)
