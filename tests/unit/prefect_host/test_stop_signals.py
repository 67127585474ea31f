"""Which handler gets SIGTERM while a flow runs in the main thread, as it does under a worker."""

from __future__ import annotations

import asyncio
import signal
import threading
from dataclasses import dataclass, field
from typing import Any, cast

from prefect.utilities.engine import capture_sigterm

from patternmill.runs.run import Run
from prefect_host.stop_signals import run_in_thread, stop_on_signals


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


async def test_sigterm_stops_a_run_with_nested_flows_once() -> None:
    """Prefect puts its own handler back for each nested flow run, unless it finds it there: ours stays."""
    run = StandIn()
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with capture_sigterm(), stop_on_signals() as attach:
        attach(cast(Run, run))
        with capture_sigterm():
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
                await asyncio.sleep(0)
    assert run.stops == ["Stopped by SIGTERM."]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_signal_before_the_run_begins_stops_it_at_its_beginning() -> None:
    """During reading and planning, before anything is bought. A run that has ended has nothing to stop."""
    run, ended = StandIn(), StandIn(ending="ended")
    with stop_on_signals() as attach:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        attach(cast(Run, run))
        attach(cast(Run, ended))
    assert (run.stops, ended.stops) == (["Stopped by Ctrl-C."], [])


def test_terminal_and_shell_that_both_hang_up_stop_a_run_once() -> None:
    """Each sends SIGHUP; a second stop would end at once what is followed to its end."""
    reasons, is_over = list[str](), threading.Event()

    async def work() -> None:
        await asyncio.to_thread(is_over.wait)

    def hang_up() -> bool:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        is_over.set()
        return False

    # The tests themselves may run under `nohup`.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        run_in_thread(work, reasons.append, hang_up)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert reasons == ["Stopped by SIGHUP."]
