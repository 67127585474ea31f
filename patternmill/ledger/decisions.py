"""What people decided about patterns after looking at them: events that are added, never changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.states import AttemptState, Decided, Stage

#: Years; at the ends of the calendar a time cannot be read back from its seconds.
_EARLIEST, _LATEST = 1970, 3000


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

    @property
    def is_pick(self) -> bool:
        return self.verdict is Decided.PICK


def decision_time(text: str) -> datetime | None:
    """The time in a decision's text (ISO 8601; UTC where it has no offset); None for one that no clock says."""
    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at.year < _LATEST else None


def record_decisions(
    ledger: Ledger, environment: str, catalog: str, run_id: RunId, decisions: Iterable[Decision]
) -> list[str]:
    """Add the events, inside a transaction; the IDs of those that are new. `run_id`: whose pictures were looked at.

    Raises LedgerError for an item that the ledger does not have.
    """
    return [
        decision.id
        for decision in decisions
        if ledger.database.execute(
            "INSERT INTO decisions (id, environment, catalog, run_id, item_key, picture, verdict, note, who, at) "
            "VALUES (:id, :environment, :catalog, :run_id, :item, :picture, :verdict, :note, :who, :at) "
            "ON CONFLICT (id) DO NOTHING",
            {
                "id": decision.id,
                "environment": environment,
                "catalog": catalog,
                "run_id": run_id,
                "item": decision.item,
                "picture": decision.picture,
                "verdict": decision.verdict.value,
                "note": decision.note,
                "who": decision.by,
                "at": decision.at.timestamp(),
            },
        )
    ]


def is_recorded(ledger: Ledger, event: str) -> bool:
    """Whether the event of this ID is in the ledger, also where a later one counts by now."""
    return bool(ledger.database.rows("SELECT 1 FROM decisions WHERE id = :id", {"id": event}))


def last_decisions(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, Decision]:
    """The decision that counts, by pattern item, in the order in which they came; also where it was taken back."""
    rows = ledger.database.rows(
        "SELECT id, item_key, picture, verdict, note, who, at FROM decisions "
        "WHERE environment = :environment AND catalog = :catalog ORDER BY seq",
        {"environment": environment, "catalog": catalog},
    )
    found: dict[ItemKey, Decision] = {}
    for id, item, picture, verdict, note, who, at in rows:
        found.pop(item, None)
        found[item] = Decision(
            id, item, picture, Decided(verdict), note, who, datetime.fromtimestamp(at, UTC)
        )
    return found


def made_patterns(
    ledger: Ledger, environment: str, catalog: str
) -> list[tuple[ItemKey, str, str, str | None]]:
    """Every pattern, refined or not, that a catalog had made: item, content as JSON, ID, address of its picture."""
    rows = ledger.database.rows(
        "SELECT i.key, i.content, a.result_id, a.picture_url FROM items i JOIN attempts a ON a.item_key = i.key "
        "WHERE i.environment = :environment AND i.catalog = :catalog AND i.stage IN (:pattern, :refinement) "
        "AND a.state = :made",
        {
            "environment": environment,
            "catalog": catalog,
            "pattern": Stage.PATTERN.value,
            "refinement": Stage.REFINEMENT.value,
            "made": AttemptState.SUCCEEDED.value,
        },
    )
    return [(ItemKey(key), content, result, picture) for key, content, result, picture in rows]
