"""The engine: drives the rows of a plan to their ends, all inside one window that never drains between shards."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from patternmill.catalog.problems import plain
from patternmill.engine.depth import Depth, Group
from patternmill.engine.halt import Halt, HaltReason
from patternmill.engine.items import ItemMaker, body_of
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Progress
from patternmill.errors import LedgerError, PatternmillError, RowFailed
from patternmill.identifiers import ItemKey
from patternmill.ledger.records import Attempt
from patternmill.planning.items import Item, PatternItem, ProductItem
from patternmill.planning.plan import TO_DO, Plan, PlannedRow, Reason
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome, Stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """Rows of one plan that are driven, and shown, together."""

    number: int
    rows: tuple[PlannedRow, ...]

    def describe(self) -> str:
        """What it holds, as a spreadsheet counts: the name of its flow run."""
        return rows_named(self.rows)


@dataclass(frozen=True)
class Steps:
    """How the two steps are taken: the flow hands in Prefect tasks, a test the mill's own methods.

    What they return or raise is for the screen; the mill knows from the ledger how an item ended.
    """

    make_pattern: Callable[[PatternItem], Awaitable[object]]
    make_product: Callable[[ProductItem], Awaitable[object]]


def rows_named(rows: Sequence[PlannedRow]) -> str:
    """What a flow run holds, as a spreadsheet counts."""
    first = min(rows, key=lambda row: row.position)
    last = max(rows, key=lambda row: row.position)
    lines = f"rows {first.entry.record.line}-{last.entry.record.line}"
    return (
        f"{lines} · {plain(first.sku)} … {plain(last.sku)}"
        if len(rows) > 1
        else f"{lines} · {plain(first.sku)}"
    )


class Engine:
    """One run's engine. `make_pattern` and `make_product` are the steps; `drive` takes them for a shard's rows."""

    def __init__(
        self,
        plan: Plan,
        memory: Callable[[ItemKey], Attempt | None],
        maker: ItemMaker,
        api: StudioApi,
        options: RunOptions,
        halt: Halt,
        progress: Progress,
    ) -> None:
        self.plan = plan
        self.options = options
        self.halt = halt
        self.progress = progress
        self._memory = memory
        self._maker = maker
        self._api = api
        self._depth = Depth(options.max_in_flight)
        self._patterns: dict[ItemKey, asyncio.Task[Attempt | None]] = {}
        self._ends: dict[ItemKey, Attempt] = {}
        self._failed: dict[ItemKey, RowFailed] = {}
        #: Rows that are driven and wait for their turn.
        self._queued = 0
        self._room = asyncio.Condition()
        self._driven: set[int] = set()
        self.shards = _cut(plan, options.shard_rows)
        self._count_rows()

    @property
    def own_steps(self) -> Steps:
        """The steps without Prefect."""
        return Steps(self.make_pattern, self.make_product)

    def shard(self, number: int) -> Shard:
        """A shard by its number, from 1."""
        return self.shards[number - 1]

    def driven(self, shard: Shard) -> bool:
        """Whether a shard's rows were, or are being, driven."""
        return shard.number in self._driven

    def made(self, shard: Shard) -> int:
        """How many of a shard's products are there."""
        return sum(row.product in self._ends for row in shard.rows)

    def ended_items(self) -> Iterator[tuple[Item, RowFailed | None]]:
        """What was asked for in this run and came to its end: made, or failed with this."""
        patterns = [planned.item for planned in self.plan.patterns.values()]
        products = [planned.item for planned in self.plan.products.values()]
        items: tuple[Item, ...] = (*patterns, *products)
        for item in items:
            if item.key in self._ends or item.key in self._failed:
                yield item, self._failed.get(item.key)

    async def opened_shards(self) -> AsyncIterator[Shard]:
        """The shards, each before the rows that wait could fail to fill the window while it opens."""
        enough = self.options.max_in_flight + 2 * self.options.shard_rows
        for shard in self.shards:
            async with self._room:
                await self._room.wait_for(lambda: self._queued < enough)
            if self.halt.holds(Stage.PATTERN) and self.halt.holds(Stage.PRODUCT):
                return
            self._queued += len(shard.rows)
            yield shard

    async def drive(self, shard: Shard, steps: Steps) -> None:
        """Bring every row of a shard to its end; a shard that was driven already is left alone.

        Raises nothing for a row. A ledger that takes no more writes halts the run, which cannot be closed then.
        """
        if shard.number in self._driven:
            return
        self._driven.add(shard.number)
        shared = Counter(row.pattern for row in shard.rows)
        for pattern, rows in shared.items():
            if _is_there(self.plan, pattern):
                self._depth.hold((shard.number, pattern, rows))
        ways = (
            self._drive_row(row, steps, (shard.number, row.pattern, shared[row.pattern]))
            for row in shard.rows
        )
        for fault in await asyncio.gather(*ways, return_exceptions=True):
            if isinstance(fault, LedgerError):
                # The run's end will say so; until then nothing new is begun.
                self.halt.begin(HaltReason(Outcome.FAILED, fault.code, str(fault)))
            elif fault is not None:
                raise fault

    async def make_pattern(self, item: PatternItem) -> str:
        """Make one pattern and return its ID. Raises RowFailed, or BudgetReached."""
        return await self._make(item, None)

    async def make_product(self, item: ProductItem) -> str:
        """Build one product on its pattern, which exists, and return its ID. Raises RowFailed, or BudgetReached."""
        pattern = self._ends.get(item.pattern_key) or self._memory(item.pattern_key)
        assert pattern is not None, "a product is begun after its pattern has succeeded"
        return await self._make(item, pattern.result_id)

    def stop(self, why: str) -> None:
        """A person's stop: nothing new is begun, no create is sent; what runs is followed while the drain lasts."""
        self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", why))
        self._api.drain()

    def abandon(self) -> None:
        """End the drain: whatever is still asked for keeps its job ID for the next run."""
        self._api.abandon()

    # -- inside

    async def _make(self, item: Item, pattern_id: str | None) -> str:
        planned = (
            self.plan.patterns[item.key] if isinstance(item, PatternItem) else self.plan.products[item.key]
        )
        if item.key in self._failed:
            # Asked once more after its step broke: it has come to its end all the same.
            raise self._failed[item.key]
        retried = planned.reason is Reason.RETRIED
        try:
            attempt = await self._maker.make(item, body_of(item, pattern_id), retried=retried)
        except RowFailed as failed:
            self._failed[item.key] = failed
            raise
        self._ends[item.key] = attempt
        assert attempt.result_id is not None, "what succeeded has an ID"
        return attempt.result_id

    async def _drive_row(self, row: PlannedRow, steps: Steps, group: Group) -> None:
        assert row.pattern is not None and row.product is not None, "a refused row is not driven"
        waiting = _Once(self._leave_queue)
        try:
            pattern = await self._pattern_of(row.pattern, steps, group, waiting)
            if pattern is not None:
                await self._build(row.product, steps)
        finally:
            await waiting()
            self._depth.leave(group)
            self._row_ended(row.product)

    async def _pattern_of(
        self, key: ItemKey, steps: Steps, group: Group, waiting: Callable[[], Awaitable[None]]
    ) -> Attempt | None:
        """The pattern's succeeded attempt; made once, whichever of its rows comes first."""
        if _is_there(self.plan, key):
            return self._memory(key)
        if key not in self._patterns:
            self._patterns[key] = asyncio.create_task(self._generate(key, steps, group, waiting))
        return await asyncio.shield(self._patterns[key])

    async def _generate(
        self, key: ItemKey, steps: Steps, group: Group, waiting: Callable[[], Awaitable[None]]
    ) -> Attempt | None:
        planned = self.plan.patterns[key]
        if planned.reason not in TO_DO:
            return None
        await self._depth.enter(group)
        async with self._slot(Stage.PATTERN):
            await waiting()
            if not self.halt.holds(Stage.PATTERN):
                item = planned.item
                await _taken(lambda: steps.make_pattern(item), lambda: self.make_pattern(item))
        return self._ends.get(key)

    async def _build(self, key: ItemKey, steps: Steps) -> None:
        async with self._slot(Stage.PRODUCT):
            if not self.halt.holds(Stage.PRODUCT):
                item = self.plan.products[key].item
                await _taken(lambda: steps.make_product(item), lambda: self.make_product(item))

    @asynccontextmanager
    async def _slot(self, stage: Stage) -> AsyncIterator[None]:
        await self._api.window.acquire(stage)
        self.progress.in_flight += 1
        try:
            yield
        finally:
            self.progress.in_flight -= 1
            self._api.window.release()

    async def _leave_queue(self) -> None:
        async with self._room:
            self._queued -= 1
            self._room.notify_all()

    def _row_ended(self, product: ItemKey) -> None:
        self.progress.ended += 1
        if product not in self._ends and self.halt.reason is None:
            self.progress.failed += 1

    def _count_rows(self) -> None:
        progress, products = self.progress, self.plan.product_counts()
        progress.rows = len(self.plan.rows)
        progress.refused = self.plan.refused()
        progress.done_before = products[Reason.DONE]
        progress.to_do = sum(count for reason, count in products.items() if reason in TO_DO)


