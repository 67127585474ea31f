"""Bugs put into the program on purpose: each must turn an audit red, or the audit proves nothing.

An audit plays the program in this process, and returns its faults as sentences. Without a bug it finds none.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from patternmill.engine.engine import Engine
from patternmill.engine.item_attempts import Attempts
from patternmill.engine.progress import HaltReason
from patternmill.errors import LeaseLost
from patternmill.ledger.catalogs import Catalogs
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.records import SpendingLimits
from patternmill.ledger.spending import Spent
from patternmill.planning.items import Item
from patternmill.runs import run as run_module
from patternmill.runs.run import Run
from patternmill.service import polling, resend, studio_api
from patternmill.service.jobs import Job
from patternmill.service.outcomes import Answer, Refusal
from patternmill.service.resend import AskAgain, ResendAfter
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.hostile.in_process import Service
from tests.integration.simulation import judge
from tests.integration.simulation.play import mixed_setup, play
from tests.integrity import problems
from tests.unit.runs.workshop import Workshop, many, take_over

Patch = pytest.MonkeyPatch
#: Numbers for whatever a bug makes anew.
NUMBERS = itertools.count(1)

# -- the bugs


def new_id_per_try(patch: Patch) -> None:
    """Each time that a create is sent it bears another request ID."""
    send = studio_api.StudioApi._send_now

    async def seeded(self: studio_api.StudioApi, sending: Any, pace: Any) -> Any:
        if sending.now.tries:
            body = orjson.loads(sending.request.body)
            new = orjson.dumps({**body, "requestId": f"{body['requestId']}-{next(NUMBERS)}"})
            sending.request = replace(sending.request, body=new)
        return await send(self, sending, pace)

    patch.setattr(studio_api.StudioApi, "_send_now", seeded)


def id_of_the_process(patch: Patch) -> None:
    """Request IDs are drawn anew by each run, in place of being derived from what is bought."""
    salts, derive, begin = ["0"], Item.request_id, Run.begin

    async def begun(self: Run, *args: Any) -> None:
        salts.append(str(next(NUMBERS)))
        await begin(self, *args)

    patch.setattr(Run, "begin", begun)
    patch.setattr(Item, "request_id", lambda self, attempt: f"{derive(self, attempt)}-{salts[-1]}")


def intent_written_late(patch: Patch) -> None:
    """A request goes out before its intent is durable, under an ID that only memory knows."""
    id_of_the_process(patch)
    write, writing = LedgerWriter.write, set[Any]()

    async def seeded(self: LedgerWriter, change: Callable[[Ledger], Any]) -> Any:
        if change.__qualname__ != "Attempts.begin.<locals>.begin_in":
            return await write(self, change)
        intended = await self.run(lambda ledger: _tried(ledger, change))
        # Not awaited: it comes when the request has long been sent, or never.
        loop = asyncio.get_running_loop()
        loop.call_later(0.3, lambda: writing.add(loop.create_task(write(self, change))))
        return intended

    patch.setattr(LedgerWriter, "write", seeded)


class _BackError(Exception):
    pass


def _tried(ledger: Ledger, change: Callable[[Ledger], Any]) -> Any:
    """Return what a change would return, without making it."""
    try:
        with ledger.transaction():
            returned = change(ledger)
            raise _BackError
    except _BackError:
        return returned


def next_attempt_in_doubt(patch: Patch) -> None:
    """A lost answer is taken for the service's report that the attempt failed, also when it is asked for once more."""
    _report_failed_jobs(patch)
    decide = resend.decide_create

    def seeded(answer: Answer, *args: Any) -> Any:
        decision = decide(answer, *args)
        if isinstance(decision, ResendAfter) and decision.in_doubt:
            return Job(f"job_imagined_{next(NUMBERS)}", "", "failed", "no answer in time", {})
        return decision

    patch.setattr(studio_api, "decide_create", seeded)


