"""Any order of imports, crashes, retries, limits, settlements and troubles, against a model of what may be charged.

SOAK=1 plays many more of them, and others each time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import SpendingLimits
from patternmill.ledger.reports.integrity import problems
from patternmill.ledger.reports.unsettled import unsettled
from patternmill.results.row_results import RowResult
from patternmill.runs.run import Run
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.service import outcomes
from patternmill.service.jobs import Job, read_job
from patternmill.states import AttemptState, RowStatus, Stage

from .charges import (
    CATEGORIES,
    CREATE_TROUBLES,
    FINAL,
    FOLLOW_TROUBLES,
    OFFER,
    PRICES,
    PROMPTS,
    SCOPES,
    SKUS,
    Asking,
    Charges,
    Inline,
    Line,
    Shop,
)
from .fake_studio import Crash, Create, failed
from .workshop import drive

lines = st.builds(
    Line,
    st.sampled_from(SKUS),
    st.sampled_from(PROMPTS),
    st.sampled_from(list(CATEGORIES)),
    st.sampled_from("sm"),
)
catalogs = st.lists(lines, min_size=1, max_size=5, unique_by=lambda line: line.sku)
limits = st.builds(
    SpendingLimits,
    items=st.none() | st.integers(0, 6),
    run_amount=st.none() | st.integers(0, 150),
    day_amount=st.none() | st.integers(0, 600),
)
job_troubles = st.one_of(
    st.lists(st.sampled_from(FOLLOW_TROUBLES), min_size=1, max_size=4),
    st.integers(1, 6).map(lambda times: [failed()] * times),
)


def troubles(ends: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """By the name of what they happen to; what has none is all well."""
    return st.dictionaries(st.sampled_from(SKUS + PROMPTS), ends, max_size=6)


class Charging(RuleBasedStateMachine):
    """What a person, the service and fate may do, in any order."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.service = Charges(offer=OFFER)
        self.shop = Shop(Path(self.folder.name) / "home", self.service)
        self.lines: dict[tuple[str, str], list[Line]] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(given=st.lists(catalogs, min_size=len(SCOPES), max_size=len(SCOPES)))
    def write_catalogs(self, given: list[list[Line]]) -> None:
        self.lines = dict(zip(SCOPES, given, strict=True))

    # -- what may happen

    @rule(scope=st.sampled_from(SCOPES), given=catalogs)
    def change_a_catalog(self, scope: tuple[str, str], given: list[Line]) -> None:
        self.lines[scope] = given

    @rule(ends=troubles(st.lists(st.sampled_from(CREATE_TROUBLES), min_size=1, max_size=2)))
    def trouble_creates(self, ends: dict[str, list[outcomes.CreateEnd]]) -> None:
        self.service.on_create.update({name: list(those) for name, those in ends.items()})

    @rule(ends=troubles(job_troubles))
    def trouble_jobs(self, ends: dict[str, list[outcomes.JobEnd]]) -> None:
        self.service.on_follow.update({name: list(those) for name, those in ends.items()})

    @rule(
        scope=st.sampled_from(SCOPES), attempts=st.integers(1, 3), edition=st.sampled_from([None, None, "b"])
    )
    def import_it(self, scope: tuple[str, str], attempts: int, edition: str | None) -> None:
        self._import(Asking(scope, edition, attempts))

    @rule(scope=st.sampled_from(SCOPES), allowed=limits, window=st.integers(1, 4))
    def import_within_limits(self, scope: tuple[str, str], allowed: SpendingLimits, window: int) -> None:
        self._import(Asking(scope), allowed, max_in_flight=window)

    @rule(scope=st.sampled_from(SCOPES), after=st.integers(1, 12), seed=st.integers(0, 9))
    def crash(self, scope: tuple[str, str], after: int, seed: int) -> None:
        self._import(Asking(scope), crash_after=after, chance=random.Random(seed))

    @rule(
        scope=st.sampled_from(SCOPES),
        skus=st.sets(st.sampled_from(SKUS), min_size=1),
        after=st.integers(0, 12),
    )
    def retry(self, scope: tuple[str, str], skus: set[str], after: int) -> None:
        """Now and then it crashes."""
        prompts = {line.prompt for line in self.lines[scope] if line.sku in skus}
        asking = Asking(scope, retried=frozenset(skus | prompts))
        self._import(asking, crash_after=after if after < 6 else 0, retry=lambda row: row.sku in skus)

    @precondition(lambda self: self.undecided())
    @rule(
        which=st.integers(0, 99),
        decision=st.sampled_from([Decision.RESEND, Decision.WRITE_OFF, Decision.JOB]),
    )
    def decide(self, which: int, decision: Decision) -> None:
        """A person settles something, as far as that can be settled so."""
        waiting = self.undecided()
        attempt = waiting[which % len(waiting)]
        job_id = self.service.jobs.get(attempt[0])
        if attempt[1] is AttemptState.ACCEPTED or (decision is Decision.JOB and job_id is None):
            decision = Decision.WRITE_OFF
        self._settle(attempt[0], decision, job_id if decision is Decision.JOB else None)

    # -- what must hold

    @invariant()
    def ledger_agrees_with_itself(self) -> None:
        if (self.shop.home / "ledger.sqlite3").exists():
            with self.shop.ledger() as ledger:
                assert list(problems(ledger)) == []

    def undecided(self) -> list[tuple[RequestId, AttemptState]]:
        if not (self.shop.home / "ledger.sqlite3").exists():
            return []
        with self.shop.ledger() as ledger:
            found = unsettled(ledger, timedelta(0))
        return sorted((one.attempt.request_id, one.attempt.state) for one in found)

    # -- how it is done

    def _import(
        self, asking: Asking, allowed: SpendingLimits | None = None, *, crash_after: int = 0, **more: Any
    ) -> None:
        """Beginning to end, or to where the process dies."""
        self.shop.scope, self.shop.edition = asking.scope, asking.edition
        self.service.begin(asking)
        self._arm(crash_after)
        spent = self._spent_today(asking)
        more |= {
            "attempts": asking.attempts,
            "limits": allowed or SpendingLimits(),
            "final_reasons": (FINAL,),
        }
        more |= {"pattern_price": PRICES[Stage.PATTERN], "product_price": PRICES[Stage.PRODUCT]}
        catalog = _csv(self.lines[asking.scope])
        ended = _in_virtual_time(self._whole_run(catalog, more))
        if ended is None:
            self.shop.bury()
            return
        run, results = ended
        self._judge_money(run, allowed or SpendingLimits(), spent)
        self._judge_rows(asking, results)

    def _arm(self, crash_after: int) -> None:
        left = crash_after

        def moment() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash

        def received(create: Create) -> None:
            self.service.hear(create)
            moment()

        self.service.at_create, self.service.at_job_end = received, lambda name: moment()

    async def _whole_run(self, catalog: str, options: dict[str, Any]) -> tuple[Run, list[RowResult]] | None:
        api, run = await self.shop.begin(catalog, **options)
        driving = asyncio.ensure_future(drive(run))
        crashing = asyncio.ensure_future(api.crashed.wait())
        await asyncio.wait([driving, crashing], return_when=asyncio.FIRST_COMPLETED)
        if api.crashed.is_set():
            run.writer._ledger.close()
            return None
        crashing.cancel()
        await driving
        ending = await run.end()
        assert sum(ending.rows.values()) == len(catalog.splitlines()) - 1
        return run, list(self.shop.results(ending).values())

    def _settle(self, request_id: RequestId, decision: Decision, job_id: str | None) -> None:
        async def decide() -> None:
            ledger = open_ledger(self.shop.settings)
            try:
                word = Settlement(request_id, decision, "it is so", "A. Weaver", job_id)
                await settle(ledger, word, limit=timedelta(0), look_up=self._look_up)
            finally:
                ledger.close()

        _in_virtual_time(decide())
        if decision is Decision.WRITE_OFF:
            self.service.written_off.add(request_id)

    async def _look_up(self, job_id: str) -> Job | None:
        request_id = next(request for request, job in self.service.jobs.items() if job == job_id)
        asked, kind = json.loads(self.service.bodies[request_id]), self.service.names[job_id][0]
        return read_job({"jobId": job_id, "kind": kind.value, "status": "running", "request": asked})

    def _spent_today(self, asking: Asking) -> int:
        if not (self.shop.home / "ledger.sqlite3").exists():
            return 0
        with self.shop.ledger() as ledger:
            query = "SELECT coalesce(sum(amount), 0) FROM spending WHERE environment = :environment"
            return int(ledger.database.rows(query, {"environment": asking.scope[0]})[0][0])

    def _judge_money(self, run: Run, allowed: SpendingLimits, spent_before: int) -> None:
        """No limit was passed by what this run wrote down."""
        with self.shop.ledger() as ledger:
            of_run = {
                Stage(stage): (items, amount)
                for stage, items, amount in ledger.database.rows(
                    "SELECT stage, items, amount FROM spending WHERE run_id = :run",
                    {"run": run.record.run_id},
                )
            }
        assert allowed.items is None or sum(items for items, _ in of_run.values()) <= allowed.items
        amount = sum(amount for _, amount in of_run.values())
        assert allowed.run_amount is None or amount <= allowed.run_amount
        assert allowed.day_amount is None or amount == 0 or spent_before + amount <= allowed.day_amount

    def _judge_rows(self, asking: Asking, results: list[RowResult]) -> None:
        """Each row is there once, and what it got was made for it."""
        asked = self.lines[asking.scope]
        assert [row.sku for row in results] == [line.sku for line in asked]
        for line, row in zip(asked, results, strict=True):
            assert (row.product_id is not None) == (row.status is RowStatus.SUCCEEDED)
            if row.status is RowStatus.SUCCEEDED:
                self._judge_product(asking, line, row)

    def _judge_product(self, asking: Asking, line: Line, row: RowResult) -> None:
        product, scope = self.service.made(row.product_id)
        pattern, pattern_scope = self.service.made(product["patternId"])
        assert (scope, pattern_scope) == (asking.scope, asking.scope)
        assert pattern["prompt"] == line.prompt
        assert product["categoryId"] == CATEGORIES[line.category]
        assert product["selections"] == {"name": line.sku, "size": line.size}


def _csv(asked: list[Line]) -> str:
    body = (f"{one.sku},{one.prompt},{one.category},{one.sku},{one.size}\n" for one in asked)
    return "sku,prompt,category,option:name,option:size\n" + "".join(body)


def _in_virtual_time(main: Any) -> Any:
    with asyncio.Runner(loop_factory=Inline) as runner:
        return runner.run(main)


SOAK = bool(os.environ.get("SOAK"))

TestCharging = pytest.mark.slow(pytest.mark.timeout(3000 if SOAK else 300)(Charging.TestCase))
TestCharging.settings = settings(
    max_examples=1000 if SOAK else 25,
    stateful_step_count=40 if SOAK else 15,
    derandomize=not SOAK,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
