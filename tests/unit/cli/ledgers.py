"""Ledgers with a past: runs put on record as imports do it, and attempts brought to where a test wants them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import RETRY_OF
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, NewItem, RunRecord, RunRow, SpendingLimits
from patternmill.ledger.runs import entry_text
from patternmill.planning.items import Item, ItemMaker, Scope, canonical_json
from patternmill.planning.memory import Memory
from patternmill.planning.plan import Plan, plan_entries
from patternmill.states import AttemptState, Outcome, Stage
from tests.unit.tables.samples import HEADER, checked

NOON = 1_800_014_400.0  # 2027-01-15 12:00 UTC
HERON = "H-1,blue herons,Cushion,S,linen,"
HERON_MUG = "H-2,blue herons,Mug,11oz,,"
FERN = "F-1,green ferns,Tote bag,,,"
FOX = "X-1,red foxes,Mug,15oz,,"
REFUSED = "R-1,no such thing,Sofa,,,"

#: The states that lead from the intent to each state.
WAYS: dict[AttemptState, tuple[AttemptState, ...]] = {
    state: (AttemptState.ACCEPTED, state)
    if state in (AttemptState.SUCCEEDED, AttemptState.FAILED)
    else (state,)
    for state in AttemptState
} | {AttemptState.INTENDED: ()}
#: The pattern of all products.
PATTERN_ID = "pat-1"
PRICES = {Stage.PATTERN: 50, Stage.PRODUCT: 200}


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@dataclass
class Past:
    """Writes a past into a ledger."""

    ledger: Ledger
    clock: Clock
    currency: str | None = None
    #: The flow run of the runs that are begun.
    flow_run: str | None = None
    _numbers: Any = field(default_factory=lambda: count(1))

    def begin(
        self,
        *rows: str,
        catalog: str = "spring",
        environment: str = "staging",
        **of_record: Any,
    ) -> BegunRun:
        """Put a run on record, which begins a minute after the one before."""
        self.clock.now += 60
        sheet = checked("\n".join((HEADER, *rows)) + "\n")
        plan = plan_entries(ItemMaker(Scope(environment, catalog)), sheet.entries, Memory())
        number = next(self._numbers)
        record = RunRecord(
            run_id=RunId(f"run-{number}"),
            catalog=catalog,
            environment=environment,
            source=f"inputs/{catalog}.csv",
            input_sha256=sheet.catalog.sheet.layout.sha256,
            input_encoding=sheet.catalog.sheet.layout.encoding or "utf-8",
            studio_url="http://127.0.0.1:9/v1",
            started_at=datetime.fromtimestamp(self.clock.now, UTC),
            prefect_flow_run_id=self.flow_run,
        )
        record = replace(record, **of_record)
        with self.ledger.transaction():
            self.ledger.runs.add(record, sheet.catalog.sheet.raw, number=number)
            items = [planned.item for planned in plan.items.values()]
            self.ledger.purchases.add_items(environment, catalog, map(_new_item, items))
            self.ledger.runs.add_rows(record.run_id, map(_run_row, plan.rows))
            if RETRY_OF not in record.options:
                requested = [row for row in map(_run_row, plan.rows) if row.product_key is not None]
                self.ledger.catalogs.keep_requests(record, requested)
        return BegunRun(self, record, plan)


@dataclass
class BegunRun:
    """A run on record, with its plan."""

    past: Past
    record: RunRecord
    plan: Plan

    @property
    def ledger(self) -> Ledger:
        return self.past.ledger

    def pattern(self, sku: str) -> Item:
        return next(
            self.plan.items[row.pattern].item for row in self.plan.rows if row.sku == sku and row.pattern
        )

    def product(self, sku: str) -> Item:
        return next(
            self.plan.items[row.product].item for row in self.plan.rows if row.sku == sku and row.product
        )

    def attempt(
        self, item: Item, state: AttemptState, number: int = 1, *, error: str = "the loom broke"
    ) -> Attempt:
        """Bring the n-th attempt at an item to a state; each step is a second later."""
        request_id = item.request_id(number)
        name = request_id[:8]
        made = {item.parent_key: PATTERN_ID} if item.parent_key else {}
        body = item.body(request_id, made)
        intent = Attempt(request_id, item.key, number, body=body, price=PRICES[item.stage])
        with self.ledger.transaction():
            run_id, limits = self.record.run_id, SpendingLimits(currency=self.past.currency)
            attempt = self.ledger.purchases.intend(run_id, intent, limits)
            for to in WAYS[state] if attempt.state is AttemptState.INTENDED else ():
                self.past.clock.now += 1
                facts = learned(to, name, f"{item.stage}_failed", error)
                attempt = self.ledger.purchases.change(run_id, request_id, to, **facts)
        return attempt

    def make(self, *skus: str) -> None:
        """Let everything for these rows succeed."""
        for sku in skus:
            for item in (self.pattern(sku), self.product(sku)):
                self.attempt(item, AttemptState.SUCCEEDED)

    def end(self, outcome: Outcome = Outcome.COMPLETED_WITH_FAILURES) -> RunRecord:
        self.past.clock.now += 5
        ended = datetime.fromtimestamp(self.past.clock.now, UTC)
        self.record = replace(self.record, outcome=outcome, ended_at=ended)
        with self.ledger.transaction():
            self.ledger.runs.close_rows(self.record)
            self.ledger.runs.update(self.record)
        return self.record


def troubled_run(past: Past) -> BegunRun:
    """H-1 is made, H-2's product failed; F-1 in doubt; X-1 held; R-1 refused; O-1 with a job; D-1 not begun."""
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED, "O-1,owls,Mug,11oz,,", "D-1,does,Mug,11oz,,")
    run.make("H-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.attempt(run.pattern("O-1"), AttemptState.ACCEPTED)
    run.end()
    return run


def learned(
    to: AttemptState, name: str, code: str = "pattern_failed", error: str = "the loom broke"
) -> dict[str, Any]:
    """Return the fields that come with a change to this state."""
    return {
        AttemptState.ACCEPTED: {"job_id": f"job-{name}"},
        AttemptState.SUCCEEDED: {"result_id": f"made-{name}", "picture_url": f"https://pictures/{name}.png"},
        AttemptState.FAILED: {"error_code": code, "error": error},
        AttemptState.REJECTED: {"error_code": "invalid", "error": error},
        AttemptState.HELD: {"error_code": "job_of_another_item", "error": error},
    }.get(to, {})


def _new_item(item: Item) -> NewItem:
    return NewItem(item.key, item.stage, canonical_json(item.content), item.sku, item.parent_key)


def _run_row(row: Any) -> RunRow:
    sku = row.sku or next((problem.sku for problem in row.entry.problems if problem.sku), "")
    return RunRow(row.position, row.entry.line, sku, row.pattern, row.product, entry_text(row.entry))
