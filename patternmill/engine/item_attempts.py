"""The attempts at items in the ledger: on record before a request is sent, then with whatever the service answered."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from patternmill.engine.brakes import RefusedAlike
from patternmill.engine.evidence import Contradiction, contradictions
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.events import ANSWERED
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import Attempt, Lease, RunRecord
from patternmill.ledger.row_outcomes import remedy_of
from patternmill.ledger.spending import SECOND_ATTEMPT
from patternmill.planning.items import Item, Made
from patternmill.planning.plan import PlannedItem
from patternmill.service.jobs import FAILED, SUCCEEDED, Job
from patternmill.service.outcomes import CreateEnd, Ended, FailedExchange, JobEnd, Refusal
from patternmill.service.resend import CreateRequest
from patternmill.states import (
    HELD_BACK,
    NOT_REPEATABLE,
    OPEN_STATES,
    PASSING_REFUSALS,
    REDIRECTED,
    TO_RESEND,
    WRITTEN_OFF,
    AttemptState,
    Outcome,
    Stage,
)
from patternmill.text import joined

_UNPROMISED = "Nothing promises that the same request may be sent again."
#: The error code of a failed job whose reason a setting marks as final.
FINAL_FAILURE = "failed_for_good"
#: After a failure with one of these codes no attempt follows unless a person asks for it.
FINAL_CODES = frozenset({FINAL_FAILURE, WRITTEN_OFF})
_STATE_OF_JOB = {SUCCEEDED: AttemptState.SUCCEEDED, FAILED: AttemptState.FAILED}


class Attempts:
    """The attempts of one run, or of one order; safe for many tasks of one event loop."""

    def __init__(
        self,
        run: RunRecord | Lease,
        writer: LedgerWriter,
        options: RunOptions,
        halt: Halt,
        to_make: Iterable[Item] = (),
    ) -> None:
        """Take as `to_make` all items of the run: where they are few, fewer refusals that are alike are suspicious."""
        self._run_id, self._environment, self._catalog = run.run_id, run.environment, run.catalog
        self._writer, self._options, self._halt = writer, options, halt
        self.alike = RefusedAlike(halt, to_make)
        self._turns = defaultdict[Stage, asyncio.Lock](asyncio.Lock)
        #: The items that have their turn.
        self._has_turn: set[ItemKey] = set()
        #: By stage, the number of items held since one was accepted, as nobody promises that they may be sent again.
        self._holds = Counter[Stage]()
        #: When the last item was held, by the ledger's time.
        self._held_at = 0.0

    async def take_turn(self, item: Item) -> None:
        """Wait until the item may be sent, unless it has its turn. What may not be sent again is sent one by one."""
        if not item.is_repeatable and item.key not in self._has_turn:
            await self._turns[item.stage].acquire()
            self._has_turn.add(item.key)

    def leave_turn(self, item: Item) -> None:
        """Let the next item of its stage be sent, if this one has its turn."""
        if item.key in self._has_turn:
            self._has_turn.discard(item.key)
            self._turns[item.stage].release()

    async def is_open(self, item: Item) -> bool:
        """Return whether the item's last attempt in the ledger has not ended."""
        last = await self._last(item)
        return last is not None and last.state in OPEN_STATES

    async def _last(self, item: Item) -> Attempt | None:
        attempts = await self._writer.run(lambda ledger: ledger.purchases.attempts_of(item.key, bodies=False))
        return attempts[-1] if attempts else None

    # -- the beginning

    async def begin(
        self, item: Item, made: Made, *, retried: bool = False, after: int = 0
    ) -> tuple[Attempt, timedelta | None]:
        """Return the last attempt where it is open or final, else a new one whose intent this transaction records.

        Also return how long ago another run or process may have sent its request; None where it was never sent.

        `made`: at least what the item is built on. `retried`: by a person. `after`: the number of an attempt that has
        just failed. Raises BudgetReached, and NotStarted where its stage was halted meanwhile.
        """
        #: What this call has begun, in case its transaction is repeated after a lost connection.
        begun: dict[RequestId, timedelta | None] = {}

        def begin_in(ledger: Ledger) -> tuple[Attempt, timedelta | None]:
            attempts = ledger.purchases.attempts_of(item.key)
            last = attempts[-1] if attempts else None
            if last is not None and last.state is AttemptState.INTENDED and last.request_id in begun:
                return last, begun[last.request_id]
            number = self._next_number(attempts, retried, after)
            if number is not None:
                attempt = self._intend(ledger, item, number, made, after)
                is_redirected = last is not None and last.error_code == REDIRECTED
                begun[attempt.request_id] = timedelta(0) if is_redirected else None
            else:
                assert last is not None, "the first attempt has a number"
                attempt = self._go_on(ledger, item, last)
                begun[attempt.request_id] = _sent_ago(ledger, last)
            return attempt, begun[attempt.request_id]

        try:
            return await self._writer.write(begin_in)
        except BudgetReached as reached:
            reason = HaltReason(Outcome.BUDGET_REACHED, reached.code, str(reached))
            # A pattern without its product is bought for nothing; products of patterns that exist are still bought.
            stages = () if reached.code == SECOND_ATTEMPT else _up_to(item.stage)
            self._halt.begin(reason, stages=stages)
            raise

    def _next_number(self, attempts: Sequence[Attempt], retried: bool, after: int) -> int | None:
        """Return the number of the attempt to begin; None where the last one is open or final."""
        if not attempts:
            return 1
        last = attempts[-1]
        if last.state is AttemptState.FAILED:
            # Its job is asked about once more first.
            is_due = last.attempt == after if _has_job(last) else retried
            return last.attempt + 1 if is_due else None
        is_refused = last.state is AttemptState.REJECTED and (retried or is_passing(last))
        return last.attempt if is_refused or last.state is AttemptState.WITHDRAWN else None

    def _intend(self, ledger: Ledger, item: Item, number: int, made: Made, after: int) -> Attempt:
        self._require_not_paused(ledger, item)
        if after or not item.is_repeatable:
            self._require_not_halted(item)
        request_id, price = item.request_id(number), self._options.prices.get(item.stage, 0)
        intent = Attempt(request_id, item.key, number, body=item.body(request_id, made), price=price)
        return ledger.purchases.intend(self._run_id, intent, self._options.limits)

    def _go_on(self, ledger: Ledger, item: Item, last: Attempt) -> Attempt:
        """Hold an open request that may not be sent again, unless a person decided that it is sent once more."""
        if last.state is not AttemptState.INTENDED or item.is_repeatable:
            return last
        if last.error_code == TO_RESEND:
            self._require_not_paused(ledger, item)
            self._require_not_halted(item)
            return ledger.purchases.begin_resend(last)
        error = f"An earlier run sent it, or was about to, and has no answer. {_UNPROMISED}"
        return self._change(ledger, last, AttemptState.HELD, NOT_REPEATABLE, error)

    def _require_not_halted(self, item: Item) -> None:
        if self._halt.halts(item.stage):
            raise _not_begun(item)

    def _require_not_paused(self, ledger: Ledger, item: Item) -> None:
        """Raise NotStarted where this transaction finds the brake set; the run is halted right after it."""
        if ledger.brake.pause_of(self._environment, self._catalog) is not None:
            raise _not_begun(item)

    # -- what the service answered

    async def record_create(self, item: Item, attempt: Attempt, end: CreateEnd) -> Attempt:
        """Record how a create ended.

        What may have been executed stays in doubt, or is held where it may not be sent again.
        """
        if isinstance(end, Refusal):
            return await self._record_refusal(item, attempt, end)
        recorded = await self.learn(item, attempt, end)
        self._holds[item.stage] = 0
        if attempt.intended_at > self._held_at:
            self._halt.lift(NOT_REPEATABLE)
        self.alike.accepted(item)
        return recorded

    async def record_end(self, item: Item, attempt: Attempt, end: JobEnd) -> Attempt:
        """Record how a job ended; one that has not ended stays accepted."""
        if isinstance(end, Ended):
            return await self.learn(item, attempt, end.job, end.exchange)
        return await self._record_refusal(item, attempt, end)

    async def learn(
        self, item: Item, attempt: Attempt, job: Job, exchange: FailedExchange | None = None
    ) -> Attempt:
        """Record what a response says about a job, its ID first; hold the attempt where they contradict each other."""

        def learn(ledger: Ledger) -> tuple[Attempt, Contradiction | None]:
            self._keep_exchange(ledger, attempt, exchange)
            current = ledger.purchases.attempt(attempt.request_id)
            assert current is not None, "its intent is on record"
            change = partial(ledger.purchases.change, self._run_id, attempt.request_id)
            against = contradictions(ledger.purchases, job, attempt, item.stage, self._environment)
            if (contradiction := next(against, None)) is not None:
                if current.state is AttemptState.FAILED:
                    change(AttemptState.ACCEPTED)
                code, message = contradiction.code, contradiction.message
                return change(AttemptState.HELD, error_code=code, error=message), contradiction
            to = _STATE_OF_JOB[job.status] if job.has_ended else AttemptState.ACCEPTED
            if current.state not in (AttemptState.ACCEPTED, to):
                current = change(AttemptState.ACCEPTED, job_id=job.job_id)
            return (current if to is AttemptState.ACCEPTED else change(to, **self._end_of(item, job))), None

        learned, contradiction = await self._writer.write(learn)
        if contradiction is not None and contradiction.stops:
            self._halt.begin(HaltReason(Outcome.FAILED, contradiction.code, contradiction.message))
        return learned

    def _end_of(self, item: Item, job: Job) -> dict[str, str | None]:
        """Return what is recorded with the end of a job."""
        if job.status != FAILED:
            return {"result_id": job.result_id(item.stage), "picture_url": job.picture_url(item.stage)}
        error = job.error or "the service gave no reason"
        is_final = self._options.is_final(error)
        return {"error_code": FINAL_FAILURE if is_final else f"{item.stage}_failed", "error": error}

    async def _record_refusal(self, item: Item, attempt: Attempt, refusal: Refusal) -> Attempt:
        """Record a refusal: what may still be made stays open, and what was not sent keeps an earlier refusal."""
        if refusal.stops:
            self._halt.begin(HaltReason(Outcome.FAILED, refusal.code, refusal.message))
        to, code, error = refusal.state, refusal.code or None, refusal.message or None
        if to is None and attempt.state is AttemptState.INTENDED and not item.is_repeatable:
            to, code, error = AttemptState.HELD, NOT_REPEATABLE, joined(refusal.message, _UNPROMISED)
            self._halt_for_hold(item, error)
        elif to is AttemptState.WITHDRAWN:
            is_refused = attempt.error_code in PASSING_REFUSALS
            to = AttemptState.REJECTED if is_refused else to
            code, error = (attempt.error_code, attempt.error) if is_refused else (None, None)

        def record(ledger: Ledger) -> Attempt:
            self._keep_exchange(ledger, attempt, refusal.exchange)
            if to is not None:
                return self._change(ledger, attempt, to, code, error)
            if refusal.message:
                ledger.purchases.note_last_response(attempt.request_id, refusal.message)
            return replace(attempt, error=refusal.message or attempt.error)

        recorded = await self._writer.write(record)
        is_refused_alike = refusal.state is AttemptState.REJECTED and refusal.alike
        if is_refused_alike and (doubted := self.alike.refused(item, attempt.request_id, refusal)):
            # These may be about the account although they name something of the row: the next run sends them again.
            await self._writer.write(lambda ledger: ledger.purchases.doubt_refusals(doubted))
        return replace(recorded, state=refusal.state or recorded.state)

    def _halt_for_hold(self, item: Item, error: str) -> None:
        """Begin no other item of its stage until a create that began later is accepted: an outage then holds one item.

        If a second one in a row is held, it is no outage, and nothing that leads to this stage is begun any more.
        """
        self._holds[item.stage] += 1
        self._held_at = self._writer.now()
        is_first = self._holds[item.stage] == 1
        code = NOT_REPEATABLE if is_first else f"{NOT_REPEATABLE}_again"
        message = f"{item.describe()} may have been made, and is held: {error}"
        stages = (item.stage,) if is_first else _up_to(item.stage)
        self._halt.begin(HaltReason(Outcome.COMPLETED_WITH_FAILURES, code, message), stages=stages)

    def _keep_exchange(self, ledger: Ledger, attempt: Attempt, exchange: FailedExchange | None) -> None:
        """Record the exchange for a report about it; the attempt itself has only the reason."""
        if exchange is not None:
            detail = json.dumps(exchange)
            ledger.record_event(self._run_id, ANSWERED, attempt.request_id, detail=detail)

    def _change(
        self, ledger: Ledger, attempt: Attempt, to: AttemptState, code: str | None, error: str | None
    ) -> Attempt:
        return ledger.purchases.change(self._run_id, attempt.request_id, to, error_code=code, error=error)

    # -- attempts that are due, and withheld

    async def keep_waiting(self, failed: Attempt, code: str, why: str) -> Attempt:
        """Reopen a failed attempt: the next run asks about its job first."""
        return await self._writer.write(
            lambda ledger: self._change(ledger, failed, AttemptState.ACCEPTED, code, why)
        )

    async def hold_back(self, failed: Attempt, why: str) -> Attempt:
        """Let an item wait although its next attempt is due; the same command makes that attempt."""
        why = why.removesuffix(".")
        message = f"Attempt {failed.attempt + 1} held back: {why}; `patternmill retry`. {failed.error}"
        return await self.keep_waiting(failed, HELD_BACK, message)

    async def withhold(self, item: Item, failed: Attempt) -> Attempt:
        """Hold back the attempt after a failed one, unless a limit is the reason.

        In that case the item stays failed, and the next run's plan counts the attempt among what its limits allow.
        """
        if not self._halt.forbids_sending(item.stage):
            return failed
        return await self.hold_back(failed, self._halt.why)

    async def withhold_planned(self, planned: PlannedItem) -> None:
        """Withhold the attempt that was planned after a failed one, if nothing has followed it."""
        last = await self._last(planned.item)
        is_next = last is not None and last.state is AttemptState.FAILED and last.attempt == planned.after
        if last is not None and is_next and _has_job(last):
            await self.withhold(planned.item, last)


