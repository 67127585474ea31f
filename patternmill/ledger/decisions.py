"""What people decide about patterns: which take is wanted, and what they say of it."""

import getpass
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from patternmill.errors import Refusal
from patternmill.items import Item
from patternmill.ledger.attempts import last_attempts
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database


class Verdict(StrEnum):
    """A person's word about the take that is wanted."""

    NONE = ""
    PICK = "pick"
    REJECT = "reject"
    AGAIN = "again"  #: Another take is wanted: the next `remake` makes it.


@dataclass(frozen=True)
class Decision:
    """The decision about a pattern, which is named by its first take. Without a decision take 1 is wanted.

    `newest` is the highest take that was ever wanted; `at` is in seconds since 1970, and 0 where nobody has decided.
    """

    pattern: str
    take: int = 1
    newest: int = 1
    verdict: Verdict = Verdict.NONE
    note: str = ""
    person: str = ""
    at: float = 0.0


class Take(NamedTuple):
    """A take of a pattern, with the state of its last attempt; both texts are empty before there is one."""

    number: int
    pattern_id: str
    state: str


_ALL = """
SELECT pattern, take, newest, verdict, note, person, at FROM decisions WHERE environment = :environment
"""
_FIRST = """
INSERT INTO decisions (environment, pattern, take, newest, verdict, note, person, at)
VALUES (:environment, :pattern, :take, :take, '', '', '', :at) ON CONFLICT (environment, pattern) DO NOTHING
"""
_DECIDE = """
UPDATE decisions SET verdict = :verdict, note = :note, person = :person, at = :at
WHERE environment = :environment AND pattern = :pattern AND take = :take
"""
#: Wants another take than the one that was seen. What is not on record was seen as take 1.
_MOVE = """
INSERT INTO decisions (environment, pattern, take, newest, verdict, note, person, at)
VALUES (:environment, :pattern, :take, :newest, '', '', :person, :at)
ON CONFLICT (environment, pattern) DO UPDATE SET
    take = excluded.take, verdict = '', note = '', person = excluded.person, at = excluded.at,
    newest = CASE WHEN decisions.newest > excluded.newest THEN decisions.newest ELSE excluded.newest END
WHERE decisions.take = :seen
"""
_SHARING = """
SELECT catalog, sku FROM catalog_rows
WHERE environment = :environment AND pattern = :pattern AND retired IS NULL ORDER BY catalog, position
"""


def decisions_of(database: Database, environment: str) -> dict[str, Decision]:
    """Return all decisions of an environment, by pattern."""
    found: dict[str, Decision] = {}
    for row in database.read(_ALL, environment=environment):
        found[row.pattern] = Decision(**{**row._asdict(), "verdict": Verdict(row.verdict)})
    return found


def takes_of(database: Database, environment: str, takes: Collection[Item]) -> list[Take]:
    """Return what became of the takes of a pattern, which are given in order."""
    last = last_attempts(database, environment, [item.id for item in takes])
    found = ((number, last.get(item.id)) for number, item in enumerate(takes, 1))
    return [
        Take(number, attempt.result_id or "" if attempt else "", attempt.state if attempt else "")
        for number, attempt in found
    ]


def sharing(database: Database, environment: str, pattern: str) -> list[tuple[str, str]]:
    """Return catalog and sku of all living rows that share a pattern."""
    return list(map(tuple, database.read(_SHARING, environment=environment, pattern=pattern)))


def decide(
    database: Database, environment: str, pattern: str, take: int, verdict: Verdict, note: str = ""
) -> None:
    """Record what a person says of the take that was shown. Raises Refusal where another one is wanted by now."""
    values = {"environment": environment, "pattern": pattern, "take": take, "at": time.time()}

    def change(connection: Connection) -> int:
        if take == 1:
            connection.execute(_FIRST, **values)
        return connection.execute(_DECIDE, **values, verdict=verdict, note=note, person=getpass.getuser())

    if database.change(change) != 1:
        raise _newer()


def move(connection: Connection, environment: str, seen: Decision, take: int) -> None:
    """Want another take of a pattern than was seen. Raises Refusal where another one is wanted by now."""
    values = {"take": take, "newest": max(take, seen.newest), "seen": seen.take}
    place = {"environment": environment, "pattern": seen.pattern, "at": time.time()}
    if connection.execute(_MOVE, **place, **values, person=getpass.getuser()) != 1:
        raise _newer()


def keep_takes(connection: Connection, environment: str, takes: Mapping[str, int]) -> None:
    """Want the takes that results of an earlier ledger name, by pattern, where this one has no decision."""
    place = {"environment": environment, "at": time.time()}
    values = [{**place, "pattern": name, "take": take} for name, take in takes.items()]
    connection.execute_many(_FIRST, values)


def _newer() -> Refusal:
    message = "There is a newer take: what was shown is no longer what the pattern wants."
    return Refusal("newer_take", message, "Look at that one, and decide again.")
