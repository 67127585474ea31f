"""An item's attempts in the ledger: begun before a request is sent, then whatever the service answered."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from patternmill.engine.evidence import Contradiction, contradictions, known_owners
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason
from patternmill.engine.refused_alike import RefusedAlike
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.feedback_log import ANSWERED
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import Attempt, Intent, RunRecord
from patternmill.ledger.row_outcomes import remedy_of
from patternmill.ledger.spending import SECOND_ATTEMPT
from patternmill.planning.items import Item, Made
from patternmill.service import outcomes
from patternmill.service.jobs import FAILED, SUCCEEDED, Job
from patternmill.states import (
    NOT_REPEATABLE,
    PASSING_REFUSALS,
    REDIRECTED,
    REOPENED,
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
#: After these no attempt follows unless a person asks for one.
FINAL_CODES = frozenset({FINAL_FAILURE, WRITTEN_OFF})
_STATE_OF_JOB = {SUCCEEDED: AttemptState.SUCCEEDED, FAILED: AttemptState.FAILED}


class Attempts:
    """Writes the attempts of one run; safe for many tasks of one event loop."""

    def __init__(
        self,
        record: RunRecord,
        writer: LedgerWriter,
        options: RunOptions,
        halt: Halt,
        alike: RefusedAlike,
    ) -> None:
        self._alike = alike
        self._run_id, self._environment = record.run_id, record.environment
        self._writer = writer
        self._options = options
        self._halt = halt
        self._turns = defaultdict[Stage, asyncio.Lock](asyncio.Lock)
        #: The items whose turn it is.
        self._has_turn: set[ItemKey] = set()
        #: Holds of a kind since one of it was accepted, where nobody promises that it may be sent again.
        self._holds = Counter[Stage]()

    async def take_turn(self, item: Item) -> None:
        """Wait until the item may be sent: what may not be sent again is sent one by one, kind by kind."""
        if not item.is_repeatable:
            await self._turns[item.stage].acquire()
            self._has_turn.add(item.key)

    def leave_turn(self, item: Item) -> None:
        """Let the next item of its kind be sent, if this one has its turn."""
        if item.key in self._has_turn:
            self._has_turn.discard(item.key)
            self._turns[item.stage].release()

    @asynccontextmanager
    async def turn(self, item: Item) -> AsyncIterator[None]:
        """Keep the item's turn from before its intent until its answer is on record; take it unless it has it."""
        if item.key not in self._has_turn:
            await self.take_turn(item)
        try:
            yield
        finally:
            self.leave_turn(item)

    async def is_open(self, item: Item) -> bool:
        """Return whether the item has an attempt in the ledger that may still be made."""

        def read(ledger: Ledger) -> bool:
            attempts = ledger.purchases.attempts_of(item.key, bodies=False)
            return bool(attempts) and attempts[-1].state in (AttemptState.INTENDED, AttemptState.ACCEPTED)

        return await self._writer.run(read)

    async def begin(
        self, item: Item, made: Made, *, retried: bool = False, after: int = 0
    ) -> tuple[Attempt, timedelta | None]:
        """The last attempt where it is open, else the intent of the next one, in one transaction; and how long ago
        another run or process may have sent its request, None where it was never sent.

        `made`: what the item is built on, at least. `retried`: by a person. `after`: the number of an attempt that has
        just failed. Raises BudgetReached, and NotStarted where its kind was halted meanwhile.
        """
        #: Begun by this very call, also when its transaction is done once more after a lost connection.
        begun_here: dict[RequestId, timedelta | None] = {}

        def begin(ledger: Ledger) -> tuple[Attempt, timedelta | None]:
            attempts = ledger.purchases.attempts_of(item.key)
            number = self._next_number(attempts, retried, after)
            if number is None:
                last = attempts[-1]
                if last.state is AttemptState.INTENDED and not item.is_repeatable:
                    if last.error_code == TO_RESEND:
                        begun_here[last.request_id] = _sent_ago(ledger, last)
                    last = self._sent_once(ledger, item, last, is_begun_here=last.request_id in begun_here)
                return last, begun_here.get(last.request_id, _sent_ago(ledger, last))
            if not item.is_repeatable and self._halt.halts(item.stage):
                raise _not_begun(item)
            request_id, price = item.request_id(number), self._options.prices.get(item.stage, 0)
            body = item.body(request_id, made)
            intent = Intent(request_id, item.key, item.stage, number, body, price)
            begun_here[request_id] = None
            attempt = ledger.purchases.intend(self._run_id, self._environment, intent, self._options.limits)
            redirected = any(before.error_code == REDIRECTED for before in attempts[-1:])
            return attempt, timedelta(0) if redirected else None

        try:
            return await self._writer.write(begin)
        except BudgetReached as reached:
            reason = HaltReason(Outcome.BUDGET_REACHED, reached.code, str(reached))
            # Without products, patterns would be bought for nothing; products of patterns that exist are still bought.
            stages = () if reached.code == SECOND_ATTEMPT else _up_to(item.stage)
            self._halt.begin(reason, stages=stages)
            raise

    def _sent_once(self, ledger: Ledger, item: Item, last: Attempt, *, is_begun_here: bool) -> Attempt:
        """Hold an open request that may not be sent again, unless a person decided that this run sends it once more."""
        if last.error_code == TO_RESEND:
            if self._halt.halts(item.stage):
                raise _not_begun(item)
            return ledger.purchases.begin_resend(last)
        if is_begun_here:
            return last
        return ledger.purchases.change(
            self._run_id,
            last.request_id,
            AttemptState.HELD,
            error_code=NOT_REPEATABLE,
            error=f"An earlier run sent it, or was about to, and has no answer. {_UNPROMISED}",
        )

    def may_follow(self, item: Item, failed: Attempt, last_number: int, *, also_final: bool) -> bool:
        """Return whether another attempt may come after one that failed; `last_number`: of the last that may."""
        is_final = failed.error_code in FINAL_CODES and not also_final
        return not is_final and failed.attempt < last_number and not self._halt.halts(item.stage)

    async def keep_waiting(self, failed: Attempt, code: str, why: str) -> Attempt:
        """Lead a failed attempt back to its job, which the next run asks about first."""
        return await self._change(failed, AttemptState.ACCEPTED, error_code=code, error=why)

    async def begin_another(
        self, item: Item, made: Made, last: Attempt
    ) -> tuple[Attempt, timedelta | None] | None:
        """Begin the attempt after one whose job failed and said so again; None where none follows."""
        if self._halt.halts(item.stage):
            return None
        try:
            return await self.begin(item, made, after=last.attempt)
        except (BudgetReached, NotStarted):
            return None

    async def record_create(self, item: Item, attempt: Attempt, end: outcomes.CreateEnd) -> Attempt:
        """What may have been executed stays in doubt, or is held where it may not be sent again.

        After such a hold no other item of its kind is begun until some create is accepted: an outage holds one.
        A second one in a row is no outage, and nothing that leads there is begun any more.
        """
        await self._keep_exchange(attempt, end)
        if isinstance(end, Job):
            recorded = await self.learn(item, attempt, end)
            self._holds[item.stage] = 0
            self._halt.lift(NOT_REPEATABLE)
            self._alike.accepted(item)
            return recorded
        recorded = await self._record(attempt, end)
        if recorded.state is AttemptState.REJECTED and end.alike:
            await self._doubt(self._alike.refused(item, recorded.request_id, end))
        if recorded.state is AttemptState.INTENDED and not item.is_repeatable:
            error = f"{end.message} {_UNPROMISED}".strip()
            message = f"{item.describe()} may have been made, and is held: {error}"
            self._holds[item.stage] += 1
            is_first = self._holds[item.stage] == 1
            code = NOT_REPEATABLE if is_first else f"{NOT_REPEATABLE}_again"
            reason = HaltReason(Outcome.COMPLETED_WITH_FAILURES, code, message)
            self._halt.begin(reason, stages=(item.stage,) if is_first else _up_to(item.stage))
            return await self._change(attempt, AttemptState.HELD, error_code=NOT_REPEATABLE, error=error)
        return recorded

    async def record_end(self, item: Item, attempt: Attempt, end: outcomes.JobEnd) -> Attempt:
        """A job that has not ended stays accepted."""
        await self._keep_exchange(attempt, end)
        if isinstance(end, outcomes.Ended):
            return await self.learn(item, attempt, end.job)
        return await self._record(attempt, end)

    def age_of_job(self, attempt: Attempt) -> timedelta:
        return timedelta(seconds=max(0.0, self._writer.now() - (attempt.accepted_at or 0.0)))

    def _next_number(self, attempts: tuple[Attempt, ...], retried: bool, after: int) -> int | None:
        """Of the attempt whose intent is to be written; None where the last one is open, or is not tried again."""
        if not attempts:
            return 1
        last = attempts[-1]
        if last.state is AttemptState.FAILED and _has_job(last):
            # Its job is asked about once more first.
            return last.attempt + 1 if last.attempt == after else None
        first_tries = last.attempt < self._options.attempts and last.error_code not in FINAL_CODES
        if last.state is AttemptState.FAILED and (retried or first_tries):
            return last.attempt + 1
        if last.state in REOPENED and (last.state is AttemptState.WITHDRAWN or retried or is_passing(last)):
            return last.attempt
        return None

    async def learn(self, item: Item, attempt: Attempt, job: Job) -> Attempt:
        """Write what a response says of a job, its ID before anything builds on it; hold what it contradicts."""

        def learn(ledger: Ledger) -> tuple[Attempt, Contradiction | None]:
            owners = known_owners(ledger.purchases, job, attempt, item.stage, self._environment)
            found = next(contradictions(job, attempt, item.stage, owners), None)
            change = partial(ledger.purchases.change, self._run_id, attempt.request_id)
            current = ledger.purchases.attempt(attempt.request_id)
            assert current is not None, "its intent is on record"
            if found is not None:
                if current.state is AttemptState.FAILED:
                    change(AttemptState.ACCEPTED)
                return change(AttemptState.HELD, error_code=found.code, error=found.message), found
            to = _STATE_OF_JOB[job.status] if job.has_ended else AttemptState.ACCEPTED
            if current.state not in (AttemptState.ACCEPTED, to):
                current = change(AttemptState.ACCEPTED, job_id=job.job_id)
            return (current if to is AttemptState.ACCEPTED else change(to, **self._end_of(item, job))), None

        learned, found = await self._writer.write(learn)
        if found is not None and found.stops:
            self._halt.begin(HaltReason(Outcome.FAILED, found.code, found.message))
        return learned

    def _end_of(self, item: Item, job: Job) -> dict[str, str | None]:
        """Return what goes on record with the end of a job."""
        if job.status != FAILED:
            return {"result_id": job.result_id(item.stage), "picture_url": job.picture_url(item.stage)}
        error = job.error or "the service gave no reason"
        is_final = self._options.is_final(error)
        return {"error_code": FINAL_FAILURE if is_final else f"{item.stage}_failed", "error": error}

    async def _record(self, attempt: Attempt, no: outcomes.No) -> Attempt:
        """What may still be made stays as it is; of what was not sent there is nothing to say."""
        if no.stops:
            self._halt.begin(HaltReason(Outcome.FAILED, no.code, no.message))
        if no.state is None:
            if no.message:
                await self._writer.write(
                    lambda ledger: ledger.purchases.note_last_response(attempt.request_id, no.message)
                )
            return replace(attempt, error=no.message or attempt.error)
        if no.state is AttemptState.WITHDRAWN and attempt.error_code in PASSING_REFUSALS:
            # It was not sent again: what the service said of it before stands.
            said = {"error_code": attempt.error_code, "error": attempt.error}
            return replace(await self._change(attempt, AttemptState.REJECTED, **said), state=no.state)
        if no.state is AttemptState.WITHDRAWN:
            return await self._change(attempt, no.state)
        return await self._change(attempt, no.state, error_code=no.code, error=no.message)

    async def _doubt(self, refused: list[RequestId]) -> None:
        """Have the next run send again what may be about the account, though it names something of the row."""
        if refused:
            await self._writer.write(lambda ledger: ledger.purchases.doubt_refusals(refused))

    async def _keep_exchange(self, attempt: Attempt, end: outcomes.CreateEnd | outcomes.JobEnd) -> None:
        """For a report about it; the attempt itself has the reason alone."""
        if isinstance(end, Job) or end.exchange is None:
            return
        detail = json.dumps(end.exchange)
        await self._writer.write(
            lambda ledger: ledger.record_event(self._run_id, ANSWERED, attempt.request_id, detail=detail)
        )

    async def _change(self, attempt: Attempt, to: AttemptState, **learned: str | None) -> Attempt:
        return await self._writer.write(
            lambda ledger: ledger.purchases.change(self._run_id, attempt.request_id, to, **learned)
        )


