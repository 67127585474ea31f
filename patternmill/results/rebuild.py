"""Results from the ledger alone: the same bytes each time, whatever has happened since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.catalog_rows import CHANGES, changes_of
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.row_results import input_file, row_results
from patternmill.results.atomic_files import link_latest
from patternmill.results.picture_files import pictures_of
from patternmill.results.publish import Published, publish
from patternmill.results.summary import Cause, failures_by_cause


@dataclass(frozen=True)
class Results:
    """The files of a run, and what went wrong by cause."""

    published: Published
    causes: tuple[Cause, ...]


def rebuild(ledger: Ledger, run_id: RunId, out: Path, *, links: Iterable[str] = ()) -> Results:
    """Write the results files of a run into `out`. Raises ConfigurationError for an unknown run.

    `links`: the names of links beside `out` to lead to it.
    """
    record = ledger.run(run_id)
    if record is None:
        raise ConfigurationError(
            f"There is no run {run_id} in this ledger.", remedy="See `patternmill status`."
        )
    file = input_file(ledger, record)
    rows = list(row_results(ledger, record, file))
    pictures = pictures_of(record, rows)
    changes = changes_of(ledger, run_id) if record.options.get(CHANGES) is not None else None
    kept = file.columns.kept
    published = publish(record, file.header, kept, rows, out, pictures=pictures, changes=changes)
    for name in links:
        link_latest(out, name)
    return Results(published, tuple(failures_by_cause(rows)))
