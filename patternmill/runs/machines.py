"""A run on several machines: its groups on record, the execution of one, and the run that follows them all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from patternmill.engine.engine import Engine
from patternmill.engine.groups import Group
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import STOPPED, HaltReason, Progress
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import LOST_AFTER, Attempt, RunGroup, RunRecord
from patternmill.planning.items import Item, Scope, Spelling
from patternmill.planning.memory import Memory
from patternmill.planning.plan import Plan, PlannedItem, PlannedRow, Reason
from patternmill.planning.rows import Entry, Row
from patternmill.planning.unstated import Unstated
from patternmill.runs.lease import pause_after_beat
from patternmill.runs.recorded_rows import last_attempts
from patternmill.runs.run import Run, learn_what_works
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import AttemptState, Outcome, Stage

#: The name in a run's options under which its terms are on record.
DRIVEN_WITH = "driven_with"
#: The order by which a run pauses its groups; any other is the reason why they are to begin nothing more.
_PAUSED = "paused"


@dataclass(frozen=True)
class Terms:
    """The limits, prices and attempts of a run, and what the interface leaves unstated."""

    options: RunOptions
    unstated: Unstated


@dataclass(frozen=True)
class Report:
    """The progress of an execution of a group, and the reason for which it begins nothing more."""

    progress: Progress
    halt: HaltReason | None
    is_total: bool


_TERMS, _HALT, _REPORT = TypeAdapter(Terms), TypeAdapter(HaltReason), TypeAdapter(Report)
#: The fields of Progress that are added up over the groups, besides `made`.
_COUNTED = ("ended", "failed", "left_out", "in_flight", "tried_again", "items_failed")


class FollowedGroups:
    """The groups of a run, which its own process follows through the ledger alone."""

    def __init__(self, run: Run) -> None:
        self.run = run
        #: What was made before the groups: the references that several of them share.
        self._made = run.progress.made
        #: What the groups were told last.
        self._orders: str | None = None

    @classmethod
    async def begin(cls, run: Run) -> FollowedGroups:
        """Put the groups on record: no other process has to read the file or the offer again."""
        options = replace(run.engine.options, most_failures=None)
        terms = _TERMS.dump_python(Terms(options, run.spec.unstated), mode="json")
        record = run.record.with_options({DRIVEN_WITH: terms})
        groups = [
            (_work(run.plan, group), len(group.rows), _begun(run.plan, group)) for group in run.engine.groups
        ]

        def put(ledger: Ledger) -> None:
            with ledger.transaction(run.writer.lease):
                ledger.runs.update(record)
                ledger.runs.add_groups(record.run_id, groups)

        await run.writer.run(put)
        run.record = record
        return cls(run)

    async def look(self) -> list[RunGroup]:
        """Give each group its share of the window, tell it why to begin nothing more, and return the groups."""
        run = self.run
        orders = _PAUSED if run.engine.is_paused else None
        if run.halt.is_total and run.halt.reason is not None:
            orders = _HALT.dump_json(run.halt.reason).decode()

        def steer(ledger: Ledger) -> list[RunGroup]:
            with ledger.transaction(run.writer.lease):
                groups = ledger.runs.groups(run.record.run_id)
                changed = {group.number: 0 for group in groups if orders != self._orders}
                more = shares(groups, run.engine.options.max_in_flight)
                ledger.runs.steer_groups(run.record.run_id, orders, changed | more)
                return ledger.runs.groups(run.record.run_id)

        groups = await run.writer.run_patiently(steer)
        self._orders = orders
        self._add_up([_REPORT.validate_json(group.report) for group in groups if group.report])
        return groups

    def is_any_driven(self, groups: Sequence[RunGroup]) -> bool:
        """Return whether an execution of any of these groups is alive."""
        since = self.run.writer.now() - LOST_AFTER
        return any(group.ended_at is None and (group.beat_at or 0) > since for group in groups)

    def _add_up(self, reports: Sequence[Report]) -> None:
        progress = self.run.progress
        for name in _COUNTED:
            setattr(progress, name, sum(getattr(report.progress, name) for report in reports))
        progress.made = sum((report.progress.made for report in reports), self._made)
        for report in reports:
            if report.halt is not None:
                self.run.halt.begin(report.halt, stages=tuple(Stage) if report.is_total else ())
        self.run.engine.halt_if_too_many_failed()


def shares(groups: Sequence[RunGroup], window: int) -> dict[int, int]:
    """Return by how much the share of each group grows: groups that have begun are filled up first."""
    free = window - sum(group.share for group in groups)
    more = {}
    for group in sorted(groups, key=lambda group: group.share == 0):
        more[group.number] = max(0, min(group.rows_left - group.share, free))
        free -= more[group.number]
    return {number: count for number, count in more.items() if count}


def _work(plan: Plan, group: Group) -> str:
    rows = [(row.position, row.entry.line, row.sku, row.chain, row.candidates) for row in group.rows]
    items = {
        key: (plan.items[key].reason, plan.items[key].after, plan.items[key].item.spelling)
        for row in group.rows
        for key in row.keys
    }
    return json.dumps({"rows": rows, "items": items}, ensure_ascii=False)


def _begun(plan: Plan, group: Group) -> int:
    return sum(any(plan.items[key].reason is Reason.CONTINUED for key in row.keys) for row in group.rows)


class Execution:
    """One execution of a group: begun under a fence of its own, driven by an engine as on one machine."""

    def __init__(self, engine: Engine, group: Group, writer: LedgerWriter, api: StudioApi) -> None:
        assert writer.lease is not None, "an execution has a fence"
        self.engine, self.group, self.lease = engine, group, writer.lease
        self._writer, self._api = writer, api

    @classmethod
    async def begin(
        cls,
        settings: Settings,
        run_id: RunId,
        number: int,
        api_of: Callable[[Settings], StudioApi] = StudioApi.from_settings,
    ) -> Execution | None:
        """Take the fence of a group; return None if it has ended, or its run has.

        `settings` are this machine's, for the run's environment. Raises ConfigurationError where they name another
        service than the run's.
        """
        ledger = await asyncio.to_thread(open_ledger, settings)
        api, writer = api_of(settings), LedgerWriter(ledger)
        execution = None
        try:
            execution = await writer.run(partial(_begin, writer, api, settings, run_id, number))
        finally:
            if execution is None:
                await api.close()
                await writer.close()
        return execution

    async def drive(self) -> None:
        """Drive the group to its end, and put that on record.

        Raises LeaseLost where it is driven elsewhere by now, and LedgerError; no request is lost by either.
        """
        beats = asyncio.create_task(self._beat())
        try:
            item = next(iter(self.engine.plan.items.values())).item
            await learn_what_works(self._api, self._writer, item.scope.environment, item.unstated)
            await self.engine.drive()
            await self._writer.write(lambda ledger: ledger.runs.end_group(self.lease, self._report()))
        finally:
            beats.cancel()
            await self._api.close()
            await self._writer.close()

    async def _beat(self) -> None:
        def beat(ledger: Ledger, brake: int) -> tuple[str | None, int, int]:
            rows_left = len(self.group.rows) - self.engine.progress.ended
            return ledger.runs.beat_group(self.lease, self._report(), rows_left, brake)

        try:
            while True:
                self._heed(*await self._writer.write_beat(beat))
                await asyncio.sleep(pause_after_beat(self._writer))
        except PatternmillError as error:
            self.engine.halt.begin(HaltReason(Outcome.FAILED, error.code, str(error)))
            self.engine.abandon()

    def _heed(self, orders: str | None, share: int, living: int) -> None:
        """Take this group's share of the rates and of the window, and do what the run says."""
        self._api.share_rates(max(1, living))
        self.engine.widen(share)
        self.engine.pause(orders == _PAUSED)
        if orders in (None, _PAUSED):
            return
        reason = _HALT.validate_json(orders)
        if reason.code != STOPPED:
            self.engine.halt.begin(reason)
        elif self.engine.halt.reason != reason:
            self.engine.stop(reason.message)

    def _report(self) -> str:
        progress, halt = self.engine.progress, self.engine.halt
        report = Report(progress, halt.reason or halt.kept_purchase, halt.is_total)
        return _REPORT.dump_json(report).decode()


