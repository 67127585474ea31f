"""The engine: a row's items, each built on the one before it, from intent to result, all inside one window.

Read `Engine._drive_row` for a row, `Engine.make` for an item.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from patternmill.engine.failures import FailureBrake
from patternmill.engine.groups import Group, groups_of
from patternmill.engine.item_attempts import Attempts, failure_of
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.engine.refused_alike import RefusedAlike
from patternmill.errors import LedgerError, PatternmillError, RowFailed, ServiceStopped
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import LedgerWriter
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_DO, Plan, PlannedRow, Reason
from patternmill.planning.recognition import Memory
from patternmill.service.outcomes import No
from patternmill.service.studio_api import StudioApi
from patternmill.states import HELD_BACK, NOT_CONFIRMED, AttemptState, Outcome, Stage
from patternmill.text import plural

logger = logging.getLogger(__name__)


#: Makes an item, or drives a group, to its end. It may wrap `Engine.make` or `Engine.drive_group`, as a task of Prefect
#: does; what it returns counts for nothing, and the ledger says what became of the item.
Make = Callable[[Item], Awaitable[Any]]
MakeGroup = Callable[[Group], Awaitable[Any]]


#: The turn of rows that come after all others.
_LAST = 3


class Engine:
    """Drives the rows of one run, or of one part of a run."""

    def __init__(
        self,
        record: RunRecord,
        plan: Plan,
        memory: Memory,
        writer: LedgerWriter,
        api: StudioApi,
        options: RunOptions,
    ) -> None:
        self.plan, self.options = plan, options
        self.halt = Halt()
        self.progress = Progress.of(plan)
        self.groups = groups_of(plan)
        self._api, self._writer = api, writer
        to_make = (planned.item for planned in plan.items.values() if planned.reason in TO_DO)
        self._alike = RefusedAlike(self.halt, to_make)
        self._attempts = Attempts(record, writer, options, self.halt, self._alike)
        self._brake = FailureBrake(lambda: self.progress.in_flight)
        self._retried = frozenset(key for key, it in plan.items.items() if it.reason is Reason.RETRIED)
        #: Result IDs: what earlier runs made that products are built on, and all that this one has made.
        self._results = _results_of_earlier_runs(plan, memory)
        self._failures: dict[ItemKey, RowFailed] = {}
        #: What several rows may wait for.
        self._shared: dict[ItemKey, asyncio.Task[None]] = {}
        #: The window: a slot is a row from the beginning of its first item to the end of its last, so that a stop
        #: finds at most one window of patterns without their products.
        self._window = asyncio.Semaphore(options.max_in_flight)
        self._slots = options.max_in_flight
        self._make_item: Make = self.make
        #: The tasks of the rows of each group that is driven, and whether its rows have their slots.
        self._rows: dict[int, list[asyncio.Task[None]]] = {}
        self._begun: dict[int, asyncio.Event] = {}
        #: All rows but those that come last have their slots.
        self._others_begun = asyncio.Event()
        #: Not set while nothing new is begun.
        self._going = asyncio.Event()
        self._going.set()

    def made(self, group: Group) -> int:
        return sum(row.product in self._results for row in group.rows)

    def failures(self, group: Group) -> list[tuple[PlannedRow, RowFailed]]:
        """The rows of a group that failed, so far, each with what failed first."""
        first = ((row, next(filter(None, map(self._failures.get, row.keys)), None)) for row in group.rows)
        return [(row, failed) for row, failed in first if failed is not None]

    async def drive(self, make: Make | None = None, make_group: MakeGroup | None = None) -> None:
        """Drive all rows to their end, group by group, each begun once all rows of the one before have their slots.

        `make` makes each item, and `make_group` drives each group: by default the engine itself. Raises nothing for a
        row. A ledger that takes no more writes halts the run, which cannot be closed then.
        """
        self._make_item = make or self.make
        if make_group is not None:
            await self.make_shared_references(self._make_item)
        async with asyncio.TaskGroup() as driven:
            try:
                for group in sorted(self.groups, key=lambda group: min(map(self._turn, group.rows))):
                    await self._alike.settled()
                    # The slot of its first row: a group begins with its first write.
                    await self._window.acquire()
                    if self.halt.is_total:
                        self._window.release()
                        return
                    begun = self._begun[group.number] = asyncio.Event()
                    driven.create_task(self._drive(group, make_group or self.drive_group))
                    await begun.wait()
            finally:
                self._others_begun.set()

    async def make_shared_references(self, make: Make) -> None:
        """Make the references that several groups share, before any of them begins."""
        self._make_item = make
        users = Counter(
            key for group in self.groups for key in {key for row in group.rows for key in row.keys}
        )
        items = (self.plan.items[key] for key, count in users.items() if count > 1)
        shared = [one.item for one in items if one.reason in TO_DO and one.item.stage is Stage.REFERENCE]
        await asyncio.gather(*map(self._make_shared, shared))

    def _turn(self, row: PlannedRow) -> int:
        """Rows that are under way go first, in the slots that they have: else others would pass the window.

        Then those whose pattern exists, so that a stop finds few patterns without their products. What failed before
        comes last: by then others have shown whether it is the item's own fault.
        """
        reasons = {self.plan.items[key].reason for key in row.keys}
        if Reason.TRIED_AGAIN in reasons:
            return _LAST
        if Reason.CONTINUED in reasons:
            return 0
        return 1 if self.plan.items[self.plan.first_pattern(row)].reason is Reason.DONE else 2

    async def _drive(self, group: Group, make_group: MakeGroup) -> None:
        """Have a group driven, and wait for the rows that it has begun, whatever becomes of its wrapper."""
        lost = await _fault_of(make_group(group))
        if group.number not in self._rows:
            self._window.release()
        self._begun[group.number].set()
        rows = self._rows.get(group.number, [])
        if len(rows) < len(group.rows):
            self._lose_task_run(group.describe(), lost)
        for fault in await asyncio.gather(*rows, return_exceptions=True):
            if fault is not None:
                raise fault

    async def drive_group(self, group: Group) -> None:
        """Begin a group's rows, as the window lets them, and wait for their ends. The first row has its slot."""
        rows = self._rows[group.number] = []
        # Rows that share a pattern one after the other: a stop finds the rest of one such pattern at most.
        order: dict[ItemKey, int] = {}
        for row in group.rows:
            order.setdefault(self.plan.first_pattern(row), row.position)
        has_slot = True
        for row in sorted(group.rows, key=lambda row: (self._turn(row), order[self.plan.first_pattern(row)])):
            if self._turn(row) == _LAST and not self._others_begun.is_set():
                self._begun[group.number].set()
                if has_slot:
                    # Others need it meanwhile.
                    self._window.release()
                    has_slot = False
                await self._others_begun.wait()
            if not has_slot:
                await self._window.acquire()
            has_slot = False
            rows.append(asyncio.create_task(self._drive_row(row)))
        self._begun[group.number].set()
        await asyncio.wait(rows)

    def widen(self, window: int) -> None:
        """Let more rows be under way at once, up to so many."""
        for _ in range(self._slots, window):
            self._window.release()
        self._slots = max(self._slots, window)

    async def _drive_row(self, row: PlannedRow) -> None:
        """Reference, pattern, refinements, product. What rows share is made once, by the first of them."""
        assert row.product is not None, "a refused row is not driven"
        try:
            for planned in (self.plan.items[key] for key in row.keys if self.plan.items[key].reason in TO_DO):
                item = planned.item
                if item.parent_key is not None and item.parent_key not in self._results:
                    return
                if item.key == row.product:
                    await self._make_unless_halted(item)
                    return
                await self._make_shared(item)
        finally:
            self._window.release()
            self._count_row(row.product)

    async def _make_shared(self, item: Item) -> None:
        """Make an item that several rows may wait for, once; none of them cancels it for the others."""
        if item.key not in self._shared:
            self._shared[item.key] = asyncio.create_task(self._make_unless_halted(item))
        await asyncio.shield(self._shared[item.key])

    async def _make_unless_halted(self, item: Item) -> None:
        """Have an item made. A failure is in the ledger already, and a ledger that fails has halted the run."""
        await self._going.wait()
        await self._alike.settled()
        await self._attempts.take_turn(item)
        halts, is_kept_back = self._alike.halts, False
        self.progress.in_flight += 1
        try:
            if self.halt.halts(item.stage):
                return
            fault = await _fault_of(self._make_item(item))
            if fault is not None and not isinstance(fault, PatternmillError):
                await self._follow_lost(item, fault)
            has_ended = item.key in self._results or item.key in self._failures
            is_kept_back = not has_ended and halts != self._alike.halts
        finally:
            self._attempts.leave_turn(item)
            self.progress.in_flight -= 1
            self._brake.wake()
            if self._alike.is_settled and self.halt.forbids_all_sending:
                self._api.drain()
        if is_kept_back:
            await self._make_unless_halted(item)

    async def _follow_lost(self, item: Item, fault: BaseException) -> None:
        """Follow what was begun by a wrapper that was cancelled or refused; leave the rest for the next run."""
        if item.key in self._results or item.key in self._failures:
            return
        with suppress(PatternmillError):
            if await self._attempts.is_open(item):
                await self.make(item)
            else:
                self._lose_task_run(item.describe(), fault)

    def _lose_task_run(self, what: str, fault: BaseException | None) -> None:
        """Remember that nothing was begun for something because its task run did not do it."""
        why = type(fault).__name__ if fault is not None else "it ended at once"
        logger.warning("The task run of %s was lost: %s", what, why)
        message = f"The task run of {what} was cancelled or refused by Prefect ({why}), and nothing was begun for it."
        self.halt.begin(HaltReason(Outcome.FAILED, "task_run_lost", message), stages=())

    async def make(self, item: Item) -> str:
        """Intent -> create -> job -> result, attempt by attempt. Returns the ID of what was made.

        Raises RowFailed when it ended otherwise, BudgetReached or NotStarted when it could not be begun; and the same
        when called again. Raises LedgerError, and halts the run, when the ledger takes no more writes.
        """
        if item.key in self._failures:
            raise self._failures[item.key]
        if item.key in self._results:
            return self._results[item.key]
        try:
            return await self._attempt(item)
        except LedgerError as fault:
            self.halt.begin(HaltReason(Outcome.FAILED, fault.code, str(fault)))
            raise

    async def _attempt(self, item: Item) -> str:
        retried = item.key in self._retried
        async with self._attempts.turn(item):
            attempt, sent_ago = await self._attempts.begin(item, self._results, retried=retried)
            failed_before = attempt.state is AttemptState.FAILED
            asked_for = attempt.attempt - (0 if failed_before else 1) if retried else 0
            attempt = await self._create(item, attempt, sent_ago)
        if not failed_before:
            attempt = await self._follow(item, attempt)
        last_number, also_final = self.options.attempts + asked_for, retried and failed_before
        while attempt.state is AttemptState.FAILED and self._attempts.may_follow(
            item, attempt, last_number, also_final=also_final
        ):
            await self._going.wait()
            await self._alike.settled()
            attempt = await self._ask_once_more(item, attempt)
            if attempt.state is not AttemptState.FAILED:
                break
            also_final = False
            async with self._attempts.turn(item):
                another = await self._attempts.begin_another(item, self._results, attempt)
                if another is None:
                    break
                self.progress.tried_again += 1
                attempt = await self._create(item, *another)
            attempt = await self._follow(item, attempt)
        return self._result(item, attempt)

    async def _create(self, item: Item, attempt: Attempt, sent_ago: timedelta | None) -> Attempt:
        """Return the attempt as its answer leaves it."""
        if attempt.state is not AttemptState.INTENDED:
            return attempt
        with self._alike.sending(item):
            created = await self._api.create(
                item.stage,
                attempt.body,
                operation=item.operation,
                known_job_id=attempt.job_id,
                age=sent_ago,
                repeatable=item.is_repeatable,
                given=item.given,
                look_up=item.unstated.lookup,
                stopping=lambda: self.halt.forbids_sending(item.stage),
                permitted=self._writer.confirm_lease,
            )
            return await self._attempts.record_create(item, attempt, created)

    async def _follow(self, item: Item, attempt: Attempt) -> Attempt:
        if attempt.state is AttemptState.ACCEPTED:
            assert attempt.job_id is not None, "an accepted attempt has a job ID"
            age = self._attempts.age_of_job(attempt)
            ended = await self._api.follow(attempt.job_id, item.stage, age=age)
            attempt = await self._attempts.record_end(item, attempt, ended)
        self._brake.note(item, attempt.state)
        return attempt

    async def _ask_once_more(self, item: Item, failed: Attempt) -> Attempt:
        """Return a failed attempt as its job is now: failed only if the service says so again, just now."""
        while not self.halt.halts(item.stage):
            if why := await self._brake.wait(item.stage, lambda: self.halt.halts(item.stage)):
                message = (
                    f"Attempt {failed.attempt + 1} held back: {why}; `patternmill retry`. {failed.error}"
                )
                return await self._attempts.keep_waiting(failed, HELD_BACK, message)
            shown = await self._ask(item, failed)
            if shown.state is AttemptState.FAILED and not self._brake.holds(item.stage):
                return shown
            failed = await self._follow(item, shown) if shown.error_code is None else shown
            if failed.state is not AttemptState.FAILED:
                return failed
        return failed

    async def _ask(self, item: Item, failed: Attempt) -> Attempt:
        """Ask for a failed job with a few quick tries; without a clear answer it is asked for by the next run."""
        assert failed.job_id is not None, "what has no job is not asked about"
        said = "the service does not know it any more."
        try:
            if (job := await self._api.job(failed.job_id)) is not None:
                return await self._attempts.learn(item, failed, job)
        except ServiceStopped as stopped:
            said = stopped.message
        why = f"Job {failed.job_id} failed ({failed.error}); asked once more: {said} `patternmill retry` asks again."
        return await self._attempts.keep_waiting(failed, NOT_CONFIRMED, why)

    async def ask_once(self, item: Item, attempt: Attempt) -> bool:
        """Ask for a job that nothing of the plan waits for, and record its end; returns whether it has ended."""
        assert attempt.job_id is not None, "an accepted attempt has a job ID"
        age = self._attempts.age_of_job(attempt)
        ended = await self._api.follow(attempt.job_id, item.stage, age=age, once=True)
        if isinstance(ended, No) and ended.state is None:
            return False
        await self._attempts.record_end(item, attempt, ended)
        return True

    def stop(self, why: str) -> None:
        """A person's stop: nothing new is begun, no create is sent; what runs is followed while the drain lasts."""
        self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", why))
        self.pause(False)
        self._brake.wake()
        self._api.drain()
        asyncio.get_running_loop().call_later(self.options.drain.total_seconds(), self.abandon)

    def pause(self, is_paused: bool) -> None:
        """Begin nothing new, or go on; what is in flight is finished all the same. A halted run is not held up."""
        if is_paused and not self.halt.is_total:
            self._going.clear()
        else:
            self._going.set()

    @property
    def is_paused(self) -> bool:
        return not self._going.is_set()

    def abandon(self) -> None:
        """End the drain: jobs that have not ended are for the next run."""
        self._api.abandon()

    def _result(self, item: Item, attempt: Attempt) -> str:
        if attempt.state is AttemptState.SUCCEEDED:
            assert attempt.result_id is not None, "what succeeded has an ID"
            self._results[item.key] = attempt.result_id
            self.progress.made[item.stage] += 1
            return attempt.result_id
        failure = failure_of(item, attempt)
        if isinstance(failure, RowFailed):
            self._failures[item.key] = failure
            if failure.is_final:
                self.progress.items_failed += 1
                self.halt_if_too_many_failed()
        raise failure

    def halt_if_too_many_failed(self) -> None:
        failed = self.progress.items_failed
        ended = self.progress.made.total() + failed
        if self.options.too_many(failed, ended):
            message = (
                f"{failed:,} of {plural(ended, 'item')} failed, which is more than --max-failures allows."
            )
            self.halt.begin(HaltReason(Outcome.FAILED, "too_many_failures", message))

    def _count_row(self, product: ItemKey) -> None:
        if self.plan.items[product].reason not in TO_DO:
            # Takes were made for a person to choose from.
            self.progress.ended += 1
            return
        if product not in self._results and self.halt.reason is not None:
            self.progress.left_out += 1
            return
        self.progress.ended += 1
        if product not in self._results:
            self.progress.failed += 1


def _results_of_earlier_runs(plan: Plan, memory: Memory) -> dict[ItemKey, str]:
    items = (one.item for one in plan.items.values() if one.reason is Reason.DONE)
    last = {item.key: memory.last_attempts.get(item.key) for item in items if item.stage is not Stage.PRODUCT}
    return {key: one.result_id for key, one in last.items() if isinstance(one, Attempt) and one.result_id}


async def _fault_of(making: Awaitable[Any]) -> BaseException | None:
    """Await in a task of its own, and return what it raised, a cancellation and signals of Prefect included."""
    task = asyncio.ensure_future(making)
    await asyncio.wait({task})
    return asyncio.CancelledError() if task.cancelled() else task.exception()
