"""Bugs to put into the program: each must turn the judge red, or the judge proves nothing.

`python -m tests.simulation --bugs NAME:SEED...` plays seeds with them, each with one.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from patternmill import plan, run
from patternmill.engine import Engine
from patternmill.items import Item
from patternmill.ledger import purchases
from patternmill.ledger.decisions import Decision
from patternmill.ledger.leases import Lease
from patternmill.ledger.purchases import Purchases
from patternmill.plan import Action
from patternmill.service import answers, client
from patternmill.service.answers import Ended
from patternmill.service.words import Words
from patternmill.states import State
from tests.simulation import clock


def new_id_per_try() -> None:
    """Send a request under another ID each time."""
    post, sent = client.Client.post, set[str]()

    async def seeded(self: Any, operation: str, body: str, **how: Any) -> Any:
        if (fields := json.loads(body)).get("requestId") in sent:
            body = json.dumps(fields | {"requestId": str(uuid4())})
        sent.add(fields.get("requestId"))
        return await post(self, operation, body, **how)

    client.Client.post = seeded  # type: ignore[method-assign]


def job_before_intent() -> None:
    """Draw request IDs by chance, and put an intent on record once its job is known."""
    drawn: dict[Any, str] = {}
    pending: dict[str, tuple[Any, ...]] = {}
    begin, accept, end = Purchases.begin, Purchases.accept, Purchases.end

    async def late(self: Purchases, step: Any, parent_id: str | None, failed: str = "") -> Any:
        class Back(Exception):
            attempt: Any

        def tried(connection: Any) -> Any:
            back = Back()
            back.attempt = self._begin(connection, step, parent_id, failed)
            raise back

        try:
            await self._database.write(tried)
        except Back as back:
            if back.attempt.state is State.INTENDED:
                pending[back.attempt.request_id] = (self, step, parent_id)
                return back.attempt
        return await begin(self, step, parent_id)

    def first(change: Callable[..., Any]) -> Callable[..., Any]:
        async def changed(self: Purchases, attempt: Any, *args: Any, **more: Any) -> Any:
            if left := pending.pop(attempt.request_id, None):
                await begin(*left)
            return await change(self, attempt, *args, **more)

        return changed

    Item.request_id = lambda self, number: drawn.setdefault(
        (clock.PROCESS.get(), self.id, number), str(uuid4())
    )  # type: ignore[method-assign]
    Purchases.begin, Purchases.accept, Purchases.end = late, first(accept), first(end)  # type: ignore[method-assign]


def next_attempt_in_doubt() -> None:
    """Leave a request without an answer behind, and make another attempt."""
    decide = plan.next_action

    def seeded(last: Any, most: int, retrying: bool = False) -> Action:
        return Action.MAKE if last and last.state is State.INTENDED else decide(last, most, retrying)

    plan.next_action = purchases.next_action = seeded


def poll_error_is_failure() -> None:
    """Take a poll without a usable answer for a job that failed."""
    decide = answers.decide_poll

    def seeded(answer: Any, now: Any) -> Any:
        return (
            Ended(None, "it broke", "job_failed") if answer.status in (500, 502, 504) else decide(answer, now)
        )

    answers.decide_poll = seeded


def failure_not_confirmed() -> None:
    """Make a next attempt without asking the service once more."""

    async def seeded(self: Engine, attempt: Any) -> Any:
        return attempt

    Engine._ask_once_more = seeded  # type: ignore[method-assign]


def drivers_ignored() -> None:
    """Drive what another living run drives."""
    Purchases.has_living_driver = lambda self, attempt: False  # type: ignore[method-assign]


def overlap_ignored() -> None:
    """Let every run take the lease, and fence off none."""
    facts = "SELECT (SELECT value FROM facts WHERE name = 'identity'), (SELECT value FROM facts WHERE name = 'schema')"

    def prove(self: Lease, connection: Any) -> tuple[str, str]:
        self._beaten_at = clock.time.monotonic()
        return tuple(connection.row(facts))  # type: ignore[return-value]

    Lease.is_silent = lambda self, driver: True  # type: ignore[method-assign]
    Lease.prove = prove  # type: ignore[method-assign]


def age_ignored() -> None:
    """Send a request again however old it is."""
    begin = Engine.__init__

    def seeded(self: Engine, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        self.in_doubt_limit = 1e9

    Engine.__init__ = seeded  # type: ignore[method-assign]


def duplicates_not_read() -> None:
    """Take a refusal of a known request ID for a refusal of the row."""
    Words.say_known = property(lambda self: False)  # type: ignore[assignment]
    decide = answers.decide_create

    def seeded(answer: Any, now: Any) -> Any:
        return decide(answer, replace(now, in_doubt=False))

    answers.decide_create = seeded


def each_remake_moves() -> None:
    """Move on to another take whenever a remake is asked for, though the one before was never made."""
    choose = run.rows_to_remake

    def seeded(rows: Any, decisions: Any, request: Any) -> Any:
        chosen, _ = choose(rows, decisions, request)
        seen = {row.pattern: decisions.get(row.pattern, Decision(row.pattern)) for row in chosen}
        return chosen, [(one, one.newest + 1) for one in seen.values()]

    run.rows_to_remake = seeded


BUGS: dict[str, Callable[[], None]] = {
    bug.__name__: bug
    for bug in (
        new_id_per_try, job_before_intent, next_attempt_in_doubt, poll_error_is_failure, failure_not_confirmed,
        drivers_ignored, overlap_ignored, age_ignored, duplicates_not_read, each_remake_moves,
    )
}  # fmt: skip
