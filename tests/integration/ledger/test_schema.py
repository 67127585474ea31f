"""The schema: made once, brought up to date with money in it, and refused untouched by the wrong version."""

from __future__ import annotations

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError, LedgerError
from patternmill.identifiers import RunId
from patternmill.ledger import database as schema
from patternmill.ledger.database import Database
from patternmill.ledger.ledger import open_database
from patternmill.ledger.records import TAKEOVER_AFTER, this_process
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.parameters import UPGRADE
from patternmill.states import AttemptState, Outcome
from tests.hostile.in_process import Crash, Service
from tests.integrity import problems
from tests.unit.runs.workshop import Workshop, many

from .conftest import OpenLedger
from .samples import CATALOG, STAGING, begin, change, item

#: What other versions may have made, and how it is refused.
OTHERS = {
    "UPDATE ledger SET schema = 99": "of a newer version of patternmill: it has schema 99",
    "DROP TABLE ledger": "made by the first edition",
    "DELETE FROM ledger": "made by the first edition",
}
ATTEMPTS = "SELECT request_id, state, price FROM attempts ORDER BY request_id"
#: The statements that turn the second schema back into the first.
TO_THE_FIRST = (
    "DROP TABLE pauses",
    "ALTER TABLE ledger DROP COLUMN brake",
    "ALTER TABLE leases DROP COLUMN brake",
    "ALTER TABLE run_groups DROP COLUMN brake",
    "UPDATE ledger SET schema = 1",
)


@pytest.mark.parametrize("change", OTHERS)
def test_ledger_of_another_version_is_refused_untouched(
    open_ledger: OpenLedger, url: str, change: str
) -> None:
    """The error names its folder, or its database without the password, and tells nobody to begin another one."""
    file = Path(url.removeprefix("sqlite:///"))
    where = re.escape(f"{file.parent} (ledger.sqlite3)")
    if is_server := url.startswith("postgres"):
        where = r"PostgreSQL \(patternmill_test_\w+ on 127.0.0.1:5432\), schema public"
    with open_ledger() as ledger:
        begin(ledger, "herons")
        with ledger.database.transaction():
            ledger.database.execute(change)
    if not is_server:
        # Another program's copy may be like this; a refused file is not switched to WAL either.
        with closing(sqlite3.connect(file)) as copy:
            copy.execute("PRAGMA journal_mode=DELETE")
    before = b"" if is_server else file.read_bytes()
    with pytest.raises(ConfigurationError, match=OTHERS[change]) as refused:
        open_ledger()
    assert re.search(f"The ledger in {where}", refused.value.message)
    assert not re.search(r"(?i)\bnew\b|\bbegin\b", str(refused.value))
    assert before == (b"" if is_server else file.read_bytes())


