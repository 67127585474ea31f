"""Uploaded pictures that guide patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from studio.store.database import Account, Database, Row, instant, row_of
from studio.store.job_table import LAST

COLUMNS = "reference_id, account, name, picture_id, sha256, width, height, created_at"


@dataclass(frozen=True)
class Reference:
    """One picture of an account; its file has the name of its digest. Width and height are pixels."""

    reference_id: str
    account: Account
    name: str | None
    picture_id: str
    sha256: str
    width: int
    height: int
    created_at: datetime


class ReferenceTable:
    """Reads and writes of the table `reference`. A deleted one is not found again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, reference: Reference) -> None:
        self._database.insert("reference", COLUMNS, row_of(reference))

    def get(self, account: Account, reference_id: str) -> Reference | None:
        return self._one("reference_id = ? AND account = ?", reference_id, account)

    def of_picture(self, picture_id: str) -> Reference | None:
        return self._one("picture_id = ?", picture_id)

    def page(self, account: Account, before: int | None, limit: int) -> list[tuple[int, Reference]]:
        """The newest references older than `before`, each with its place."""
        rows = self._database.all(
            f"SELECT seq, {COLUMNS} FROM reference"  # noqa: S608
            " WHERE account = ? AND deleted_at IS NULL AND seq < ? ORDER BY seq DESC LIMIT ?",
            (account, LAST if before is None else before, limit),
        )
        return [(row[0], _reference(row[1:])) for row in rows]

    def mark_used(self, digests: Sequence[str]) -> None:
        """A pattern is drawn with these pictures: their files are kept for ever."""
        for digest in digests:
            self._database.execute("UPDATE reference SET used = 1 WHERE sha256 = ?", (digest,))

    def delete(self, reference: Reference, at: datetime) -> bool:
        """Whether nothing needs the file any more."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE reference SET deleted_at = ? WHERE reference_id = ?",
                (at.timestamp(), reference.reference_id),
            )
            needed = "SELECT 1 FROM reference WHERE sha256 = ? AND (deleted_at IS NULL OR used = 1) LIMIT 1"
            return self._database.one(needed, (reference.sha256,)) is None

    def _one(self, condition: str, *values: str) -> Reference | None:
        query = f"SELECT {COLUMNS} FROM reference WHERE deleted_at IS NULL AND {condition}"  # noqa: S608
        row = self._database.one(query, values)
        return None if row is None else _reference(row)


def _reference(row: Row) -> Reference:
    reference = Reference(*row)
    return replace(reference, created_at=instant(row[-1]))
