"""Purchases: items, the attempts at them, what these reserve, and what became of checkouts.

An intent, with what it reserves, is durable before its request; job ID and result are, as they become known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.approvals import Approvals
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.records import (
    Attempt,
    Intent,
    NewItem,
    OrderRecord,
    PickedLine,
    SpendingLimits,
)
from patternmill.ledger.spending import SECOND_ATTEMPT, Spent, day_of, limits_of, refusal, spent_of
from patternmill.processes import boot_id, uptime
from patternmill.states import (
    ATTEMPT_CHANGES,
    INVALID_REQUEST,
    PASSING_REFUSALS,
    REDIRECTED,
    REFUSED_ALIKE,
    REOPENED,
    TO_RESEND,
    AttemptState,
    Stage,
)

ATTEMPT_COLUMNS = (
    "request_id, item_key, attempt, state, body, job_id, result_id, picture_url, "
    "error_code, error, intended_at, accepted_at, ended_at, uptime, price, currency"
)
#: Seconds by which clocks may differ before an age by them is not believed.
_CLOCK_TOLERANCE = 120.0
#: Jobs that are read for how long jobs take: enough for a hundred of each stage.
_LAST_JOBS = 500
#: The kind of the event that an order was seen for the first time, in another status, or paid.
ORDERED = "ordered"
_NOTHING: Mapping[Stage, int] = {}

_FAILED_HERE = (
    "SELECT 1 FROM attempts b JOIN events e ON e.request_id = b.request_id "
    "WHERE b.item_key = :key AND b.attempt = :attempt - 1 AND e.run_id = :run_id AND e.kind = 'failed' LIMIT 1"
)
#: By stage, of a run's attempts: those that no attempt of the same item which failed in the run went before, and
#: those of other items that failed, or are held, and have none after them.
_BEGUN_AND_LOST = (
    "SELECT i.stage, sum(CASE WHEN a.attempt = 1 OR NOT EXISTS ("
    "SELECT 1 FROM attempts b JOIN events e ON e.request_id = b.request_id "
    "WHERE b.item_key = a.item_key AND b.attempt = a.attempt - 1 AND e.run_id = :run_id AND e.kind = 'failed') "
    "THEN 1 ELSE 0 END), "
    "sum(CASE WHEN a.state IN ('failed', 'rejected', 'held') AND a.item_key <> :key AND NOT EXISTS "
    "(SELECT 1 FROM attempts b WHERE b.item_key = a.item_key AND b.attempt > a.attempt) THEN 1 ELSE 0 END) "
    "FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.run_id = :run_id GROUP BY i.stage"
)


class Purchases(Tables):
    """What is to be made, each attempt at it, and what is reserved for these. Amounts are in minor units."""

    def __init__(self, database: Database, now: Clock, approvals: Approvals) -> None:
        super().__init__(database, now)
        self._approvals = approvals

    def add_items(self, environment: str, catalog: str, items: Iterable[NewItem]) -> None:
        """Items that are known stay as they are."""
        now = self.now()
        self.database.execute_many(
            "INSERT INTO items (key, environment, catalog, stage, sku, pattern_key, content, picked, created_at) "
            "VALUES (:key, :environment, :catalog, :stage, :sku, :pattern_key, :content, :picked, :now) "
            "ON CONFLICT (key) DO NOTHING",
            (
                vars(item)
                | {"environment": environment, "catalog": catalog, "stage": item.stage.value, "now": now}
                | {"picked": json.dumps([vars(line) for line in item.picked]) if item.picked else None}
                for item in items
            ),
        )

    def item(self, key: ItemKey) -> tuple[Stage, Mapping[str, Any]]:
        """The stage of an item on record, and what is bought."""
        ((stage, content),) = self.database.rows(
            "SELECT stage, content FROM items WHERE key = :key", {"key": key}
        )
        return Stage(stage), json.loads(content)

    def attempts_of(self, key: ItemKey, *, bodies: bool = True) -> tuple[Attempt, ...]:
        columns = ATTEMPT_COLUMNS if bodies else ATTEMPT_COLUMNS.replace("body", ":nothing")
        rows = self.database.rows(
            f"SELECT {columns} FROM attempts WHERE item_key = :key ORDER BY attempt",  # noqa: S608
            {"key": key} if bodies else {"key": key, "nothing": b""},
        )
        return tuple(map(attempt_from, rows))

    def pattern_contents(self, key: ItemKey) -> tuple[Mapping[str, Any], ...]:
        """Of the pattern, then of its refinements up to this one."""
        stage, content = self.item(key)
        before = self.pattern_contents(content["pattern"]) if stage is Stage.REFINEMENT else ()
        return (*before, content)

    def last_attempts(self, environment: str, catalog: str) -> Iterator[Attempt]:
        """The last attempt at every item of the catalog, without its body."""
        for values in self.database.stream(
            f"SELECT {ATTEMPT_COLUMNS.replace('body', ':nothing')} FROM attempts a "  # noqa: S608
            "JOIN items i ON i.key = a.item_key "
            "WHERE i.environment = :environment AND i.catalog = :catalog AND a.attempt = "
            "(SELECT max(b.attempt) FROM attempts b WHERE b.item_key = a.item_key)",
            {"environment": environment, "catalog": catalog, "nothing": b""},
        ):
            yield attempt_from(values)

    def attempt(self, request_id: RequestId) -> Attempt | None:
        found = self._row(
            f"SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE request_id = :request_id",  # noqa: S608
            request_id=request_id,
        )
        return attempt_from(found) if found else None

    def age_of(self, attempt: Attempt) -> timedelta | None:
        """How long ago its request was intended, by the clock or by the uptime, whichever is longer.

        None when the clock contradicts itself: it is before the intent, or a later event is.
        """
        by_clock = self.now() - attempt.intended_at
        if by_clock < -_CLOCK_TOLERANCE or self._clock_went_back_after(attempt.request_id):
            return None
        return timedelta(seconds=max(0.0, by_clock, _seconds_since(attempt.uptime)))

    def _clock_went_back_after(self, request_id: RequestId) -> bool:
        found = self._row(
            "SELECT 1 FROM events i JOIN events e ON e.seq > i.seq AND e.at < i.at - :tolerance "
            "WHERE i.seq = (SELECT max(seq) FROM events WHERE request_id = :request_id "
            "AND kind IN ('intended', 'settled')) LIMIT 1",
            request_id=request_id,
            tolerance=_CLOCK_TOLERANCE,
        )
        return found is not None

    def accepted(
        self, environment: str, operations: Iterable[str]
    ) -> tuple[frozenset[Stage], frozenset[str]]:
        """The stages, and those of the refinements, of which the service has ever accepted a create."""

        def is_accepted(stage: Stage, content: str = "%") -> bool:
            found = self._row(
                "SELECT 1 FROM items i JOIN attempts a ON a.item_key = i.key WHERE i.environment = :environment "
                "AND i.stage = :stage AND i.content LIKE :content AND a.job_id IS NOT NULL LIMIT 1",
                environment=environment,
                stage=stage.value,
                content=content,
            )
            return found is not None

        stages = frozenset(filter(is_accepted, Stage))
        named = {operation: f'%"operation":"{operation}"%' for operation in operations}
        return stages, frozenset(one for one, text in named.items() if is_accepted(Stage.REFINEMENT, text))

    def durations(self, environment: str) -> list[tuple[Stage, float]]:
        """Return how many seconds each of the last jobs of the environment took, the latest last."""
        rows = self.database.rows(
            "SELECT i.stage, a.ended_at - a.accepted_at FROM (SELECT item_key, accepted_at, ended_at FROM attempts "
            "WHERE state = 'succeeded' AND ended_at >= accepted_at ORDER BY ended_at DESC LIMIT :most) a "
            "JOIN items i ON i.key = a.item_key WHERE i.environment = :environment ORDER BY a.ended_at",
            {"environment": environment, "most": _LAST_JOBS},
        )
        return [(Stage(stage), float(seconds)) for stage, seconds in rows]

    def intend(self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits) -> Attempt:
        """Write the intent of a request, and reserve its price; an intent that is known is returned as it is.

        One that was withdrawn or refused made nothing: it is intended again, with the body of now. What was refused by
        a redirect may have been executed all the same, and keeps its bytes. A refusal that may pass stands until the
        answer. Raises BudgetReached, and then nothing was written.
        """
        known = self.attempt(intent.request_id)
        if known is not None and known.state not in REOPENED:
            return known
        intended = Attempt(
            intent.request_id,
            intent.item_key,
            intent.attempt,
            AttemptState.INTENDED,
            intent.body,
            intended_at=self.now(),
            uptime=_uptime(),
            price=intent.price,
            currency=limits.unit,
        )
        self._reserve(run_id, environment, intent, limits, day_of(intended.intended_at))
        terms: dict[str, Any] = {
            "run_id": run_id,
            "price": intent.price,
            "currency": limits.unit,
            "approval_id": limits.approval,
            "intended_at": intended.intended_at,
            "uptime": intended.uptime,
        }
        if known is not None:
            if known.error_code != REDIRECTED:
                terms |= {"body": intent.body, "job_id": None, "accepted_at": None}
            self._update("attempts", {"request_id": intent.request_id}, **terms)
            is_passing = known.error_code in PASSING_REFUSALS
            said = {"error_code": known.error_code, "error": known.error} if is_passing else {}
            return self.change(run_id, intent.request_id, AttemptState.INTENDED, **said)
        self._insert(
            "attempts",
            request_id=intent.request_id,
            item_key=intent.item_key,
            attempt=intent.attempt,
            state=AttemptState.INTENDED.value,
            body=intent.body,
            **terms,
        )
        self.record_event(run_id, "intended", intent.request_id, at=intended.intended_at)
        return intended

    def request_of_job(self, job_id: str, environment: str) -> RequestId | None:
        """The request that has this job. Environments are different services, which may number their jobs alike."""
        found = self._row(
            "SELECT a.request_id FROM attempts a JOIN items i ON i.key = a.item_key "
            "WHERE a.job_id = :job_id AND i.environment = :environment "
            "AND i.stage NOT IN ('reference', 'checkout') LIMIT 1",
            job_id=job_id,
            environment=environment,
        )
        return RequestId(found[0]) if found else None

    def attempts_with_result(
        self, result_id: str, environment: str, stages: Collection[Stage]
    ) -> list[Attempt]:
        """Return the attempts of these stages in an environment that have this result."""
        found = self.database.rows(
            "SELECT a.request_id, i.stage FROM attempts a JOIN items i ON i.key = a.item_key "
            "WHERE a.result_id = :result_id AND i.environment = :environment",
            {"result_id": result_id, "environment": environment},
        )
        named = [self.attempt(RequestId(name)) for name, stage in found if stage in stages]
        return [attempt for attempt in named if attempt is not None]

    def change(
        self,
        run_id: RunId,
        request_id: RequestId,
        to: AttemptState,
        *,
        job_id: str | None = None,
        result_id: str | None = None,
        picture_url: str | None = None,
        error_code: str | None = None,
        error: str | None = None,
    ) -> Attempt:
        """Move an attempt to its next state, with its job or result. Raises LedgerError on an illegal change."""
        before = self.attempt(request_id)
        if before is None:
            raise LedgerError(f"Request {request_id} is not in the ledger.")
        job, result = job_id or before.job_id, result_id or before.result_id
        if to not in ATTEMPT_CHANGES[before.state]:
            if before.state is to and (before.job_id, before.result_id) == (job, result):
                return before
            raise LedgerError(f"Request {request_id} is {before.state}; it cannot become {to}.")
        if to in REOPENED:
            self._release_reservation(request_id)
        now = self.now()
        learned: dict[str, Any] = {
            "job_id": job,
            "result_id": result_id,
            "picture_url": picture_url or before.picture_url,
            "error_code": error_code,
            "error": error,
            "accepted_at": now if to is AttemptState.ACCEPTED else before.accepted_at,
            "ended_at": None if to in (AttemptState.INTENDED, AttemptState.ACCEPTED) else now,
        }
        self._update("attempts", {"request_id": request_id}, state=to.value, **learned)
        self.record_event(run_id, to.value, request_id, detail=job_id or result_id or error, at=now)
        return replace(before, state=to, **learned)

    def reopen_for_resend(self, run_id: RunId, request_id: RequestId) -> Attempt:
        """Intend the same request anew as of now, for the next run to resend.

        Raises LedgerError when the attempt's state does not allow it.
        """
        before = self.attempt(request_id)
        if before is None or before.state is not AttemptState.INTENDED:
            before = self.change(run_id, request_id, AttemptState.INTENDED)
        now = self.now()
        self._move_reservation(request_id, day_of(now))
        terms: dict[str, Any] = {"intended_at": now, "accepted_at": None, "error_code": TO_RESEND}
        self._update("attempts", {"request_id": request_id}, uptime=None, **terms)
        return replace(before, **terms)

    def begin_resend(self, attempt: Attempt) -> Attempt:
        """Use a person's decision to resend up: if this run dies, the request is in doubt anew."""
        self._update("attempts", {"request_id": attempt.request_id}, error_code=None)
        return replace(attempt, error_code=None)

    def checkout(self, key: ItemKey) -> tuple[tuple[PickedLine, ...], OrderRecord | None]:
        """Its lines, and its order as it was last read."""
        found = self._row("SELECT picked, ordered FROM items WHERE key = :key", key=key)
        picked, ordered = found or (None, None)
        lines = tuple(PickedLine(**line) for line in json.loads(picked or "[]"))
        return lines, OrderRecord(**json.loads(ordered)) if ordered else None

    def record_order(self, run_id: RunId, key: ItemKey, order: OrderRecord) -> OrderRecord:
        """Write what the service shows of an order, and an event where that is new."""
        # Two commands may see it at once.
        self.database.lock(f"order {key}")
        _, before = self.checkout(key)
        now = self.now()
        paid = order.paid or (before is not None and before.paid)
        order = replace(order, paid=paid, since=before.since if before else now, read_at=now)
        self._update("items", {"key": key}, ordered=json.dumps(vars(order), ensure_ascii=False))
        if before is None or (before.status, before.paid) != (order.status, order.paid):
            detail = " ".join(filter(None, (order.order_id, order.status)))
            self.record_event(run_id, ORDERED, self.last_request(key), detail=detail, at=now)
        return order

    def last_request(self, key: ItemKey) -> RequestId | None:
        """Of the last attempt at an item."""
        sql = "SELECT request_id FROM attempts WHERE item_key = :key ORDER BY attempt DESC LIMIT 1"
        found = self._row(sql, key=key)
        return RequestId(found[0]) if found else None

    def note_last_response(self, request_id: RequestId, said: str) -> None:
        """Why nothing has come of it so far, for people: its state stays."""
        self._update("attempts", {"request_id": request_id}, error=said)

    def doubt_refusals(self, refused: Iterable[RequestId]) -> None:
        """Refusals that name something of the row, and may be about the account all the same."""
        for request_id in refused:
            key = {"request_id": request_id, "state": "rejected", "error_code": INVALID_REQUEST}
            self.database.execute(
                "UPDATE attempts SET error_code = :alike WHERE request_id = :request_id AND state = :state "
                "AND error_code = :error_code",
                {**key, "alike": REFUSED_ALIKE},
            )

    def _reserve(
        self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits, day: str
    ) -> None:
        """Reserve the price of a request. Raises BudgetReached, and reserves nothing, where a limit is reached.

        A second attempt leaves untouched what the run's plan still has to buy for the first time.
        """
        if limits != SpendingLimits():
            self.database.lock(f"spending {environment}")
            self._refuse_over_limit(run_id, environment, intent, limits, day)
        if limits.approval is not None:
            self._approvals.draw_on(limits.approval, 1, intent.price)
        self._book(environment, day, run_id, intent.stage.value, limits.unit, 1, intent.price)

    def _move_reservation(self, request_id: RequestId, to: str) -> None:
        """A price stays reserved for the run that wrote the intent, on the day that its attempt now names."""
        run_id, price, currency, intended_at, stage, environment, _ = self._reservation(request_id)
        if day_of(intended_at) != to:
            self._book(environment, day_of(intended_at), run_id, stage, currency, -1, -price)
            self._book(environment, to, run_id, stage, currency, 1, price)

    def _release_reservation(self, request_id: RequestId) -> None:
        """Return what was reserved for a request that made nothing."""
        run_id, price, currency, intended_at, stage, environment, approval = self._reservation(request_id)
        # First, as where it is reserved: of two machines none then waits for what the other one has locked.
        self.database.lock(f"spending {environment}")
        self._book(environment, day_of(intended_at), run_id, stage, currency, -1, -price)
        if approval is not None:
            self._approvals.draw_on(approval, -1, -price)

    def _reservation(self, request_id: RequestId) -> tuple[Any, ...]:
        found = self._row(
            "SELECT a.run_id, a.price, a.currency, a.intended_at, i.stage, i.environment, a.approval_id "
            "FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.request_id = :request_id",
            request_id=request_id,
        )
        assert found is not None, "an attempt in the ledger has reserved its price"
        return found

    def _book(
        self, environment: str, day: str, run_id: str, stage: str, currency: str, items: int, amount: int
    ) -> None:
        """Both are negative where something is returned."""
        self.database.execute(
            "INSERT INTO spending (environment, day, run_id, stage, currency, items, amount) "
            "VALUES (:environment, :day, :run_id, :stage, :currency, :items, :amount) "
            "ON CONFLICT (environment, day, run_id, stage, currency) "
            "DO UPDATE SET items = spending.items + excluded.items, amount = spending.amount + excluded.amount",
            {"environment": environment, "day": day, "run_id": run_id, "stage": stage}
            | {"currency": currency, "items": items, "amount": amount},
        )

    def spent_on(self, day: str) -> dict[str, Spent]:
        """By environment: what was reserved on a day (UTC, ISO), and not released."""
        found: dict[str, Spent] = {}
        for environment, *row in self.database.rows(
            "SELECT environment, stage, currency, sum(items), sum(amount) FROM spending WHERE day = :day "
            "GROUP BY environment, stage, currency ORDER BY environment, stage, currency",
            {"day": day},
        ):
            found[environment] = found.get(environment, Spent()) + spent_of(*row)
        return found

    def spent_by_run(self, run_id: RunId) -> Spent:
        """What was reserved for a run's requests, and not released."""
        rows = self.database.rows(
            "SELECT stage, currency, sum(items), sum(amount) FROM spending WHERE run_id = :run_id "
            "GROUP BY stage, currency",
            {"run_id": run_id},
        )
        return sum((spent_of(*row) for row in rows), Spent())

    def failed_attempts(self, run_id: RunId) -> int:
        """How many of a run's requests the service refused, or ended as failed."""
        query = "SELECT count(*) FROM attempts WHERE run_id = :run_id AND state IN ('failed', 'rejected')"
        return int(self.database.rows(query, {"run_id": run_id})[0][0])

    def _refuse_over_limit(
        self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits, day: str
    ) -> None:
        approval = self._approvals.covering(limits.approval, intent) if limits.approval is not None else None
        left = limits_of(limits, limits.prices, *self._spent(run_id, environment, day), approval)
        is_second = intent.attempt > 1 and self._failed_here(run_id, intent)
        found = refusal(intent, left, limits, _NOTHING)
        # What is outstanding is counted only where a limit does not cover the whole plan once more.
        if found is None and is_second and refusal(intent, left, limits, limits.first) is not None:
            found = refusal(intent, left, limits, self._outstanding(run_id, intent, limits.first))
        if found is not None:
            found.code = SECOND_ATTEMPT if is_second else found.code
            raise found

    def _failed_here(self, run_id: RunId, intent: Intent) -> bool:
        """Whether the attempt before failed in the same run."""
        return bool(self.database.rows(_FAILED_HERE, _about(run_id, intent)))

    def _outstanding(self, run_id: RunId, intent: Intent, first: Mapping[Stage, int]) -> dict[Stage, int]:
        """How many first purchases of a run's plan are still to come, for other items than the intent's.

        A failed pattern, or what else a product is built on, makes the purchase of at least one product unnecessary.
        """
        begun: Counter[Stage] = Counter()
        for stage, its_begun, its_lost in self.database.rows(_BEGUN_AND_LOST, _about(run_id, intent)):
            begun[Stage(stage)] += its_begun
            begun[Stage.PRODUCT] += 0 if Stage(stage) is Stage.PRODUCT else its_lost
        return {stage: max(0, count - begun[stage]) for stage, count in first.items()}

    def _spent(self, run_id: RunId, environment: str, day: str) -> tuple[Spent, Spent]:
        """Return what is spent or reserved by a run and on a day, in one query a purchase."""
        of_run, of_day = Spent(), Spent()
        for its_day, its_run, *row in self.database.rows(
            "SELECT day, run_id, stage, currency, items, amount FROM spending "
            "WHERE environment = :environment AND (day = :day OR run_id = :run_id)",
            {"environment": environment, "day": day, "run_id": run_id},
        ):
            if its_run == run_id:
                of_run += spent_of(*row)
            if its_day == day:
                of_day += spent_of(*row)
        return of_run, of_day


def _about(run_id: RunId, intent: Intent) -> dict[str, object]:
    return {"run_id": run_id, "key": intent.item_key, "attempt": intent.attempt}


def _uptime() -> str | None:
    """A clock that cannot be set while the machine is up: its boot, and the seconds since."""
    boot = boot_id()
    return f"{boot} {uptime():.3f}" if boot else None


def _seconds_since(uptime: str | None) -> float:
    """Seconds since an uptime of this very boot; 0 for any other."""
    boot, _, then = (uptime or "").partition(" ")
    now_boot, _, now = (_uptime() or "").partition(" ")
    return float(now) - float(then) if then and boot == now_boot else 0.0


def attempt_from(values: Sequence[Any]) -> Attempt:
    request_id, item_key, attempt, state, body, *rest = values
    return Attempt(RequestId(request_id), ItemKey(item_key), attempt, AttemptState(state), bytes(body), *rest)
