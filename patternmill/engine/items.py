"""The way of one item: intent -> create -> job ID -> followed to its end -> result, attempt by attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from patternmill.engine.halt import Halt, HaltReason
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Progress
from patternmill.errors import BudgetReached, NotStarted, RowFailed
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, Intent
from patternmill.ledger.spending import SECOND_ATTEMPT
from patternmill.ledger.writer import LedgerWriter
from patternmill.planning.items import Item, PatternItem
from patternmill.service import outcomes
from patternmill.service.jobs import Job
from patternmill.service.studio_api import StudioApi
from patternmill.states import PASSING_REFUSALS, REOPENED, WRITTEN_OFF, AttemptState, Outcome, Stage

#: The error code of a failed job whose reason a setting marks as final.
FINAL_FAILURE = "failed_for_good"
#: After these no attempt follows unless a person asks for one.
FINAL_CODES = frozenset({FINAL_FAILURE, WRITTEN_OFF})


@dataclass(frozen=True, slots=True)
class _Begun:
    """An attempt to go on with."""

    attempt: Attempt
    #: How long ago its request may have been sent by somebody else; None: nobody can have sent it yet.
    sent_ago: timedelta | None = None
    #: The clocks contradict one another, so that a person decides about it.
    age_unknown: bool = False


class ItemMaker:
    """Makes items one by one for one run; safe for many tasks of one event loop."""

    def __init__(
        self,
        writer: LedgerWriter,
        api: StudioApi,
        run_id: RunId,
        environment: str,
        options: RunOptions,
        halt: Halt,
        progress: Progress,
    ) -> None:
        self._writer = writer
        self._api = api
        self._run_id = run_id
        self._environment = environment
        self._options = options
        self._halt = halt
        self._progress = progress

    async def make(self, item: Item, body: Callable[[RequestId], bytes], *, retried: bool = False) -> Attempt:
        """Bring an item to its end and return its last attempt, which succeeded.

        Raises RowFailed when it ended otherwise, and BudgetReached or RowFailed when it could not be begun.
        Another attempt is made only after the service itself said that the last one's job failed.
        """
        begun = await self._begin(item, body, retried=retried)
        most = max(begun.attempt.attempt, self._options.attempts)
        if retried:
            most = begun.attempt.attempt + self._options.attempts - 1
        attempt = await self._to_its_end(item, begun)
        while attempt.state is AttemptState.FAILED and self._may_try_again(item, attempt, most):
            try:
                begun = await self._begin(item, body, retried=False, after=attempt.attempt)
            except BudgetReached:
                break
            self._progress.tried_again += 1
            attempt = await self._to_its_end(item, begun)
        return self._ended(item, attempt)

    async def _begin(
        self, item: Item, body: Callable[[RequestId], bytes], *, retried: bool, after: int = 0
    ) -> _Begun:
        """The attempt to go on with, in one transaction: the last one where it is open, else the next one.

        `after`: the number of an attempt that has just failed.
        """
        #: Written by this very call, also when its transaction is done once more after a lost connection.
        written: set[RequestId] = set()

        def begin(ledger: Ledger) -> _Begun:
            attempts = ledger.attempts_of(item.key)
            number = self._next_number(attempts, retried, after)
            if number is None:
                last = attempts[-1]
                return _Begun(last) if last.request_id in written else _taken_over(ledger, last)
            request_id = item.request_id(number)
            price = self._options.price(item.stage)
            intent = Intent(request_id, item.key, item.stage, number, body(request_id), price)
            written.add(request_id)
            attempt = ledger.intend(self._run_id, self._environment, intent, self._options.limits)
            before = next((each for each in attempts if each.request_id == request_id), None)
            redirected = before is not None and before.error_code == "redirected"
            return _Begun(attempt, timedelta(0) if redirected else None)

        try:
            return await self._writer.write(begin)
        except BudgetReached as reached:
            reason = HaltReason(Outcome.BUDGET_REACHED, reached.code, str(reached))
            # Without products, patterns would be bought for nothing; the other way round, what is there is used.
            stages = (item.stage,) if item.stage is Stage.PATTERN else tuple(Stage)
            self._halt.begin(reason, stages=() if reached.code == SECOND_ATTEMPT else stages)
            raise

    def _next_number(self, attempts: tuple[Attempt, ...], retried: bool, after: int) -> int | None:
        if not attempts:
            return 1
        last = attempts[-1]
        first_tries = last.attempt < self._options.attempts and last.error_code not in FINAL_CODES
        again = retried or last.attempt == after or first_tries
        if last.state is AttemptState.FAILED and again:
            return last.attempt + 1
        if last.state in REOPENED and (last.state is AttemptState.WITHDRAWN or retried or is_passing(last)):
            return last.attempt
        return None

    async def _to_its_end(self, item: Item, begun: _Begun) -> Attempt:
        """From wherever the attempt stands to the end of its job, as far as that can be had now."""
        attempt, known = begun.attempt, None
        if attempt.state is AttemptState.INTENDED:
            attempt, known = await self._create(item, begun)
        if attempt.state is AttemptState.ACCEPTED:
            attempt = await self._follow(item, attempt, known)
        return attempt

    async def _create(self, item: Item, begun: _Begun) -> tuple[Attempt, Job | None]:
        attempt = begun.attempt
        if begun.age_unknown or (begun.sent_ago or timedelta(0)) > self._options.in_doubt_limit:
            return attempt, None
        end = await self._api.create(
            item.stage,
            attempt.body,
            known_job_id=attempt.job_id,
            age=begun.sent_ago,
            stopping=lambda: self._halt.forbids_sending(item.stage),
        )
        match end:
            case outcomes.Accepted(job=job):
                return await self._accept(attempt, job), job
            case outcomes.Refused(code=code, message=message):
                return await self._change(
                    attempt, AttemptState.REJECTED, error_code=code, error=message
                ), None
            case outcomes.Conflict(code=code, message=message):
                return await self._conflict(attempt, code, message), None
            case outcomes.Kept(code=code, message=message, in_doubt=in_doubt):
                if in_doubt:
                    return attempt, None
                return await self._change(attempt, AttemptState.HELD, error_code=code, error=message), None
            case outcomes.Stopped(code=code, message=message, in_doubt=in_doubt, item_refused=item_refused):
                self._stop(code, message)
                return await self._unsettled(attempt, code, message, in_doubt, item_refused), None
            case outcomes.NotBegun():
                return await self._change(attempt, AttemptState.WITHDRAWN), None
            case outcomes.InDoubt():
                return attempt, None
            case _:
                assert_never(end)

    async def _unsettled(
        self, attempt: Attempt, code: str, message: str, in_doubt: bool, item_refused: bool
    ) -> Attempt:
        """What the run's stop means for the request that met it. What may have been executed stays in doubt."""
        if in_doubt:
            return attempt
        if item_refused:
            return await self._change(attempt, AttemptState.REJECTED, error_code=code, error=message)
        return await self._change(attempt, AttemptState.WITHDRAWN)

    async def _accept(self, attempt: Attempt, job: Job) -> Attempt:
        """Write the job ID down before anything builds on it; a job of another request is a contradiction."""

        def accept(ledger: Ledger) -> Attempt | RequestId:
            other = ledger.request_of_job(job.job_id, self._environment)
            if other is not None and other != attempt.request_id:
                return other
            return ledger.change(self._run_id, attempt.request_id, AttemptState.ACCEPTED, job_id=job.job_id)

        accepted = await self._writer.write(accept)
        if isinstance(accepted, Attempt):
            return accepted
        return await self._conflict(
            attempt,
            "job_of_another_item",
            f"The service answered with job {job.job_id}, which belongs to request {accepted}.",
        )

    async def _follow(self, item: Item, attempt: Attempt, known: Job | None) -> Attempt:
        assert attempt.job_id is not None, "an accepted attempt has a job ID"
        age = timedelta(seconds=max(0.0, self._writer.now() - (attempt.accepted_at or 0.0)))
        end = await self._api.follow(attempt.job_id, item.stage, age=age, known=known)
        match end:
            case outcomes.Succeeded(result_id=result_id, picture_url=picture_url):
                return await self._change(
                    attempt, AttemptState.SUCCEEDED, result_id=result_id, picture_url=picture_url
                )
            case outcomes.Failed(message=message):
                code = FINAL_FAILURE if self._options.is_final(message) else f"{item.stage}_failed"
                return await self._change(attempt, AttemptState.FAILED, error_code=code, error=message)
            case outcomes.GaveUp():
                return attempt
            case outcomes.Kept(code=code, message=message, in_doubt=in_doubt):
                if in_doubt:
                    return attempt
                return await self._change(attempt, AttemptState.HELD, error_code=code, error=message)
            case outcomes.Conflict(code=code, message=message):
                return await self._conflict(attempt, code, message)
            case outcomes.Stopped(code=code, message=message):
                self._stop(code, message)
                return attempt
            case _:
                assert_never(end)

    async def _change(
        self,
        attempt: Attempt,
        to: AttemptState,
        *,
        result_id: str | None = None,
        picture_url: str | None = None,
        error_code: str | None = None,
        error: str | None = None,
    ) -> Attempt:
        return await self._writer.write(
            lambda ledger: ledger.change(
                self._run_id,
                attempt.request_id,
                to,
                result_id=result_id,
                picture_url=picture_url,
                error_code=error_code,
                error=error,
            )
        )

    async def _conflict(self, attempt: Attempt, code: str, message: str) -> Attempt:
        self._stop(code, message)
        return await self._change(attempt, AttemptState.HELD, error_code=code, error=message)

    def _stop(self, code: str, message: str) -> None:
        self._halt.begin(HaltReason(Outcome.FAILED, code, message))

    def _may_try_again(self, item: Item, attempt: Attempt, most: int) -> bool:
        return (
            attempt.attempt < most
            and attempt.error_code not in FINAL_CODES
            and not self._halt.holds(item.stage)
        )

    def _ended(self, item: Item, attempt: Attempt) -> Attempt:
        if attempt.state is AttemptState.SUCCEEDED:
            self._progress.made(item.stage)
            return attempt
        if attempt.state in (AttemptState.FAILED, AttemptState.REJECTED, AttemptState.HELD):
            self._count_failure(item)
            raise RowFailed(
                attempt.error or "",
                code=attempt.error_code or "failed",
                request_id=attempt.request_id,
                job_id=attempt.job_id,
                is_final=True,
            )
        if attempt.state is AttemptState.WITHDRAWN:
            raise NotStarted(f"{item.describe()} was not begun: the run was stopped before.")
        code = "in_doubt" if attempt.state is AttemptState.INTENDED else "gave_up_waiting"
        raise RowFailed(
            f"{item.describe()}: {code.replace('_', ' ')}; the next run goes on with it.",
            code=code,
            request_id=attempt.request_id,
            job_id=attempt.job_id,
        )

    def _count_failure(self, item: Item) -> None:
        self._progress.item_failed()
        limit = self._options.failure_limit
        if limit.passed(self._progress.items_failed, self._progress.items_ended):
            self._halt.begin(too_many_failures(self._progress.items_failed, self._progress.items_ended))


def is_passing(attempt: Attempt) -> bool:
    """Whether an attempt was refused by an answer that says nothing about its item."""
    return attempt.state is AttemptState.REJECTED and attempt.error_code in PASSING_REFUSALS


def _taken_over(ledger: Ledger, attempt: Attempt) -> _Begun:
    """An open attempt that this call did not begin: whoever did may have sent its request."""
    age = ledger.age_of(attempt) if attempt.state is AttemptState.INTENDED else timedelta(0)
    return _Begun(attempt, age or timedelta(0), age_unknown=age is None)


def too_many_failures(failed: int, ended: int) -> HaltReason:
    """Why a run stops whose limit of failures was passed."""
    return HaltReason(
        Outcome.FAILED,
        "too_many_failures",
        f"{failed} of {ended} items failed, which is more than --max-failures allows.",
    )


def body_of(item: Item, pattern_id: str | None = None) -> Callable[[RequestId], bytes]:
    """What an item's request will say, once its ID is known."""
    if isinstance(item, PatternItem):
        return item.body
    assert pattern_id is not None, "a product is built on a pattern"
    return lambda request_id: item.body(request_id, pattern_id)
