"""Purchases: items, the attempts at them, the money that these reserve, and what became of checkouts.

An intent and its reservation are durable before the request is sent; job ID and result as soon as they are known.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.records import (
    FORGOTTEN,
    Attempt,
    NewItem,
    OrderRecord,
    PickedLine,
    SpendingLimits,
)
from patternmill.ledger.spending import (
    SECOND_ATTEMPT,
    Approvals,
    Spent,
    day_of,
    limits_of,
    nearly_spent,
    refusal,
)
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

logger = logging.getLogger(__name__)

ATTEMPT_COLUMNS = ", ".join(Attempt.__dataclass_fields__)
#: The columns of an attempt without its body, which may be as large as a picture.
WITHOUT_BODIES = ATTEMPT_COLUMNS.replace("body", ":nothing")
#: Seconds that a clock may go back before an age by it is no longer believed.
_CLOCK_TOLERANCE = 120.0
#: The number of jobs from which durations are taken: enough for a hundred of each stage.
_LAST_JOBS = 500
#: The kind of the event that an order was first seen, changed its status, or was paid.
ORDERED = "ordered"

_IN_ENVIRONMENT = "JOIN items i ON i.key = a.item_key WHERE i.environment = :environment"
_CLOCK_WENT_BACK = """
SELECT 1 FROM events i JOIN events e ON e.seq > i.seq AND e.at < i.at - :tolerance
WHERE i.seq = (SELECT max(seq) FROM events WHERE request_id = :request_id AND kind IN ('intended', 'settled')) LIMIT 1
"""
_ACCEPTED = """
SELECT 1 FROM items i JOIN attempts a ON a.item_key = i.key WHERE i.environment = :environment
AND i.stage = :stage AND i.content LIKE :content AND a.job_id IS NOT NULL LIMIT 1
"""
_FAILED_HERE = """
SELECT 1 FROM attempts b JOIN events e ON e.request_id = b.request_id
WHERE b.item_key = {item} AND b.attempt = {attempt} - 1 AND e.run_id = :run_id AND e.kind = 'failed'
"""
#: Counts a run's attempts by stage: those that do not follow an attempt at the same item that failed in this run, and
#: the last attempts at items other than `:key` that failed or are held.
_BEGUN_AND_LOST = f"""
SELECT i.stage,
    sum(CASE WHEN a.attempt = 1 OR NOT EXISTS ({_FAILED_HERE.format(item="a.item_key", attempt="a.attempt")})
        THEN 1 ELSE 0 END),
    sum(CASE WHEN a.state IN ('failed', 'rejected', 'held') AND a.item_key <> :key AND NOT EXISTS
        (SELECT 1 FROM attempts b WHERE b.item_key = a.item_key AND b.attempt > a.attempt) THEN 1 ELSE 0 END)
FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.run_id = :run_id GROUP BY i.stage
"""
_BOOK = """
INSERT INTO spending (environment, day, run_id, stage, currency, items, amount)
SELECT i.environment, :day, a.run_id, i.stage, a.currency, :sign, :sign * a.price
FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.request_id = :request_id
ON CONFLICT (environment, day, run_id, stage, currency)
DO UPDATE SET items = spending.items + excluded.items, amount = spending.amount + excluded.amount
"""
_DRAW_ON_APPROVAL = """
UPDATE approvals SET purchases = purchases + :sign,
    amount = amount + :sign * (SELECT price FROM attempts WHERE request_id = :request_id)
