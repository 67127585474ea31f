"""Where a file comes from: a results file belongs to the catalog, environment and edition of its run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patternmill.catalog.columns import is_ours
from patternmill.errors import InputRefused
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import had_lease
from patternmill.results.manifest import MANIFEST, ManifestUnreadable, read_manifest

_OUR_NAME = re.compile(r"(results|failures)\b", re.IGNORECASE)
#: Longer than any header.
_BEGINNING = 1 << 16
#: Byte order marks, as latin-1 reads them.
_MARKS = "\xef\xbb\xbf\xff\xfe"


@dataclass(frozen=True)
class Origin:
    """The run that a results file comes from, by the manifest next to it."""

    file: str
    run_id: str
    catalog: str
    environment: str
    edition: str | None

    def sentence(self) -> str:
        edition = f", edition {self.edition}" if self.edition else ""
        return (
            f"{self.file} comes from run {self.run_id}, by the manifest next to it: catalog {self.catalog}, "
            f"environment {self.environment}{edition}."
        )


def origin_of(source: Path) -> Origin | None:
    """None for a file that is not one of ours, or has no readable manifest next to it.

    Ours is also one that still has its name, next to its manifest, and has lost the result columns.
    """
    if not (_OUR_NAME.match(source.name) or _is_results_file(source)):
        return None
    try:
        manifest = read_manifest(source.resolve().parent / MANIFEST)
    except ManifestUnreadable:
        return None
    edition = manifest.options.get("edition") or None
    return Origin(source.name, manifest.run_id, manifest.catalog, manifest.environment, edition)


def environment_of(origin: Origin | None, environment: str | None) -> str | None:
    """The environment that is named, else that of the run that a file comes from; None: as set.

    A setting does not count as named: it is for every file. Raises InputRefused when the two differ.
    """
    if origin is None:
        return environment
    if environment not in (None, origin.environment):
        raise InputRefused(
            f"{origin.sentence()} {environment!r} is named.",
            code="other_environment",
            remedy="Leave --environment out to continue there; for another environment, import the catalog's own file.",
        )
    return origin.environment


def refuse_other_catalog(origin: Origin, catalog: str | None) -> None:
    """Raise InputRefused for a results file that is to go into another catalog than its own."""
    if catalog not in (None, origin.catalog):
        raise InputRefused(
            f"{origin.sentence()} The catalog {catalog!r} is named.",
            code="other_catalog",
            remedy="Leave --catalog out; for another catalog, import a file without the result columns.",
        )


def refuse_unknown_environment(ledger: Ledger, file: str, catalog: str, environment: str) -> None:
    """Raise InputRefused when a results file without its manifest may be another environment's."""
    others = sorted({run.environment for run in runs_of(ledger, catalog)} - {environment})
    if others:
        raise InputRefused(
            f"{file} comes from an earlier run, and catalog {catalog!r} has runs in {', '.join(others)}: "
            f"whether {environment!r} is meant is not known.",
            code="environment_unknown",
            remedy="Name the environment with --environment, or leave the file in its results folder.",
        )


def refuse_lost_edition(runs: Iterable[RunRecord], file: str, catalog: str, edition: str | None) -> None:
    """Raise InputRefused when a results file would lose an edition of the catalog.

    `runs`: those that it may come from.
    """
    newest = next((run for run in runs if run.options.get("edition")), None)
    known = newest.options.get("edition") if newest is not None else None
    if newest is not None and known and known != edition:
        none = "''" if edition is None else edition
        raise InputRefused(
            f"{file} comes from an earlier run, and {newest.run_id} of catalog {catalog!r} bought the "
            f"edition {known!r}: whether the file is of that edition is not known.",
            code="edition_unknown",
            remedy=f"Name it with --edition {known}; or with --edition {none} for the products before it.",
        )


def runs_of(ledger: Ledger, catalog: str, environment: str | None = None) -> Iterator[RunRecord]:
    """Those that had the catalog's lease, the newest first."""
    return filter(had_lease, ledger.runs(catalog=catalog, environment=environment))


def _is_results_file(source: Path) -> bool:
    """By its header, which is in letters that every encoding has in common, but for zeros between them."""
    try:
        with source.open("rb") as file:
            beginning = file.read(_BEGINNING).replace(b"\0", b"").decode("latin-1").lstrip(_MARKS)
        rows = csv.reader(io.StringIO(beginning, newline=""))
        return is_ours(next((row for row in rows if any(map(str.strip, row))), []))
    except (OSError, ValueError, csv.Error):
        return False
