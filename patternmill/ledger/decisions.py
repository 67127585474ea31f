"""What people decided about patterns after looking at them: events that are added, never changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import orjson
from pydantic import TypeAdapter

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.states import UNWANTED, Decided

#: Years; at the ends of the calendar a time cannot be read back from its seconds.
_EARLIEST, _LATEST = 1970, 3000


#: In characters: of what a person writes, and of an ID, a picture's digest and a name.
_LONGEST_NOTE, _LONGEST_TEXT = 2000, 100
#: The kind of its event.
DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class Decision:
    """One event; the last one of an item counts, in the order in which they arrived."""

    #: Of the event: one that is sent again changes nothing.
    id: str
    #: The pattern item: rows that share it share the decision.
    item: ItemKey
    #: SHA-256 of the picture that was looked at, in hexadecimal; empty where there was none.
    picture: str
    verdict: Decided
    note: str
    by: str
    #: By the clock of who decided.
    at: datetime
    #: Its place in the order of the ledger's events; before it is recorded, the last one that its file knew of.
    sequence: int = field(default=0, compare=False)

    @property
    def is_pick(self) -> bool:
        return self.verdict is Decided.PICK

    @property
    def fits(self) -> bool:
        """Return whether it has an ID, and no text longer than a page's decision."""
        texts = (self.id, self.picture, self.by)
        return bool(self.id) and len(self.note) <= _LONGEST_NOTE and max(map(len, texts)) <= _LONGEST_TEXT


_DECISION = TypeAdapter(Decision)


def storable(text: str) -> str:
    """Return a text without what no database keeps: half a surrogate pair, where an emoji was cut, and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def decision_time(text: str) -> datetime | None:
    """The time in a decision's text (ISO 8601; UTC where it has no offset); None for one that no clock says."""
    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at.year < _LATEST else None


def record_decisions(ledger: Ledger, run_id: RunId, decisions: Iterable[Decision]) -> list[str]:
    """Add the events, inside a transaction; the IDs of those that are new. `run_id`: whose pictures were looked at.

    Raises LedgerError for an item of which the ledger has no attempt.
    """
    return [decision.id for decision in decisions if _record(ledger, run_id, decision)]


def _record(ledger: Ledger, run_id: RunId, decision: Decision) -> bool:
    request_id = ledger.purchases.last_request(decision.item)
    if request_id is None:
        raise LedgerError(
            f"Pattern item {decision.item} is not in the ledger: nothing can be decided about it."
        )
    return ledger.record_event(
        run_id, DECIDED, request_id, detail=orjson.dumps(decision).decode(), decision=decision.id
    )


def last_decisions(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, Decision]:
    """The decision that counts, by pattern item, in the order in which they came; also where it was taken back."""
    # The decisions first, by their index; with ORDER BY, SQLite would read all events.
    rows = ledger.database.rows(
        "SELECT e.seq, e.detail FROM (SELECT * FROM events WHERE decision > '') e "
        "CROSS JOIN attempts a CROSS JOIN items i WHERE a.request_id = e.request_id AND i.key = a.item_key "
        "AND i.environment = :environment AND i.catalog = :catalog",
        {"environment": environment, "catalog": catalog},
    )
    found: dict[ItemKey, Decision] = {}
    for sequence, detail in sorted(rows):
        decision = replace(_DECISION.validate_json(detail), sequence=sequence)
        found.pop(decision.item, None)
        found[decision.item] = decision
    return found


def unwanted_patterns(ledger: Ledger, environment: str, catalog: str) -> set[ItemKey]:
    """Return the pattern items that a person decided against."""
    decisions = last_decisions(ledger, environment, catalog)
    return {item for item, decision in decisions.items() if decision.verdict in UNWANTED}


def last_sequence(ledger: Ledger, environment: str, catalog: str) -> int:
    """Return the place of the last decision of a catalog; 0: there is none."""
    return max((one.sequence for one in last_decisions(ledger, environment, catalog).values()), default=0)


def made_patterns(
    ledger: Ledger, environment: str, catalog: str
) -> list[tuple[ItemKey, str, str, str | None]]:
    """Every pattern, refined or not, that a catalog had made: item, content as JSON, ID, address of its picture."""
    rows = ledger.database.rows(
        "SELECT i.key, i.content, a.result_id, a.picture_url FROM items i JOIN attempts a ON a.item_key = i.key "
        "WHERE i.environment = :environment AND i.catalog = :catalog "
        "AND i.stage IN ('pattern', 'refinement') AND a.state = 'succeeded'",
        {"environment": environment, "catalog": catalog},
    )
    return [(ItemKey(key), content, result, picture) for key, content, result, picture in rows]
