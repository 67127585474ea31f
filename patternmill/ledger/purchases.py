"""Purchases: the intent before the request, the job before the wait, the result before what is built on it."""

import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

from patternmill.errors import Halted, Refusal
from patternmill.halt import Event, Standing, standing
from patternmill.items import Item
from patternmill.ledger.attempts import (
    COLUMNS,
    attempt_of,
    change_attempt,
    is_other,
    last_event,
    record_event,
)
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease, run_of
from patternmill.plan import BOUGHT, Action, Step, next_action
from patternmill.settings import Settings
from patternmill.states import Attempt, Outcome, State

_LAST = f"SELECT {COLUMNS} FROM attempts WHERE item_id = :item_id ORDER BY number DESC LIMIT 1"
_ONE = f"SELECT {COLUMNS} FROM attempts WHERE request_id = :request_id"
_JOBS = f"""
SELECT {COLUMNS} FROM attempts WHERE environment = :environment AND catalog = :catalog AND state = 'accepted'
"""
#: Counts an item and its price towards the limits of a run, unless one would be passed.
_RESERVE = """
UPDATE runs SET bought = bought + 1, spent = spent + :price
WHERE id = :run_id AND (max_items IS NULL OR bought < max_items) AND (budget IS NULL OR spent + :price <= budget)
"""
#: The same for the day's budget of the environment, whose address is on record from its first intent on. Another clock
#: may have begun the next day already.
_RESERVE_DAY = """
INSERT INTO environments (name, address, currency, day, spent) VALUES (:name, :address, :currency, :day, :price)
ON CONFLICT (name) DO UPDATE SET
    currency = excluded.currency, day = CASE WHEN environments.day = :next_day THEN :next_day ELSE :day END,
    spent = CASE WHEN environments.day IN (:day, :next_day) THEN environments.spent ELSE 0 END + excluded.spent
WHERE :most < 0
    OR CASE WHEN environments.day IN (:day, :next_day) THEN environments.spent ELSE 0 END + excluded.spent <= :most
"""
_GIVE_BACK = "UPDATE runs SET bought = bought - 1, spent = spent - :price WHERE id = :run_id"
#: When the price of a request was reserved: `settle` may have changed the time from which its age counts.
_PAID_AT = "SELECT MAX(at) FROM events WHERE request_id = :id AND state = 'intended' AND run_id <> 'settle'"
_GIVE_BACK_DAY = "UPDATE environments SET spent = spent - :price WHERE name = :name AND day = :day"
_OF_OTHER = (
    "SELECT 1 FROM attempts WHERE environment = :environment AND {} = :id AND request_id <> :request_id"
)
_OTHERS = {
    "job_id": "The service answered with {}, which is the job of another request.",
    "result_id": "The service names {}, which another item has.",
}
_ADDRESS = "UPDATE checkouts SET address = :address WHERE item_id = :item_id"
_TAKE_OVER = f"""
UPDATE attempts SET driver = :mine
WHERE request_id = :request_id AND driver = :seen AND state IN ('intended', 'accepted') RETURNING {COLUMNS}
"""
#: Nobody drives it any more, though the run that did goes on.
_LET_GO = "UPDATE attempts SET driver = '' WHERE request_id = :request_id AND driver = :mine"
_REJECTED = """
SELECT 1 FROM decisions
WHERE environment = :environment AND pattern = :pattern AND take = :take AND verdict = 'reject'
"""
_DURATIONS = """
SELECT ended_at - accepted_at AS seconds FROM attempts
WHERE environment = :environment AND stage = :stage AND state = 'succeeded' ORDER BY ended_at DESC LIMIT :most
"""
_AS_BEFORE = """
SELECT 1 FROM events
WHERE request_id IN (SELECT request_id FROM attempts WHERE item_id = :item_id)
    AND state = :state AND code = :code AND message = :message AND run_id <> :run_id
"""
_LAST_SEQ = "SELECT MAX(seq) FROM events WHERE environment = :environment AND stage = :stage AND state = "
_SINCE = f"SELECT COALESCE(({_LAST_SEQ} 'halt'), 0) AS halt, COALESCE(({_LAST_SEQ} 'succeeded'), 0) AS good"
#: By `seq` alone, whose index is the right one: by stage, each look would sort all that ever happened.
_TAIL = """
SELECT item_id, state, code, counts FROM events
WHERE environment || '' = :environment AND stage || '' = :stage AND seq > :after ORDER BY seq LIMIT 2000
"""
_ACCEPTED_HERE = """
SELECT 1 FROM events WHERE environment = :environment AND stage = :stage AND state = 'accepted' AND run_id = :run_id
    AND seq > :after LIMIT 1
"""
_HALTED_HERE = """
SELECT stage, message, COALESCE((SELECT NULLIF(message, '') FROM attempts WHERE request_id = events.request_id), code)
FROM events WHERE environment = :environment AND state = 'halt' AND run_id = :run_id AND seq > :after
"""
Learned = dict[str, Any]
_DAY = 86_400.0
_BAD = (State.FAILED, State.REJECTED, State.HELD)


