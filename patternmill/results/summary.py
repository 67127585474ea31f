"""What a run came to: its rows in numbers, what went wrong by cause, and the manifest, by which its files are checked.

The manifest has schema version 1. A field may be added within a version; one that changes its meaning or is removed
makes the next.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from patternmill.catalog.problems import OF_A_WORD, RowCode
from patternmill.ledger.records import RunRecord
from patternmill.results.row_files import iso_time, json_bytes
from patternmill.results.row_results import RowResult
from patternmill.states import ROW_STAGES, UNFINISHED_ROWS, RowStatus, Stage

#: The rows of failures.csv: no other run changes them until a person edits the row, or decides.
FAILURES = frozenset(RowStatus) - UNFINISHED_ROWS - {RowStatus.SUCCEEDED}
#: Rows that are gathered by cause: the failures, and those where the service has still to answer.
WITH_CAUSE = FAILURES | {RowStatus.IN_DOUBT, RowStatus.WAITING}
SKUS_SHOWN = 10

_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
_NAMED = re.compile(r"\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|(?=[\w-]*\d)[\w-]{3,})")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Cause:
    """Rows that failed alike: one code, and messages that differ in names and numbers, or one word that is wrong."""

    code: str
    signature: str
    count: int
    #: The first few, in the order of the file; `row 7` for a row without one.
    skus: tuple[str, ...]
    #: The message and the remedy of the first of them.
    message: str
    remedy: str


def failures_by_cause(rows: Iterable[RowResult]) -> list[Cause]:
    """What went wrong, the most frequent cause first."""
    groups: dict[tuple[str, str], list[RowResult]] = defaultdict(list)
    for row in rows:
        if row.status in WITH_CAUSE:
            groups[cause_key(row)].append(row)
    causes = [_cause(*key, alike) for key, alike in groups.items()]
    return sorted(causes, key=lambda cause: (-cause.count, cause.code, cause.signature))


def cause_key(row: RowResult) -> tuple[str, str]:
    code = row.error_code or row.status.value
    message = "" if code == RowCode.DUPLICATE_SKU else row.error or ""
    # A word that is wrong in the file is the cause, not what distinguishes the rows that share one.
    return code, message if code in OF_A_WORD else signature(message)


def signature(message: str) -> str:
    """The message without what differs from row to row: quoted values, identifiers and numbers."""
    text = _QUOTED.sub("…", " ".join(message.split())[:500])
    return _NUMBER.sub("#", _NAMED.sub("#", text))


def _cause(code: str, signature: str, alike: Sequence[RowResult]) -> Cause:
    skus = tuple(row.sku or f"row {row.line}" for row in alike[:SKUS_SHOWN])
    return Cause(code, signature, len(alike), skus, alike[0].error or "", alike[0].remedy or "")


MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Counts:
    """`rows` is the sum of `by_status`; items are counted once, however many rows share them."""

    rows: int
    by_status: dict[RowStatus, int]
    #: Distinct products and patterns that exist for these rows; refined patterns are not among the patterns.
    products: int
    patterns: int
    refinements: int
    references: int
    #: Distinct requests behind them, first tries and further attempts alike.
    product_attempts: int
    pattern_attempts: int
    refinement_attempts: int
    reference_attempts: int


def count_everything(rows: Sequence[RowResult]) -> Counts:
    items = {item.key: item for row in rows for item in row.items}
    made: dict[Stage, set[str]] = defaultdict(set)
    attempts: Counter[Stage] = Counter()
    for item in items.values():
        attempts[item.stage] += item.attempts
        if item.result_id is not None:
            made[item.stage].add(item.result_id)
    statuses = Counter(row.status for row in rows)
    return Counts(
        rows=len(rows),
        by_status={status: statuses[status] for status in RowStatus},
        **{f"{stage}s": len(made[stage]) for stage in ROW_STAGES},
        **{f"{stage}_attempts": attempts[stage] for stage in ROW_STAGES},
    )


def manifest_bytes(run: RunRecord, counts: Counts, files: Mapping[str, str]) -> bytes:
    """What the run's record has, under the same names, with the SHA-256 of each of its files.

    The folder of its source is left out: that is about a machine, not about a run. Names are sorted: a database keeps
    those of the options in any order.
    """
    manifest = asdict(run) | {
        "schema_version": 1,
        "source": PureWindowsPath(run.source).name,
        "started_at": iso_time(run.started_at),
        "ended_at": iso_time(run.ended_at),
        "counts": asdict(counts),
        "files": dict(files),
    }
    return json_bytes(manifest, indent=2, sort_keys=True) + b"\n"


_OF_A_RUN = frozenset({"run_id", "ledger", "catalog", "environment", "studio_url", "ended_at"})


def read_manifest(folder: Path) -> Mapping[str, Any] | None:
    """Return what a folder's manifest says of its run; None where there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.keys() >= _OF_A_RUN else None
