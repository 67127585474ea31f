"""The database that a fresh home's Prefect server begins with."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import MutableMapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from prefect_host.first_database import (
    REMEMBERED,
    keep_first_database,
    keeping_first_database,
    stage_first_database,
)
from prefect_host.own_server import DATABASE
from tests.other_user import without_root


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The directory of a server that has started, with its latest pages in the write-ahead log."""
    directory = tmp_path / "made"
    directory.mkdir()
    (directory / REMEMBERED).write_text("remembered")
    with closing(sqlite3.connect(directory / DATABASE)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE block_type (name)")
        database.execute("INSERT INTO block_type VALUES ('secret')")
        database.commit()
    return directory


def test_template_of_another_user_is_not_read(made: Path) -> None:
    """Prefect makes the database then, as in a first installation."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        fresh, template = Path(folder, "fresh"), Path(folder, "share")
        fresh.mkdir(mode=0o755)
        keep_first_database(made, template)
        template.chmod(0)
        with without_root():
            assert not stage_first_database(fresh, template)
        template.chmod(0o700)


def names(directory: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(directory / DATABASE)) as database:
        return list(database.execute("SELECT name FROM block_type"))


def test_a_fresh_home_begins_with_the_first_database(made: Path, tmp_path: Path) -> None:
    fresh, template = tmp_path / "fresh", tmp_path / "share" / "prefect"
    fresh.mkdir()
    assert not stage_first_database(fresh, template), "nothing is kept yet: Prefect makes it"
    keep_first_database(made, template)
    assert stage_first_database(fresh, template)
    assert names(fresh) == [("secret",)]
    assert (fresh / REMEMBERED).read_text() == "remembered"
    assert {path.stat().st_mode & 0o777 for path in fresh.iterdir()} == {0o600}


def test_a_database_in_use_is_left_as_it_is(made: Path, tmp_path: Path) -> None:
    template = tmp_path / "template"
    keep_first_database(made, template)
    (template / DATABASE).write_bytes(b"another one")
    assert stage_first_database(made, template)
    assert names(made) == [("secret",)]


def test_half_of_a_kept_database_is_none(made: Path, tmp_path: Path) -> None:
    """Prefect would think that its block types are registered."""
    fresh, template = tmp_path / "fresh", tmp_path / "template"
    fresh.mkdir()
    keep_first_database(made, template)
    (template / DATABASE).unlink()
    assert not stage_first_database(fresh, template)
    assert list(fresh.iterdir()) == []


def test_without_a_place_to_keep_it_nothing_is_kept(made: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, where the folder would be")
    keep_first_database(made, blocked / "template")
    assert not stage_first_database(tmp_path, blocked / "template")


def test_it_is_kept_when_the_server_has_started_and_before_it_answers(made: Path, tmp_path: Path) -> None:
    template, kept_by_then = tmp_path / "template", list[bool]()

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})

    async def send(message: MutableMapping[str, Any]) -> None:
        kept_by_then.append((template / DATABASE).exists())

    async def receive() -> MutableMapping[str, Any]:
        return {}

    app = keeping_first_database(server, made, template)
    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert kept_by_then == [True]