def failure_of(item: Item, attempt: Attempt) -> PatternmillError:
    """Why an item's last attempt made nothing, as an error to raise."""
    if attempt.state is AttemptState.WITHDRAWN:
        return _not_begun(item)
    fail = partial(RowFailed, request_id=attempt.request_id, job_id=attempt.job_id)
    if attempt.state in (AttemptState.INTENDED, AttemptState.ACCEPTED):
        waits = attempt.error_code or "gave_up_waiting"
        code = "in_doubt" if attempt.state is AttemptState.INTENDED else waits
        message = f"{item.describe()}: {code.replace('_', ' ')}; the next run resumes it."
        return fail(joined(message, attempt.error), code=code)
    code = attempt.error_code or "failed"
    return fail(attempt.error or "", code=code, remedy=remedy_of(attempt), is_final=True)


def _up_to(stage: Stage) -> tuple[Stage, ...]:
    """The stages that lead to one, and itself."""
    return tuple(Stage)[: list(Stage).index(stage) + 1]


def _not_begun(item: Item) -> NotStarted:
    return NotStarted(f"{item.describe()} was not begun: the run was stopped before.")


def _has_job(failed: Attempt) -> bool:
    """Return whether there is a job to ask about; one that was written off is not looked for again."""
    return failed.job_id is not None and failed.error_code != WRITTEN_OFF


def is_passing(attempt: Attempt) -> bool:
    """Whether the refusal was not about the item itself."""
    return attempt.state is AttemptState.REJECTED and attempt.error_code in PASSING_REFUSALS


def _sent_ago(ledger: Ledger, attempt: Attempt) -> timedelta:
    """Of an open attempt that another run, or another process, began: its request may have been sent since.

    Longer than any limit where the clocks contradict one another, so that a person decides about it.
    """
    if attempt.state is not AttemptState.INTENDED:
        return timedelta(0)
    age = ledger.purchases.age_of(attempt)
    return timedelta.max if age is None else age