def poll_error_is_failure(patch: Patch) -> None:
    """A poll that brings no usable answer is taken for a job that failed, also when it is asked for once more."""
    _report_failed_jobs(patch)
    decide = resend.decide_poll

    def seeded(answer: Answer, *args: Any, **named: Any) -> Any:
        decision = decide(answer, *args, **named)
        if isinstance(decision, AskAgain) and not answer.usable:
            return Refusal(AttemptState.FAILED, message="the service could not be asked")
        return decision

    patch.setattr(polling, "decide_poll", seeded)


def _report_failed_jobs(patch: Patch) -> None:
    async def failed(self: Any, job_id: str) -> Job:
        return Job(job_id, "", "failed", "the service could not be asked", {})

    patch.setattr(studio_api.StudioApi, "job", failed)


def attempt_after_an_open_intent(patch: Patch) -> None:
    """An open intent is left behind, and the next run makes another attempt."""
    number = Attempts._next_number

    def seeded(self: Attempts, attempts: Any, *args: Any) -> int | None:
        if attempts and attempts[-1].state is AttemptState.INTENDED:
            return int(attempts[-1].attempt) + 1
        return number(self, attempts, *args)

    patch.setattr(Attempts, "_next_number", seeded)


def overlap_ignored(patch: Patch) -> None:
    """Every run drives the catalog, and fences off no other."""

    async def seeded(ledger: Ledger, environment: str, catalog: str, run_id: Any, *_: Any) -> Any:
        lease = ledger.catalogs.lease(environment, catalog)
        with ledger.transaction():
            return ledger.catalogs.claim_lease(environment, catalog, run_id, "", over=lease)

    patch.setattr(run_module, "acquire_lease", seeded)
    fence_ignored(patch)


def fence_ignored(patch: Patch) -> None:
    """A run that was taken over while it stood still goes on as if nothing had been."""
    patch.setattr(Catalogs, "check_fence", lambda self, hold: None)
    patch.setattr(Catalogs, "_update_lease", lambda self, hold, assignment, **params: None)


def result_not_kept(patch: Patch) -> None:
    """What was made is remembered by the process alone."""
    learn = Attempts.learn

    async def seeded(self: Attempts, item: Any, attempt: Any, job: Job, *exchange: Any) -> Any:
        if job.status != "succeeded":
            return await learn(self, item, attempt, job, *exchange)
        return replace(attempt, state=AttemptState.SUCCEEDED, result_id=job.result_id(item.stage))

    patch.setattr(Attempts, "learn", seeded)


def budget_not_reserved(patch: Patch) -> None:
    """What a run has spent is counted by the process, so that a crash forgets it."""
    patch.setattr(Purchases, "_book", lambda self, *args: None)
    # Nor does the plan, which is cut to what is left of the day, see what it had.
    unspent = Spent(amounts=Counter({"": -(10**9)}))
    patch.setattr(Purchases, "spent_on", lambda self, day: {"staging": unspent})


def create_while_draining(patch: Patch) -> None:
    """A person's stop keeps new patterns back, and nothing else."""

    def seeded(self: Engine, why: str) -> None:
        self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", why), stages=(Stage.PATTERN,))

    patch.setattr(Engine, "stop", seeded)


# -- the audits


def simulated(_: Path) -> Iterator[str]:
    """Play two seeds in virtual time, through faults, deaths, stops and overlaps."""
    for seed in (2, 35):
        yield from judge.faults(play(mixed_setup(seed)))


def crashed(folder: Path) -> Iterator[str]:
    """Kill the process as one create was executed and another arrives, and run the command again."""
    shop = Workshop(folder, Service())
    shop.crash_at(2, many(6), max_in_flight=2)
    yield from _completed(shop)


