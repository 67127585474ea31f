"""The schema of a ledger: numbered migrations make its tables and bring older ones up to this version."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from patternmill.errors import ConfigurationError
from patternmill.ledger.database import Database
from patternmill.ledger.leases import HELD_LEASES, TAKEOVER_AFTER, is_free
from patternmill.ledger.records import Lease

logger = logging.getLogger(__name__)

#: The number of a schema is how many of these were applied to it.
MIGRATIONS = [
    file.read_text(encoding="utf-8") for file in sorted((Path(__file__).parent / "migrations").glob("*.sql"))
]
#: Tables that a ledger of the first edition has.
_FORMER_TABLES = frozenset({"documents", "attempts"})
_WATCHED_EVERY = 0.5


def schema_number(
    rows: Callable[[str], list[tuple[Any, ...]]], names_of_tables: str, place: str
) -> int | None:
    """Return the number of a ledger's schema; None where there is no ledger.

    `rows` runs queries, and `names_of_tables` is the one for the names of all tables; `place` is where the ledger is,
    for people. Raises ConfigurationError for a schema that this version does not know.
    """
    tables = set(chain.from_iterable(rows(names_of_tables)))
    recorded = rows("SELECT schema FROM ledger") if "ledger" in tables else []
    if not recorded:
        if _FORMER_TABLES.isdisjoint(tables):
            return None
        raise ConfigurationError(
            f"The ledger in {place} was made by the first edition of patternmill, whose products have other IDs.",
            code="ledger_schema",
            remedy="Nothing was changed or bought. Finish its open work with the version that made it.",
        )
    number = int(recorded[0][0])
    if number > len(MIGRATIONS):
        raise ConfigurationError(
            f"The ledger in {place} is of a newer version of patternmill: it has schema {number}, and this version "
            f"knows none above {len(MIGRATIONS)}.",
            code="ledger_schema",
            remedy="Update patternmill here. Nothing was changed or bought.",
        )
    return number


def schema_of(database: Database) -> int | None:
    """Return the number of a ledger's schema, as `schema_number` does."""
    return schema_number(database.rows, database.table_names, database.place)


def bring_up_to_date(database: Database, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Make the tables of a new ledger, or apply the migrations that an older one lacks, in one transaction.

    An older ledger is copied first. Raises ConfigurationError, and changes nothing, while a run drives a catalog, and
    where a person has to make the copy. Where nothing is to be done, no lock is requested: another process may hold it.
    """
    number = schema_of(database)
    if number == len(MIGRATIONS):
        return
    silent = _silent_leases(database, sleep) if number is not None else []
    with database.transaction():
        database.lock("schema")
        number = schema_of(database)
        if number is None:
            _apply(database, 0)
            sql = "INSERT INTO ledger (id, schema) VALUES (:id, :schema)"
            database.execute(sql, id=secrets.token_hex(8), schema=len(MIGRATIONS))
        elif number < len(MIGRATIONS):
            # Every writer reads this row under a lock, so that no write is under way that has read the old number.
            database.execute("UPDATE ledger SET schema = :schema", schema=len(MIGRATIONS))
            if driven := [lease for lease in _living_leases(database) if lease not in silent]:
                raise _driven(database, driven[0])
            database.back_up(number)
            _apply(database, number)
            logger.warning("The ledger in %s was brought up to schema %d.", database.place, len(MIGRATIONS))


def _apply(database: Database, number: int) -> None:
    for script in MIGRATIONS[number:]:
        script = re.sub("--.*", "", script).replace("{serial}", database.serial)
        for statement in filter(None, map(str.strip, script.split(";"))):
            database.execute(statement)


def _silent_leases(database: Database, sleep: Callable[[float], None]) -> list[Lease]:
    """Watch the held leases for as long as a takeover does and return them; raise when one beats."""
    before, watched = _living_leases(database), 0.0
    while before and watched < TAKEOVER_AFTER.total_seconds():
        sleep(_WATCHED_EVERY)
        watched += _WATCHED_EVERY
        if driven := [lease for lease in _living_leases(database) if lease not in before]:
            raise _driven(database, driven[0])
    return before


def _living_leases(database: Database) -> list[Lease]:
    leases = (Lease(*row) for row in database.rows(HELD_LEASES))
    return [lease for lease in leases if not is_free(lease)]


def _driven(database: Database, lease: Lease) -> ConfigurationError:
    return ConfigurationError(
        f"The ledger in {database.place} is of an older version of patternmill, and run {lease.run_id} of "
        f"{lease.catalog!r} goes on: it is brought up to this version only while nothing runs.",
        code="ledger_schema",
        remedy="Wait until that run has ended, or stop it, then run the same command again. Nothing was changed.",
    )
