"""Ledgers that earlier versions made are opened and carried on, and become what a new one is."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from patternmill.errors import LedgerError
from patternmill.identifiers import RequestId
from patternmill.ledger import database
from patternmill.ledger.database import SCHEMA_VERSION, open_database
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Ceiling
from patternmill.ledger.reports.export import LEFT_OUT, TABLES
from patternmill.ledger.reports.integrity import problems
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState

from .conftest import OpenLedger
from .samples import begin
from .test_approvals import UNDER, approved, drawn

OLD_VERSIONS = (1, 2, 3)
AMOUNTS = (
    ("attempts", "price"),
    ("spending", "amount"),
    ("approvals", "expected"),
    ("approvals", "worst"),
    ("approvals", "most_amount"),
    ("approvals", "amount"),
)
OLD_ATTEMPT = (
    "INSERT INTO items VALUES ('a', 'staging', 'spring', 'pattern', NULL, NULL, '{}', 1.0);"
    "INSERT INTO attempts (request_id, item_key, attempt, state, body, run_id, price, intended_at) "
    "VALUES ('a/1', 'a', 1, 'intended', {body}, 'run-1', 10, 1.0);"
    "INSERT INTO events (at, run_id, request_id, kind) VALUES (1.0, 'run-1', 'a/1', 'intended');"
    "INSERT INTO spending VALUES ('staging', '1970-01-01', 'run-1', 'pattern', 1, 10)"
)


def old_ledger(url: str, version: int) -> None:
    """Made by an earlier version, as it made a new one, with a request in it."""
    tables = (Path(__file__).parent / f"version_{version}.sql").read_text("utf-8")
    script = tables + ";" + OLD_ATTEMPT
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        path.parent.mkdir(parents=True)
        with sqlite3.connect(path) as connection:
            serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
            connection.executescript(
                _spelled(script, blob="BLOB", real="REAL", serial=serial, body="X'7B7D'")
            )
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as server:
        serial = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        server.execute(_spelled(script, blob="BYTEA", real="DOUBLE PRECISION", serial=serial, body="'{}'"))  # type: ignore[arg-type]
        server.execute("CREATE TABLE ledger_version (version INTEGER NOT NULL)")
        server.execute("INSERT INTO ledger_version VALUES (%s)", [version])


def _spelled(script: str, **spelling: str) -> str:
    for placeholder, spelled in spelling.items():
        script = script.replace("{" + placeholder + "}", spelled)
    return script


def tables(ledger: Ledger, url: str) -> list[tuple[object, ...]]:
    """Every column with its place, type and terms, every index and every check."""
    if url.startswith("sqlite"):
        return sorted(
            ledger.database.rows(
                'SELECT m.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_master m '
                "JOIN pragma_table_info(m.name) c"
            ),
            key=str,
        ) + ledger.database.rows(
            "SELECT m.name, i.name, c.name FROM sqlite_master m JOIN pragma_index_list(m.name) i "
            "JOIN pragma_index_info(i.name) c ORDER BY 1, 2, c.seqno"
        )
    return sorted(
        ledger.database.rows(
            "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, is_identity, "
            "coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public'"
        )
        + ledger.database.rows("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        + ledger.database.rows(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace"
        ),
        key=str,
    )


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_old_ledger_is_migrated(open_ledger: OpenLedger, url: str, version: int) -> None:
    """It keeps its content, and takes approvals."""
    old_ledger(url, version)
    ledger = open_ledger()
    assert SCHEMA_VERSION == 9
    known = ledger.attempt(RequestId("a/1"))
    assert known is not None and known.state is AttemptState.INTENDED
    approved(ledger)
    begin(ledger, "b", limits=UNDER, price=10)
    assert drawn(ledger) == (1, 10)
    assert list(problems(ledger)) == []
    assert open_ledger().attempt(RequestId("a/1")) == known


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_migrated_ledger_has_the_schema_of_a_new_one(
    open_ledger: OpenLedger, url: str, tmp_path: Path, version: int
) -> None:
    """The same tables, columns and indexes, from each version."""
    new = tables(open_ledger(), url)
    if url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path}/old/ledger.sqlite3"
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("DROP SCHEMA public CASCADE")
            server.execute("CREATE SCHEMA public")
    old_ledger(url, version)
    ledger = Ledger(open_database(url, Path("unused")))
    assert tables(ledger, url) == new
    ledger.close()


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_one_of_many_openers_migrates(open_ledger: OpenLedger, url: str, version: int) -> None:
    """At once, on connections of their own: the others find it done."""
    old_ledger(url, version)
    with ThreadPoolExecutor(4) as pool:
        opened = [each.result() for each in [pool.submit(open_ledger) for _ in range(4)]]
    assert all(each.attempt(RequestId("a/1")) is not None for each in opened)
    assert list(problems(opened[0])) == []


def test_opening_waits_for_one_who_writes_without_wal(tmp_path: Path) -> None:
    """SQLite itself does not wait there: an opener that changes the mode, among others, was refused at once."""
    path = tmp_path / "old" / "ledger.sqlite3"
    old_ledger(f"sqlite:///{path}", 2)
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(SqliteDatabase, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.3)
        writer.execute("COMMIT")
        assert opening.result().rows("PRAGMA journal_mode") == [("wal",)]
    writer.close()
    opening.result().close()


def test_failed_migration_leaves_the_old_ledger(
    open_ledger: OpenLedger, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All steps or none: the next program that opens it starts from the same version."""
    old_ledger(url, 1)
    for step in database._MIGRATIONS.glob("*.sql"):
        shutil.copy(step, tmp_path)
    (tmp_path / "3.sql").write_text("CREATE TABLE half (name TEXT);\nCREATE TABLE items (name TEXT);\n")
    with monkeypatch.context() as broken:
        broken.setattr(database, "_MIGRATIONS", tmp_path)
        with pytest.raises(LedgerError, match="items"):
            open_ledger()
    ledger = open_ledger()
    assert ledger.attempt(RequestId("a/1")) is not None
    assert "half" not in str(tables(ledger, url))
    ledger.close()


