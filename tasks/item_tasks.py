"""Items in the Prefect UI: a task run each in the flow run of its shard; in a very large run, a task run each shard.

The engine makes them and never waits for this. Prefect's task engine holds so many task runs open; the rest are
recorded by events alone, at their beginning and their end. What is made while its shard has no flow run, or while too
many events are pending, is recorded once it has ended, with its true times.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectSignal
from prefect.results import get_result_store
from prefect.states import Cancelled
from prefect.task_engine import run_task_async

from patternmill.engine.engine import Screen
from patternmill.engine.shards import Shard
from patternmill.errors import BudgetReached, NotStarted, PatternmillError, RowFailed
from patternmill.planning.items import Item
from patternmill.runs.run import Run
from patternmill.states import Stage
from patternmill.text import plural
from prefect_host.event_batches import EventsBatch
from prefect_host.internals import emit, is_for_people
from prefect_host.task_runs import TaskRunRecord, ending_event, running_event
from tasks.item_records import item_record, item_task_run_id, open_item_record, shard_record, shows_items
from tasks.markup import line, logged
from tasks.prefect_states import failed_state
from tasks.run_events import item_failed

logger = logging.getLogger(__name__)

#: How long the first items of a shard wait for its flow run, from the shard's opening on.
_PATIENCE_SECONDS = 1.0
#: A task run that began so much later than its item gets the true times at its end.
_LATE_SECONDS = 0.1
#: So many task runs at once are held open by Prefect's task engine, which takes several times the CPU of two events.
_MOST_HELD_OPEN = 16
#: How often late task runs are recorded, and the counts of shards move.
_RECORD_SECONDS = 0.5
_COUNTS_SECONDS = 3.0
#: How long the flow runs of shards may take to end after their last row.
_ENDING_SECONDS = 30.0
#: How long late task runs may wait at the end of a run for a server that accepts none.
_CLOSING_SECONDS = 10.0

# They run once an item, and Prefect's overhead is most of what a row costs. So there is one opaque parameter, because
# Prefect walks through each, and one result record that all share.


class ItemTask:
    """A task run's one parameter: Prefect reads its label, and nothing else of it."""

    __slots__ = ("item", "label", "made", "run")

    def __init__(self, run: Run, item: Item, made: asyncio.Task[str]) -> None:
        self.run, self.item, self.made, self.label = run, item, made, item.describe()


async def make_item(making: ItemTask) -> Any:
    """The task run's state: a failure is a state, without a traceback, because the ledger has its details."""
    try:
        # Shielded: what becomes of the task run stops no purchase half-way.
        await asyncio.shield(making.made)
    except (BudgetReached, NotStarted) as reason:
        return Cancelled(name="NotStarted", message=line(str(reason)), data=_no_result())
    except RowFailed as failed:
        item_failed(making.run, making.item, failed)
        state = failed_state(failed)
        state.data = _no_result()
        return state
    return _no_result()


#: Each kind of item has a task of its own, named after what it makes.
_TASKS = {
    stage: task(
        name=stage.value,
        task_run_name="{making.label}",
        retries=0,
        cache_policy=NO_CACHE,
        persist_result=False,
    )(make_item)
    for stage in Stage
}

#: What shows the shards of this process: how the flow run of a shard finds it.
current_screen: ContextVar[ItemScreen] = ContextVar("current_screen")

#: Runs a shard's flow, until all its rows have ended.
ShardFlow = Callable[[Shard], Awaitable[object]]


def screen_of(run: Run, shard_flow: ShardFlow) -> ItemScreen | ShardScreen:
    """How the rows of a run are shown; enter it in the run's flow, while they are driven."""
    # Adding it again changes nothing.
    logging.getLogger("prefect.task_runs").addFilter(is_for_people)
    return ItemScreen(run, shard_flow) if shows_items(run) else ShardScreen(run)


@dataclass
class _ShownShard:
    shard: Shard
    #: Inside its flow run, once that has begun.
    context: Context | None = None
    flow_run_id: UUID | None = None
    #: It has a flow run, or is not waited for any more.
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Its task runs that go on.
    showing: set[asyncio.Task[None]] = field(default_factory=set)


