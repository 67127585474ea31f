"""A run on several machines: its groups on record, one execution of a group, and the run that follows them all."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from patternmill.catalog.catalog_file import Record
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.engine.engine import Engine
from patternmill.engine.groups import Group
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import STOPPED, HaltReason
from patternmill.engine.slots import Slots
from patternmill.errors import ConfigurationError, LeaseLost, LedgerError, PatternmillError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Lease, RunGroup, RunRecord
from patternmill.ledger.runs import LOST_AFTER
from patternmill.planning.items import Item, Scope
from patternmill.planning.plan import Plan, PlannedItem, PlannedRow, Reason
from patternmill.planning.recognition import Memory
from patternmill.planning.unstated import Unstated
from patternmill.runs.lease import HEARTBEAT_INTERVAL
from patternmill.runs.run import Run, learn_what_works
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import Outcome, Stage

logger = logging.getLogger(__name__)

#: In the options of a run's record: its limits, prices and attempts, and how the service calls what is left open.
DRIVEN_WITH = "driven_with"
#: Why an execution ended: all it could do was wait for slots that lost groups occupy, which need its place.
_PUT_BACK = "put_back"
#: What a run lets its groups know, besides why they are to begin nothing more.
_PAUSED = "paused"
_OPTIONS, _HALT = TypeAdapter(RunOptions), TypeAdapter(HaltReason)
#: What the reports of groups add up to.
_COUNTED = ("ended", "failed", "left_out", "tried_again", "items_failed")


async def record_groups(run: Run) -> None:
    """Put the groups of a run on record, for other machines to drive.

    What each of them needs to know is on record then: no other process has to read the file or the offer again.
    """
    options = replace(run.engine.options, most_failures=None, most_failures_share=None)
    driven_with = {
        "options": _OPTIONS.dump_python(options, mode="json"),
        "unstated": run.spec.unstated.model_dump(mode="json"),
    }
    record = run.record.with_options({DRIVEN_WITH: driven_with})
    groups = [(group.number, _work(run.plan, group), _begun(run.plan, group)) for group in run.engine.groups]

    def put(ledger: Ledger) -> None:
        with ledger.transaction(run.writer.lease):
            ledger.runs.update(record)
            ledger.runs.add_groups(record.run_id, groups)

    await run.writer.run(put)
    run.record = record


def _work(plan: Plan, group: Group) -> str:
    rows = [
        (row.position, row.entry.record.line, row.sku, row.pattern, row.product, row.before, row.candidates)
        for row in group.rows
    ]
    items = {key: (plan.items[key].reason, plan.items[key].after) for row in group.rows for key in row.keys}
    return json.dumps({"rows": rows, "items": items}, ensure_ascii=False)


def _begun(plan: Plan, group: Group) -> set[ItemKey]:
    return {key for row in group.rows for key in row.keys if plan.items[key].reason is Reason.CONTINUED}


class Execution:
    """One execution of a group: begun under a fence of its own, driven by an engine as on one machine."""

    def __init__(
        self, engine: Engine, group: Group, writer: LedgerWriter, api: StudioApi, slots: Slots
    ) -> None:
        self.engine, self.group = engine, group
        self._writer, self._api, self._slots = writer, api, slots
        self._was_starving = False

    @classmethod
    async def begin(
        cls,
        settings: Settings,
        run_id: RunId,
        number: int,
        api_of: Callable[[Settings], StudioApi] = StudioApi.from_settings,
    ) -> Execution | None:
        """Take the fence of a group. None where it has ended, or its run has.

        `settings` are this machine's, for the run's environment. Raises ConfigurationError where they name another
        service than the run's.
        """
        ledger = await asyncio.to_thread(open_ledger, settings)
        begun = None
        try:
            begun = await asyncio.to_thread(_begin, ledger, settings, run_id, number)
        finally:
            if begun is None:
                await asyncio.to_thread(ledger.close)
        if begun is None:
            return None
        record, lease, group, plan, memory = begun
        options = _OPTIONS.validate_python(record.options[DRIVEN_WITH]["options"])
        api = api_of(settings.model_copy(update={"max_in_flight": options.max_in_flight}))
        writer, slots = LedgerWriter(ledger, lease), Slots(options.max_in_flight)
        await learn_what_works(api, writer, record.environment, _unstated(record))
        return cls(Engine(record, plan, memory, writer, api, options, slots), group, writer, api, slots)

    async def drive(self) -> bool:
        """Drive the group to its end. False where it has to be begun again: nothing is lost by that."""
        beats = asyncio.create_task(self._beat())
        try:
            await self.engine.drive()
            beats.cancel()
            reason = self.engine.halt.reason
            if reason is not None and reason.code == _PUT_BACK:
                return False
            return await self._end()
        finally:
            beats.cancel()
            await self._api.close()
            await self._writer.close()

    @property
    def fence(self) -> int:
        """How many executions of the group have begun."""
        return self._lease.fence

    async def _end(self) -> bool:
        def end(ledger: Ledger) -> None:
            ledger.runs.beat_group(self._lease, self._report())
            ledger.runs.end_group(self._lease)

        try:
            await self._writer.write(end)
        except LeaseLost as lost:
            logger.info("%s", lost.message)
            return True
        except LedgerError as error:
            logger.warning("%s", error)
            return False
        return True

    @property
    def _lease(self) -> Lease:
        assert self._writer.lease is not None, "it has one from its beginning"
        return self._writer.lease

    async def _beat(self) -> None:
        try:
            while True:
                seen = await self._writer.write(
                    lambda ledger: ledger.runs.beat_group(self._lease, self._report())
                )
                self._heed(*seen)
                await asyncio.sleep(HEARTBEAT_INTERVAL.total_seconds())
        except PatternmillError as error:
            self.engine.halt.begin(HaltReason(Outcome.FAILED, error.code, str(error)))
            self.engine.abandon()

    def _heed(self, order: str | None, living: int, lost: bool) -> None:
        """Do what the run's other machines make necessary."""
        self._api.share_rates(max(1, living))
        self.engine.pause(order == _PAUSED)
        if order not in (None, _PAUSED):
            self._stop(_HALT.validate_json(order))
        is_starving = lost and self.engine.progress.in_flight == self._slots.waiting > 0
        if is_starving and self._was_starving:
            self.engine.halt.begin(HaltReason(Outcome.FAILED, _PUT_BACK, "Lost groups go first."))
            self._slots.wake()
        self._was_starving = is_starving

    def _stop(self, reason: HaltReason) -> None:
        if reason.code != STOPPED:
            self.engine.halt.begin(reason)
        elif self.engine.halt.reason != reason:
            self.engine.stop(reason.message)
        self._slots.wake()

    def _report(self) -> str:
        progress, halt = self.engine.progress, self.engine.halt
        reason = halt.reason or halt.kept_purchase
        report = {name: getattr(progress, name) for name in _COUNTED} | {"made": progress.made}
        report |= {"halt": _HALT.dump_python(reason, mode="json") if reason is not None else None}
        return json.dumps(report | {"is_total": halt.is_total})