class Purchases:
    """Buys for one run, or for a share of it. Every change is refused once the run has lost its lease."""

    def __init__(self, lease: Lease, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self._lease, self._settings, self._now = lease, settings, now
        self._database, self.driver, self._environment = lease.database, lease.driver, lease.environment
        self._run_id = run_of(lease.driver)
        #: The last event before the run.
        self.first_event = last_event(lease.database)[0] if lease.first_event is None else lease.first_event
        #: How each stage stands, by the last events on record.
        self.standings: dict[str, Standing] = {}

    async def stand(self, stages: Iterable[str]) -> None:
        """Look how these stages stand."""
        await self._database.write(partial(self._stand, stages=tuple(stages)))

    async def begin(self, step: Step, parent_id: str | None, failed: str = "") -> Attempt:
        """Return the item's attempt to go on with, a new one with its price reserved where there is none.

        `failed`: the request that the service has just said again to have failed; another one that failed is returned.
        Raises Halted where a brake is set, or a limit would be passed.
        """
        return await self._database.write(partial(self._begin, step=step, parent_id=parent_id, failed=failed))

    def _begin(self, connection: Connection, step: Step, parent_id: str | None, failed: str) -> Attempt:
        item = step.item
        found = connection.row(_LAST, item_id=item.id)
        last = attempt_of(found) if found else None
        action = next_action(last, step.most, step.retrying)
        if last and (action not in BOUGHT or (last.state is State.FAILED and last.request_id != failed)):
            return last
        if self._lease.brake:
            raise self._lease.brake
        price, at = self._settings.price(item.stage), self._now()
        number = last.number + (action is Action.MAKE) if last else 1
        body = item.body(number, parent_id)
        self._reserve(connection, price, at)
        asked: dict[str, Any] = {
            "driver": self.driver, "catalog": self._lease.catalog, "body": body,
            "amount": price, "currency": self._settings.currency, "intended_at": at, "label": item.label,
        }  # fmt: skip
        if last and action is Action.RESEND:
            again = change_attempt(
                connection, last, State.INTENDED, self._run_id, at, code="", message="", **asked
            )
            assert again
        else:
            again = self._insert(connection, item, number, asked)
        if self.standings.get(item.stage, Standing()).room is not None:
            self._stand(connection, [item.stage])
        return again

    def _insert(self, connection: Connection, item: Item, number: int, asked: dict[str, Any]) -> Attempt:
        values: dict[str, Any] = {
            "request_id": item.request_id(number),
            "item_id": item.id,
            "number": number,
            "stage": item.stage,
            "operation": item.operation,
        }
        new = Attempt(**values, environment=self._environment, state=State.INTENDED, **asked)
        connection.insert("attempts", **values, environment=self._environment, state=new.state, **asked)
        record_event(connection, new, self._run_id, new.intended_at)
        return new

    def _reserve(self, connection: Connection, price: int, at: float) -> None:
        """Count a purchase towards the limits. Raises Halted where one would be passed, before anything is written."""
        settings, most = self._settings, self._settings.day_budget
        of_day = {"day": _day(at), "next_day": _day(at + _DAY), "name": self._environment}
        day = {**of_day, "address": address_of(settings), "currency": settings.currency}
        if connection.execute(_RESERVE_DAY, **day, price=price, most=-1 if most is None else most) != 1:
            message = f"The day's budget of {self._environment} is spent."
            raise Halted(Outcome.BUDGET_REACHED, "day_budget", message, "Run it again tomorrow (UTC).")
        if connection.execute(_RESERVE, run_id=self._run_id, price=price) != 1:
            connection.execute(_GIVE_BACK_DAY, price=price, name=self._environment, day=_day(at))
            message = "The limit of this run is reached."
            raise Halted(Outcome.BUDGET_REACHED, "budget_reached", message, "Run it again for the rest.")

    async def accept(self, attempt: Attempt, job_id: str, result_id: str = "", address: str = "") -> Attempt:
        """Record the job of an attempt; one that belongs to another request is a contradiction, and is held.

        `result_id`: what was made at once; `address`: where it is paid.
        """
        learned = {"job_id": job_id, "accepted_at": self._now(), "code": "", "message": ""}

        def change(connection: Connection) -> Attempt:
            accepted = self._once(connection, "job_id", attempt, State.ACCEPTED, learned)
            if not result_id or accepted.state is not State.ACCEPTED:
                return accepted
            connection.execute(_ADDRESS, item_id=attempt.item_id, address=address)
            return self._once(connection, "result_id", accepted, State.SUCCEEDED, {"result_id": result_id})

        return await self._database.write(change)

    async def succeed(self, attempt: Attempt, result_id: str) -> Attempt:
        """Record the result of an attempt; one that another item has is a contradiction, and is held."""
        learned = {"result_id": result_id, "code": "", "message": ""}
        succeeded = partial(
            self._once, name="result_id", attempt=attempt, state=State.SUCCEEDED, learned=learned
        )
        return await self._database.write(succeeded)

    def _once(
        self, connection: Connection, name: str, attempt: Attempt, state: State, learned: Learned
    ) -> Attempt:
        """Record a state with an ID that is new, or hold the attempt where another request has that ID."""
        mine = {"environment": self._environment, "request_id": attempt.request_id}
        if connection.row(_OF_OTHER.format(name), **mine, id=learned[name]):
            words: Learned = {"code": "contradiction", "message": _OTHERS[name].format(learned[name])}
            return self._end(connection, attempt, State.HELD, words)
        return self._end(connection, attempt, state, learned)

    async def end(self, attempt: Attempt, state: State, **learned: Any) -> Attempt:
        """Record a state of an attempt with what was learned. What was refused is given back to the budget."""
        return await self._database.write(lambda connection: self._end(connection, attempt, state, learned))

    def _end(self, connection: Connection, attempt: Attempt, state: State, learned: Learned) -> Attempt:
        at = self._now()
        ended = {} if state is State.ACCEPTED else {"ended_at": at}
        free = {"amount": 0} if state is State.REJECTED else {}
        counts = not (state in _BAD and self._is_as_before(connection, attempt, state, learned))
        values = {**learned, **ended, **free}
        changed = change_attempt(connection, attempt, state, self._run_id, at, counts=counts, **values)
        if changed is None:
            return self._late(connection, attempt, state, learned)
        if free:
            connection.execute(_GIVE_BACK, run_id=run_of(attempt.driver), price=attempt.amount)
            day = _day(connection.row(_PAID_AT, id=attempt.request_id)[0])
            connection.execute(_GIVE_BACK_DAY, price=attempt.amount, name=self._environment, day=day)
        if state in _BAD:
            self._stand(connection, [attempt.stage])
        elif state is State.SUCCEEDED:
            self.standings[attempt.stage] = Standing()  # nothing bad since
        return changed

    def _late(self, connection: Connection, attempt: Attempt, state: State, learned: Learned) -> Attempt:
        """Return what is on record where a change came too late; hold a second job for one request."""
        on_record = attempt_of(connection.row(_ONE, request_id=attempt.request_id))
        if state is State.ACCEPTED and on_record.job_id not in (None, learned["job_id"]):
            message = (
                f"The service made two jobs for one request: {on_record.job_id} and {learned['job_id']}."
            )
            words: Learned = {"code": "two_jobs", "message": message}
            at = self._now()
            return change_attempt(connection, on_record, State.HELD, self._run_id, at, **words) or on_record
        return on_record

    def _is_as_before(self, connection: Connection, attempt: Attempt, state: State, learned: Learned) -> bool:
        words = {"code": learned.get("code", ""), "message": learned.get("message", "")}
        before = {"item_id": attempt.item_id, "state": state, "run_id": self._run_id, **words}
        return connection.row(_AS_BEFORE, **before) is not None

    async def give_up(self, attempt: Attempt, message: str) -> None:
        """Record that an attempt is no longer asked about in this run, though it has not ended."""

        def change(connection: Connection) -> None:
            values = {"item_id": attempt.item_id, "state": "given_up", "run_id": self._run_id}
            counts = connection.row(_AS_BEFORE, **values, code="", message=message) is None
            self._note(connection, attempt, "given_up", message, counts=counts)
            connection.execute(_LET_GO, request_id=attempt.request_id, mine=self.driver)
            self._stand(connection, [attempt.stage])

        await self._database.write(change)

    async def note_halt(self, attempt: Attempt, reason: str) -> None:
        """Record that nothing more of a stage is begun; the next items of it are a new test."""
        await self._database.write(lambda connection: self._note(connection, attempt, "halt", reason))

    def _note(
        self, connection: Connection, attempt: Attempt, state: str, message: str, counts: bool = True
    ) -> None:
        record_event(
            connection, attempt, self._run_id, self._now(), state=state, message=message, counts=counts
        )

    def _stand(self, connection: Connection, stages: Iterable[str]) -> None:
        for stage in stages:
            place = {"environment": self._environment, "stage": stage}
            halt, good = connection.row(_SINCE, **place)
            tail = list(map(Event._make, connection.rows(_TAIL, **place, after=max(halt, good))))
            here = {"run_id": self._run_id, "after": self.first_event}
            is_told = "invalid_request" in map(attrgetter("code"), tail)
            is_accepted = is_told and connection.row(_ACCEPTED_HERE, **place, **here) is not None
            self.standings[stage] = standing(tail, good > halt, is_accepted)

    async def take_over(self, attempt: Attempt) -> Attempt:
        """Drive an open attempt from now on, unless somebody else does by now; return it as it is on record."""

        def change(connection: Connection) -> Attempt:
            names = {"request_id": attempt.request_id, "mine": self.driver, "seen": attempt.driver}
            return attempt_of(
                connection.row(_TAKE_OVER, **names) or connection.row(_ONE, request_id=attempt.request_id)
            )

        return await self._database.write(change)

    def look(self, attempt: Attempt) -> Attempt:
        """Return an attempt as it is on record, where it may be taken over: with no living driver but this run."""
        return attempt_of(self._database.read(_ONE, request_id=attempt.request_id)[0])

    def halted_stages(self) -> list[Any]:
        """Return each stage of which this run begins nothing more, why, and what its last item met."""
        mine = {"environment": self._environment, "run_id": self._run_id}
        return self._database.read(_HALTED_HERE, **mine, after=self.first_event)

    def has_living_driver(self, attempt: Attempt) -> bool:
        """Return whether another run that lives drives an attempt, or drove it to its end."""
        return attempt.driver != self.driver and not self._lease.is_silent(attempt.driver)

    def is_rejected(self, pattern: str, take: int) -> bool:
        """Return whether a person has rejected a take by now, perhaps since this run began."""
        named = {"environment": self._environment, "pattern": pattern}
        return bool(self._database.read(_REJECTED, **named, take=take))

    def left_today(self) -> int | None:
        """Return what is left of the day's budget, or None where there is none."""
        if self._settings.day_budget is None:
            return None
        found = self._database.read(
            "SELECT day, spent FROM environments WHERE name = :name", name=self._environment
        )
        days = _day(self._now()), _day(self._now() + _DAY)
        spent = found[0].spent if found and found[0].day in days else 0
        return max(self._settings.day_budget - int(spent), 0)

    def jobs_left(self, named: Collection[str]) -> list[Attempt]:
        """Return the catalog's jobs that go on though none of the named items is theirs."""
        found = self._database.read(_JOBS, environment=self._environment, catalog=self._lease.catalog)
        return [attempt_of(row) for row in found if row.item_id not in named] if found else []

    def is_other(self, attempt: Attempt) -> Callable[[str, Any], bool]:
        """Return what tells whether another item of ours has a value in a field of an answer."""
        return partial(is_other, self._database, attempt)

    def last_durations(self, stage: str, most: int = 100) -> list[float]:
        """Return how long the last jobs of a stage took, in seconds."""
        found = self._database.read(_DURATIONS, environment=self._environment, stage=stage, most=most)
        return list(chain.from_iterable(found))


def check_environment(database: Database, settings: Settings) -> None:
    """Raise Refusal where another service is behind the name of an environment, or another currency."""
    found = database.read("SELECT * FROM environments WHERE name = :name", name=settings.service)
    if not found:
        return
    known, address = found[0], address_of(settings)
    if known.address != address:
        message = f"{settings.service} was at {known.address}, and PATTERNMILL_STUDIO_URL says {address}."
        raise Refusal("other_address", message, "Name the new one with PATTERNMILL_ENVIRONMENT.")
    is_today = known.day == _day(time.time()) and known.spent
    if is_today and known.currency != settings.currency:
        before = known.currency or "no unit"
        message = f"What was spent today is in {before}, and the day's budget in {settings.currency}."
        raise Refusal("other_currency", message, "Set PATTERNMILL_CURRENCY as before.")


def address_of(settings: Settings) -> str:
    """Return the address that is on record for an environment; that of the embedded studio is another each time."""
    return "" if settings.service == "studio" else settings.studio_url.rstrip("/")


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
