"""Bugs put into the program on purpose: each must turn an audit red, or the audit proves nothing."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from patternmill.engine.engine import Engine
from patternmill.engine.item_attempts import Attempts
from patternmill.engine.progress import HaltReason
from patternmill.ledger.catalogs import Catalogs
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.spending import Spent
from patternmill.planning import items
from patternmill.runs import run
from patternmill.service import polling, resend, studio_api
from patternmill.service.jobs import Job
from patternmill.service.outcomes import Answer, Refusal
from patternmill.service.resend import AskAgain, ResendAfter
from patternmill.states import AttemptState, Outcome, Stage

_numbers = itertools.count(1)


def _seed(owner: Any, name: str, changed: Any) -> None:
    """Replaces what is there: a bug in what the program has no more would find nothing, and prove nothing."""
    if not hasattr(owner, name):
        raise AttributeError(f"{owner} has no {name} into which a bug could be put")
    setattr(owner, name, changed)


def new_id_per_try() -> None:
    """Each time that a create is sent it bears another request ID."""
    send = studio_api.StudioApi._send

    async def seeded(self: studio_api.StudioApi, sending: Any, pace: Any) -> Any:
        if sending.now.tries:
            body = orjson.loads(sending.body)
            sending.body = orjson.dumps({**body, "requestId": f"{body['requestId']}-{next(_numbers)}"})
        return await send(self, sending, pace)

    _seed(studio_api.StudioApi, "_send", seeded)


def id_of_the_process() -> None:
    """Request IDs are drawn anew by each process, in place of being derived from what is bought."""
    import uuid

    salt = uuid.uuid4().hex[:8]
    derive = items.Item.request_id

    def seeded(self: Any, attempt: int) -> Any:
        return f"{derive(self, attempt)[:-9]}-{salt}"

    _seed(items.Item, "request_id", seeded)


def post_before_intent() -> None:
    """A request goes out before its intent is durable, under an ID that only memory knows."""
    id_of_the_process()
    _write_late("intend")


def job_id_before_intent() -> None:
    """What is accepted is written some time after it was answered, and the intent with it."""
    id_of_the_process()
    _write_late("accept")


def _write_late(what: str) -> None:
    write = LedgerWriter.write

    async def seeded(self: LedgerWriter, change: Callable[[Ledger], Any]) -> Any:
        if what not in getattr(change, "__qualname__", "") and "begin" not in change.__qualname__:
            return await write(self, change)
        # The change is tried out for its answer, and made durable only later.
        answer = await self.run(lambda ledger: _tried(ledger, change))
        asyncio.get_running_loop().call_later(0.3, lambda: _keep(write(self, change)))
        return answer

    _seed(LedgerWriter, "write", seeded)


_kept: set[Any] = set()


def _keep(writing: Any) -> None:
    task = asyncio.ensure_future(writing)
    _kept.add(task)
    task.add_done_callback(lambda done: (_kept.discard(done), done.exception()))


class _BackError(Exception):
    pass


def _tried(ledger: Ledger, change: Callable[[Ledger], Any]) -> Any:
    answer = None
    try:
        with ledger.transaction():
            answer = change(ledger)
            raise _BackError
    except _BackError:
        return answer


def next_attempt_in_doubt() -> None:
    """A lost answer is taken for the service's report that the attempt failed, also when it is asked for once more."""
    _seed_failed_jobs()
    decide = resend.decide_create

    def seeded(answer: Answer, *args: Any) -> Any:
        decision = decide(answer, *args)
        doubtful = isinstance(decision, ResendAfter) and decision.in_doubt
        return _failed_job(next(_numbers)) if doubtful else decision

    _seed(studio_api, "decide_create", seeded)


def _failed_job(number: int) -> Job:
    name = f"job_imagined_{number}_{id(_numbers)}"
    return Job(name, "", "failed", "no answer in time", {})


def poll_error_is_failure() -> None:
    """A poll that brings no usable answer is taken for a job that failed, also when it is asked for once more."""
    _seed_failed_jobs()
    decide = resend.decide_poll

    def seeded(answer: Answer, *args: Any, **known: Any) -> Any:
        decision = decide(answer, *args, **known)
        if isinstance(decision, AskAgain) and not answer.usable:
            return Refusal(AttemptState.FAILED, message="the service could not be asked")
        return decision

    _seed(polling, "decide_poll", seeded)


def _seed_failed_jobs() -> None:
    async def failed(self: Any, job_id: str) -> Job:
        return Job(job_id, "", "failed", "the service could not be asked", {})

    _seed(studio_api.StudioApi, "job", failed)


def overlap_ignored() -> None:
    """Every run drives the catalog, and fences off no other."""

    async def seeded(ledger: Ledger, environment: str, catalog: str, run_id: Any, *_: Any) -> Any:
        lease = ledger.catalogs.lease(environment, catalog)
        with ledger.transaction():
            return ledger.catalogs.claim_lease(environment, catalog, run_id, "", over=lease)

    _seed(run, "acquire_lease", seeded)
    _seed(Catalogs, "check_fence", lambda self, hold: None)
    _seed(Catalogs, "_update_lease", lambda self, hold, assignment, **params: None)


def fence_ignored() -> None:
    """A run that was taken over while it stood still goes on as if nothing had been."""
    _seed(Catalogs, "check_fence", lambda self, hold: None)
    _seed(Catalogs, "_update_lease", lambda self, hold, assignment, **params: None)


def result_not_kept() -> None:
    """What was made is remembered by the process alone."""

    learn = Attempts.learn

    async def seeded(self: Attempts, item: Any, attempt: Any, job: Job, *exchange: Any) -> Any:
        if job.status != "succeeded":
            return await learn(self, item, attempt, job, *exchange)
        return replace(attempt, state=AttemptState.SUCCEEDED, result_id=job.result_id(item.stage))

    _seed(Attempts, "learn", seeded)


def budget_not_reserved() -> None:
    """What a run has spent is counted by the process, so that a crash forgets it."""
    _seed(Purchases, "_book", lambda self, *args: None)
    # Nor does the plan, which is cut to what is left of the day, see what it had.
    _seed(Purchases, "spent_on", lambda self, day: {"staging": Spent(amounts=Counter({"": -(10**9)}))})


def create_while_draining() -> None:
    """A person's stop keeps new patterns back, and nothing else."""

    def seeded(self: Engine, why: str) -> None:
        self.halt.begin(HaltReason(Outcome.CANCELLED, "cancelled", why), stages=(Stage.PATTERN,))

    _seed(Engine, "stop", seeded)


SEEDED: dict[str, Callable[[], None]] = {
    seed.__name__: seed
    for seed in (
        new_id_per_try,
        id_of_the_process,
        post_before_intent,
        job_id_before_intent,
        next_attempt_in_doubt,
        poll_error_is_failure,
        overlap_ignored,
        fence_ignored,
        result_not_kept,
        budget_not_reserved,
        create_while_draining,
    )
}
