"""A run as the command line shows it: its progress, live on a terminal or as plain lines when piped, and its end."""

from __future__ import annotations

import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli.terminal import fitted, steps
from patternmill.ledger.catalog_rows import counts_of
from patternmill.runs.corrected_input import corrections_line
from patternmill.runs.refresh_changes import counts_line
from patternmill.states import UNFINISHED_ROWS, Outcome, RowStatus
from patternmill.text import (
    counted,
    duration,
    duration_range,
    goods,
    joined,
    plural,
    visible_lines,
    worth_naming,
)

if TYPE_CHECKING:
    from patternmill.results.results_files import Results
    from patternmill.runs.run import Run, RunEnding

_LINE_EVERY = 5.0
_MOST_CAUSES = 10


class Display:
    """Follows a run from a thread, so that a busy event loop does not freeze it."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._run: Run | None = None
        self._bar: _ProgressBar | None = None
        self._ended = threading.Event()

    def print(self, text: str) -> None:
        """Print a line above the progress bar."""
        steps.clear()
        shown = visible_lines(text)
        if self._console.is_terminal:
            shown = fitted(shown, self._console.width)
        self._console.print(shown, markup=False, highlight=False, soft_wrap=True)

    def end(self, text: str) -> None:
        """Print the last line of a process that ends at once, and leave the terminal as it was found."""
        if self._bar is not None:
            self._bar.stop()
        self.print(text)

    def step(self, text: str) -> None:
        """What is being done before and after the rows are driven."""
        steps.show(text)

    def watch(self, run: Run) -> None:
        if run.time is not None:
            self.print(f"Time: {run.time}.")
        self._run = run

    def showing(self) -> AbstractContextManager[object]:
        """Show the run's progress while the context lasts."""
        steps.clear()
        if self._console.is_terminal:
            self._bar = _ProgressBar(self._console, lambda: self._run)
            return self._bar
        return self._progress_lines()

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

    def __init__(self, console: Console, current_run: Callable[[], Run | None]) -> None:
        columns = TextColumn("rows"), BarColumn(), TimeElapsedColumn()
        self._current_run, self._terminal = current_run, console
        # Rich draws a first frame, without any task, before this returns.
        super().__init__(*columns, console=console, refresh_per_second=4, transient=True)
        self.add_task("rows")

    def get_renderables(self) -> Iterator[RenderableType]:
        """Called by rich for each frame, from a thread of its own."""
        run = self._current_run()
        if run is None:
            yield "Reading, checking and planning …"
            return
        for task in self.task_ids:
            self.update(task, total=max(1, run.progress.to_do), completed=run.progress.ended)
        yield from super().get_renderables()
        yield Text(_wrapped_at_facts(visible_lines(progress_line(run)), self._terminal.width))


_NO_BREAK = "\u00a0"


def _wrapped_at_facts(line: str, width: int) -> str:
    """Wrapped after commas and semicolons, unless what is between them is longer than a line."""
    facts = re.sub(r"(?<![,;]) ", _NO_BREAK, line)
    if max(map(len, facts.split(" "))) > width:
        return line
    return textwrap.fill(facts, width).replace(_NO_BREAK, " ")


def progress_line(run: Run) -> str:
    progress, halted = run.progress, run.halt.reason
    facts = [
        f"{progress.ended:,} of {plural(progress.to_do, 'row')}",
        *([f"{progress.done_before:,} more needed nothing"] if progress.done_before else []),
        *([f"{progress.refused:,} refused"] if progress.refused else []),
        *(plural(count, stage) for stage, count in worth_naming(progress.made)),
        f"{progress.failed:,} not made",
        *([f"{plural(progress.tried_again, 'item')} tried again"] if progress.tried_again else []),
        run.in_flight,
        f"{plural(round(progress.rows_a_second * 60), 'row')} a minute",
        _time_left(run),
    ]
    stopping = f"stopping: {halted.message}" if halted else ""
    return "; ".join(filter(None, (", ".join(facts), run.waiting, stopping)))


def _time_left(run: Run) -> str:
    left = run.time_left
    if left is None:
        return "time left not known yet"
    return f"{duration_range(*left)} left" if any(left) else "ending"


def ending_lines(run: Run | None, message: str, screen: str | None, command: str) -> Iterator[str]:
    """The summary of an ended run: outcome, what was made, where the files are.

    `screen`: where Prefect shows it. `command`: what resumes a run that did not finish.
    """
    if run is None or run.ending is None:
        yield from [message] if message else _without_an_end(run, command)
        return
    ending, results = run.ending, run.results
    yield f"{ending.outcome.words}: {counted({s.value: ending.rows.get(s, 0) for s in RowStatus})}"
    record = ending.record
    if record.reason:
        yield f"  {record.reason}"
    took = (record.ended_at or record.started_at) - record.started_at
    changes = counts_of(record)
    if changes is not None:
        yield f"The source: {counts_line(changes)}"
    if corrections := corrections_line(record):
        yield f"Corrections: {corrections}"
    yield f"Made in this run: {goods(run.progress.made)} in {duration(took)}"
    yield from _money_lines(run, ending)
    if results is not None:
        yield from _cause_lines(results)
        yield from _file_lines(results, is_refresh=changes is not None)
    yield f"Run:      {record.run_id}"
    if screen is not None:
        yield screen
    yield from _next_lines(ending, command)


def _without_an_end(run: Run | None, command: str) -> Iterator[str]:
    halted = run.halt.reason if run is not None else None
    if halted is not None:
        yield halted.message
    yield f"The run ended before it was complete. To go on: {command}"


def _money_lines(run: Run, ending: RunEnding) -> Iterator[str]:
    from patternmill.runs.run import spent_text

    if any(run.spec.options.prices.values()):
        yield f"Money: {spent_text(ending.spent, run.cost)}"


def _cause_lines(results: Results) -> Iterator[str]:
    for cause in results.causes[:_MOST_CAUSES]:
        yield f"  {cause.count:,} × {cause.code}: {joined(cause.message, cause.remedy)}"
    if len(results.causes) > _MOST_CAUSES:
        hidden = results.causes[_MOST_CAUSES:]
        rows = plural(sum(cause.count for cause in hidden), "row")
        yield f"  and {plural(len(hidden), 'more cause')} of {rows}, in {results.out / 'failures.csv'}"


def _file_lines(results: Results, *, is_refresh: bool) -> Iterator[str]:
    out = results.out
    yield f"Results:  {out / 'results.csv'}"
    if results.causes:
        yield f"Failures: {out / 'failures.csv'}"
    if is_refresh:
        yield f"Changes:  {out / 'changes.csv'}"
    yield f"Gallery:  {out / 'gallery.html'}"
    if results.catalog is not None:
        yield f"Catalog:  {results.catalog}"


def _next_lines(ending: RunEnding, command: str) -> Iterator[str]:
    """The command that goes on with what did not finish; no run goes on with what waits for a person."""
    if ending.open.to_decide:
        yield f"To decide, as no run resends {plural(ending.open.to_decide, 'request')}: patternmill settle --list"
    unfinished = UNFINISHED_ROWS & {status for status, count in ending.rows.items() if count}
    is_stuck = unfinished <= {RowStatus.IN_DOUBT} and ending.open.to_decide and not ending.open.resumed
    if unfinished and not is_stuck:
        higher = ", with a higher limit" if ending.outcome is Outcome.BUDGET_REACHED else ""
        yield f"To go on{higher}: {command}"
