"""What the tests of ledger, engine and runs share: an empty ledger of each kind, a lease with its purchases, items."""

import asyncio
import functools
import os
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest

from patternmill.errors import Refusal
from patternmill.items import Row, choice_of, pattern_item, product_item
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.ledger.purchases import Purchases
from patternmill.plan import Step, make_plan, next_action
from patternmill.settings import Settings
from tests.lapse import LapseLoop

POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
RUN = {"verb": "import", "source": "a.csv", "currency": "EUR", "max_items": None, "budget": None}
PRICES = {"price_pattern": "40", "price_product": "10", "currency": "EUR", "environment": "production"}


def new_postgres() -> str:
    """Return the address of an empty database, or skip the test where there is no PostgreSQL."""
    name = f"mill_{uuid4().hex[:12]}"
    try:
        with psycopg.connect(POSTGRES, autocommit=True, connect_timeout=3) as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
    except psycopg.OperationalError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL at {POSTGRES}: {error}")
    return POSTGRES.rsplit("/", 1)[0] + f"/{name}"


def drop_postgres(address: str) -> None:
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {address.rsplit('/', 1)[1]} WITH (FORCE)")


async def taken(database: Database, catalog: str = "spring", settings: Settings | None = None, **limits):
    """Take the lease of a catalog, and return it with its purchases."""
    lease = Lease(database, "production", catalog)
    await lease.take({**RUN, **limits}, lambda connection: None)
    purchases = Purchases(lease, settings or Settings(**PRICES))
    await purchases.stand(["pattern", "product"])
    return lease, purchases


def row(number=2, prompt="herons", sku=None):
    sku = sku or f"A-{number}"
    return Row(number, sku, product_item(pattern_item("production", prompt), sku, choice_of("cat_mug", {})))


def step(item=None, last=None, most=2, retrying=False):
    item = item or pattern_item("production", "herons")
    return Step(item, next_action(last, most, retrying), most, last, retrying)


def of(prompt):
    return step(pattern_item("production", prompt))


def plan_of(*prompts, last=None, retrying=False):
    rows = [row(number, prompt) for number, prompt in enumerate(prompts, 2)]
    return make_plan(rows, last or {}, 2, {}, retrying)


@contextmanager
def refuses(code):
    """Expect a refusal of this code."""
    with pytest.raises(Refusal) as refused:
        yield refused
    assert refused.value.code == code, refused.value


def play(case):
    """Run a coroutine to its end, in time-lapse."""
    with asyncio.Runner(loop_factory=LapseLoop) as runner:
        return runner.run(case)


def played(case):
    """Run a test that is a coroutine to its end."""
    return functools.wraps(case)(lambda *given, **named: play(case(*given, **named)))
