"""One schema: a ledger with another one is refused as it is, by its digest, and a new one is made once."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from patternmill.errors import ConfigurationError
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState
from tests.integrity import problems

from .conftest import OpenLedger
from .samples import CATALOG, STAGING, begin, change, item

#: What other versions may have made: with another digest, without the table for it, and with that one empty.
OTHERS = (
    "UPDATE documents SET raw = 'other' WHERE name = 'schema'",
    "DROP TABLE documents",
    "DELETE FROM documents",
)


def content(url: str) -> object:
    """The file's bytes, or what the server's tables have."""
    if url.startswith("sqlite"):
        return Path(url.removeprefix("sqlite:///")).read_bytes()
    with psycopg.connect(url) as server:
        names = server.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
        )
        return [(name, server.execute(f"SELECT * FROM {name}").fetchall()) for (name,) in names.fetchall()]  # type: ignore[arg-type]


@pytest.mark.parametrize("change", OTHERS)
def test_ledger_with_other_tables_is_refused_untouched(
    open_ledger: OpenLedger, url: str, change: str
) -> None:
    """Named by its folder, or by its database without the password; nobody is told to begin another one."""
    ledger = open_ledger()
    begin(ledger, "herons")
    with ledger.transaction():
        ledger.database.execute(change)
    ledger.close()
    before = content(url)

    with pytest.raises(ConfigurationError, match="another version") as refused:
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
        with monkeypatch.context() as newer, pytest.raises(ConfigurationError, match="another version"):
            newer.setattr("patternmill.ledger.database.SCHEMA_DIGEST", "newer")
            open_ledger()
    change(run, "herons", AttemptState.ACCEPTED, AttemptState.SUCCEEDED)
    begin(run, "ferns")
    assert list(problems(open_ledger())) == []


def test_ledger_of_a_program_that_was_killed_is_refused_untouched(tmp_path: Path) -> None:
    """What its last commits left beside the file stays there."""
    path = tmp_path / "ledger.sqlite3"
    killed = SqliteDatabase(path)
    killed.execute("UPDATE documents SET raw = 'other' WHERE name = 'schema'")
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        (copy.parent / name).write_bytes((tmp_path / name).read_bytes())
    before = {file.name: file.read_bytes() for file in copy.parent.iterdir()}
    with pytest.raises(ConfigurationError, match="another version"):
        SqliteDatabase(copy)
    assert {name: (copy.parent / name).read_bytes() for name in before} == before
    killed.close()


def test_one_of_many_openers_makes_the_tables(open_ledger: OpenLedger) -> None:
    """At once, on connections of their own: the others find it done."""
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
