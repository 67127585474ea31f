"""The schema: made once, brought up to date with money in it, and refused untouched by the wrong version."""

from __future__ import annotations

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError, LedgerError
from patternmill.identifiers import RunId
from patternmill.ledger import schema
from patternmill.ledger.leases import TAKEOVER_AFTER, this_process
from patternmill.ledger.ledger import Ledger, open_database
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
#: How the first schema is had back from the second one.
TO_THE_FIRST = (
    "DROP TABLE pauses",
    "ALTER TABLE ledger DROP COLUMN brake",
    "ALTER TABLE leases DROP COLUMN brake",
    "ALTER TABLE run_groups DROP COLUMN brake",
    "UPDATE ledger SET schema = 1",
)


def content(url: str) -> object:
    """The file's bytes, or what the server's tables have."""
    if url.startswith("sqlite"):
        return Path(url.removeprefix("sqlite:///")).read_bytes()
    with psycopg.connect(url) as server:
        return [(name, server.execute(f"SELECT * FROM {name}").fetchall()) for name in tables_of(url)]  # type: ignore[arg-type]


def tables_of(url: str) -> dict[str, list[str]]:
    """The tables of a database with their columns."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            return columns(file)
    query = (
        "SELECT table_name, array_agg(column_name::text ORDER BY column_name) FROM information_schema.columns "
        "WHERE table_schema = 'public' GROUP BY table_name ORDER BY table_name"
    )
    with psycopg.connect(url) as server:
        return dict(server.execute(query).fetchall())


def columns(file: sqlite3.Connection) -> dict[str, list[str]]:
    names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'")
    return {
        name: sorted(row[1] for row in file.execute(f"PRAGMA table_info({name})"))
        for (name,) in names.fetchall()
    }


@pytest.mark.parametrize("change", OTHERS)
def test_ledger_of_another_version_is_refused_untouched(
    open_ledger: OpenLedger, url: str, change: str
) -> None:
    """Named by its folder, or by its database without the password; nobody is told to begin another one."""
    ledger = open_ledger()
    begin(ledger, "herons")
    with ledger.database.transaction():
        ledger.database.execute(change)
    ledger.close()
    before = content(url)

    with pytest.raises(ConfigurationError, match=OTHERS[change]) as refused:
        open_ledger()

    assert content(url) == before
    assert not re.search(r"(?i)\bnew\b|\bbegin\b", str(refused.value))
    where = r"PostgreSQL \(patternmill_test_\w+ on 127.0.0.1:5432\), schema public"
    if url.startswith("sqlite"):
        where = re.escape(f"{Path(url.removeprefix('sqlite:///')).parent} (ledger.sqlite3)")
    assert re.search(f"The ledger in {where}", refused.value.message)


def test_command_of_another_version_leaves_a_run_under_way_alone(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused at once, also in the middle of a transaction; the run that goes on writes and ends as before."""
    run = open_ledger()
    begin(run, "herons")
    with run.transaction():
        run.purchases.add_items(STAGING, CATALOG, [item("ferns")])
        with monkeypatch.context() as older, pytest.raises(ConfigurationError, match="newer version"):
            older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
            open_ledger()
    change(run, "herons", AttemptState.ACCEPTED, AttemptState.SUCCEEDED)
    begin(run, "ferns")
    assert list(problems(open_ledger())) == []


def test_ledger_of_a_program_that_was_killed_is_refused_untouched(tmp_path: Path) -> None:
    """What its last commits left beside the file stays there."""
    path = tmp_path / "ledger.sqlite3"
    killed = SqliteDatabase(path)
    killed.execute("UPDATE ledger SET schema = 99")
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        (copy.parent / name).write_bytes((tmp_path / name).read_bytes())
    before = {file.name: file.read_bytes() for file in copy.parent.iterdir()}
    with pytest.raises(ConfigurationError, match="newer version"):
        SqliteDatabase(copy)
    assert {name: (copy.parent / name).read_bytes() for name in before} == before
    killed.close()


# -- migrations


class FirstSchema(Workshop):
    """A workshop whose ledger can be had as the first version left it."""

    @property
    def url(self) -> str:
        assert self.ledger_url is not None
        return self.ledger_url.get_secret_value()

    def to_the_first(self) -> None:
        """Take the later migrations back, and check that nothing of them is left."""
        with self.ledger() as ledger:
            for statement in TO_THE_FIRST:
                ledger.database.execute(statement)
        with closing(sqlite3.connect(":memory:")) as first:
            first.executescript(schema.MIGRATIONS[0].replace("{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT"))
            assert tables_of(self.url) == columns(first)


def crash(name: str) -> None:
    raise Crash


