"""Counts the rows of a run, and gathers what went wrong by cause, wherever that is shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from patternmill.ledger.records import RowResult
from patternmill.states import UNFINISHED_ROWS, RowStatus

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
    """Rows that failed alike: one code, and messages that differ only in names and numbers."""

    code: str
    signature: str
    count: int
    #: The first few, in the order of the file.
    skus: tuple[str, ...]
    #: The message and the remedy of the first of them.
    message: str
    remedy: str


def counts(rows: Iterable[RowResult]) -> dict[RowStatus, int]:
    """The rows by status; zeros too."""
    found = Counter(row.status for row in rows)
    return {status: found[status] for status in RowStatus}


def failures_by_cause(rows: Iterable[RowResult]) -> list[Cause]:
    """What went wrong, the most frequent cause first."""
    groups: dict[tuple[str, str], _Group] = {}
    for row in rows:
        if row.status in WITH_CAUSE:
            groups.setdefault(cause_key(row), _Group(row)).add(row)
    causes = [group.cause(*key) for key, group in groups.items()]
    return sorted(causes, key=lambda cause: (-cause.count, cause.code, cause.signature))


def joined(*parts: str | None) -> str:
    """Sentences and fragments as one text: a space after what ends a sentence, else a semicolon."""
    text = ""
    for part in filter(None, parts):
        text += (" " if text.endswith((".", "!", "?")) else "; ") + part if text else part
    return text


def cause_key(row: RowResult) -> tuple[str, str]:
    return row.error_code or row.status.value, signature(row.error or "")


def signature(message: str) -> str:
    """The message without what differs from row to row: quoted values, identifiers and numbers."""
    text = _QUOTED.sub("…", " ".join(message.split())[:500])
    return _NUMBER.sub("#", _NAMED.sub("#", text))


@dataclass(slots=True)
class _Group:
    first: RowResult
    count: int = 0
    skus: list[str] = field(default_factory=list)

    def add(self, row: RowResult) -> None:
        self.count += 1
        if len(self.skus) < SKUS_SHOWN:
            self.skus.append(row.sku)

    def cause(self, code: str, signature: str) -> Cause:
        return Cause(
            code, signature, self.count, tuple(self.skus), self.first.error or "", self.first.remedy or ""
        )
