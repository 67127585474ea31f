"""What people do beside the runs: they ask for them, pause, and decide what is held with the console open."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from patternmill.errors import Refusal
from patternmill.ledger import brake
from patternmill.ledger.attempts import find_attempts
from patternmill.ledger.database import Database
from patternmill.request import Request
from patternmill.settings import read_settings
from patternmill.settlement import decide
from tests.double import Double

#: Any number of products may be replaced, retired and renamed: what the agreement refuses is tested elsewhere.
_ANY = {"change": 10**6, "retire": 10**6, "rename": 10**6}


def request(verb: str, catalog: str, sheet: Path, out: Path) -> Request:
    """Return what is asked of a run."""
    return Request(verb=verb, file=None if verb == "retry" else sheet, catalog=catalog, out=out, **_ANY)  # type: ignore[arg-type]


@asynccontextmanager
async def _ledger() -> AsyncIterator[Any]:
    settings = read_settings()
    database = Database(settings.ledger_address)
    try:
        yield database, settings
    finally:
        await database.close()


async def pause() -> bool:
    """Pause everything, and return whether each living run has met it."""
    async with _ledger() as (database, _):
        return not await brake.pause(database, "*", "a person looks at it")


async def unpause() -> None:
    async with _ledger() as (database, _):
        brake.unpause(database, "*")


async def settle(double: Double) -> dict[str, str]:
    """Decide about all that is held or in doubt, as the console shows it; return what was decided, by request ID.

    A request that has a job gets it; one whose job cannot be used is written off; one without is sent again.
    """
    decided = {}
    async with _ledger() as (database, settings):
        for attempt in find_attempts(database, "staging", "state IN ('held', 'intended')"):
            request_id, job = attempt.request_id, double.requests.get(attempt.request_id)
            for choice in ("job", "write-off") if job else ("resend",):
                try:
                    await decide(
                        database, settings, request_id, choice, job.job if job else "", "seen in the console"
                    )
                except Refusal as refusal:
                    decided[request_id] = f"refused: {refusal}"
                else:
                    decided[request_id] = choice
                    break
    return decided