_Begun = tuple[RunRecord, Lease, Group, Plan, Memory]


def _begin(ledger: Ledger, settings: Settings, run_id: RunId, number: int) -> _Begun | None:
    record = ledger.runs.get(run_id)
    if record is None:
        raise ConfigurationError(
            f"Run {run_id} is not in this machine's ledger.",
            code="unknown_run",
            remedy="Set PATTERNMILL_LEDGER_URL as it is where the run was begun. Nothing was bought.",
        )
    _refuse_other_address(record, settings)
    with ledger.transaction():
        begun = ledger.runs.begin_group(record, number)
    if begun is None:
        return None
    lease, work = begun
    return record, lease, *_planned(ledger, record, number, json.loads(work))


def _refuse_other_address(record: RunRecord, settings: Settings) -> None:
    here = settings.studio_url or "no service"
    if settings.studio_url is None or settings.service_at(record.studio_url) != settings.service_at(here):
        raise ConfigurationError(
            f"Run {record.run_id} asks {record.studio_url}, and {here} is set on this machine.",
            code="other_service",
            remedy="Give each machine the address and the key of the run's environment. Nothing was bought.",
        )


def _unstated(record: RunRecord) -> Unstated:
    return Unstated.model_validate(record.options[DRIVEN_WITH]["unstated"])