class ItemScreen(Screen):
    """A nested flow run each shard, a task run each item."""

    def __init__(self, run: Run, shard_flow: ShardFlow) -> None:
        self.run = run
        self._shard_flow = shard_flow
        self._shards: dict[int, _ShownShard] = {}
        self._flows: set[asyncio.Task[None]] = set()
        self._held_open = 0
        #: Items that ended without a task run.
        self._late: deque[tuple[_ShownShard, Item]] = deque()

    async def __aenter__(self) -> Self:
        current_screen.set(self)
        self._recording = asyncio.create_task(self._keep_recording())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for shown in self._shards.values():
            shown.closed.set()
            shown.ready.set()
            if shown.showing:
                await asyncio.wait(shown.showing, timeout=_ENDING_SECONDS)
        if self._flows:
            _, left = await asyncio.wait(self._flows, timeout=_ENDING_SECONDS)
            for flow in left:
                flow.cancel()
        self._recording.cancel()
        await self._record_rest()

    def open(self, shard: Shard) -> None:
        shown = self._shards[shard.number] = _ShownShard(shard)
        asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, shown.ready.set)
        self._flows.add(asyncio.create_task(self._show_shard(shown)))

    def show(self, shard: Shard, item: Item, making: asyncio.Task[str]) -> None:
        shown = self._shards[shard.number]
        showing = asyncio.create_task(self._show(shown, item, making))
        shown.showing.add(showing)
        showing.add_done_callback(shown.showing.discard)

    def close(self, shard: Shard) -> None:
        self._shards[shard.number].closed.set()

    async def show_shard(self, number: int) -> Shard:
        """Called in a shard's flow run: it shows the shard until its rows have ended."""
        shown, context = self._shards[number], FlowRunContext.get()
        assert context is not None and context.flow_run is not None, "called in a flow run"
        shown.flow_run_id, shown.context = context.flow_run.id, copy_context()
        shown.ready.set()
        await shown.closed.wait()
        if shown.showing:
            await asyncio.wait(shown.showing, timeout=_ENDING_SECONDS)
        return shown.shard

    async def _show_shard(self, shown: _ShownShard) -> None:
        """Try until the shard has a flow run, or no rows to show."""
        while not shown.closed.is_set():
            try:
                await self._shard_flow(shown.shard)
                return
            except Exception as error:
                logger.info("%s: its flow run was lost (%s)", shown.shard.describe(), type(error).__name__)
            if shown.context is not None:
                # It began; its end is corrected with the run's.
                return
            await asyncio.sleep(random.uniform(0.5, 1.5))  # noqa: S311 - spreads requests

    async def _show(self, shown: _ShownShard, item: Item, making: asyncio.Task[str]) -> None:
        """Show an item live if that is possible when it begins; else leave it to be recorded when it has ended."""
        began = time.monotonic()
        await shown.ready.wait()
        waited = time.monotonic() - began
        may_be_live = not EventsBatch.is_pressed() and not making.done()
        if shown.context is not None and may_be_live:
            if self._held_open >= _MOST_HELD_OPEN:
                self._record_start(shown.context, shown, item)
            elif await self._show_live(shown.context, item, making):
                if waited > _LATE_SECONDS:
                    self._record(shown, item, dated=datetime.now(UTC))
                return
        await asyncio.wait({making})
        report_failure(self.run, item, making)
        self._late.append((shown, item))

    async def _show_live(self, context: Context, item: Item, making: asyncio.Task[str]) -> bool:
        """Show an item as a task run that awaits it; returns whether that has its end."""
        running = run_task_async(
            _TASKS[item.stage],
            task_run_id=item_task_run_id(self.run, item),
            parameters={"making": ItemTask(self.run, item, making)},
        )
        self._held_open += 1
        try:
            await asyncio.create_task(running, context=context.copy())
        except PatternmillError:
            return True
        except PrefectSignal:
            # A person suspended the flow run, or Prefect ends it.
            self.run.stop("Suspended in the Prefect UI.")
            return False
        except Exception as error:
            logger.info("%s: its task run was lost (%s)", item.describe(), type(error).__name__)
            return False
        finally:
            self._held_open -= 1
        return True

    def _record_start(self, context: Context, shown: _ShownShard, item: Item) -> None:
        assert shown.flow_run_id is not None, "its flow run has begun"
        context.run(emit, running_event(open_item_record(self.run, item, time.time()), shown.flow_run_id))

    async def _keep_recording(self) -> None:
        while True:
            await asyncio.sleep(_RECORD_SECONDS)
            self._record_late(lambda shown: shown.context is not None)
            late = len(self._late)
            self.run.progress.notice = (
                f"the task runs of {plural(late, 'item')} are recorded later" if late else ""
            )

    def _record_late(self, may_be: Callable[[_ShownShard], bool]) -> None:
        for _ in range(len(self._late)):
            if EventsBatch.is_pressed():
                return
            shown, item = self._late.popleft()
            if may_be(shown):
                self._record(shown, item)
            else:
                self._late.append((shown, item))

    def _record(self, shown: _ShownShard, item: Item, *, dated: datetime | None = None) -> None:
        ended = self.run.engine.ended(item)
        if ended is None:
            return
        record = item_record(self.run, ended, dated=dated)
        context = shown.context or copy_context()
        context.run(emit, ending_event(record, shown.flow_run_id or _current_flow_run()))
        if ended.failure is not None and dated is None:
            # As Prefect's task engine logs those that it holds open.
            text = f"{item.describe()} failed: {failed_state(ended.failure).message}"
            context.run(logged, text, logging.ERROR)

    async def _record_rest(self) -> None:
        """Those of shards that never had a flow run are recorded in the run's own."""
        accepted, until = EventsBatch.accepted, time.monotonic() + _CLOSING_SECONDS
        while self._late and time.monotonic() < until:
            self._record_late(lambda shown: True)
            if EventsBatch.accepted != accepted:
                accepted, until = EventsBatch.accepted, time.monotonic() + _CLOSING_SECONDS
            if self._late:
                await asyncio.sleep(_RECORD_SECONDS)


