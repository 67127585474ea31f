"""A run's progress and its summary as plain lines, for the terminal and for the run's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patternmill.ledger.catalogs import counts_of
from patternmill.money import money, sums
from patternmill.results.catalog_files import CHANGES_FILE
from patternmill.results.results_files import GALLERY, RESULTS, Results
from patternmill.runs.refresh_changes import counts_line
from patternmill.states import RowStatus
from patternmill.text import counted, duration, duration_range, goods, joined, plural, worth_naming

if TYPE_CHECKING:
    from patternmill.runs.run import Run, RunEnding


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
        *([] if halted else [_time_left(run)]),
    ]
    paused = "paused in the Prefect UI" if run.engine.is_paused else ""
    stopping = f"stopping: {halted.message}" if halted else ""
    return "; ".join(filter(None, (", ".join(facts), run.waiting, paused, stopping)))


def _time_left(run: Run) -> str:
    left = run.time_left
    if left is None:
        return "time left not known yet"
    return f"{duration_range(*left)} left" if any(left) else "ending"


def summary_lines(run: Run, ending: RunEnding, results: Results | None, most_causes: int) -> Iterator[str]:
    """Outcome, what was made and spent, what went wrong, where the files are."""
    yield f"{ending.outcome.words}: {counted({s.words: ending.rows.get(s, 0) for s in RowStatus})}"
    record = ending.record
    if record.reason:
        yield f"  {record.reason}"
    took = (record.ended_at or record.started_at) - record.started_at
    changes = counts_of(record)
    if changes is not None:
        yield f"The source: {counts_line(changes)}"
    yield f"Made in this run: {goods(run.progress.made)} in {duration(took)}"
    if any(run.spec.options.prices.values()):
        # Nothing was expected where the plan only resumed what was paid for.
        expected = f"; expected {run.cost}" if run.cost.worst else ""
        yield f"Money: {sums(ending.spent.amounts) or money(0, run.cost.currency)} spent{expected}"
    if results is not None:
        yield from _cause_lines(results, most_causes)
        yield from _file_lines(results, is_refresh=changes is not None)
    yield f"Run:      {record.run_id}"


def _cause_lines(results: Results, most: int) -> Iterator[str]:
    for cause in results.causes[:most]:
        yield f"  {cause.count:,} × {cause.code}: {joined(cause.message, cause.remedy)}"
    if hidden := results.causes[most:]:
        rows = plural(sum(cause.count for cause in hidden), "row")
        yield f"  and {plural(len(hidden), 'more cause')} of {rows}, in {results.failures}"


def _file_lines(results: Results, *, is_refresh: bool) -> Iterator[str]:
    out = results.out
    yield f"Results:  {out / RESULTS}"
    if results.causes:
        yield f"Failures: {results.failures}"
    if is_refresh:
        yield f"Changes:  {out / CHANGES_FILE}"
    yield f"Gallery:  {out / GALLERY}"
    if results.catalog is not None:
        yield f"Catalog:  {results.catalog}"