def request_of(item: Item, attempt: Attempt, sent_ago: timedelta | None) -> CreateRequest:
    """Return what is sent for an attempt, whose request may have been sent this long ago; None: it never was."""
    return CreateRequest(
        item.stage,
        attempt.body,
        operation=item.operation,
        given=item.given,
        repeatable=item.is_repeatable,
        look_up=item.unstated.lookup,
        known_job_id=attempt.job_id,
        age=sent_ago,
    )


def failure_of(item: Item, attempt: Attempt) -> PatternmillError:
    """Return the error that says why an item's last attempt made nothing."""
    if attempt.state is AttemptState.WITHDRAWN:
        return _not_begun(item)
    fail = partial(RowFailed, request_id=attempt.request_id, job_id=attempt.job_id)
    if attempt.state in OPEN_STATES:
        waits = attempt.error_code or "gave_up_waiting"
        code = "in_doubt" if attempt.state is AttemptState.INTENDED else waits
        message = f"{item.describe()}: {code.replace('_', ' ')}; the next run resumes it."
        return fail(joined(message, attempt.error), code=code)
    code = attempt.error_code or "failed"
    return fail(attempt.error or "", code=code, remedy=remedy_of(attempt), is_final=True)


def _up_to(stage: Stage) -> tuple[Stage, ...]:
    """Return a stage and those that lead to it."""
    return tuple(Stage)[: list(Stage).index(stage) + 1]


def _not_begun(item: Item) -> NotStarted:
    return NotStarted(f"{item.describe()} was not begun: the run was stopped before.")


def _has_job(failed: Attempt) -> bool:
    """Return whether there is a job to ask about; one that was written off is not looked for again."""
    return failed.job_id is not None and failed.error_code != WRITTEN_OFF


def is_passing(attempt: Attempt) -> bool:
    """Return whether the refusal was not about the item itself."""
    return attempt.state is AttemptState.REJECTED and attempt.error_code in PASSING_REFUSALS


def _sent_ago(ledger: Ledger, attempt: Attempt) -> timedelta:
    """Return the age of an open attempt that another run or process began: it may have been sent since.

    Where the clocks contradict one another it is a century: above any limit, so that a person decides about it.
    """
    if attempt.state is not AttemptState.INTENDED:
        return timedelta(0)
    age = ledger.purchases.age_of(attempt)
    return timedelta(days=36_500) if age is None else age