def report_failure(run: Run, item: Item, made: asyncio.Task[str]) -> bool:
    """Report an item that failed; returns whether it did."""
    failed = None if made.cancelled() else made.exception()
    if isinstance(failed, RowFailed):
        item_failed(run, item, failed)
    return isinstance(failed, RowFailed)


class ShardScreen(Screen):
    """A task run each shard, with counts in its name that move, and one each item that failed."""

    def __init__(self, run: Run) -> None:
        self.run = run
        #: The shards that are driven, and how many of their products the name shows.
        self._open: dict[int, tuple[Shard, int]] = {}

    async def __aenter__(self) -> Self:
        self._counting = asyncio.create_task(self._keep_counting())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counting.cancel()

    def open(self, shard: Shard) -> None:
        self._open[shard.number] = (shard, 0)
        emit(running_event(self._shard(shard), _current_flow_run()))

    def show(self, shard: Shard, item: Item, making: asyncio.Task[str]) -> None:
        making.add_done_callback(lambda made: self._show_failure(item, made))

    def _show_failure(self, item: Item, made: asyncio.Task[str]) -> None:
        ended = self.run.engine.ended(item)
        if report_failure(self.run, item, made) and ended is not None:
            emit(ending_event(item_record(self.run, ended), _current_flow_run()))

    def close(self, shard: Shard) -> None:
        del self._open[shard.number]
        emit(ending_event(self._shard(shard, closed=True), _current_flow_run()))

    async def _keep_counting(self) -> None:
        while True:
            await asyncio.sleep(_COUNTS_SECONDS)
            for number, (shard, before) in tuple(self._open.items()):
                made = self.run.engine.made(shard)
                if made != before:
                    self._open[number] = (shard, made)
                    emit(running_event(self._shard(shard), _current_flow_run()))

    def _shard(self, shard: Shard, *, closed: bool = False) -> TaskRunRecord:
        began = self.run.engine.opened_at(shard)
        assert began is not None, "an open shard was opened"
        return shard_record(self.run, shard, began, closed=closed)


def _current_flow_run() -> UUID:
    context = FlowRunContext.get()
    assert context is not None and context.flow_run is not None, "rows are driven in a flow run"
    return context.flow_run.id


@lru_cache(1)
def _no_result() -> Any:
    """The result record that all task runs share: results are in the ledger, not in Prefect."""
    return get_result_store().create_result_record(None)
