"""Makes shares of a run's rows in other processes, perhaps on other machines, each under a lease of its own."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from patternmill.agreement import plan_rows, recorded_rows
from patternmill.errors import Halted, Refusal
from patternmill.fanout import LEAST_ROWS, UNSHOWN, Fanout
from patternmill.items import Row
from patternmill.ledger import catalogs
from patternmill.ledger.attempts import last_attempts, made_by
from patternmill.ledger.leases import Lease, run_of
from patternmill.ledger.purchases import Purchases
from patternmill.plan import BOUGHT, Action, Plan
from patternmill.request import Request
from patternmill.run import Run, check_name, engine_of, open_run
from patternmill.states import OPEN
from patternmill.text import sku_key

#: How often a share fills its window: the last filling ends with fewer and fewer rows in flight.
_TURNS = 5
_NEEDED = (*BOUGHT, Action.FOLLOW)
_TERMS = {"day_budget", "price_pattern", "price_product", "currency", "attempts"}
_RUN = "SELECT environment, catalog, verb FROM runs WHERE id = :run_id"


class Share(NamedTuple):
    """Names rows of a run by their keys. `window`: how many are made at once; `terms`: what of its settings counts."""

    run_id: str
    number: int
    keys: tuple[str, ...]
    window: int
    first_event: int
    terms: dict[str, Any]


def shares_of(run: Run, plan: Plan, rows: Sequence[Row], processes: int) -> Iterator[Share]:
    """Yield the rows that need the service as shares for so many processes, which together keep to the window."""
    processes = max(1, processes)
    assert run.lease and run.engine
    keys = [
        sku_key(row.sku) for row in rows if any(plan.steps[item.id].action in _NEEDED for item in row.chain)
    ]
    window, first_event = max(1, run.settings.max_in_flight // processes), run.engine.purchases.first_event
    rounds = max(1, round(len(keys) / (_TURNS * window * processes)))
    size = max(LEAST_ROWS, -(-len(keys) // (processes * rounds)))
    for number, start in enumerate(range(0, len(keys), size), 1):
        mine, terms = tuple(keys[start : start + size]), run.settings.model_dump(include=_TERMS)
        yield Share(run.lease.driver, number, mine, window, first_event, terms)


def unfinished(run: Run, rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose items have not all ended by now, and take note of the stages that shares have halted."""
    assert run.engine
    run.engine.look()
    last = last_attempts(run.database, run.settings.service, {item.id for row in rows for item in row.chain})
    return [row for row in rows if any(one.id not in last or last[one.id].state in OPEN for one in row.chain)]


async def tell_shares(run: Run) -> None:
    """Count what the shares make, and let them know once the run is halted."""
    assert run.lease and run.engine
    told = None
    while True:
        run.made = sum(made_by(run.database, run.lease.driver).values())
        run.engine.look()
        if (reason := run.halt.reason) is not told:
            told = reason
            await run.lease.tell_shares(getattr(reason, "outcome", "Failed"))
        with suppress(TimeoutError):
            await asyncio.wait_for(run.halt.news.wait(), 5.0)


async def make_share(share: Share) -> Halted | None:
    """Make a share of a run here; return what halts the run, and not this process alone. Raises Refusal."""
    async with open_run(Request()) as run:
        if not (found := run.database.read(_RUN, run_id=share.run_id)):
            message = f"The ledger of this worker has no run {share.run_id}."
            raise Refusal("no_run", message, "Give the worker the settings that the run has.")
        about = found[0]
        check_name(about.environment, run.settings)
        run.settings = run.settings.model_copy(update=share.terms)
        run.request, run.catalog = Request(verb=about.verb), about.catalog
        driver = f"{share.run_id}#{share.number}.{uuid4().hex[:6]}"
        run.lease = Lease(run.database, about.environment, about.catalog, driver)
        run.lease.share, run.lease.first_event = share.number, share.first_event
        await run.lease.take({}, lambda connection: None)
        try:
            return await _make(run, share)
        finally:
            await run.lease.leave_share()


def _once(run: Run, plan: Plan, run_id: str) -> Plan:
    """Return a plan without the rows that ended badly in this very run: another process may have begun the share.

    What that process attempted gets no further attempt from a retry, which allows one.
    """
    steps, bad = dict(plan.steps), set[int]()
    for row in plan.rows:
        for step in (plan.steps[item.id] for item in row.chain):
            if step.attempt and run_of(step.attempt.driver) == run_id:
                steps[step.item.id] = replace(step, most=max(run.settings.attempts, step.attempt.number))
                if step.action not in (Action.FOLLOW, Action.EXISTS):
                    bad.add(row.number)
    return replace(plan, steps=steps).without(frozenset(bad))


async def _make(run: Run, share: Share) -> Halted | None:
    assert run.lease
    purchases = Purchases(run.lease, run.settings)
    run.engine = engine_of(run, purchases)
    rows = catalogs.catalog_rows(run.database, run.settings.service, run.catalog, share.keys)
    plan = _once(run, plan_rows(run, recorded_rows(run, rows)), share.run_id)
    await purchases.stand({step.item.stage for step in plan.steps.values()})
    run.engine.look()
    beating = asyncio.create_task(run.lease.keep(run.halt.set, run.engine.look))
    try:
        await Fanout(plan, run.engine, UNSHOWN, share.window, run).make(plan.rows, ())
    finally:
        beating.cancel()
    return run.halt.reason if isinstance(run.halt.reason, Halted) else None