WHERE id = (SELECT approval_id FROM attempts WHERE request_id = :request_id)
"""
_LEFT_BY_RUN = f"""
SELECT kind, currency, sum(price) FROM attempts JOIN events ON events.request_id = attempts.request_id
WHERE attempts.run_id = :run_id AND seq = (
    SELECT max(seq) FROM events AS own WHERE own.request_id = attempts.request_id AND own.run_id = :run_id
    AND own.kind IN ({", ".join(f"'{state}'" for state in AttemptState)})
) GROUP BY kind, currency
"""  # the names of states


class Purchases(Tables):
    """Items, the attempts at them, and what is reserved for these. Amounts are in minor units."""

    def __init__(self, database: Database, now: Clock, approvals: Approvals) -> None:
        super().__init__(database, now)
        self._approvals = approvals
        #: The transitions made in this transaction, each as the fields of its log line.
        self.transitions: list[dict[str, object]] = []

    # -- items

    def add_items(self, environment: str, catalog: str, items: Iterable[NewItem]) -> None:
        """Add items; those on record stay as they are, except that forgotten content is written again."""
        scope = {"environment": environment, "catalog": catalog, "now": self.now()}
        scope["forgotten"] = f'{{"{FORGOTTEN}":%'
        self.database.execute_many(
            "INSERT INTO items (key, environment, catalog, stage, sku, pattern_key, content, picked, created_at) "
            "VALUES (:key, :environment, :catalog, :stage, :sku, :pattern_key, :content, :picked, :now) "
            "ON CONFLICT (key) DO UPDATE SET content = excluded.content WHERE items.content LIKE :forgotten",
            (
                {**vars(item), **scope, "stage": item.stage.value}
                | {"picked": json.dumps([vars(line) for line in item.picked]) if item.picked else None}
                for item in items
            ),
        )

    def contents_of_further_takes(self, environment: str, catalog: str) -> list[Mapping[str, Any]]:
        """Return the contents of a catalog's patterns that are not the first take."""
        rows = self.database.rows(
            "SELECT content FROM items WHERE environment = :environment AND catalog = :catalog "
            "AND stage = 'pattern' AND content LIKE '%\"take\":%'",
            environment=environment,
            catalog=catalog,
        )
        contents = (json.loads(text) for (text,) in rows)
        # A prompt may contain these characters too.
        return [content for content in contents if "take" in content]

    def item(self, key: ItemKey) -> tuple[Stage, Mapping[str, Any]]:
        """Return the stage and the content of an item on record."""
        ((stage, content),) = self.database.rows("SELECT stage, content FROM items WHERE key = :key", key=key)
        return Stage(stage), json.loads(content)

    def chain_of(self, key: ItemKey) -> set[ItemKey]:
        """Return an item and, if it is a refinement, every pattern that it is built on."""
        stage, content = self.item(key)
        return {key, *(self.chain_of(content["pattern"]) if stage is Stage.REFINEMENT else ())}

    # -- attempts

    def attempt(self, request_id: RequestId) -> Attempt | None:
        """Return the attempt that a request makes."""
        return next(iter(self._attempts("WHERE request_id = :request_id", request_id=request_id)), None)

    def attempts_of(self, key: ItemKey, *, bodies: bool = True) -> list[Attempt]:
        """Return every attempt at an item, the first one first."""
        return self._attempts("WHERE item_key = :key ORDER BY attempt", bodies, key=key)

    def last_attempt(self, key: ItemKey) -> Attempt | None:
        """Return the last attempt at an item, without its body."""
        return next(reversed(self.attempts_of(key, bodies=False)), None)

    def last_attempts(self, environment: str, catalog: str) -> Iterator[Attempt]:
        """Yield the last attempt at every item of a catalog, without its body."""
        query = (
            f"SELECT {WITHOUT_BODIES} FROM attempts a JOIN items i ON i.key = a.item_key "
            "WHERE i.environment = :environment AND i.catalog = :catalog "
            "AND a.attempt = (SELECT max(b.attempt) FROM attempts b WHERE b.item_key = a.item_key)"
        )
        rows = self.database.stream(query, environment=environment, catalog=catalog, nothing=b"")
        return map(Attempt.of, rows)

    def attempts_with_result(
        self, result_id: str, environment: str, stages: Collection[Stage]
    ) -> list[Attempt]:
        """Return the attempts of these stages in an environment that have this result."""
        names = ", ".join(f"'{stage}'" for stage in stages)
        where = f"{_IN_ENVIRONMENT} AND a.result_id = :result_id AND i.stage IN ({names})"
        return self._attempts(where, result_id=result_id, environment=environment)

    def request_of_job(self, job_id: str, environment: str) -> RequestId | None:
        """Return the request of a job in an environment, as services of several environments may number jobs alike."""
        where = f"{_IN_ENVIRONMENT} AND a.job_id = :job_id AND i.stage NOT IN ('reference', 'checkout')"
        owners = self._attempts(where, False, job_id=job_id, environment=environment)
        return owners[0].request_id if owners else None

    def _attempts(self, where: str, bodies: bool = True, /, **params: Any) -> list[Attempt]:
        columns = ATTEMPT_COLUMNS if bodies else WITHOUT_BODIES
        rows = self.database.rows(f"SELECT {columns} FROM attempts a {where}", params, nothing=b"")
        return list(map(Attempt.of, rows))

    def age_of(self, attempt: Attempt) -> timedelta | None:
        """Return how long ago an attempt was intended, by the clock or by the uptime, whichever is longer.

        None when the clock contradicts itself: it, or a later event, shows a time before the intent.
        """
        by_clock = self.now() - attempt.intended_at
        about = {"request_id": attempt.request_id, "tolerance": _CLOCK_TOLERANCE}
        if by_clock < -_CLOCK_TOLERANCE or self._row(_CLOCK_WENT_BACK, about):
            return None
        return timedelta(seconds=max(0.0, by_clock, _seconds_since(attempt.uptime)))

    # -- what a service has done so far

    def accepted(self, environment: str, operations: Iterable[str]) -> tuple[set[Stage], set[str]]:
        """Return the stages and the refinement operations for which the service has ever accepted a create."""

        def is_accepted(stage: Stage, content: str = "%") -> bool:
            of_stage = {"environment": environment, "stage": stage.value, "content": content}
            return self._row(_ACCEPTED, of_stage) is not None

        named = {name: f'%"operation":"{name}"%' for name in operations}
        refinements = {name for name, content in named.items() if is_accepted(Stage.REFINEMENT, content)}
        return set(filter(is_accepted, Stage)), refinements

    def durations(self, environment: str) -> list[tuple[Stage, float]]:
        """Return how many seconds each of the last jobs of the environment took, the latest last."""
        rows = self.database.rows(
            "SELECT i.stage, a.ended_at - a.accepted_at FROM (SELECT item_key, accepted_at, ended_at FROM attempts "
            "WHERE state = 'succeeded' AND ended_at >= accepted_at ORDER BY ended_at DESC LIMIT :most) a "
            "JOIN items i ON i.key = a.item_key WHERE i.environment = :environment ORDER BY a.ended_at",
            environment=environment,
            most=_LAST_JOBS,
        )
        return [(Stage(stage), float(seconds)) for stage, seconds in rows]

    # -- the life of an attempt

    def intend(self, run_id: RunId, intent: Attempt, limits: SpendingLimits) -> Attempt:
        """Write the intent of a request, and reserve its price; an attempt on record is returned as it is.

        `intent` has the IDs, the body and the price of the request. One that was withdrawn or refused made nothing,
        and is intended again with its body as it is now. One that was redirected may have been executed all the same,
        and keeps its bytes. A refusal that may pass stays on record until there is an answer. Raises BudgetReached
        before anything is written.
        """
        recorded = self.attempt(intent.request_id)
        if recorded is not None and recorded.state not in REOPENED:
            return recorded
        now = self.now()
        if limits != SpendingLimits():
            self.database.lock("spending")
            self._refuse_over_limit(run_id, intent, limits, day_of(now))
        of_run = {"run_id": run_id, "approval_id": limits.approval}
        terms: dict[str, Any] = {
            "price": intent.price,
            "currency": limits.unit,
            "intended_at": now,
            "uptime": _uptime(),
        }
        if recorded is None:
            intended = replace(intent, **terms)
            self._insert("attempts", **asdict(intended), **of_run)
            self._note(run_id, intended, now)
        else:
            if recorded.error_code != REDIRECTED:
                terms |= {"body": intent.body, "job_id": None, "accepted_at": None}
            self._update("attempts", {"request_id": intent.request_id}, **terms, **of_run)
            is_passing = recorded.error_code in PASSING_REFUSALS
            reason = {"error_code": recorded.error_code, "error": recorded.error} if is_passing else {}
            intended = self.change(run_id, intent.request_id, AttemptState.INTENDED, **reason)
        self._book(intent.request_id, day_of(now), 1)
        return intended

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
            # Lock this first, as `intend` does, so that two machines never deadlock.
            self.database.lock("spending")
            self._book(request_id, day_of(before.intended_at), -1)
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
        after = replace(before, state=to, **learned)
        self._note(run_id, after, now, job_id or result_id or error)
        return after

    def _note(self, run_id: RunId, attempt: Attempt, at: float, detail: str | None = None) -> None:
        """Record a transition, and remember it for the log."""
        self.record_event(run_id, attempt.state.value, attempt.request_id, detail=detail, at=at)
        if not logger.isEnabledFor(logging.INFO):
            return
        query = "SELECT stage, sku, pattern_key, environment, catalog FROM items WHERE key = :key"
        ((stage, sku, built_on, environment, catalog),) = self.database.rows(query, key=attempt.item_key)
        # Only a product has a sku, because rows with the same content share their other items.
        about_item = {"stage": stage, "sku": sku, "built_on": built_on, "item": attempt.item_key}
        scope = {"environment": environment, "catalog": catalog, "run": run_id}
        about_attempt = {"request_id": attempt.request_id, "job_id": attempt.job_id}
        what = {"event": attempt.state.value, "error_code": attempt.error_code}
        self.transitions.append(what | about_item | about_attempt | scope)

    def reopen_for_resend(self, run_id: RunId, request_id: RequestId) -> Attempt:
        """Intend the same request again as of now, for the next run to resend; its price counts for today.

        Raises LedgerError when the attempt's state does not allow it.
        """
        before = self.attempt(request_id)
        if before is None or before.state is not AttemptState.INTENDED:
            before = self.change(run_id, request_id, AttemptState.INTENDED)
        now = self.now()
        self._book(request_id, day_of(before.intended_at), -1)
        self._book(request_id, day_of(now), 1)
        terms: dict[str, Any] = {
            "intended_at": now,
            "uptime": None,
            "accepted_at": None,
            "error_code": TO_RESEND,
        }
        self._update("attempts", {"request_id": request_id}, **terms)
        return replace(before, **terms)

    def begin_resend(self, attempt: Attempt) -> Attempt:
        """Use up a person's decision to resend: if this run dies, the request is in doubt again."""
        self._update("attempts", {"request_id": attempt.request_id}, error_code=None)
        return replace(attempt, error_code=None)

    def note_last_response(self, request_id: RequestId, message: str) -> None:
        """Record, for people, why nothing has come of a request so far; its state stays."""
        self._update("attempts", {"request_id": request_id}, error=message)

    def doubt_refusals(self, refused: Iterable[RequestId]) -> None:
        """Mark refusals that blame their rows although they may be about the account."""
        self.database.execute_many(
            "UPDATE attempts SET error_code = :alike WHERE request_id = :request_id AND state = 'rejected' "
            "AND error_code = :of_row",
            ({"request_id": name, "alike": REFUSED_ALIKE, "of_row": INVALID_REQUEST} for name in refused),
        )

    # -- checkouts

    def checkout(self, key: ItemKey) -> tuple[tuple[PickedLine, ...], OrderRecord | None]:
        """Return the lines of a checkout, and its order as it was last read."""
        picked, ordered = self._row("SELECT picked, ordered FROM items WHERE key = :key", key=key) or ("", "")
        lines = tuple(PickedLine(**line) for line in json.loads(picked or "[]"))
        return lines, OrderRecord(**json.loads(ordered)) if ordered else None

    def record_order(self, run_id: RunId, key: ItemKey, order: OrderRecord) -> OrderRecord:
        """Write what the service shows of an order, with an event if that is new."""
        # Two commands may read it at once.
        self.database.lock(f"order {key}")
        _, before = self.checkout(key)
        now = self.now()
        paid = order.paid or (before is not None and before.paid)
        order = replace(order, paid=paid, since=before.since if before else now, read_at=now)
        self._update("items", {"key": key}, ordered=orjson.dumps(vars(order)).decode())
        if before is None or (before.status, before.paid) != (order.status, order.paid):
            detail = " ".join(filter(None, (order.order_id, order.status)))
            last = self.last_attempt(key)
            assert last is not None, "the checkout of an order was requested"
            self.record_event(run_id, ORDERED, last.request_id, detail=detail, at=now)
        return order

    # -- money

    def _book(self, request_id: RequestId, day: str, sign: int) -> None:
        """Reserve the price of a request for its run on a day, and under its approval; -1 releases it."""
        self.database.execute(_BOOK, request_id=request_id, day=day, sign=sign)
        self.database.execute(_DRAW_ON_APPROVAL, request_id=request_id, sign=sign)

    def spent_on(self, day: str) -> dict[str, Spent]:
        """Return by environment what was reserved on a day (UTC, ISO) and not released."""
        query = "SELECT environment, stage, currency, items, amount FROM spending WHERE day = :day"
        rows = groupby(self.database.rows(f"{query} ORDER BY environment", day=day), key=itemgetter(0))
        return {environment: Spent.of(row[1:] for row in group) for environment, group in rows}

    def spent_by_run(self, run_id: RunId) -> Spent:
        """Return what was reserved for a run's requests and not released."""
        query = "SELECT stage, currency, items, amount FROM spending WHERE run_id = :run_id"
        return Spent.of(self.database.rows(query, run_id=run_id))

    def amounts_by_state(self, run_id: RunId) -> dict[AttemptState, Counter[str]]:
        """Return the prices of a run's requests by currency, for each state in which the run left them.

        What later runs and decisions made of these requests does not count.
        """
        amounts = {state: Counter[str]() for state in AttemptState}
        for state, currency, amount in self.database.rows(_LEFT_BY_RUN, run_id=run_id):
            if amount:
                amounts[AttemptState(state)][currency] = int(amount)
        return amounts

    def _refuse_over_limit(self, run_id: RunId, intent: Attempt, limits: SpendingLimits, day: str) -> None:
        """Raise BudgetReached where a purchase would exceed a limit.

        A second attempt must leave what the run's plan still has to buy for the first time.
        """
        query = "SELECT environment, stage FROM items WHERE key = :key"
        ((environment, stage),) = self.database.rows(query, key=intent.item_key)
        refused = partial(refusal, Stage(stage), intent.price)
        approval = None
        if limits.approval is not None:
            approval = self._approvals.covering(limits.approval, intent.item_key, stage)
        of_run = self.spent_by_run(run_id)
        of_day = self.spent_on(day).get(environment, Spent())
        left = limits_of(limits, limits.prices, of_run, of_day, approval)
        about = {"run_id": run_id, "key": intent.item_key, "attempt": intent.attempt}
        failed_here = _FAILED_HERE.format(item=":key", attempt=":attempt")
        is_second = intent.attempt > 1 and bool(self.database.rows(failed_here, about))
        reached = refused(left, limits, {})
        # Counting what is outstanding is slow, so do it only if a limit would not cover the whole plan once more.
        if reached is None and is_second and refused(left, limits, limits.first) is not None:
            reached = refused(left, limits, self._outstanding(about, limits.first))
        if reached is not None:
            reached.code = SECOND_ATTEMPT if is_second else reached.code
            raise reached
        if not nearly_spent(limits, of_day) and (warning := nearly_spent(limits, of_day, intent.price)):
            logger.warning(warning)

    def _outstanding(self, about: Mapping[str, object], first: Mapping[Stage, int]) -> dict[Stage, int]:
        """Return, by stage, how many first purchases of a run's plan are still to come, not counting the intent's item.

        For each item that products are built on and that failed, at least one product need not be bought.
        """
        begun: Counter[Stage] = Counter()
        for stage, begun_of_stage, lost_of_stage in self.database.rows(_BEGUN_AND_LOST, about):
            begun[Stage(stage)] += begun_of_stage
            begun[Stage.PRODUCT] += 0 if Stage(stage) is Stage.PRODUCT else lost_of_stage
        return {stage: max(0, count - begun[stage]) for stage, count in first.items()}


def log_transition(fields: Mapping[str, object]) -> None:
    """Write the line of a transition, once it is durable, with its fields as `extra`."""
    item = f"{fields['stage']} {fields['sku'] or ''}".strip()
    logger.info("%s %s, request %s", item, fields["event"], fields["request_id"], extra=fields)


def _uptime() -> str | None:
    """Return the time by a clock that nobody can set: the machine's boot, and the seconds since."""
    boot = boot_id()
    return f"{boot} {uptime():.3f}" if boot else None


def _seconds_since(uptime: str | None) -> float:
    """Return the seconds since an uptime of the current boot; 0 for any other."""
    boot, _, then = (uptime or "").partition(" ")
    now_boot, _, now = (_uptime() or "").partition(" ")
    return float(now) - float(then) if then and boot == now_boot else 0.0
