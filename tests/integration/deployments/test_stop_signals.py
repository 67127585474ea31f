"""Who hears SIGTERM while a flow runs in the main thread, as it does under a worker."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import dataclass, field
from typing import Any, cast

from prefect.utilities.engine import capture_sigterm

from patternmill.runs.run import Run
from prefect_host.stop_signals import Stopping, stop_on_signals


@dataclass
class StandIn:
    """As much of a run as is stopped."""

    told: list[str] = field(default_factory=list)
    ending: Any = None
    abandoned: bool = False

    @property
    def is_stopped(self) -> bool:
        return bool(self.told)

    @property
    def engine(self) -> StandIn:
        return self

    def stop(self, why: str) -> None:
        self.told.append(why)

    def abandon(self) -> None:
        self.abandoned = True

    def as_run(self) -> Run:
        return cast(Run, self)


def test_a_signal_stops_the_run_once_though_flows_are_nested() -> None:
    """Prefect puts its own handler back for each nested flow run, unless it finds it there: ours stays."""
    run = StandIn()

    async def main() -> None:
        with capture_sigterm(), stop_on_signals() as stopping:
            stopping.attach(run.as_run())
            with capture_sigterm():
                for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                    os.kill(os.getpid(), number)
                    await asyncio.sleep(0.05)

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    asyncio.run(main())
    assert run.told == ["Stopped by SIGTERM."]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_told_before_there_is_a_run() -> None:
    """Reading and planning come first: what they lead to is stopped as it begins, before anything is bought."""
    run = StandIn()

    async def main() -> None:
        with stop_on_signals() as stopping:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.05)
            stopping.attach(run.as_run())

    asyncio.run(main())
    assert run.told == ["Stopped by SIGTERM."]


def test_a_run_that_has_ended_is_left_alone() -> None:
    """Its results are being written; there is nothing to stop."""
    run, stopping = StandIn(ending="ended"), Stopping()
    stopping.attach(run.as_run())
    stopping.request("Stopped by SIGTERM.")
    assert run.told == []


def test_in_another_thread_signals_are_not_touched() -> None:
    """The command line runs flows in a thread, and hears signals itself."""
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    async def main() -> None:
        with stop_on_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join(10)
    assert seen == [before]
