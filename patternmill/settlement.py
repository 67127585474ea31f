"""What a person decides about a request that no run may decide about."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from patternmill.errors import Overlap, Refusal
from patternmill.ledger.attempts import change_attempt, find_attempts, is_other
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database, is_gone
from patternmill.service.answers import Ended, Held
from patternmill.service.client import Client
from patternmill.settings import Settings
from patternmill.states import Attempt, State
from patternmill.text import money

Choice = Literal["job", "resend", "write-off"]
_DRIVER = "SELECT holder FROM leases WHERE driver = :driver"


def waiting_lines(database: Database, environment: str) -> Iterator[str]:
    """Yield the requests that wait for a person, and those in doubt, each with what is known of it."""
    waiting = find_attempts(database, environment, "state IN ('held', 'intended')")
    for attempt in waiting:
        price = f", {money(attempt.amount, attempt.currency)}" if attempt.amount else ""
        yield f"{attempt.request_id}  {attempt.stage} {attempt.label}{price} [{attempt.code or 'unanswered'}]"
        if attempt.message:
            yield f"  {attempt.message}"
    how = " Look in the service's console, and then settle each: --job ID, --resend or --write-off."
    yield f"{len(waiting) or 'Nothing'} to decide.{how if waiting else ''}"


async def decide(
    database: Database, settings: Settings, request_id: str, choice: Choice, job: str, reason: str
) -> str:
    """Carry out one decision, and return what it means. Raises Refusal where it may not be made."""
    found = find_attempts(database, settings.service, "request_id = :request_id", request_id=request_id)
    if not found:
        message = f"There is no request {request_id} in {settings.service}."
        raise Refusal("unknown_request", message, "`patternmill settle` lists those that wait.")
    attempt = found[0]
    if choice == "job":
        await _check_job(database, settings, attempt, job)
        at = attempt.accepted_at or attempt.intended_at
        _record(database, attempt, State.ACCEPTED, reason, job_id=job, accepted_at=at, ended_at=None)
        return f"The next run follows {job}."
    if choice == "resend":
        # Its age begins anew: whoever decides this knows that the service has not forgotten it, or never had it.
        _record(database, attempt, State.INTENDED, reason, intended_at=time.time(), ended_at=None)
        return "The next run sends the same request again, under the same ID."
    _record(database, attempt, State.WRITTEN_OFF, reason, ended_at=time.time())
    return "It is given up, and stays paid for; only `patternmill retry` makes another attempt."


async def _check_job(database: Database, settings: Settings, attempt: Attempt, job: str) -> None:
    """Ask the service about the job that a person names, and refuse one that contradicts the request."""
    async with Client(settings) as client:
        answer = await client.ask_about(replace(attempt, job_id=job), partial(is_other, database, attempt))
    mine = {"job": job, "mine": attempt.request_id}
    if find_attempts(database, attempt.environment, "job_id = :job AND request_id <> :mine", **mine):
        raise Refusal("contradiction", f"{job} is the job of another request.", "Look again.")
    if isinstance(answer, Held):
        raise Refusal("contradiction", answer.message, "Look again in the console.")
    if isinstance(answer, Ended) and not answer.result_id:
        message = f"The service says that {job} failed: {answer.message}"
        raise Refusal("job_failed", message, "--write-off gives it up.")


def _record(database: Database, attempt: Attempt, state: State, reason: str, **learned: Any) -> None:
    """Record a decision while no living run drives the attempt."""

    def change(connection: Connection) -> Attempt | None:
        driver = connection.row(_DRIVER, driver=attempt.driver)
        if driver and not is_gone(driver.holder):
            message = f"The run {attempt.driver} still drives it."
            raise Overlap("overlap", message, "Wait until it has ended, or run its catalog.")
        message = f"{attempt.message} Decided: {reason}".strip()
        at, said = time.time(), {"code": "settled", "message": message, **learned}
        if attempt.state is state is State.INTENDED:
            sql = "UPDATE attempts SET intended_at = :at, code = 'settled', message = :message WHERE request_id = :id"
            connection.execute(sql, at=at, message=message, id=attempt.request_id)
            return attempt
        return change_attempt(connection, attempt, state, "settle", at, **said)

    if database.change(change) is None:
        raise Refusal("not_waiting", f"It is {attempt.state}: nothing is to be decided.")
