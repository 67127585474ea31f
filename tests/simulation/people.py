"""What people do beside the runs: they ask for them, pause, and decide what is held with the console open."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from patternmill.errors import Refusal
from patternmill.ledger import brake, decisions
from patternmill.ledger.attempts import find_attempts
from patternmill.ledger.catalogs import catalog_rows
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Verdict
from patternmill.orders import place_order, plan_order
from patternmill.request import Request
from patternmill.settings import read_settings
from patternmill.settlement import decide
from tests.double import Double

#: Any number of products may be replaced, retired and renamed: what the agreement refuses is tested elsewhere.
_ANY = {"change": 10**6, "retire": 10**6, "rename": 10**6}


def request(verb: str, catalog: str, sheet: Path, out: Path) -> Request:
    """Return what is asked of a run."""
    return Request(
        verb=verb, file=sheet if verb in ("import", "refresh") else None, catalog=catalog, out=out, **_ANY
    )  # type: ignore[arg-type]


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


async def look(catalog: str, chance: random.Random) -> list[tuple[str, int]]:
    """Say something about a few patterns as the page shows them; return prompt and take of those wanted again."""
    again = []
    async with _ledger() as (database, _):
        shown = [row for row in catalog_rows(database, "staging", catalog) if row.pattern]
        for row in chance.sample(shown, min(3, len(shown))):
            verdict = chance.choice(
                [Verdict.AGAIN, Verdict.AGAIN, Verdict.PICK, Verdict.REJECT, Verdict.NONE]
            )
            with suppress(Refusal):  # its take has moved on
                decisions.decide(database, "staging", row.pattern, row.take, verdict)
                if verdict is Verdict.AGAIN:
                    again.append((json.loads(row.content)["prompt"], row.take))
    return again


async def take_back() -> None:
    """Take back what was rejected, so that all can be made."""
    async with _ledger() as (database, _):
        for one in decisions.decisions_of(database, "staging").values():
            if one.verdict is Verdict.REJECT:
                decisions.decide(database, "staging", one.pattern, one.take, Verdict.NONE)


async def order(name: str, catalog: str, quantity: int) -> str:
    """Order so many of each product that is there, and return how that ended."""
    async with _ledger() as (database, settings):
        made = [
            row.sku
            for row in catalog_rows(database, "staging", catalog)
            if row.product_id and not row.retired
        ]
        try:
            plan = plan_order(database, "staging", catalog, dict.fromkeys(made[:4], quantity))
            return (await place_order(database, settings, name, plan)).words
        except Refusal as refusal:
            return f"refused: {refusal}"


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