def _completed(shop: Workshop) -> Iterator[str]:
    ended = shop.run(many(6))
    yield from (f"{name} was bought {n} times" for name, n in Counter(shop.service.bought).items() if n > 1)
    yield from (f"{sku} is {its}" for sku, its in ended.statuses.items() if its is not RowStatus.SUCCEEDED)
    with shop.ledger() as ledger:
        yield from problems(ledger)


def two_machines(folder: Path) -> Iterator[str]:
    """Run one file on two ledgers that know nothing of one another."""
    service = Service()
    for home in ("one", "two"):
        yield from _completed(Workshop(folder / home, service))


def taken_over(folder: Path) -> Iterator[str]:
    """Let another run take the catalog over while this one stands still, and this one go on."""
    shop = Workshop(folder, Service())
    shop.at(4, lambda: take_over(shop))
    try:
        shop.broken(many(30), LeaseLost, max_in_flight=2)
    except BaseException as error:
        yield f"it was not fenced off: {error!r}"
    if len(shop.service.bought) > 10:
        yield f"{len(shop.service.bought)} were bought after the takeover"


def limited_day(folder: Path) -> Iterator[str]:
    """Spend a day's budget over crashes, then lift it."""
    shop = Workshop(folder, Service())
    terms: dict[str, Any] = {"pattern_price": 10, "product_price": 25, "max_in_flight": 2}
    limits = SpendingLimits(day_amount=150)
    for _ in range(2):
        shop.crash_at(3, many(6), limits=limits, **terms)
    shop.run(many(6), limits=limits, **terms)
    spent = sum(10 if stage is Stage.PATTERN else 25 for stage, _ in shop.service.names.values())
    if not 115 < spent <= 150:
        yield f"{spent} was spent of 150"
    yield from _completed(shop)


def stopped(folder: Path) -> Iterator[str]:
    """Stop a run by hand as its second create arrives: what is in flight is followed, and nothing more is bought."""
    shop = Workshop(folder, Service())

    async def stop_at_the_second(run: Run, _: Any) -> None:
        shop.at(2, lambda: run.stop("by hand"))

    shop.run(many(6), watch=stop_at_the_second, max_in_flight=2)
    if len(shop.service.creates) > 2:
        yield f"{len(shop.service.creates)} creates, and the stop came with the second"
    yield from _completed(shop)


AUDITS = (simulated, crashed, two_machines, taken_over, limited_day, stopped)
#: Each bug, the audit that is to find it, and a part of the fault that it reports.
BUGS: list[tuple[Callable[[Patch], None], Callable[[Path], Iterator[str]], str]] = [
    (new_id_per_try, simulated, "had not failed"),
    (next_attempt_in_doubt, simulated, "had not failed"),
    (poll_error_is_failure, simulated, "had not failed"),
    (attempt_after_an_open_intent, simulated, "had not failed"),
    (overlap_ignored, simulated, "two runs hold the catalog at once"),
    (budget_not_reserved, simulated, "is booked on"),
    (budget_not_reserved, limited_day, "was spent of 150"),
    (intent_written_late, crashed, "was bought 2 times"),
    (result_not_kept, crashed, "is "),
    (id_of_the_process, two_machines, "was bought 2 times"),
    (fence_ignored, taken_over, "were bought after the takeover"),
    (create_while_draining, stopped, "the stop came with the second"),
]


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
def test_audit_finds_nothing_in_the_program_as_it_is(
    audit: Callable[[Path], Iterator[str]], tmp_path: Path
) -> None:
    assert list(audit(tmp_path)) == []


@pytest.mark.parametrize(
    ("bug", "audit", "fault"), BUGS, ids=[f"{bug.__name__}-{audit.__name__}" for bug, audit, _ in BUGS]
)
def test_seeded_bug_is_found(
    bug: Callable[[Patch], None],
    audit: Callable[[Path], Iterator[str]],
    fault: str,
    monkeypatch: Patch,
    tmp_path: Path,
) -> None:
    bug(monkeypatch)
    found = list(audit(tmp_path))
    assert any(fault in one for one in found), found
