"""The engine: makes the items of rows, each built on the one before it, inside one window.

Read `Engine.drive` for a run, `Engine._drive_row` for a row, and `Engine.make` for an item, from intent to result.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any

from patternmill.engine.brakes import TESTED_AFTER, FailureBrake
from patternmill.engine.groups import Group, Window, groups_of
from patternmill.engine.item_attempts import FINAL_CODES, Attempts, failure_of, request_of
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import STOPPED, Halt, HaltReason, Progress, paused
from patternmill.errors import (
    BudgetReached,
    LedgerError,
    NotStarted,
    PatternmillError,
    RowFailed,
    ServiceStopped,
)
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import LedgerWriter
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.planning.items import Item
from patternmill.planning.memory import Memory
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.service.outcomes import JobEnd, Refusal
from patternmill.service.studio_api import StudioApi
from patternmill.states import NOT_CONFIRMED, ROW_STAGES, AttemptState, Outcome, Stage
from patternmill.text import plural

logger = logging.getLogger(__name__)

#: Functions that make an item, or drive a group, to its end. They may wrap `Engine.make` or `Engine.drive_group`, as
#: Prefect tasks do. What they return is ignored: the ledger says what became of the item.
Make = Callable[[Item], Awaitable[Any]]
MakeGroup = Callable[[Group], Awaitable[Any]]
#: The turns of rows: under way, on a pattern that exists, new and, after all others, failed or refused before.
_UNDER_WAY, _ON_A_PATTERN, _NEW, _FAILED_BEFORE, _REFUSED_BEFORE = range(5)


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
        self.halt, self.progress = Halt(), Progress.of(plan)
        self.groups = groups_of(plan)
        self._api, self._writer = api, writer
        to_make = (planned.item for planned in plan.items.values() if planned.is_to_do)
        self._attempts = Attempts(record, writer, options, self.halt, to_make)
        self._alike = self._attempts.alike
        self._brake = FailureBrake(lambda: self.progress.in_flight)
        #: The IDs of what was made: by earlier runs, for products to be built on, and by this one.
        self._results = {
            key: attempt.result_id
            for key, planned in plan.items.items()
            if planned.reason is Reason.DONE and planned.item.stage is not Stage.PRODUCT
            if (attempt := memory.last_attempts.get(key)) is not None and attempt.result_id is not None
        }
        self._failures: dict[ItemKey, RowFailed] = {}
        #: The tasks of items that several rows may wait for.
        self._shared: dict[ItemKey, asyncio.Task[None]] = {}
        #: The window. A row has its slot from the beginning of its first item to the end of its last, so that a stop
        #: leaves at most one window of patterns without their products.
        self._window = Window(options.max_in_flight)
        #: Items that were refused before in words that may not be about their rows.
        self._refused_before = {
            key
            for key, planned in plan.items.items()
            if planned.reason is Reason.TRIED_AGAIN
            and memory.last_attempts[key].state is AttemptState.REJECTED
        }
        self._wrapped_make: Make = self.make
        #: By group: its rows that have a slot and are not begun, and the tasks of those that are.
        self._granted = defaultdict[int, asyncio.Queue[PlannedRow]](asyncio.Queue)
        self._rows = defaultdict[int, list[asyncio.Task[None]]](list)
        #: The groups that begin no more rows.
        self._over: set[int] = set()
        #: Not set while nothing new may be begun.
        self._going = asyncio.Event()
        self._going.set()
        writer.heed(lambda pause: self.brake(paused(pause)), lambda: api.is_quiet)

    def let_go(self) -> None:
        """Release the plan and its rows once all have ended, as what is done next takes memory of its own."""
        self.plan, self.groups = replace(self.plan, rows=(), items={}), []
        for record in (self._rows, self._granted, self._shared, self._results, self._failures):
            record.clear()

    def made(self, group: Group) -> int:
        return sum(row.product in self._results for row in group.rows)

    def failures(self, group: Group) -> list[tuple[PlannedRow, RowFailed]]:
        """Return the rows of a group that have failed so far, each with its first failure."""
        failures = (
            (row, [self._failures[key] for key in row.keys if key in self._failures]) for row in group.rows
        )
        return [(row, failed[0]) for row, failed in failures if failed]

    # -- rows

    async def drive(self, make: Make | None = None, make_group: MakeGroup | None = None) -> None:
        """Drive all rows to their end, group by group: each begins once all rows of the one before it have their slots.

        `make` makes each item, and `make_group` drives each group: by default the engine itself. With `make_group`,
        `make` makes only the references that several groups share. A row's failure raises nothing. A ledger that takes
        no more writes halts the run, which cannot be closed then.
        """
        if make_group is not None:
            await self.make_shared_references(make or self.make)
            make = None
        self._wrapped_make = make or self.make
        async with asyncio.TaskGroup() as groups:
            for rows in self._in_order():
                await self._window.emptied()
                for row, group in rows:
                    if await self._grant_slot(row, group):
                        groups.create_task(self._await_group(group, make_group or self.drive_group))
        await self._withhold_the_rest()

    async def _grant_slot(self, row: PlannedRow, group: Group) -> bool:
        """Wait for a slot and give it to a row, unless its group takes no more; return whether this begins the group.

        So a group begins with its first write: its first row has a slot by then.
        """
        await self._may_begin()
        await self._window.take_slot()
        is_first = group.number not in self._granted
        if group.number in self._over or (is_first and self.halt.is_total):
            self._window.free_slot()
            return False
        self._granted[group.number].put_nowait(row)
        return is_first

    def _in_order(self) -> list[list[tuple[PlannedRow, Group]]]:
        """Return the rows in the order of their slots: group by group, and what failed before after all groups.

        Rows that were refused before come last, apart from all others: if they are refused alike again, they halt the
        run, which must not keep any other row from being made. In a group, rows that share a pattern follow one
        another, so that a stop interrupts at most one such pattern.
        """
        places = []
        for group in self.groups:
            turns = [self._turn(row) for row in group.rows]
            first = dict[ItemKey, int]()
            for row, turn in zip(group.rows, turns, strict=True):
                shared = first.setdefault(self.plan.first_pattern(row), row.position)
                late = max(turn, _NEW)
                places.append((late, min(turns), group.number, turn, shared, row.position, row, group))
        parts = groupby(sorted(places), key=lambda place: place[0] == _REFUSED_BEFORE)
        return [[place[-2:] for place in part] for _, part in parts]

    def _turn(self, row: PlannedRow) -> int:
        """Return a row's turn in its group: rows that are under way go first, in the slots that they have.

        Then come those whose pattern exists, so that a stop leaves few patterns without their products. What failed
        before comes late: by then others have shown whether it is the item's own fault.
        """
        reasons = {self.plan.items[key].reason for key in row.keys}
        if Reason.TRIED_AGAIN in reasons:
            is_refused = not self._refused_before.isdisjoint(row.keys)
            return _REFUSED_BEFORE if is_refused else _FAILED_BEFORE
        if Reason.CONTINUED in reasons:
            return _UNDER_WAY
        has_pattern = self.plan.items[self.plan.first_pattern(row)].reason is Reason.DONE
        return _ON_A_PATTERN if has_pattern else _NEW

    async def make_shared_references(self, make: Make) -> None:
        """Make the references that several groups share, before any of them begins."""
        self._wrapped_make = make
        users = Counter(
            key for group in self.groups for key in {key for row in group.rows for key in row.keys}
        )
        shared = (self.plan.items[key] for key, count in users.items() if count > 1)
        references = [
            planned.item for planned in shared if planned.item.stage is Stage.REFERENCE and planned.is_to_do
        ]
        await asyncio.gather(*map(self._make_shared, references))

    async def _await_group(self, group: Group, make_group: MakeGroup) -> None:
        """Call `make_group`, then wait for the rows that the group has begun, whatever became of that call."""
        fault = await _fault_of(make_group(group))
        self._over.add(group.number)
        granted, rows = self._granted[group.number], self._rows[group.number]
        for _ in range(granted.qsize()):
            granted.get_nowait()
            self._window.free_slot()
        if len(rows) < len(group.rows):
            self._lose_task_run(group.describe(), fault)
        for error in await asyncio.gather(*rows, return_exceptions=True):
            if error is not None:
                raise error

    async def drive_group(self, group: Group) -> None:
        """Begin each row of a group once it has a slot, and wait for their ends."""
        rows, granted = self._rows[group.number], self._granted[group.number]
        for _ in group.rows:
            rows.append(asyncio.create_task(self._drive_row(await granted.get())))
        await asyncio.wait(rows)

    def widen(self, slots: int) -> None:
        """Let up to so many rows be under way at once; the window never shrinks."""
        self._window.widen(slots)

    async def _drive_row(self, row: PlannedRow) -> None:
        """Make a row's reference, pattern, refinements and product. What rows share is made once, by the first."""
        assert row.product is not None, "a refused row is not driven"
        try:
            for item in (self.plan.items[key].item for key in row.keys if self.plan.items[key].is_to_do):
                if item.parent_key is not None and item.parent_key not in self._results:
                    return
                if item.key == row.product:
                    await self._make_unless_halted(item)
                    return
                await self._make_shared(item)
        finally:
            self._window.free_slot()
            self._count_row(row.product)

    def _count_row(self, product: ItemKey) -> None:
        # Where the product is not to do, takes were made for a person to choose from.
        is_unmade = self.plan.items[product].is_to_do and product not in self._results
        if is_unmade and self.halt.reason is not None:
            self.progress.left_out += 1
            return
        self.progress.ended += 1
        self.progress.failed += is_unmade

    # -- items

    async def _make_shared(self, item: Item) -> None:
        """Make an item once for all rows that wait for it; none of them cancels it for the others."""
        if item.key not in self._shared:
            self._shared[item.key] = asyncio.create_task(self._make_unless_halted(item))
        await asyncio.shield(self._shared[item.key])

    async def _make_unless_halted(self, item: Item) -> None:
        """Make an item unless its stage is halted. A failure is recorded, and a failure of the ledger halts the run."""
        await self._may_begin()
        await self._attempts.take_turn(item)
        suspicions, is_put_off = self._alike.suspicions, False
        self.progress.in_flight += 1
        try:
            if self.halt.halts(item.stage):
                return
            fault = await _fault_of(self._wrapped_make(item))
            if fault is not None and not isinstance(fault, PatternmillError):
                await self._follow_lost(item, fault)
            is_put_off = not self._has_ended(item) and suspicions != self._alike.suspicions
        finally:
            self._attempts.leave_turn(item)
            self.progress.in_flight -= 1
            self._brake.wake()
            if all(map(self.halt.forbids_sending, ROW_STAGES)):
                self._api.drain()
        if is_put_off:
            await self._make_unless_halted(item)

    async def _may_begin(self) -> None:
        """Wait while the run begins nothing and may still go on."""
        await self._going.wait()
        await self._alike.settled.wait()

    def _has_ended(self, item: Item) -> bool:
        return item.key in self._results or item.key in self._failures

    async def _follow_lost(self, item: Item, fault: BaseException) -> None:
        """Follow what was begun by a wrapper that was cancelled or refused; leave the rest for the next run."""
        if self._has_ended(item):
            return
        with suppress(PatternmillError):
            if await self._attempts.is_open(item):
                await self.make(item)
            else:
                self._lose_task_run(item.describe(), fault)

    def _lose_task_run(self, what: str, fault: BaseException | None) -> None:
        """Remember that nothing was begun for an item or a group because its task run was lost."""
        why = type(fault).__name__ if fault is not None else "it ended at once"
        logger.warning("The task run of %s was lost: %s", what, why)
        message = f"The task run of {what} was cancelled or refused by Prefect ({why}), and nothing was begun for it."
        self.halt.begin(HaltReason(Outcome.FAILED, "task_run_lost", message), stages=())

    async def make(self, item: Item) -> str:
        """Make an item, attempt by attempt: intent, create, job, result. Return the ID of what was made.

        Raises RowFailed when the item ended otherwise, and BudgetReached or NotStarted when it could not be begun; the
        same again when called again. Raises LedgerError, and halts the run, when the ledger takes no more writes.
        """
        if item.key in self._failures:
            raise self._failures[item.key]
        if item.key in self._results:
            return self._results[item.key]
        try:
            return self._result(item, await self._make_attempts(item))
        except LedgerError as fault:
            self.halt.begin(HaltReason(Outcome.FAILED, fault.code, str(fault)))
            raise

    async def _make_attempts(self, item: Item) -> Attempt:
        """Make attempts until one is the last; return it. After a failure its job is asked for once more."""
        planned = self.plan.items[item.key]
        is_retried = planned.reason is Reason.RETRIED
        attempt = await self._send(item, retried=is_retried)
        failed_before = attempt.state is AttemptState.FAILED and attempt.attempt == planned.after
        # A person's retry counts its attempts from the beginning, also after a final failure.
        renewed = 0
        if is_retried:
            renewed = attempt.attempt if failed_before else attempt.attempt - 1
        if not failed_before:
            attempt = await self._follow(item, attempt)
        while attempt.state is AttemptState.FAILED and attempt.attempt < self.options.attempts + renewed:
            is_retry = is_retried and attempt.attempt == planned.after
            if attempt.error_code in FINAL_CODES and not is_retry:
                break
            await self._may_begin()
            attempt = await self._ask_once_more(item, attempt)
            if attempt.state is not AttemptState.FAILED:
                break
            try:
                attempt = await self._send(item, after=attempt.attempt)
            except (BudgetReached, NotStarted):
                return await self._attempts.withhold(item, attempt)
            self.progress.tried_again += 1
            attempt = await self._follow(item, attempt)
        return attempt

    async def _send(self, item: Item, *, retried: bool = False, after: int = 0) -> Attempt:
        """Send the attempt that is open or due; return it as the answer leaves it.

        The item's turn lasts from before its intent until its answer is on record.
        """
        await self._attempts.take_turn(item)
        try:
            attempt, sent_ago = await self._attempts.begin(item, self._results, retried=retried, after=after)
            if attempt.state is not AttemptState.INTENDED:
                return attempt
            with self._alike.sending(item):
                request = request_of(item, attempt, sent_ago)
                end = await self._api.create(request, partial(self._may_send, item.stage))
                return await self._attempts.record_create(item, attempt, end)
        finally:
            self._attempts.leave_turn(item)

    async def _may_send(self, stage: Stage) -> bool:
        await self._writer.confirm_lease()
        return self._alike.settled.is_set() and not self.halt.forbids_sending(stage)

    async def _follow(self, item: Item, attempt: Attempt) -> Attempt:
        if attempt.state is AttemptState.ACCEPTED:
            ended = await self._ask_for_end(item, attempt)
            attempt = await self._attempts.record_end(item, attempt, ended)
        self._brake.note(item, attempt.state)
        return attempt

    async def _ask_for_end(self, item: Item, attempt: Attempt, *, once: bool = False) -> JobEnd:
        assert attempt.job_id is not None, "an accepted attempt has a job ID"
        age = timedelta(seconds=self._age(attempt))
        return await self._api.follow(attempt.job_id, item.stage, age=age, once=once)

    def _age(self, attempt: Attempt) -> float:
        """Return the seconds since the service accepted an attempt."""
        return max(0.0, self._writer.now() - (attempt.accepted_at or 0.0))

    async def ask_once(self, item: Item, attempt: Attempt) -> bool:
        """Ask once for a job that nothing in the plan waits for, and record its end; return whether it has ended."""
        ended = await self._ask_for_end(item, attempt, once=True)
        if isinstance(ended, Refusal) and ended.state is None:
            return False
        await self._attempts.record_end(item, attempt, ended)
        return True

    async def _ask_once_more(self, item: Item, attempt: Attempt) -> Attempt:
        """Return a failed attempt as its job is now: still failed where the service says so again, or on a halt."""

        def is_halted() -> bool:
            return self.halt.halts(item.stage)

        while attempt.state is AttemptState.FAILED and not is_halted():
            may_test = self._age(attempt) >= TESTED_AFTER
            if why := await self._brake.wait(item, is_halted, may_test=may_test):
                return await self._attempts.hold_back(attempt, why)
            attempt = await self._ask(item, attempt)
            if attempt.state is AttemptState.FAILED and not self._brake.holds(item):
                break
            if attempt.error_code is None:
                attempt = await self._follow(item, attempt)
        return attempt

    async def _ask(self, item: Item, failed: Attempt) -> Attempt:
        """Ask for a failed job once more, with a few tries; without a clear answer the next run asks for it."""
        assert failed.job_id is not None, "what has no job is not asked about"
        answer = "the service does not know it any more."
        try:
            if (job := await self._api.job(failed.job_id)) is not None:
                return await self._attempts.learn(item, failed, job)
        except ServiceStopped as stopped:
            answer = stopped.message
        why = f"Job {failed.job_id} failed ({failed.error}); asked once more: {answer} `patternmill retry` asks again."
        return await self._attempts.keep_waiting(failed, NOT_CONFIRMED, why)

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

    # -- the end

    async def _withhold_the_rest(self) -> None:
        """Mark rows as waiting, not failed, when their next attempt was due and this run did not get to it."""
        tried_again = (item for item in self.plan.items.values() if item.reason is Reason.TRIED_AGAIN)
        left = [planned for planned in tried_again if not self._has_ended(planned.item)]
        with suppress(PatternmillError):
            await asyncio.gather(*map(self._attempts.withhold_planned, left))

    def halt_if_too_many_failed(self) -> None:
        failed = self.progress.items_failed
        ended = self.progress.made.total() + failed
        if self.options.too_many(failed, ended):
            why = f"{failed:,} of {plural(ended, 'item')} failed, which is more than --max-failures allows."
            self.halt.begin(HaltReason(Outcome.FAILED, "too_many_failures", why))

    def brake(self, reason: HaltReason) -> None:
        """Begin nothing new and send no create; follow the jobs in flight to their end."""
        self.halt.begin(reason)
        self.pause(False)
        self._brake.wake()
        self._api.drain()

    def stop(self, why: str) -> None:
        """Stop for a person: begin nothing new, send no create, and follow the jobs in flight while the drain lasts."""
        self.brake(HaltReason(Outcome.CANCELLED, STOPPED, why))
        asyncio.get_running_loop().call_later(self.options.drain.total_seconds(), self.abandon)

    def pause(self, is_paused: bool) -> None:
        """Begin nothing new, or go on; what is in flight is finished all the same. A halted run is not paused."""
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


async def _fault_of(making: Awaitable[Any]) -> BaseException | None:
    """Await `making` in a task of its own; return what it raised, including a cancellation and signals of Prefect."""
    task = asyncio.ensure_future(making)
    await asyncio.wait({task})
    return asyncio.CancelledError() if task.cancelled() else task.exception()
