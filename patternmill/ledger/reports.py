"""What the ledger tells people and programs: runs, money, what is open, and the history of one thing."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patternmill.errors import Refusal
from patternmill.ledger.attempts import find_attempts
from patternmill.ledger.database import Database, is_gone
from patternmill.ledger.leases import run_of
from patternmill.logs import set_up
from patternmill.settings import Settings, read_settings
from patternmill.states import Attempt
from patternmill.text import money

_RUNS = """
SELECT id, catalog, verb, source, started_at, ended_at, outcome, message, folder, bought, spent, currency FROM runs
WHERE environment = :environment AND :catalog IN ('', catalog) ORDER BY started_at DESC, id DESC LIMIT :most
"""
_ROWS = """
SELECT catalog, status, COUNT(*) AS count FROM row_states
WHERE environment = :environment AND :catalog IN ('', catalog) AND retired IS NULL
GROUP BY catalog, status ORDER BY catalog, status
"""
_OPEN = """
SELECT state, currency, COUNT(*) AS count, CAST(SUM(amount) AS BIGINT) AS amount, MIN(intended_at) AS since
FROM attempts
WHERE environment = :environment AND :catalog IN ('', catalog) AND state IN ('intended', 'accepted', 'held')
    AND intended_at < :before
GROUP BY state, currency
"""
_OPEN_WORDS = {
    "intended": "in doubt or being sent", "accepted": "jobs not ended", "held": "held: `patternmill settle`",
}  # fmt: skip
_LIVING = "SELECT key, driver, holder FROM leases WHERE driver IS NOT NULL"
_SPENT = "SELECT spent, currency FROM environments WHERE name = :name AND day = :day"
_NAMED = ":name IN (label, request_id, job_id, result_id, item_id)"
_EVENTS = "SELECT state, code, at, run_id FROM events WHERE request_id = :request_id ORDER BY seq"
_OF_SKU = "SELECT * FROM catalog_rows WHERE environment = :environment AND :sku IN (key, sku)"


@contextmanager
def open_ledger() -> Iterator[tuple[Database, Settings]]:
    """Open the ledger that the settings name, for reading and for a person's decisions."""
    settings = read_settings()
    set_up(settings.log_format)
    database = Database(settings.ledger_address)
    try:
        yield database, settings
    finally:
        database.disconnect()


def last_run(database: Database, environment: str, catalog: str | None) -> Any:
    """Return the last run of a catalog, or of the environment. Raises Refusal where there is none."""
    found = database.read(_RUNS, environment=environment, catalog=catalog or "", most=1)
    if not found:
        raise Refusal("no_run", f"There is no run of {catalog or environment}.")
    return found[0]


def living_run(database: Database, environment: str, catalog: str) -> str:
    """Return the run of a catalog that goes on, or an empty text."""
    own = (row for row in database.read(_LIVING) if row.key == f"{environment}/{catalog}")
    return next((str(row.driver) for row in own if not is_gone(row.holder)), "")


def status_record(
    database: Database, environment: str, catalog: str | None, before: float = 1e12
) -> dict[str, Any]:
    """Return runs, rows, what has been open since before a moment, spending of the day, and brakes."""
    scope = {"environment": environment, "catalog": catalog or ""}
    day = time.strftime("%Y-%m-%d", time.gmtime())
    living = [row._asdict() for row in database.read(_LIVING) if not is_gone(row.holder)]
    found = {
        "paused": database.read("SELECT scope, since, person, reason FROM brakes ORDER BY scope"),
        "runs": database.read(_RUNS, **scope, most=10),
        "rows": database.read(_ROWS, **scope),
        "open": database.read(_OPEN, **scope, before=before),
        "spent_today": database.read(_SPENT, name=environment, day=day),
    }
    return {
        "environment": environment, "ledger": database.identity, "running": living,
        **{name: [row._asdict() for row in rows] for name, rows in found.items()},
    }  # fmt: skip


def status_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield a status for people."""
    for brake in record["paused"]:
        why = f" ({brake['reason']})" if brake["reason"] else ""
        yield f"PAUSED: {brake['scope']} since {when(brake['since'])} by {brake['person']}{why}"
    for open_ in record["open"]:
        price = f", {money(open_['amount'], open_['currency'])}" if open_["amount"] else ""
        words = _OPEN_WORDS[open_["state"]]
        yield f"{open_['count']:,} {words}{price}, since {when(open_['since'])}"
    for spent in record["spent_today"]:
        if spent["spent"]:
            yield f"spent today: {money(spent['spent'], spent['currency'])}"
    for rows in record["rows"]:
        yield f"catalog {rows['catalog']}: {rows['count']:,} {rows['status'].replace('_', ' ')}"
    driving = {run_of(living["driver"]) for living in record["running"]}
    for run in record["runs"]:
        outcome = run["outcome"] or ("under way" if run["id"] in driving else "died; the next one goes on")
        yield f"{when(run['started_at'])}  {run['verb']:8} {run['catalog']:20} {outcome}  {run['id']}"


def attempts_about(database: Database, environment: str, name: str) -> list[Attempt]:
    """Return the attempts at a thing named by sku or any of its IDs, and at what it is built on, the oldest first."""
    found = find_attempts(database, environment, _NAMED, name=name)
    for row in database.read(_OF_SKU, environment=environment, sku=name):
        items = {"wants": row.wants, "has": row.has, "base": row.built_on}
        found += find_attempts(database, environment, "item_id IN (:wants, :has, :base)", **items)
    for pattern_id in {json.loads(one.body).get("patternId") for one in found} - {None}:
        found += find_attempts(database, environment, "result_id = :pattern", pattern=pattern_id)
    return sorted(set(found), key=lambda one: one.intended_at)


def history_lines(database: Database, environment: str, name: str) -> Iterator[str]:
    """Yield what is on record about a thing that is named by sku or any of its IDs. Raises Refusal: nothing is."""
    rows = database.read(_OF_SKU, environment=environment, sku=name)
    yield from (f"refused: {json.loads(row.refusal)['message']}" for row in rows if row.refusal)
    found = attempts_about(database, environment, name)
    if not found and not rows:
        message = f"The ledger knows nothing of {name} in {environment}."
        raise Refusal("unknown_name", message, "Name a sku, request, job or product.")
    for attempt in found:
        yield from _history(database, attempt)


def _history(database: Database, attempt: Attempt) -> Iterator[str]:
    price = f", {money(attempt.amount, attempt.currency)}" if attempt.amount else ""
    known = [attempt.job_id or "", attempt.result_id or "", attempt.message]
    yield f"{attempt.stage} {attempt.label}, attempt {attempt.number}: {attempt.state}{price}"
    yield f"  request {attempt.request_id} {' '.join(filter(None, known))}".rstrip()
    for event in database.read(_EVENTS, request_id=attempt.request_id):
        yield f"  {when(event.at)}  {event.state} {event.code}".rstrip() + f" ({event.run_id})"


def when(seconds: float) -> str:
    """Return a time as people read it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
