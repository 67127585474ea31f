"""A run's progress and summary as plain lines, and its summary for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from patternmill.ledger.catalogs import counts_of
from patternmill.money import money, sums
from patternmill.runs.preview import counts_line
from patternmill.runs.results_files import CHANGES_FILE, GALLERY, RESULTS, Results, RunMoney
from patternmill.states import Outcome, RowStatus
from patternmill.tables.totals import RunCounts
from patternmill.text import counted, duration, duration_range, goods, joined, plural, worth_naming

if TYPE_CHECKING:
    from patternmill.runs.run import Run, RunEnding
    from patternmill.tables.totals import Cause


class RunSummary(BaseModel):
    """Sums up a run, also one with failed rows; `model_dump_json` writes it."""

    model_config = ConfigDict(frozen=True)

    #: The run's ID; None, as are `counts` and `folder`, if there was nothing to do and so no run.
    run: str | None = None
    catalog: str
    environment: str
    outcome: Outcome
    #: The counts, money and causes in one sentence, as the flow run's state has them.
    message: str
    counts: RunCounts | None = None
    money: RunMoney = RunMoney()
    #: Where its results are.
    folder: Path | None = None

    @classmethod
    def of(cls, run: Run, message: str) -> RunSummary:
        """Return the summary of a run that has ended, or that ended before it began anything."""
        scope = {"catalog": run.spec.catalog, "environment": run.spec.settings.environment}
        if run.ending is None:
            return cls(outcome=Outcome.COMPLETED, message=message, **scope)
        results = run.published
        return cls(
            run=run.record.run_id,
            outcome=run.ending.outcome,
            message=message,
            counts=results.counts,
            money=results.money,
            folder=results.out.resolve(),
            **scope,
        )


def progress_line(run: Run) -> str:
    """Return one line on how far a run is, what it waits for, and why it stops."""
    progress, halted, queued = run.progress, run.halt.reason, run.queued
    facts = [
        f"{progress.ended:,} of {plural(progress.to_do, 'row')}",
        *([f"{progress.done_before:,} more needed nothing"] if progress.done_before else []),
        *([f"{progress.refused:,} refused"] if progress.refused else []),
        *(plural(count, stage) for stage, count in worth_naming(progress.made)),
        f"{progress.failed:,} not made",
        *([f"{plural(progress.tried_again, 'item')} tried again"] if progress.tried_again else []),
        f"{progress.in_flight - queued:,} in flight",
        *([f"{queued:,} waiting to be sent"] if queued else []),
        f"{plural(round(progress.rows_a_second * 60), 'row')} a minute",
        *([] if halted else [_time_left(progress.time_left(queued))]),
    ]
    paused = "paused in the Prefect UI" if run.engine.is_paused else ""
    stopping = f"stopping: {halted.message}" if halted else ""
    return "; ".join(filter(None, (", ".join(facts), run.waiting, paused, stopping)))


def _time_left(seconds: tuple[float, float] | None) -> str:
    if seconds is None:
        return "time left not known yet"
    return f"{duration_range(*seconds)} left" if any(seconds) else "ending"


def summary_lines(
    run: Run,
    ending: RunEnding,
    results: Results | None,
    most_causes: int,
    told: Collection[str] = frozenset(),
) -> Iterator[str]:
    """Yield the outcome, what was made and spent, what went wrong, where the files are.

    `told`: the codes of causes that the reader knows.
    """
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
        # A plan that only resumes what is paid for expects no cost.
        expected = f"; expected {run.cost}" if run.cost.worst else ""
        yield f"Money: {sums(ending.spent.amounts) or money(0, run.cost.currency)} spent{expected}"
    if results is not None:
        causes = [cause for cause in results.causes if cause.code not in told]
        yield from _cause_lines(causes, most_causes, results.failures)
        yield from _file_lines(results, is_refresh=changes is not None)
    yield f"Run:      {record.run_id}"


def _cause_lines(causes: Sequence[Cause], most: int, failures: Path) -> Iterator[str]:
    for cause in causes[:most]:
        yield f"  {cause.count:,} × {cause.code}: {joined(cause.message, cause.remedy)}"
    if hidden := causes[most:]:
        rows = plural(sum(cause.count for cause in hidden), "row")
        yield f"  and {plural(len(hidden), 'more cause')} of {rows}, in {failures}"


def _file_lines(results: Results, *, is_refresh: bool) -> Iterator[str]:
    out = results.out
    yield f"Results:  {out / RESULTS}"
    if results.causes:
        yield f"Failures: {results.failures}"
    if is_refresh:
        yield f"Changes:  {out / CHANGES_FILE}"
    yield f"Gallery:  {out / GALLERY}"
    if results.copied_to is not None:
        yield f"Copied:   {results.copied_to}"
    if results.catalog is not None:
        yield f"Catalog:  {results.catalog}"
