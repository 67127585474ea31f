"""Attempts on record: read, found, changed with an event for each change, and compared with what answers name."""

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from patternmill.items import pattern_item
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.states import ENTERED_FROM, Attempt, State
from patternmill.text import plain

COLUMNS = ", ".join(Attempt.__slots__)
_MADE = "SELECT stage, COUNT(*) FROM attempts WHERE driver = :run_id AND state = 'succeeded' GROUP BY stage"
_LAST_OF = f"SELECT {COLUMNS} FROM attempts WHERE item_id IN (:names...) ORDER BY number"


def attempt_of(row: Any) -> Attempt:
    return Attempt(**{**row._asdict(), "state": State(row.state)})


def change_attempt(
    connection: Connection,
    attempt: Attempt,
    state: State,
    run_id: str,
    at: float,
    counts: bool = True,
    **learned: Any,
) -> Attempt | None:
    """Change an attempt to a state with what was learned, and record that; None where the change is not legal."""
    values = {"request_id": attempt.request_id, "new_state": state, **learned}
    found = connection.row(_change_to(state, tuple(learned)), **values)
    if not found:
        return None
    changed = attempt_of(found)
    record_event(connection, changed, run_id, at, counts=counts)
    return changed


@cache
def _change_to(state: State, names: tuple[str, ...]) -> str:
    """Return the statement that changes an attempt from a state from which this one may be entered."""
    learned = "".join(map(", {0} = :{0}".format, names))
    before = ", ".join(map("'{}'".format, sorted(ENTERED_FROM[state])))
    return f"""
    UPDATE attempts SET state = :new_state{learned} WHERE request_id = :request_id AND state IN ({before})
    RETURNING {COLUMNS}
    """


def record_event(
    connection: Connection,
    attempt: Attempt,
    run_id: str,
    at: float,
    *,
    state: str = "",
    message: str = "",
    counts: bool = True,
) -> None:
    """Add a change of an attempt to the record, which nobody changes."""
    change = {
        "environment": attempt.environment, "stage": attempt.stage, "item_id": attempt.item_id,
        "request_id": attempt.request_id, "state": state or attempt.state, "code": "" if state else attempt.code,
        "message": message or attempt.message, "at": at, "run_id": run_id,
    }  # fmt: skip
    connection.insert("events", **change, token=uuid4().hex[:12], counts=int(counts))
    about = {"catalog": attempt.catalog, "label": attempt.label, "job_id": attempt.job_id}
    price = {"amount": plain(attempt.amount), "currency": attempt.currency, "result_id": attempt.result_id}
    connection.facts.append({"event": "attempt", **change, **about, **price})


def last_event(database: Database) -> tuple[int, str]:
    """Return the number and the token of the last change on record: how far the ledger is."""
    found = database.read("SELECT seq, token FROM events ORDER BY seq DESC LIMIT 1")
    return (int(found[0].seq), str(found[0].token)) if found else (0, "")


def last_attempts(database: Database, environment: str, item_ids: Collection[str]) -> dict[str, Attempt]:
    """Return the last attempt at each of the items, by item."""
    some = "SELECT 1 FROM attempts WHERE environment = :environment LIMIT 1"
    if not database.read(some, environment=environment):
        return {}
    return {row.item_id: attempt_of(row) for row in database.read(_LAST_OF, list(item_ids))}


def spent_by(database: Database, run_id: str) -> int:
    """Return what a run has spent, in ten-thousandths."""
    return int(database.read("SELECT spent FROM runs WHERE id = :run_id", run_id=run_id)[0].spent)


def made_by(database: Database, run_id: str) -> dict[str, int]:
    """Return how many items a run has made, by stage."""
    return dict(database.read(_MADE, run_id=run_id))


def is_other(database: Database, attempt: Attempt, field: str, value: Any) -> bool:
    """Return whether another item of ours has a value in a field of an answer."""
    where, given = _HAS[field], {"value": value}
    if field == "prompt":
        given = {"value": pattern_item(attempt.environment, value).id}
    if field == "selection":
        given = {"value": f"%{json.dumps({value[0]: value[1]}, ensure_ascii=False)[1:-1]}%"}
    query = (
        f"SELECT 1 FROM attempts WHERE environment = :environment AND item_id <> :item_id AND {where} LIMIT 1"
    )
    mine = {"environment": attempt.environment, "item_id": attempt.item_id}
    return bool(database.read(query, **mine, **given))


_HAS = {
    "requestId": "request_id = :value",
    "jobId": "job_id = :value",
    # With the stages named, the index finds it: else each look would read every attempt.
    "patternId": "stage IN ('reference', 'pattern', 'refinement', 'checkout') AND result_id = :value",
    "result": "stage IN ('reference', 'pattern', 'refinement', 'product', 'checkout') AND result_id = :value",
    "prompt": "item_id = :value",
    "selection": "body LIKE :value",
}


def find_attempts(database: Database, environment: str, condition: str = "", **values: Any) -> list[Attempt]:
    """Return the attempts of an environment that fit an SQL condition, the oldest first."""
    where = f"environment = :environment{f' AND ({condition})' if condition else ''}"
    query = f"SELECT {COLUMNS} FROM attempts WHERE {where} ORDER BY intended_at"
    return [attempt_of(row) for row in database.read(query, environment=environment, **values)]


def ends_of(database: Database, names: Sequence[str]) -> list[Any]:
    """Return ID, outcome and message of the runs that are named, the oldest first."""
    query = "SELECT id, outcome, message FROM runs WHERE id IN (:names...)"
    return sorted(database.read(query, names))