def test_run_under_way_and_a_command_of_another_version(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older command is refused at once, also in the middle of a transaction, and the run goes on as before.

    Once the schema is a newer one, the run writes no more: the first thing that it wants to write says why.
    """
    run, numbered = open_ledger(), schema.MIGRATIONS
    begin(run, "herons")
    with run.transaction():
        run.purchases.add_items(STAGING, CATALOG, [item("ferns")])
        monkeypatch.setattr(schema, "MIGRATIONS", numbered[:1])
        with pytest.raises(ConfigurationError, match="newer version"):
            open_ledger()
    monkeypatch.setattr(schema, "MIGRATIONS", numbered)
    change(run, "herons", AttemptState.ACCEPTED, AttemptState.SUCCEEDED)
    assert list(problems(open_ledger())) == []
    with run.database.transaction():
        run.database.execute("UPDATE ledger SET schema = schema + 1")
    with pytest.raises(LedgerError, match="this process is of another version, and buys nothing more") as why:
        begin(run, "ferns")
    assert why.value.code == "ledger_schema"
    assert len(run.database.rows(ATTEMPTS)) == 1


# -- migrations


class FirstSchema(Workshop):
    """A workshop whose ledger can be turned back into what the first version left."""

    @property
    def url(self) -> str:
        assert self.ledger_url is not None
        return self.ledger_url.get_secret_value()

    def to_the_first(self) -> None:
        """Take the later migrations back."""
        with self.ledger() as ledger:
            for statement in TO_THE_FIRST:
                ledger.database.execute(statement)

    def opened_by_the_first(self, monkeypatch: pytest.MonkeyPatch) -> Database:
        """Return the database as the first version left it, before this version looks at it."""
        self.to_the_first()
        with monkeypatch.context() as older:
            older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
            return open_database(self.url, may_upgrade=True)


@pytest.fixture
def shop(url: str, tmp_path: Path) -> FirstSchema:
    return FirstSchema(tmp_path / "home", Service(), SecretStr(url), UPGRADE)


def test_ledger_with_money_is_brought_up_to_date(shop: FirstSchema) -> None:
    """What was bought is not bought again, what was begun is followed, and a copy of the ledger as it was is beside.

    PostgreSQL's is brought up to date once a person has copied it.
    """
    service, is_server = shop.service, shop.url.startswith("postgres")

    def crash(name: str) -> None:
        raise Crash

    shop.run(many(3))
    service.at_job_end = crash
    shop.crash(many(5))
    service.at_job_end = lambda name: None
    with shop.ledger() as ledger:
        before = ledger.database.rows(ATTEMPTS)
    shop.to_the_first()
    sent = len(service.creates)
    if is_server:
        shop.confirm = None
        with pytest.raises(
            ConfigurationError, match=r"pg_dump.*PATTERNMILL_CONFIRM=upgrade.*Nothing was changed"
        ):
            shop.ledger()
        shop.confirm = UPGRADE

    assert shop.run(many(5)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 10
    assert {create.request_id for create in service.creates[:sent]} >= {row[0] for row in before}
    with shop.ledger() as ledger:
        assert schema.schema_of(ledger.database) == len(schema.MIGRATIONS)
        assert list(problems(ledger)) == []
    assert len(service.creates) == sent + 10 - len(before)
    copies = [*shop.home.glob("ledger.sqlite3.schema-001-*")]
    assert len(copies) == (not is_server)
    for copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        with closing(sqlite3.connect(copy)) as file:
            assert file.execute(ATTEMPTS).fetchall() == before


#: What identifies the holder of a lease, whether it beats, and how long it is watched until it has lost its lease.
HOLDERS: dict[str, tuple[dict[str, str], bool, float]] = {
    "beats": ({}, True, 0.0),
    "is silent, on another machine": ({"machine": "elsewhere"}, False, TAKEOVER_AFTER.total_seconds()),
    "is dead": ({"born": "0"}, False, 0.0),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_migration_while_a_run_goes_on(
    shop: FirstSchema, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that gives no sign for as long as a takeover waits has lost its lease all the same."""
    changes, beats, watched = HOLDERS[holder]
    with shop.ledger() as ledger, ledger.transaction():
        text = json.dumps({**this_process(), **changes})
        ledger.catalogs.claim_lease(STAGING, CATALOG, RunId("run-1"), text, over=None)
    database = shop.opened_by_the_first(monkeypatch)
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if beats and len(slept) == 5:
            database.execute("UPDATE leases SET beats = beats + 1")

    with closing(database):
        if beats:
            with pytest.raises(ConfigurationError, match="run-1 of 'spring' goes on"):
                schema.bring_up_to_date(database, sleep=sleep)
            assert schema.schema_of(database) == 1
        else:
            schema.bring_up_to_date(database, sleep=sleep)
            assert schema.schema_of(database) == len(schema.MIGRATIONS)
            assert sum(slept) == watched


def test_run_that_ends_does_not_shorten_the_watch_of_another(
    shop: FirstSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one beats after that, so nothing is migrated."""
    with shop.ledger() as ledger, ledger.transaction():
        for catalog in ("autumn", "spring"):
            holder = json.dumps({**this_process(), "machine": "elsewhere"})
            ledger.catalogs.claim_lease(STAGING, catalog, RunId(f"run of {catalog}"), holder, over=None)
    steps = [
        "UPDATE leases SET beats = beats + 1 WHERE catalog = 'spring'",
        "UPDATE leases SET holder = '' WHERE catalog = 'autumn'",
    ]
    database = shop.opened_by_the_first(monkeypatch)

    def sleep(seconds: float) -> None:
        database.execute(steps.pop())

    with closing(database):
        with pytest.raises(ConfigurationError, match="run of spring"):
            schema.bring_up_to_date(database, sleep=sleep)
        assert schema.schema_of(database) == 1
    assert not steps


# -- opening


def test_one_of_many_openers_makes_the_tables(open_ledger: OpenLedger, url: str) -> None:
    """They open it at once, on their own connections, and the others find it done."""
    if url.startswith("postgres"):
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("DROP SCHEMA public CASCADE")
            server.execute("CREATE SCHEMA public")
    with ThreadPoolExecutor(4) as pool:
        opened = [each.result() for each in [pool.submit(open_ledger) for _ in range(4)]]
    begin(opened[0], "herons")
    assert list(problems(opened[1])) == []


def test_opening_waits_for_one_who_writes_without_wal(tmp_path: Path) -> None:
    """SQLite itself does not wait there: an opener that changes the mode, among others, was refused at once."""
    path = tmp_path / "ledger.sqlite3"
    SqliteDatabase(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("PRAGMA journal_mode=DELETE")
        writer.execute("BEGIN IMMEDIATE")
        opening = pool.submit(SqliteDatabase, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.3)
        writer.execute("COMMIT")
        with closing(opening.result()) as opened:
            assert opened.rows("PRAGMA journal_mode") == [("wal",)]