def _begin(
    writer: LedgerWriter, api: StudioApi, settings: Settings, run_id: RunId, number: int, ledger: Ledger
) -> Execution | None:
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
    writer.lease, work, share = begun
    terms = _TERMS.validate_python(record.options[DRIVEN_WITH])
    plan, memory = _planned(ledger, record, json.loads(work), terms.unstated)
    # A group whose rows have all ended has no share: none of them needs a slot any more.
    options = replace(terms.options, max_in_flight=max(1, share))
    engine = Engine(record, plan, memory, writer, api, options)
    return Execution(engine, Group(number, plan.rows), writer, api)


def _refuse_other_address(record: RunRecord, settings: Settings) -> None:
    here = settings.studio_url or "no service"
    if settings.studio_url is None or settings.service_at(record.studio_url) != settings.service_at(here):
        raise ConfigurationError(
            f"Run {record.run_id} asks {record.studio_url}, and {here} is set on this machine.",
            code="other_service",
            remedy="Give each machine the address and the key of the run's environment. Nothing was bought.",
        )


def _planned(
    ledger: Ledger, record: RunRecord, work: Mapping[str, Any], unstated: Unstated
) -> tuple[Plan, Memory]:
    """Return the group as it was planned, with the attempts as they are now."""
    scope = Scope(record.environment, record.catalog)
    items, last = dict[ItemKey, PlannedItem](), dict[ItemKey, Attempt]()
    for key, (reason, after, spelling) in work["items"].items():
        if attempts := ledger.purchases.attempts_of(key, bodies=False):
            last[key] = attempts[-1]
        stage, content = ledger.purchases.item(key)
        named = Spelling(*spelling) if spelling is not None else None
        item = Item(stage, scope, content, named, unstated, partial(_picture, ledger))
        items[key] = PlannedItem(item, _reason_now(Reason(reason), after, item, last.get(key)), 1, after)
    return Plan(scope, tuple(_row(*row) for row in work["rows"]), items), Memory(last_attempts(last.values()))


def _reason_now(planned: Reason, after: int, item: Item, last: Attempt | None) -> Reason:
    """Return why an item is made now: what an earlier execution began is continued.

    A person's retry counts once, however many executions it takes. References were made before the groups.
    """
    if last is None:
        return planned
    is_open = last.state in (AttemptState.INTENDED, AttemptState.ACCEPTED)
    if is_open or (planned is Reason.RETRIED and last.attempt > after):
        return Reason.CONTINUED
    is_made = item.stage is Stage.REFERENCE and last.state is AttemptState.SUCCEEDED
    return Reason.DONE if is_made else planned


def _row(
    position: int, line: int, sku: str, chain: Sequence[ItemKey], candidates: Sequence[ItemKey]
) -> PlannedRow:
    """Return what is needed of a row to drive it and to name it."""
    entry = Entry(line, Row("", "", {}, line=line, sku=sku))
    return PlannedRow(position, entry, tuple(chain), tuple(candidates))


def _picture(ledger: Ledger, sha256: str) -> bytes:
    raw = ledger.document(sha256)
    assert raw is not None, "the pictures of a run are on record with it"
    return raw
