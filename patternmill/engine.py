"""Drives items through their states: the ledger first, then the service, then the ledger again."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from patternmill.errors import Halted, Refusal
from patternmill.halt import Admission, Halt
from patternmill.ledger.purchases import Purchases
from patternmill.plan import Action, Step
from patternmill.service.answers import Accepted, Again, Decision, Ended, Held, Refused, Stop, Unclear
from patternmill.service.client import Client
from patternmill.states import OPEN, Attempt, Outcome, State

_ERRING = 60.0  # a failed job is asked about once more after so long: services have erred for a minute
#: The most, in seconds, by which clocks may differ: a request dated further ahead has an unknown age.
_SKEW = 300.0
#: How often the ledger is read for an item that another run drives, in seconds.
_LOOKING = 2.0


@dataclass
class Engine:
    """Makes items for one run."""

    purchases: Purchases
    client: Client
    halt: Halt
    admission: Admission
    in_doubt_limit: float
    now: Callable[[], float] = time.time
    #: Requests that were put on record here, and never sent.
    fresh: set[str] = field(default_factory=set)

    async def make(self, step: Step, parent_id: str | None = None) -> Attempt:
        """Return the last attempt at an item, in the state that it reached. Raises Refusal if not begun."""
        stage = step.item.stage
        self.admission.enter(stage)
        try:
            attempt = step.attempt
            if attempt is None or step.action is not Action.FOLLOW:
                attempt = await self._first(step, parent_id)
            while attempt.state in OPEN or (attempt.state is State.FAILED and attempt.number < step.most):
                after = await self._advance(step, parent_id, attempt)
                if after == attempt:
                    break
                attempt = after
            return attempt
        finally:
            self.admission.leave(stage)

    async def follow(self, attempt: Attempt) -> Attempt:
        """Follow a job that no row of this run names to its end."""
        self.admission.enter(attempt.stage)
        try:
            attempt = await self._drive(attempt)
            return await self._poll(attempt) if attempt.state is State.ACCEPTED else attempt
        finally:
            self.admission.leave(attempt.stage)

    def look(self) -> None:
        """Begin nothing more of the stages that the run has halted in another process."""
        for stage, problem, last in self.purchases.halted_stages():
            if stage not in self.halt.stages:
                self.admission.halt_stage(stage, problem, last)

    async def _first(self, step: Step, parent_id: str | None) -> Attempt:
        """Return the attempt at an item that was let in, which another run may have begun by now."""
        last = step.attempt
        try:
            if last and last.state is State.FAILED and last.job_id:
                lives = self.purchases.has_living_driver(last)  # so that this is not the next run
                is_doubted = lives or self.purchases.standings[last.stage].room is not None
                if is_doubted and not await self.admission.another_ends_well(last) and lives:
                    return last
                asked = await self._ask_once_more(last)
                if asked is not last:
                    return asked
            return await self._begin(step, parent_id, last.request_id if last else "")
        finally:
            self.admission.begun(step.item.stage)

    async def _begin(self, step: Step, parent_id: str | None, failed: str) -> Attempt:
        if self.halt.reason:
            raise self.halt.reason
        try:
            attempt = await self.purchases.begin(step, parent_id, failed)
        except Refusal as refusal:
            self.halt.set(refusal)
            raise
        if attempt.driver == self.purchases.driver:
            self.fresh.add(attempt.request_id)
        return attempt

    async def _advance(self, step: Step, parent_id: str | None, attempt: Attempt) -> Attempt:
        """Return the attempt after its next move, or unchanged where there is none for now."""
        if attempt.driver != self.purchases.driver and attempt.state in OPEN:
            return await self._drive(attempt)
        if attempt.state is State.INTENDED:
            return await self._send(attempt)
        if attempt.state is State.ACCEPTED:
            return await self._poll(attempt)
        if attempt.code == "content_refused" or not await self.admission.another_ends_well(attempt):
            return attempt
        asked = await self._ask_once_more(attempt)
        return asked if asked is not attempt else await self._begin(step, parent_id, attempt.request_id)

    async def _drive(self, attempt: Attempt) -> Attempt:
        """Return an open attempt once this run drives it, or it has ended, or the run is halted."""
        while attempt.state in OPEN and attempt.driver != self.purchases.driver and not self.halt:
            if self.purchases.has_living_driver(attempt):
                await asyncio.sleep(_LOOKING)
                attempt = self.purchases.look(attempt)
            else:
                attempt = await self.purchases.take_over(attempt)
        return attempt

    async def _send(self, attempt: Attempt) -> Attempt:
        """Send a request: for the first time where this run has just begun it, else once more."""
        in_doubt = attempt.request_id not in self.fresh
        self.fresh.discard(attempt.request_id)
        if self.halt and in_doubt:
            return attempt
        age = self.now() - attempt.intended_at
        if in_doubt and not -_SKEW < age <= self.in_doubt_limit:
            why = "It is so old that" if age > 0 else "Its time lies in the future:"
            message = f"{why} the service may have forgotten its ID, and would make it a second time."
            return await self.purchases.end(attempt, State.HELD, code="too_old", message=message)
        is_other = self.purchases.is_other(attempt)
        decision = await self.client.create(attempt, in_doubt=in_doubt, is_other=is_other)
        match decision:
            case Accepted(job_id, result_id, address):
                accepted = await self.purchases.accept(attempt, job_id, result_id, address)
                return await self._noted(accepted)
            case Refused(code, message):
                return await self._noted(
                    await self.purchases.end(attempt, State.REJECTED, code=code, message=message)
                )
        return await self._settle(attempt, decision)

    async def _poll(self, attempt: Attempt) -> Attempt:
        """Return the attempt once its job has ended, or its time is over."""
        return await self._settle(
            attempt, await self.client.follow(attempt, self.purchases.is_other(attempt))
        )

    async def _ask_once_more(self, attempt: Attempt) -> Attempt:
        """Return a failed attempt as it is if the service says so again; else with what it says now."""
        left = (attempt.ended_at or 0.0) + _ERRING - self.now()
        for pause in (min(max(left, 0.0), _ERRING), 2.0, 4.0, 8.0):
            await asyncio.sleep(pause)
            decision = await self.client.ask_about(attempt, self.purchases.is_other(attempt))
            if not isinstance(decision, Again):
                break
        if isinstance(decision, Ended) and not decision.result_id:
            return attempt
        if isinstance(decision, Ended):
            attempt = await self.purchases.accept(attempt, str(attempt.job_id))
        elif not isinstance(decision, Held | Stop):
            decision = Held("failure_not_confirmed", f"{attempt.message} The service did not say so again.")
        return await self._settle(attempt, decision)

    async def _settle(self, attempt: Attempt, decision: Decision) -> Attempt:
        """Return the attempt with a decision on record."""
        match decision:
            case Ended(None, message, code):
                return await self._noted(
                    await self.purchases.end(attempt, State.FAILED, code=code, message=message)
                )
            case Ended(result_id):
                return await self._noted(await self.purchases.succeed(attempt, str(result_id)))
            case Held(code, message):
                return await self._noted(
                    await self.purchases.end(attempt, State.HELD, code=code, message=message)
                )
            case Unclear(message) if not self.halt:
                await self.purchases.give_up(attempt, message)
                await self._noted(attempt, message)
            case Stop(code, message):
                remedy = "Run the same command again when that is mended."
                self.halt.set(Halted(Outcome.FAILED, code, message, remedy))
        return attempt

    async def _noted(self, attempt: Attempt, words: str = "") -> Attempt:
        """Take note of what became of an attempt, which may be a reason to begin nothing more of its stage."""
        if problem := self.admission.note(attempt):
            self.admission.halt_stage(attempt.stage, problem, words or attempt.message or attempt.code)
            await self.purchases.note_halt(attempt, problem)
        return attempt
