"""Begins the rows of a plan, at most so many at once, and shares what several of them are built on."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from patternmill.engine import Engine
from patternmill.errors import Halted, Refusal
from patternmill.items import Item, Row
from patternmill.plan import BOUGHT, Action, Plan, Step
from patternmill.request import Agreement, Question
from patternmill.states import Attempt, Outcome, State

#: The most items that have a task run each; above, the least rows of a group that has one.
MOST_TASK_RUNS, LEAST_ROWS = 500, 20
_log = logging.getLogger(__name__)


class Work:
    """One item to make. No dataclass: Prefect walks through the fields of those among a task's parameters."""

    def __init__(self, engine: Engine, step: Step, parent_id: str | None, built_on: object) -> None:
        self.engine, self.step, self.parent_id = engine, step, parent_id
        #: What the maker returned for the item that this one is built on.
        self.built_on = built_on
        self.attempt: Attempt | None = None
        self.is_begun = False

    @property
    def label(self) -> str:
        return f"{self.step.item.stage} {self.step.item.label}"

    async def do(self) -> Attempt:
        """Make the item. Whatever goes wrong halts the run; what was bought by then is in the ledger."""
        self.is_begun = True
        try:
            self.attempt = await self.engine.make(self.step, self.parent_id)
        except Refusal as reason:
            self.engine.halt.set(reason)
            raise
        except Exception as error:
            _log.exception("Unexpected error with %s", self.label)
            self.engine.halt.set(
                Halted(Outcome.FAILED, "unexpected", f"{self.label}: {error!r}.", "Report it.")
            )
            raise
        return self.attempt


