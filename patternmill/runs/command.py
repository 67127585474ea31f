"""The way from the command line into its flow and back, for what cannot be a parameter: Prefect stores parameters."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from patternmill.addresses import shown_address
from patternmill.errors import PatternmillError
from patternmill.runs.request import Request
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.settings import with_service


@dataclass
class Command:
    """A request whose flow runs in this process, with what its caller adds; the flow reports back in it."""

    #: What was asked for; its address still has its secrets.
    request: Request
    #: The spec as it was completed on the terminal: with a service, what was confirmed, the input as it was read, and
    #: what a person agreed to buy. None if nobody was asked.
    spec: RunSpec | None = None
    #: Called with the run once its plan is on record.
    on_begin: Callable[[Run], None] = lambda run: None
    #: The run, once its flow has opened it.
    run: Run | None = None
    #: Why the flow ended before a run began, or without its results.
    fault: PatternmillError | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the request as parameters of its flow, which Prefect stores in clear: without an address's secrets."""
        values = dict(self.request)
        for name in values.keys() & {"file", "source"}:
            values[name] = shown_address(values[name])
        return values

    def completed(self, spec: RunSpec) -> RunSpec:
        """Return the spec, made anew as its flow begins, with what this command adds."""
        if self.spec is None:
            return replace(spec, settings=with_service(spec.settings))
        return replace(spec, settings=self.spec.settings, file=self.spec.file, ceiling=self.spec.ceiling)


#: The command whose flow runs in this process; None in a flow that a worker runs.
current_command: ContextVar[Command | None] = ContextVar("current_command", default=None)
