"""What a run shows while it goes on: a live display on a terminal, plain lines when piped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.terminal import printable
from patternmill.runs.run import Run

_FRAME = 0.25
_LINE_EVERY = 5.0


class Display:
    """Follows a run from a thread of its own, so that a busy event loop does not freeze it."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._run: Run | None = None
        self._ended = threading.Event()

    def say(self, text: str) -> None:
        """Say something that is worth a line of its own."""
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def watch(self, run: Run) -> None:
        self._run = run

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show what goes on while the context lasts."""
        follow = self._follow_live if self._console.is_terminal else self._follow_lines
        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(timeout=2)

    def _follow_live(self) -> None:
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            while not self._ended.wait(_FRAME):
                live.update(self._picture())

    def _follow_lines(self) -> None:
        last = ""
        while not self._ended.wait(_LINE_EVERY):
            line = progress_line(self._run) if self._run else ""
            if line and line != last:
                self.say(line)
                last = line

    def _picture(self) -> Table | str:
        run = self._run
        if run is None:
            return "Reading, checking and planning …"
        progress = run.progress
        grid = Table.grid(padding=(0, 2))
        for _ in range(2):
            grid.add_column()
        grid.add_row("rows", ProgressBar(total=max(1, progress.to_do), completed=progress.ended, width=40))
        for name, text in _facts(run):
            grid.add_row(name, Text(printable(text)))
        return grid


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    progress = run.progress
    before = progress.done_before + progress.refused
    yield "", f"{progress.ended} of {progress.to_do} ended" + (f", {before} needed nothing" if before else "")
    yield "made", f"{progress.patterns} patterns, {progress.products} products"
    yield (
        "failed",
        f"{progress.failed} rows"
        + (f", {progress.tried_again} items tried again" if progress.tried_again else ""),
    )
    yield "in flight", f"{progress.in_flight} jobs"
    yield "rate", f"{progress.rows_a_second * 60:.0f} rows a minute"
    yield "time", f"{_clock(progress.seconds)}, {_left(progress.seconds_left)}"
    if run.writer.waiting:
        yield "", run.writer.waiting
    if run.halt.reason is not None:
        yield "stopping", run.halt.reason.message


def progress_line(run: Run) -> str:
    """The same facts as one line."""
    progress = run.progress
    line = (
        f"{progress.ended}/{progress.to_do} rows, {progress.patterns} patterns, {progress.products} products, "
        f"{progress.failed} failed, {progress.in_flight} in flight, "
        f"{progress.rows_a_second * 60:.0f} rows a minute, {_left(progress.seconds_left)}"
    )
    line = "; ".join(filter(None, (line, run.writer.waiting)))
    return f"{line}; stopping: {run.halt.reason.message}" if run.halt.reason else line


def _left(seconds: float | None) -> str:
    return "time left not known yet" if seconds is None else f"about {_clock(seconds)} left"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
