"""Events other than those of attempts: decisions about patterns, feedback, and the exchanges behind failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

import orjson
from pydantic import TypeAdapter

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.states import Decided

#: The years between which a time is possible; near the ends of the calendar it cannot be read back from its seconds.
_EARLIEST, _LATEST = 1970, 3000
#: The greatest lengths, in characters, of what a person writes, and of an ID, a picture's digest or a name.
_LONGEST_NOTE, _LONGEST_TEXT = 2000, 100
#: The kind of the event that is a decision.
DECIDED = "decided"
#: The events of the decisions of a catalog, found by their index; with ORDER BY, SQLite would read all events.
_OF_CATALOG = """
FROM (SELECT * FROM events WHERE decision > '') e CROSS JOIN attempts a CROSS JOIN items i
WHERE a.request_id = e.request_id AND i.key = a.item_key AND i.environment = :environment AND i.catalog = :catalog
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision, which is an event; of those about an item, the last one to arrive counts."""

    #: Identifies the event: one that is sent again changes nothing.
    id: str
    #: The item of the take, before any refinement: rows that share it share the decision.
    item: ItemKey
    #: SHA-256 of the picture that was looked at, in hexadecimal; empty where there was none.
    picture: str
    verdict: Decided
    note: str
    by: str
    #: The time on the person's machine.
    at: datetime
    #: Its place in the order of the ledger's events; before it is recorded, the last one that its file knew of.
    sequence: int = field(default=0, compare=False)

    @property
    def fits(self) -> bool:
        """Return whether it has an ID, and no text longer than the page allows in a decision."""
        texts = (self.id, self.picture, self.by)
        return bool(self.id) and len(self.note) <= _LONGEST_NOTE and max(map(len, texts)) <= _LONGEST_TEXT


_DECISION = TypeAdapter(Decision)


def storable(text: str) -> str:
    """Return a text without what no database stores: half a surrogate pair, where an emoji was cut, and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def decision_time(text: str) -> datetime | None:
    """Return the time in a decision's text (ISO 8601; UTC where it has no offset); None for an impossible one."""
    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at.year < _LATEST else None


def record_decisions(ledger: Ledger, run_id: RunId, decisions: Iterable[Decision]) -> list[str]:
    """Add the events, inside a transaction, and return the IDs of the new ones. `run_id`: whose pictures were shown.

    Raises LedgerError for an item that was never attempted.
    """
    return [decision.id for decision in decisions if _record(ledger, run_id, decision)]


def _record(ledger: Ledger, run_id: RunId, decision: Decision) -> bool:
    last = ledger.purchases.last_attempt(decision.item)
    if last is None:
        raise LedgerError(
            f"Pattern item {decision.item} is not in the ledger: nothing can be decided about it."
        )
    detail = orjson.dumps(decision).decode()
    return ledger.record_event(run_id, DECIDED, last.request_id, detail=detail, decision=decision.id)


def last_decisions(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, Decision]:
    """Return the decision that counts for each pattern item, even one that only takes another back, in their order."""
    rows = ledger.database.rows(
        f"SELECT e.seq, e.detail {_OF_CATALOG}", environment=environment, catalog=catalog
    )
    last: dict[ItemKey, Decision] = {}
    for sequence, detail in sorted(rows):
        decision = replace(_DECISION.validate_json(detail), sequence=sequence)
        last.pop(decision.item, None)
        last[decision.item] = decision
    return last


def not_overtaken(new: Iterable[Decision], last: Mapping[ItemKey, Decision]) -> list[Decision]:
    """Return the decisions that are not on record, and whose takes nobody decided about after they were made.

    `last`: the decision that counts, by take.
    """
    return [
        decision
        for decision in new
        if (before := last.get(decision.item)) is None
        or (before.id != decision.id and before.sequence <= decision.sequence)
    ]


def last_sequence(ledger: Ledger, environment: str, catalog: str) -> int:
    """Return the place of the last decision of a catalog; 0: there is none."""
    rows = ledger.database.rows(
        f"SELECT coalesce(max(e.seq), 0) {_OF_CATALOG}", environment=environment, catalog=catalog
    )
    return int(rows[0][0])


def decided_by_open_runs(ledger: Ledger, environment: str, catalog: str) -> set[ItemKey]:
    """Return the takes that were decided about in a catalog's runs without an end, which are running or crashed."""
    rows = ledger.database.rows(
        "SELECT a.item_key FROM events e JOIN runs n ON n.run_id = e.run_id "
        "JOIN attempts a ON a.request_id = e.request_id WHERE e.decision > '' AND n.outcome IS NULL "
        "AND n.environment = :environment AND n.catalog = :catalog",
        environment=environment,
        catalog=catalog,
    )
    return {ItemKey(key) for (key,) in rows}


def patterns_of_products(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, ItemKey]:
    """Return, by product item, the pattern or last refinement that each is built on."""
    rows = ledger.database.rows(
        "SELECT key, pattern_key FROM items WHERE environment = :environment AND catalog = :catalog "
        "AND stage = 'product'",
        environment=environment,
        catalog=catalog,
    )
    return {ItemKey(product): ItemKey(pattern) for product, pattern in rows}


# -- feedback


#: The kind of the event that keeps the exchange by which an attempt failed.
ANSWERED = "answered"


class FeedbackEvent(StrEnum):
    """The kinds of events about a report."""

    #: The report is about to be sent; until another event follows, nobody knows whether it was delivered.
    INTENDED = "feedback_intended"
    SENT = "feedback_sent"
    #: It may have been delivered, and is not sent again.
    IN_DOUBT = "feedback_in_doubt"
    #: It was certainly not delivered: the failure may be reported again.
    NOT_SENT = "feedback_not_sent"


def intend_feedback(ledger: Ledger, run_id: RunId, request_id: RequestId, report_id: str) -> bool:
    """Record that a report about an attempt is about to be sent; return False when one was, or may have been."""
    with ledger.transaction():
        ledger.database.lock(f"feedback {request_id}")
        rows = ledger.database.rows(
            "SELECT kind FROM events WHERE request_id = :request_id AND kind LIKE 'feedback%' "
            "ORDER BY seq DESC LIMIT 1",
            request_id=request_id,
        )
        if rows and rows[0][0] != FeedbackEvent.NOT_SENT:
            return False
        ledger.record_event(run_id, FeedbackEvent.INTENDED, request_id, detail=report_id)
    return True


def last_answer(ledger: Ledger, request_id: RequestId) -> tuple[float, str] | None:
    """Return the last exchange on record of an attempt, as JSON, and when it was."""
    rows = ledger.database.rows(
        "SELECT at, detail FROM events WHERE request_id = :request_id AND kind = :kind ORDER BY seq DESC LIMIT 1",
        request_id=request_id,
        kind=ANSWERED,
    )
    return (rows[0][0], rows[0][1]) if rows else None
