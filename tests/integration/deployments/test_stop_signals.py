"""Which handler gets SIGTERM while a flow runs in the main thread, as it does under a worker."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass, field
from typing import Any, cast

from prefect.utilities.engine import capture_sigterm

from patternmill.runs.run import Run
from prefect_host.stop_signals import stop_on_signals


@dataclass
class StandIn:
    """As much of a run as is stopped."""

    stops: list[str] = field(default_factory=list)
    ending: Any = None

    @property
    def is_stopped(self) -> bool:
        return bool(self.stops)

    def stop(self, why: str) -> None:
        self.stops.append(why)

    def as_run(self) -> Run:
        return cast(Run, self)


async def test_sigterm_stops_a_run_with_nested_flows_once() -> None:
    """Prefect puts its own handler back for each nested flow run, unless it finds it there: ours stays."""
    run = StandIn()
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with capture_sigterm(), stop_on_signals() as attach:
        attach(run.as_run())
        with capture_sigterm():
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                os.kill(os.getpid(), number)
                await asyncio.sleep(0.05)
    assert run.stops == ["Stopped by SIGTERM."]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_signal_before_the_run_begins_stops_it_at_its_beginning() -> None:
    """During reading and planning, before anything is bought. A run that has ended has nothing to stop."""
    run, ended = StandIn(), StandIn(ending="ended")
    with stop_on_signals() as attach:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.05)
        attach(run.as_run())
        attach(ended.as_run())
    assert (run.stops, ended.stops) == (["Stopped by Ctrl-C."], [])
