"""Shows a run on the command line: its progress, live on a terminal or as plain lines when piped, and its end."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli.terminal import steps, typed
from patternmill.planning.problems import RowCode
from patternmill.runs.run_text import progress_line, summary_lines
from patternmill.states import UNFINISHED_ROWS, Outcome, RowStatus
from patternmill.text import plural, visible_lines

if TYPE_CHECKING:
    from patternmill.ledger.records import RunRecord
    from patternmill.runs.results_files import Results
    from patternmill.runs.run import Run, RunEnding

_LINE_EVERY = 5.0
_MOST_CAUSES = 10
_BEGUN = UNFINISHED_ROWS - {RowStatus.NOT_STARTED}


class Display:
    """Shows a run as it goes on, from a thread, so that a busy event loop does not freeze it."""

    def __init__(self) -> None:
        #: The run, once it has begun.
        self.run: Run | None = None
        #: What is being done before and after the rows are driven.
        self.doing = ""
        self._console = Console(stderr=True)
        self._bar: _ProgressBar | None = None

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
        """Say what is being done before and after the rows are driven."""
        self.doing = text
        if self._bar is None:
            steps.show(text)

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show the run's progress while the context lasts."""
        steps.clear()
        if self._console.is_terminal:
            try:
                with _ProgressBar(self, self._console) as self._bar:
                    yield
            finally:
                self._bar = None
            return
        ended = threading.Event()
        thread = threading.Thread(target=self._print_changes, args=[ended], daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=2)

    def _print_changes(self, ended: threading.Event) -> None:
        last = ""
        while not ended.wait(_LINE_EVERY):
            line = progress_line(self.run) if self.run is not None else ""
            if line and line != last:
                self.print(line)
                last = line


class _ProgressBar(Progress):
    """Shows the rows as a bar, and below it the line that is printed where there is no terminal."""

    def __init__(self, display: Display, console: Console) -> None:
        self._display = display
        # Rich draws a first frame, without any task, before this returns.
        columns = TextColumn("rows"), BarColumn(), TimeElapsedColumn()
        super().__init__(*columns, console=console, refresh_per_second=4, transient=True)
        self.add_task("rows", start=False)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield a frame; rich calls it from a thread of its own."""
        run = self._display.run
        if run is None:
            yield Text(self._display.doing or "Reading, checking and planning …")
            return
        for task in self.task_ids:
            self.start_task(task)  # its time counts from the first call
            self.update(task, total=max(1, run.progress.to_do), completed=run.progress.ended)
        yield from super().get_renderables()
        yield Text(visible_lines(progress_line(run)))


def ending_lines(
    run: Run | None, message: str, command: str, *, told_of_refused: bool = False
) -> Iterator[str]:
    """Yield the summary of an ended run: outcome, what was made, where the files are, what to do next.

    `command` resumes a run that did not finish. `told_of_refused`: a person has read why rows are refused.
    """
    if run is None or run.ending is None:
        if run is not None and run.halt.reason is not None and not message:
            yield run.halt.reason.message
        yield message or f"The run ended before it was complete. To go on: {command}"
        return
    told = frozenset[str](RowCode if told_of_refused else ())
    yield from summary_lines(run, run.ending, run.results, _MOST_CAUSES, told)
    yield from _unfinished_lines(run, run.ending, command)
    if run.results is not None:
        yield from _next_lines(run.record, run.ending, run.results)


def _unfinished_lines(run: Run, ending: RunEnding, command: str) -> Iterator[str]:
    """Yield the command that resumes what did not finish; no run resumes what waits for a person."""
    if ending.to_decide:
        request = plural(ending.to_decide, "request")
        yield f"To decide, as no run resends {request}: {typed('patternmill settle')}"
    left = run.results.to_retry if run.results is not None else ending.rows
    unfinished = UNFINISHED_ROWS & {status for status, count in left.items() if count}
    is_stuck = unfinished <= {RowStatus.IN_DOUBT} and ending.to_decide and not ending.resumed
    if not unfinished or is_stuck:
        return
    if ending.outcome is Outcome.CANCELLED:
        begun = plural(sum(ending.rows.get(status, 0) for status in _BEGUN), "row")
        rest = ending.rows.get(RowStatus.NOT_STARTED, 0)
        yield (
            "What was made or begun is kept, and is not bought again: the next command finishes "
            f"{begun}{f', and begins {rest:,}' if rest else ''}."
        )
    is_limited = ending.outcome is Outcome.BUDGET_REACHED and "Raise " in (ending.record.reason or "")
    when = "Once it is lifted" if ending.outcome is Outcome.PAUSED else "To go on"
    yield f"{when}{', with a higher limit' if is_limited else ''}: {command}"


def _next_lines(record: RunRecord, ending: RunEnding, results: Results) -> Iterator[str]:
    """Yield what to do about rows that no other run changes, and last how to look at what was made."""
    catalog, failures = shlex.quote(record.catalog), results.failures
    correct = f"correct {failures.name}, then {typed(f'patternmill import {shlex.quote(str(failures))}')}"
    if ending.rows.get(RowStatus.REFUSED):
        yield f"Next: {correct}"
    elif results.to_retry.get(RowStatus.FAILED):
        retry = typed(f"patternmill retry --catalog {catalog} --environment {record.environment}")
        yield f"Next: {retry}; or {correct}"
    if ending.rows.get(RowStatus.TO_CHOOSE):
        yield f"To decide: {typed(f'patternmill look {catalog}')}"
    elif ending.spent.items.total():
        yield f"To look at it: {typed(f'patternmill look {catalog}')}"