@pytest.fixture
def shop(url: str, tmp_path: Path) -> FirstSchema:
    return FirstSchema(tmp_path / "home", Service(), SecretStr(url), UPGRADE)


def test_ledger_with_money_is_brought_up_to_date(shop: FirstSchema) -> None:
    """What was bought is not bought again, what was begun is followed, and a copy of the ledger as it was is beside."""
    service = shop.service
    shop.run(many(3))
    service.at_job_end = crash
    shop.crash(many(5))
    service.at_job_end = lambda name: None
    with shop.ledger() as ledger:
        before = ledger.database.rows(ATTEMPTS)
    shop.to_the_first()
    sent = len(service.creates)

    ended = shop.run(many(5))

    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 10
    assert {create.request_id for create in service.creates[:sent]} >= {row[0] for row in before}
    with shop.ledger() as ledger:
        assert schema.schema_of(ledger.database) == len(schema.MIGRATIONS)
        assert list(problems(ledger)) == []
    assert shop.run(many(5)).outcome is Outcome.COMPLETED
    assert len(service.creates) == sent + 10 - len(before)
    copies = [*shop.home.glob("ledger.sqlite3.schema-001-*")]
    assert len(copies) == shop.url.startswith("sqlite")
    for copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        with closing(sqlite3.connect(copy)) as file:
            assert file.execute(ATTEMPTS).fetchall() == before


def test_postgres_is_brought_up_to_date_once_a_person_has_copied_it(
    postgres_url: str, tmp_path: Path
) -> None:
    shop = FirstSchema(tmp_path / "home", Service(), SecretStr(postgres_url), UPGRADE)
    with shop.ledger():
        pass
    shop.to_the_first()
    shop.confirm = None
    refusal = r"pg_dump.*PATTERNMILL_CONFIRM=upgrade.*Nothing was changed"
    with pytest.raises(ConfigurationError, match=refusal):
        shop.ledger()
    assert "pauses" not in tables_of(shop.url)


HOLDERS = {
    "beats": ({}, True),
    "is silent, on another machine": ({"machine": "elsewhere"}, False),
    "is dead": ({"born": "0"}, False),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_migration_while_a_run_goes_on(
    shop: FirstSchema, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that gives no sign for as long as a takeover waits has lost its lease all the same."""
    changes, beats = HOLDERS[holder]
    with shop.ledger() as ledger, ledger.transaction():
        text = json.dumps({**this_process(), **changes})
        hold = ledger.catalogs.claim_lease(STAGING, CATALOG, RunId("run-1"), text, over=None)
    assert hold is not None
    shop.to_the_first()
    slept = 0.0
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        database = open_database(shop.url, Path("unused"), may_upgrade=True)

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds
        if beats and slept > 2:
            database.execute("UPDATE leases SET beats = beats + 1")

    try:
        if beats:
            with pytest.raises(ConfigurationError, match="run-1 of 'spring' goes on"):
                schema.bring_up_to_date(database, sleep=sleep)
            assert schema.schema_of(database) == 1
        else:
            schema.bring_up_to_date(database, sleep=sleep)
            assert schema.schema_of(database) == len(schema.MIGRATIONS)
            assert slept == (0 if holder == "is dead" else TAKEOVER_AFTER.total_seconds())
    finally:
        database.close()


def test_process_of_an_older_version_writes_no_more(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with a lease nor without: the first thing that it wants to write says why."""
    older = open_ledger()
    begin(older, "herons")
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, "CREATE TABLE later (a INTEGER)"])
    with older.database.transaction():
        older.database.execute("UPDATE ledger SET schema = schema + 1")
    with pytest.raises(LedgerError, match="this process is of another version, and buys nothing more") as why:
        begin(older, "ferns")
    assert why.value.code == "ledger_schema"
    assert older.database.rows("SELECT key FROM items") == [("herons",)]


# -- opening


def test_one_of_many_openers_makes_the_tables(open_ledger: OpenLedger, url: str) -> None:
    """At once, on connections of their own: the others find it done."""
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
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("PRAGMA journal_mode=DELETE")
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(SqliteDatabase, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.3)
        writer.execute("COMMIT")
        assert opening.result().rows("PRAGMA journal_mode") == [("wal",)]
    writer.close()
    opening.result().close()


def test_damaged_file_is_found(tmp_path: Path) -> None:
    """SQLite: overwritten pages are found, at opening or by SQLite's own check."""
    path = tmp_path / "ledger.sqlite3"
    with Ledger(SqliteDatabase(path)) as ledger, ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item(f"p{number}") for number in range(500)])
    raw = bytearray(path.read_bytes())
    for page in range(8, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(raw)
    with suppress(LedgerError), Ledger(SqliteDatabase(path)) as ledger:
        assert ledger.database.rows("PRAGMA integrity_check") != [("ok",)]
