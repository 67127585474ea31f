"""SQLite files that contain a ledger, the one in use and copies of it, read without opening them as ledgers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from patternmill.ledger.database import LEDGER_FILE, MIGRATIONS
from patternmill.ledger.ledger import Ledger

#: The name of the folder for backups, in the folder of the ledger.
BACKUPS = "backups"


def older_schema(folder: Path) -> int | None:
    """Return the number of a ledger's schema if opening the ledger would bring it up to this version."""
    recorded = _recorded(folder / LEDGER_FILE)
    return recorded[1] if recorded is not None and recorded[1] < len(MIGRATIONS) else None


def last_backup(folder: Path, identity: str) -> float | None:
    """Return when the newest copy of the ledger in a folder was made, in Unix seconds; None if there is none.

    The copies are in its folder `backups`, and beside the ledger where migrations made them.
    """
    copies = chain(migration_copies(folder, identity), _copies(folder / BACKUPS, "*", identity))
    return max((copy.stat().st_mtime for copy in copies), default=None)


def migration_copies(folder: Path, identity: str) -> Iterator[Path]:
    """Return the copies of a ledger that migrations made beside it."""
    return _copies(folder, f"{LEDGER_FILE}.schema-*", identity)


def _copies(folder: Path, pattern: str, identity: str) -> Iterator[Path]:
    for path in folder.glob(pattern):
        if path.is_file() and not path.is_symlink():
            recorded = _recorded(path, "&immutable=1")
            if recorded is not None and recorded[0] == identity:
                yield path


def _recorded(file: Path, more: str = "") -> tuple[Any, ...] | None:
    """Return the identity and the schema of the ledger in a file; None if no ledger can be read there."""
    address = f"{file.absolute().as_uri()}?mode=ro{more}"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as database:
        row: tuple[Any, ...] | None = database.execute("SELECT id, schema FROM ledger").fetchone()
        return row
    return None


def unsaved_purchases(ledger: Ledger, since: float, until: float) -> int:
    """Return how many requests were accepted between two times, in Unix seconds."""
    sql = "SELECT count(*) FROM attempts WHERE accepted_at > :since AND accepted_at < :until"
    return int(ledger.database.rows(sql, since=since, until=until)[0][0])
