"""A run as the command line shows it: its progress, live on a terminal or as plain lines when piped, and its end."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli.terminal import steps
from patternmill.runs.run_text import progress_line, summary_lines
from patternmill.states import UNDECIDED, UNFINISHED_ROWS, Outcome, RowStatus
from patternmill.text import plural, visible_lines

if TYPE_CHECKING:
    from patternmill.ledger.records import RunRecord
    from patternmill.results.results_files import Results
    from patternmill.runs.run import Run, RunEnding

_LINE_EVERY = 5.0
_MOST_CAUSES = 10
_BEGUN = UNFINISHED_ROWS - {RowStatus.NOT_STARTED}


class Display:
    """Follows a run from a thread, so that a busy event loop does not freeze it."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._run: Run | None = None
        self._bar: _ProgressBar | None = None
        self._ended = threading.Event()
        self._step = ""

    def print(self, text: str) -> None:
        """Print a line above the progress bar."""
        steps.clear()
        self._console.print(visible_lines(text), markup=False, highlight=False, soft_wrap=True)

    def end(self, text: str) -> None:
        """Print the last line of a process that ends at once, and leave the terminal as it was found."""
        if self._bar is not None:
            self._bar.stop()
        self.print(text)

    def step(self, text: str) -> None:
        """What is being done before and after the rows are driven."""
        self._step = text
        if self._bar is None:
            steps.show(text)

    def watch(self, run: Run) -> None:
        self._run = run

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show the run's progress while the context lasts."""
        steps.clear()
        if not self._console.is_terminal:
            with self._progress_lines():
                yield
            return
        self._bar = _ProgressBar(self._console, lambda: self._run, lambda: self._step)
        try:
            with self._bar:
                yield
        finally:
            self._bar = None

    @contextmanager
    def _progress_lines(self) -> Iterator[None]:
        thread = threading.Thread(target=self._print_changes, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(timeout=2)

    def _print_changes(self) -> None:
        last = ""
        while not self._ended.wait(_LINE_EVERY):
            line = progress_line(self._run) if self._run else ""
            if line and line != last:
                self.print(line)
                last = line


class _ProgressBar(Progress):
    """The rows as a bar, and below it the line that is printed where there is no terminal."""

    def __init__(
        self, console: Console, current_run: Callable[[], Run | None], step: Callable[[], str]
    ) -> None:
        columns = TextColumn("rows"), BarColumn(), TimeElapsedColumn()
        self._current_run, self._step = current_run, step
        # Rich draws a first frame, without any task, before this returns.
        super().__init__(*columns, console=console, refresh_per_second=4, transient=True)
        self.add_task("rows")

    def get_renderables(self) -> Iterator[RenderableType]:
        """Called by rich for each frame, from a thread of its own."""
        run = self._current_run()
        if run is None:
            yield Text(self._step() or "Reading, checking and planning …")
            return
        for task in self.task_ids:
            self.update(task, total=max(1, run.progress.to_do), completed=run.progress.ended)
        yield from super().get_renderables()
        yield Text(visible_lines(progress_line(run)))


def ending_lines(run: Run | None, message: str, command: str) -> Iterator[str]:
    """The summary of an ended run: outcome, what was made, where the files are.

    `command`: what resumes a run that did not finish.
    """
    if run is None or run.ending is None:
        yield from [message] if message else _without_an_end(run, command)
        return
    yield from summary_lines(run, run.ending, run.results, _MOST_CAUSES)
    yield from _next_lines(run, run.ending, command)
    if run.results is not None:
        yield from _correction_lines(run.record, run.ending.rows, run.results)


def _without_an_end(run: Run | None, command: str) -> Iterator[str]:
    if run is not None and run.halt.reason is not None:
        yield run.halt.reason.message
    yield f"The run ended before it was complete. To go on: {command}"


def _next_lines(run: Run, ending: RunEnding, command: str) -> Iterator[str]:
    """The command that goes on with what did not finish; no run goes on with what waits for a person."""
    causes = run.results.causes if run.results is not None else ()
    if any(cause.code == UNDECIDED for cause in causes):
        yield f"To decide: patternmill look {shlex.quote(run.record.catalog)}"
    if ending.to_decide:
        yield f"To decide, as no run resends {plural(ending.to_decide, 'request')}: patternmill settle"
    left = run.results.to_retry if run.results is not None else ending.rows
    unfinished = UNFINISHED_ROWS & {status for status, count in left.items() if count}
    is_stuck = unfinished <= {RowStatus.IN_DOUBT} and ending.to_decide and not ending.resumed
    if unfinished and not is_stuck:
        if ending.outcome is Outcome.CANCELLED:
            begun = plural(sum(ending.rows.get(status, 0) for status in _BEGUN), "row")
            rest = ending.rows.get(RowStatus.NOT_STARTED, 0)
            yield (
                "What was made or begun is kept, and is not bought again: the next command finishes "
                f"{begun}{f', and begins {rest:,}' if rest else ''}."
            )
        yield f"To go on{_with_higher_limit(command, ending)}"


def _with_higher_limit(command: str, ending: RunEnding) -> str:
    """Return how to go on; the value of a limit that was reached is left to whoever raises it."""
    reason = ending.record.reason or ""
    if ending.outcome is not Outcome.BUDGET_REACHED or "Raise " not in reason:
        return f": {command}"
    for option in ("--budget", "--max-items"):
        if f"Raise {option} " in reason:
            command = re.sub(rf"({option}[ =])('[^']*'|\S+)", r"\1…", command)
    return f", with a higher limit: {command}"


def _correction_lines(record: RunRecord, rows: Mapping[RowStatus, int], results: Results) -> Iterator[str]:
    """What to do about rows that no other run changes; an import of their file retries those that failed too."""
    failures = results.failures
    correct = f"correct {failures.name}, then patternmill import {shlex.quote(str(failures))}"
    if rows.get(RowStatus.REFUSED):
        yield f"Next: {correct}"
    elif results.to_retry.get(RowStatus.FAILED):
        scope = f"--catalog {shlex.quote(record.catalog)} --environment {record.environment}"
        yield f"Next: patternmill retry {scope}; or {correct}"