def _planned(
    ledger: Ledger, record: RunRecord, number: int, work: Mapping[str, Any]
) -> tuple[Group, Plan, Memory]:
    """The group as it was planned, with the attempts as they are now."""
    last = {
        ItemKey(key): attempts[-1]
        for key in work["items"]
        if (attempts := ledger.purchases.attempts_of(ItemKey(key), bodies=False))
    }
    items = {}
    for text, (reason, after) in work["items"].items():
        key = ItemKey(text)
        # What a person retries is retried once, however many executions it takes.
        is_begun = reason == Reason.RETRIED and key in last and last[key].attempt > after
        reason = Reason.CONTINUED if is_begun else Reason(reason)
        items[key] = PlannedItem(_item(ledger, record, key), reason, 1, after)
    rows = tuple(_row(*row) for row in work["rows"])
    plan = Plan(Scope(record.environment, record.catalog), rows, items)
    return Group(number, rows), plan, Memory(last)


def _row(
    position: int,
    line: int,
    sku: str,
    pattern: ItemKey,
    product: ItemKey,
    before: list[ItemKey],
    candidates: list[ItemKey],
) -> PlannedRow:
    """As much of it as is needed to drive it, and to name it."""
    entry = Entry(Record(line, ()), Row("", "", {}, line=line, sku=sku, cells=()), ())
    return PlannedRow(position, entry, pattern, product, tuple(before), tuple(candidates))


def _item(ledger: Ledger, record: RunRecord, key: ItemKey) -> Item:
    stage, content = ledger.purchases.item(key)
    scope = Scope(record.environment, record.catalog)
    return Item(stage, scope, content, _unstated(record), partial(_picture, ledger))


def _picture(ledger: Ledger, sha256: str) -> bytes:
    raw = ledger.document(sha256)
    assert raw is not None, "the pictures of a run are on record with it"
    return raw


class Followed:
    """The groups of a run, as its own process follows them by the ledger alone."""

    def __init__(self, run: Run) -> None:
        self.run = run
        #: What the groups were let know last.
        self._order: str | None = None

    async def look(self) -> list[RunGroup]:
        """The groups as they are now. Adds up how far they are, and lets all know why one begins nothing more."""
        run_id = self.run.record.run_id
        groups, in_flight = await self.run.writer.run_patiently(
            lambda ledger: (ledger.runs.groups(run_id), ledger.purchases.in_flight(run_id))
        )
        self.run.progress.in_flight = in_flight
        reports = [json.loads(group.report) for group in groups if group.report]
        self._add_up(reports)
        for report in reports:
            if report["halt"] and report["halt"]["code"] != _PUT_BACK:
                stages = tuple(Stage) if report["is_total"] else ()
                self.run.halt.begin(_HALT.validate_python(report["halt"]), stages=stages)
        self.run.engine.halt_if_too_many_failed()
        await self._let_know()
        return groups

    def is_any_driven(self, groups: list[RunGroup]) -> bool:
        """Whether an execution of any of them lives."""
        since = self.run.writer.now() - LOST_AFTER
        return any(group.ended_at is None and (group.beat_at or 0) > since for group in groups)

    def _add_up(self, reports: list[dict[str, Any]]) -> None:
        progress = self.run.progress
        for name in _COUNTED:
            setattr(progress, name, sum(report[name] for report in reports))
        progress.made = Counter()
        for report in reports:
            progress.made.update({Stage(stage): count for stage, count in report["made"].items()})

    async def _let_know(self) -> None:
        run, reason, order = self.run, self.run.halt.reason, None
        if run.halt.is_total and reason is not None:
            order = _HALT.dump_json(reason).decode()
        elif run.engine.is_paused:
            order = _PAUSED
        if order == self._order:
            return

        def write(ledger: Ledger) -> None:
            with ledger.transaction(run.writer.lease):
                ledger.runs.order_groups(run.record.run_id, order)

        with suppress(LedgerError):
            await run.writer.run_patiently(write)
            self._order = order
