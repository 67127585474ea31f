"""Publishes a run: its five files, a pure function of the ledger, so that a rebuild is the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patternmill.ledger.catalog_rows import Told
from patternmill.ledger.records import RowResult, RunRecord
from patternmill.results import gallery, results_jsonl
from patternmill.results.atomic_files import FileMark, sweep, write_whole
from patternmill.results.changes_csv import CHANGES_FILE, changes_file
from patternmill.results.manifest import MANIFEST, Counts, build_manifest, manifest_bytes
from patternmill.results.results_csv import table
from patternmill.results.summary import FAILURES
from patternmill.states import RowStatus

RESULTS = "results.csv"
FAILURES_FILE = "failures.csv"
EXACT = "results.jsonl"
GALLERY = "gallery.html"


@dataclass(frozen=True, slots=True)
class Published:
    """Where the results are, and what they come to."""

    out: Path
    files: tuple[FileMark, ...]
    counts: Counts

    @property
    def by_status(self) -> Mapping[RowStatus, int]:
        return self.counts.by_status

    @property
    def products(self) -> int:
        return self.counts.products

    @property
    def patterns(self) -> int:
        return self.counts.patterns

    def path(self, name: str) -> Path:
        return self.out / name


def publish(
    run: RunRecord,
    header: Sequence[str],
    carried: Sequence[int],
    rows: Sequence[RowResult],
    out: Path,
    *,
    pictures: Mapping[str, str] | None = None,
    changes: Sequence[Told] | None = None,
) -> Published:
    """Write the results files of `run` into `out`, each whole, the manifest last.

    `header` is the input's, as read; `carried` the indexes of its columns to write back. `pictures` leads
    from a picture's URL to a file beside the gallery, as a path relative to `out`. Rows come out in the order
    given. `changes` is what a refresh found.
    """
    failures = [row for row in rows if row.status in FAILURES]
    contents: dict[str, Iterable[bytes]] = {
        RESULTS: table(header, carried, rows),
        FAILURES_FILE: table(header, carried, failures),
        EXACT: results_jsonl.lines(header, carried, rows),
        GALLERY: gallery.page(run, header, rows, pictures or {}),
    }
    if changes is not None:
        contents[CHANGES_FILE] = changes_file(changes, rows)
    sweep(out, [*contents, MANIFEST])
    files = [write_whole(out / name, chunks) for name, chunks in contents.items()]
    manifest = build_manifest(run, rows, files)
    files.append(write_whole(out / MANIFEST, [manifest_bytes(manifest)]))
    return Published(out, tuple(files), manifest.counts)