class Group:
    """Rows that one task run makes. They come as they have their turn; `None` is the last."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.coming: asyncio.Queue[Coroutine[Any, Any, Attempt | None] | None] = asyncio.Queue()
        self.is_begun = False

    async def do(self) -> list[Attempt | None]:
        """Make each row as it comes, and return their last attempts."""
        self.is_begun = True
        rows: list[asyncio.Task[Attempt | None]] = []
        async with asyncio.TaskGroup() as running:
            while (row := await self.coming.get()) is not None:
                rows.append(running.create_task(row))
        return list(map(asyncio.Task.result, rows))


class Maker:
    """How work is shown while it is done, and who is asked: here not at all, and nobody."""

    async def item(self, work: Work) -> object:
        return await work.do()

    async def group(self, group: Group) -> object:
        return await group.do()

    def step(self, step: Any) -> Any:
        return step

    async def named(self, run: Any) -> None:
        """Take note of which catalog a run is about."""

    async def begun(self, run: Any, plan: str) -> None:
        """Take note that a run has begun, and of the lines of its plan."""

    async def elsewhere(self, run: Any, plan: Plan, rows: list[Row], here: "Fanout") -> list[Row]:
        """Have other processes make rows, and return those that are left; `here` makes some first."""
        return rows

    async def ask(self, question: Question) -> Agreement | None:
        return None

    def watching(self, run: Any) -> AbstractAsyncContextManager[None]:
        """Watch a run while it makes its rows."""
        return contextlib.nullcontext()


UNSHOWN = Maker()
#: The last attempt at an item, and what the maker returned for it.
Made = tuple[Attempt | None, object]


class Progress(Protocol):
    """Counts the items that have been made or followed to their end."""

    made: int


class Fanout:
    """The rows of one plan while they are made."""

    def __init__(self, plan: Plan, engine: Engine, maker: Maker, window: int, progress: Progress) -> None:
        self._plan, self._engine, self._maker, self._progress = plan, engine, maker, progress
        self._slots = asyncio.Semaphore(window)
        #: What several rows are built on, once the first of them begins it: kept to the end, so no more than those.
        self._shared: dict[str, asyncio.Task[Made] | None] = {}

    async def make(self, rows: Iterable[Row], others: Iterable[Attempt]) -> None:
        """Make the rows, and follow other jobs of the catalog. Ends early where the run is halted."""
        try:
            await self._engine.halt.until_over(asyncio.create_task(self._make_all(list(rows), list(others))))
        finally:
            begun = list(filter(None, self._shared.values()))
            for shared in begun:
                shared.cancel()
            await asyncio.gather(*begun, return_exceptions=True)

    async def _make_all(self, rows: list[Row], others: list[Attempt]) -> None:
        seen = set[str]()
        for row in rows:
            for item in row.chain:
                if item.id in seen:
                    self._shared[item.id] = None
                seen.add(item.id)
        del seen
        as_groups = self._plan.work > MOST_TASK_RUNS
        size = max(LEAST_ROWS, -(-len(rows) // MOST_TASK_RUNS)) if as_groups else len(rows)
        async with asyncio.TaskGroup() as running:
            for attempt in others:
                running.create_task(self._follow(attempt))
            for start in range(0, len(rows), size or 1):
                group = Group(f"rows {rows[start].number} to {rows[min(start + size, len(rows)) - 1].number}")
                made = None
                for row in rows[start : start + size]:
                    await self._slots.acquire()
                    if self._engine.halt:
                        break
                    made = made or running.create_task(
                        self._group(group, self._maker.group if as_groups else Group.do)
                    )
                    group.coming.put_nowait(self._row(row, alone=not as_groups))
                group.coming.put_nowait(None)
                if self._engine.halt:
                    return

    async def _follow(self, attempt: Attempt) -> None:
        """Follow a job that no row names. What goes wrong halts the run, as it does with rows."""
        try:
            await self._engine.follow(attempt)
        except Refusal as reason:
            self._engine.halt.set(reason)

    async def _group(self, group: Group, make: Any) -> None:
        """Make a group, unshown where whoever shows it refuses to begin it."""
        with contextlib.suppress(Exception):
            await make(group)
        if not group.is_begun:
            await group.do()

    async def _row(self, row: Row, *, alone: bool) -> Attempt | None:
        """Make what a row stands on and then its product, and return the last attempt."""
        make = self._maker.item if alone else Work.do
        made: Made = None, None
        try:
            for item in row.chain:
                if made[0] and made[0].state is not State.SUCCEEDED:
                    break
                if made[0] is None and item is not row.chain[0]:
                    break
                made = await self._item(row, item, make, made)
            return made[0]
        finally:
            self._slots.release()

    async def _item(self, row: Row, item: Item, make: Any, below: Made) -> Made:
        """Return what became of an item; one that rows share is made by the first of them."""
        if item.id not in self._shared:
            return await self._make(row, item, make, below)
        if (shared := self._shared[item.id]) is None:
            shared = self._shared[item.id] = asyncio.create_task(self._make(row, item, make, below))
        return await asyncio.shield(shared)

    async def _make(self, row: Row, item: Item, make: Any, below: Made) -> Made:
        step, admission = self._plan.steps[item.id], self._engine.admission
        if step.action not in (*BOUGHT, Action.FOLLOW) or self._engine.halt:
            return step.attempt, None
        if step.action in BOUGHT:
            if item is row.product and self._engine.purchases.is_rejected(row.pattern, row.take):
                return step.attempt, None
            may_begin = True
            for one in row.chain:
                may_begin &= self._plan.steps[one.id].action not in BOUGHT or admission.may_begin(one.stage)
            if not may_begin or not await admission.admit(item.stage):
                return step.attempt if item is row.product else None, None
            await self._engine.client.pace.creates[item.stage].turn()
        work = Work(self._engine, step, below[0].result_id if below[0] else None, below[1])
        shown: object = None
        with contextlib.suppress(Exception):  # it has halted the run
            shown = await make(work)
        if not work.is_begun:  # whoever shows it refused to begin it
            with contextlib.suppress(Exception):
                await work.do()
        self._progress.made += 1
        return work.attempt, shown