def _as_of_version_3(ledger: Ledger) -> None:
    """Take back what later versions added, as far as it matters here."""
    run = ledger.database.execute
    with ledger.transaction():
        for table in (
            "checkout_lines",
            "orders",
            "forecasts",
            "corrections",
            "merged_corrections",
            "column_mappings",
        ):
            run(f"DROP TABLE {table}")
        for table, column in (("items", "written"), ("attempts", "uptime"), ("runs", "number")):
            run(f"ALTER TABLE {table} DROP COLUMN {column}")
        if ledger.database.lock_suffix:
            for table, column in AMOUNTS:
                run(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE INTEGER")
            run("DELETE FROM ledger_version WHERE version > 3")
            run("INSERT INTO ledger_version VALUES (3)")
        else:
            run("PRAGMA user_version = 3")


def test_ledger_of_version_3_takes_large_amounts(open_ledger: OpenLedger) -> None:
    """Migrated by the next program that opens it; its content stays."""
    old = open_ledger()
    approved(old, Ceiling(2, 4, 5 * 2**31))
    begin(old, "a", price=7, limits=UNDER)
    with old.transaction():
        old.database.execute("UPDATE approvals SET most_amount = 100")
    _as_of_version_3(old)
    new = open_ledger()
    with new.transaction():
        new.database.execute("UPDATE approvals SET most_amount = :most", {"most": 5 * 2**31})
    begin(new, "b", price=2**32, limits=UNDER)
    assert drawn(new) == (2, 2**32 + 7)
    assert list(problems(new)) == []
    assert new.runs() == []


def test_export_covers_every_table_and_column(ledger: Ledger, url: str) -> None:
    """A new one is exported or left out on purpose."""
    if url.startswith("sqlite"):
        query = (
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
        )
    else:
        query = (
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND table_name <> 'ledger_version'"
        )
    made = {(table, column) for table, column in ledger.database.rows(query) if table not in LEFT_OUT}
    # The name under which Prefect keeps an answer is of no use to others.
    made -= {("approvals", "question")}
    assert made == {(table, column) for table in TABLES for column in TABLES[table][0].split(", ")}
