"""`results --forget`: shows what old runs leave behind, asks, and has it deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.json_output import Part, fields_of, show
from cli.terminal import confirmed, echo, report_error
from patternmill.errors import Overlap
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import more, plural
from patternmill.upkeep.retention import Retention, carry_out, plan_retention

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import RunRecord
    from patternmill.settings import Settings
    from patternmill.upkeep.retention import ResultFiles

_MOST_SHOWN = 20


def forget_runs(
    ledger: Ledger, settings: Settings, runs: Sequence[RunRecord], out: Path | None, *, yes: bool
) -> int:
    """Forget runs once that is confirmed; return the exit code."""
    retention = plan_retention(ledger, settings, runs, out)
    if retention.is_empty:
        echo("Nothing that fits is left to be forgotten.")
        return EXIT_CODES[Outcome.COMPLETED]
    parts = [
        _run_part(run, part.rows[run.run_id], retention.files[run.run_id])
        for part in retention.parts
        for run in part.runs
    ]
    texts = [text for _, text in parts[:_MOST_SHOWN]]
    show(
        lambda: {"runs": [fields for fields, _ in parts], "copies": retention.copies},
        [*texts, *more(len(parts), _MOST_SHOWN), _sum(retention)],
    )
    if not (yes or confirmed("Delete this for good?", "Nothing was deleted")):
        return EXIT_REFUSED
    try:
        left = asyncio.run(carry_out(ledger, retention))
    except Overlap as overlap:
        report_error(overlap.message, "Run the same command again once that run has ended.")
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    echo("Forgotten.")
    for path, why in left.items():
        echo(f"Left: {path} {why}", err=True)
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if left else Outcome.COMPLETED]


def _run_part(run: RunRecord, rows: int, files: ResultFiles) -> Part:
    """Return what goes and what stays of a run."""
    size = f", {plural(len(files.deletable), 'file')} in {files.folder}" if files.deletable else ""
    lines = [f"{run.run_id}  {run.catalog} ({run.environment}): {plural(rows, 'row')}{size}"]
    lines += [f"  stays: {files.folder / name} {why}" for name, why in files.left.items()]
    fields = fields_of(run, "run_id", "catalog", "environment")
    names = {"folder": files.folder, "files": list(files.deletable), "left": files.left}
    return {**fields, "rows": rows, **names}, "\n".join(lines)


def _sum(retention: Retention) -> str:
    rows = sum(count for part in retention.parts for count in part.rows.values())
    items = sum(part.told_items for part in retention.parts)
    size = sum(size for files in retention.files.values() for size in files.deletable.values())
    copies = f"And copies of the ledger that upgrades made: {', '.join(map(str, retention.copies))}.\n"
    return (
        f"To be deleted: what {plural(rows, 'row')} and {plural(items, 'item')} say (prompts, inputs, pictures, notes, "
        f"messages), and {plural(size, 'byte')} of files.\n{copies if retention.copies else ''}"
        "What stays: request IDs, purchases, skus, statuses and counts; rows that the catalog still has."
    )
