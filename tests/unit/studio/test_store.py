"""The studio's file: another version's is refused, and two processes may open one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from studio.operations.context import Caller
from studio.pace import Pace
from studio.requests import CreatePattern
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Account, Store
from studio.store.database import OtherSchema

CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")


def test_file_of_another_studio_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "studio.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE job (seq INTEGER); PRAGMA user_version = 4")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OtherSchema, match=str(path)):
        Store(path)
    assert path.read_bytes() == before


def test_accounts_have_their_own_request_ids(tmp_path: Path) -> None:
    """The same requestId of two accounts is two requests."""
    store = Store(tmp_path / "studio.db")
    service = Service(store, home=tmp_path, pace=Pace.INSTANT)
    other = Caller(Account("other"), CALLER.origin)

    jobs = [
        service.patterns.create(CreatePattern(requestId="r", prompt=prompt), caller)["jobId"]
        for caller, prompt in ((CALLER, "ferns"), (other, "moons"), (other, "moons"))
    ]
    store.close()

    assert len(set(jobs)) == 2
    assert jobs[1] == jobs[2]


def test_two_processes_may_open_the_file(tmp_path: Path) -> None:
    """A command on keys opens it while a studio runs; the second finds its tables made."""
    first, second = Store(tmp_path / "studio.db"), Store(tmp_path / "studio.db")
    first.settings.set("feedback", "off")

    assert second.settings.get("feedback") == "off"
    first.close()
    second.close()