def _cut(plan: Plan, size: int) -> list[Shard]:
    """The rows that need work, cut into shards.

    In order; but rows of one pattern stay together, and those whose pattern is there already go first: so that
    a stop finds few patterns without their products.
    """
    groups: dict[ItemKey | None, list[PlannedRow]] = {}
    for row in plan.to_do():
        groups.setdefault(row.pattern, []).append(row)
    shards: list[list[PlannedRow]] = [[]]
    for group in sorted(groups.values(), key=lambda rows: _turn(plan, rows[0])):
        for first in range(0, len(group), size):
            part = group[first : first + size]
            if shards[-1] and len(shards[-1]) + len(part) > size:
                shards.append([])
            shards[-1] += part
    return [Shard(number, tuple(rows)) for number, rows in enumerate(shards, start=1) if rows]


def _turn(plan: Plan, row: PlannedRow) -> int:
    """What failed before comes last: by then others have shown whether it is the item's own fault."""
    assert row.pattern is not None and row.product is not None, "a row to do has items"
    reasons = (plan.patterns[row.pattern].reason, plan.products[row.product].reason)
    if Reason.TRIED_AGAIN in reasons:
        return 2
    return 0 if _is_there(plan, row.pattern) else 1


def _is_there(plan: Plan, pattern: ItemKey | None) -> bool:
    """Whether a pattern was made by an earlier run."""
    return pattern is not None and plan.patterns[pattern].reason is Reason.DONE


class _Once:
    """Calls a coroutine function the first time only."""

    def __init__(self, call: Callable[[], Awaitable[None]]) -> None:
        self._call: Callable[[], Awaitable[None]] | None = call

    async def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            await call()


async def _taken(step: Callable[[], Awaitable[object]], own: Callable[[], Awaitable[object]]) -> None:
    """Take a step whose failure is in the ledger already; only a ledger that cannot be trusted goes further.

    A step that broke for a reason of its own wrapping is taken without it: the ledger keeps it from being paid twice.
    """
    try:
        try:
            await step()
        except PatternmillError:
            raise
        except Exception:
            logger.exception("A step broke outside of the engine; it is taken without its wrapping.")
            await own()
    except LedgerError:
        raise
    except PatternmillError:
        pass
