"""What `patternmill doctor` finds: a table of states, with the fact that each one shows, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.main import run
from patternmill.ledger.brake import Pause
from patternmill.settings import load_settings
from patternmill.states import AttemptState
from patternmill.upkeep import facts
from patternmill.upkeep.facts import Fact, Level, own_facts
from prefect_host.server_facts import ServerRecord, facts_of, server_facts
from tests.unit.cli.ledgers import HERON, Past

DAY = 86_400
URL = "http://127.0.0.1:9/v1"
SERVICE = {"STUDIO_URL": URL, "API_KEY": "sk_key"}
PRICES = {"PATTERN_PRICE": "50", "PRODUCT_PRICE": "200"}
OK, WARNING, FAULT = Level.OK, Level.WARNING, Level.FAULT


@pytest.fixture(autouse=True)
def environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tests independent of the room on this machine's disks."""
    room(monkeypatch, facts.LITTLE_ROOM)


def room(patch: pytest.MonkeyPatch, free: int) -> None:
    usage = shutil.disk_usage("/")._replace(free=free)
    patch.setattr(shutil, "disk_usage", lambda place: usage)


@dataclass
class World:
    """The world that a case changes before the command looks at it."""

    past: Past
    home: Path
    patch: pytest.MonkeyPatch

    def bought(self, state: AttemptState = AttemptState.SUCCEEDED) -> None:
        """Buy a pattern and a product for 250, and bring another request to a state."""
        self.past.begin(HERON).make("H-1")
        if state is not AttemptState.SUCCEEDED:
            other = self.past.begin(HERON.replace("herons", "storks"))
            other.attempt(other.pattern("H-1"), state)

    def export(self, **values: str) -> None:
        for name, value in values.items():
            self.patch.setenv(f"PATTERNMILL_{name}", value)

    def saved(self, bought_before: float, saved_before: float | None) -> None:
        """Buy something and back it up, each so many seconds ago."""
        self.export(**SERVICE)
        self.bought()
        self.past.clock.now += bought_before
        if saved_before is not None:
            copy = self.home / "backups" / "ledger-1.sqlite3"
            copy.parent.mkdir()
            with sqlite3.connect(self.home / "ledger.sqlite3") as ledger:
                ledger.execute("VACUUM INTO ?", [str(copy)])
            made = self.past.clock.now - saved_before
            os.utime(copy, (made, made))

    def limited(self, budget: str, currency: str = "") -> None:
        self.bought()
        prices = {name: f"{price}.00" for name, price in PRICES.items()} if currency else PRICES
        self.export(**SERVICE, **prices, DAY_BUDGET=budget, CURRENCY=currency)

    def results_of(self, ledger: str) -> None:
        self.export(**SERVICE)
        folder = Path("results/spring/latest")
        folder.mkdir(parents=True)
        manifest = {"run_id": "r", "environment": "staging", "catalog": "spring", "ledger": ledger}
        (folder / "manifest.json").write_text(json.dumps(manifest | {"studio_url": URL, "ended_at": None}))

    def outdated(self) -> None:
        with sqlite3.connect(self.home / "ledger.sqlite3") as ledger:
            ledger.execute("UPDATE ledger SET schema = 1")

    def paused(self) -> None:
        self.past.ledger.brake.set(Pause("staging", "spring", "wrong prices", "anna"))


def nothing(world: World) -> None:
    """Leave the world as it is."""


LOCAL: dict[str, tuple[Callable[[World], None], str, Level, str]] = {
    # Nobody can write there, not even root.
    "a home that cannot be made": (lambda w: w.export(HOME="/proc/mill"), "home", FAULT, "/proc/mill"),
    "little room": (lambda w: room(w.patch, facts.NO_ROOM), "disk", WARNING, "100 MB free"),
    "no room": (lambda w: room(w.patch, facts.NO_ROOM - 1), "disk", FAULT, "free"),
    "no ledger": (lambda w: w.export(HOME="other"), "ledger", OK, "none yet"),
    "an older ledger": (World.outdated, "ledger", WARNING, "(schema 1)"),
    "its results": (lambda w: w.results_of(w.past.ledger.identity), "ledger", OK, "kB"),
    "results of another ledger": (lambda w: w.results_of("b"), "ledger", FAULT, "results/spring/latest"),
    "nothing that is in no backup": (lambda w: w.saved(DAY / 2, None), "backup", OK, "none in"),
    "purchases in no backup": (lambda w: w.saved(2 * DAY, None), "backup", WARNING, "2 purchases of more"),
    "a backup": (lambda w: w.saved(2 * DAY, 1.0), "backup", OK, "the last one is of 2027-01-17"),
    "an old backup": (lambda w: w.saved(2 * DAY, 5 * DAY), "backup", WARNING, "is of 2027-01-12"),
    "a budget": (lambda w: w.limited("313"), "limits", OK, "250 units spent or reserved today"),
    "most of a budget": (lambda w: w.limited("312"), "limits", WARNING, "250 units"),
    "a full budget": (lambda w: w.limited("250"), "limits", FAULT, "today's budget is used up"),
    "a budget in another unit": (lambda w: w.limited("€9.00", "EUR"), "limits", FAULT, "in another unit"),
    "a held request": (lambda w: w.bought(AttemptState.HELD), "requests", WARNING, "1 for a person"),
    "a pause": (World.paused, "brake", WARNING, "by anna: wrong prices"),
    "no service": (nothing, "service staging", OK, "embedded studio"),
    "a service that is away": (lambda w: w.export(**SERVICE), "service staging", FAULT, "no connection"),
}


@pytest.mark.parametrize("case", LOCAL)
def test_what_this_machine_shows(case: str, past: Past, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, about, level, text = LOCAL[case]
    change(World(past, home, monkeypatch))
    monkeypatch.setattr("patternmill.ledger.ledger.time.time", past.clock)
    fact = {fact.about: fact for fact in own_facts(load_settings(), Path())}[about]
    assert (fact.level, text in fact.text, bool(fact.remedy)) == (level, True, level is not OK), fact


#: An object of a server with only the fields that are read.
Shown = SimpleNamespace
POOL = Shown(is_paused=False, concurrency_limit=None, active_slots=None)
NAMES = ("bulk-import", "retry-failed", "catalog-refresh", "remake-patterns", "resume-crashed")


def deployment(name: str, **fields: Any) -> Any:
    return Shown(
        **{"name": name, "paused": False, "global_concurrency_limit": None, "schedules": []} | fields
    )


DEPLOYMENTS = [deployment(name) for name in NAMES]


def server(**fields: Any) -> ServerRecord:
    """Return the record of a server that is well, except for these fields."""
    well: Any = {"pool": POOL, "workers": [Shown(name="one", status="ONLINE")], "deployments": DEPLOYMENTS}
    return ServerRecord(**well | fields)


def one_more(**fields: Any) -> ServerRecord:
    scheduled = deployment("spring (staging)", **{"schedules": [Shown(active=True)]} | fields)
    return server(deployments=[*DEPLOYMENTS, scheduled])


OFFLINE, PAUSED = Shown(name="one", status="OFFLINE"), Shown(**vars(POOL) | {"is_paused": True})
FULL, NO_SLOT = Shown(is_paused=False, concurrency_limit=2, active_slots=2), Shown(limit=1, active_slots=1)
OFF, LATE = [Shown(active=False)], [Shown(name="import spring")]
SERVER: dict[str, tuple[ServerRecord, str, Level, str]] = {
    "a worker": (server(), "workers", OK, "1 online: one"),
    "no worker": (server(workers=[OFFLINE]), "workers", FAULT, "0 online"),
    "a paused pool": (server(pool=PAUSED), "workers", FAULT, "is paused"),
    "a full pool": (server(pool=FULL), "workers", WARNING, "2 of 2 slots"),
    "deployments": (server(), "deployments", OK, "5 registered"),
    "a missing one": (server(deployments=DEPLOYMENTS[1:]), "deployments", WARNING, "without bulk-import"),
    "a paused one": (one_more(paused=True), "deployments", WARNING, "paused: spring"),
    "a full one": (
        one_more(global_concurrency_limit=NO_SLOT),
        "deployments",
        WARNING,
        "no slot is free: spring",
    ),
    "a schedule": (one_more(), "schedules", OK, "active: spring (staging)"),
    "a schedule that is off": (
        one_more(schedules=OFF),
        "schedules",
        WARNING,
        "switched off: spring (staging)",
    ),
    "a late run": (server(late=LATE), "schedules", WARNING, "import spring"),
    "nobody told of a schedule": (one_more(), "automations", WARNING, "says it failed"),
    "a block that is gone": (server(lost_blocks=frozenset({"b1"})), "automations", FAULT, "b1"),
}


@pytest.mark.parametrize("case", SERVER)
def test_what_the_prefect_server_shows(case: str) -> None:
    record, about, level, text = SERVER[case]
    fact = {fact.about: fact for fact in facts_of(record)}[about]
    assert (fact.level, text in fact.text, bool(fact.remedy)) == (level, True, level is not OK), fact


def test_exit_code_is_that_of_the_gravest_fact(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That holds for unreadable settings, too. Nothing is made; no server is needed unless `up` has served here."""
    assert run(["doctor"]) == 0
    assert "ok       ledger: none yet" in capsys.readouterr().out
    assert not home.exists()
    home.mkdir()
    (home / "worker.log").touch()
    assert run(["doctor", "--json"]) == 3
    last = json.loads(capsys.readouterr().out)["facts"][-1]
    assert (last["about"], last["level"]) == ("prefect", "warning")
    monkeypatch.setenv("PREFECT_API_URL", "prefect.example")
    assert [fact.level for fact in server_facts(home)] == [FAULT]
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "many")
    assert run(["doctor", "--json"]) == 2
    (only,) = json.loads(capsys.readouterr().out)["facts"]
    assert (only["about"], only["level"]) == ("settings", "fault")
    assert Fact("disk", FAULT, "full.", "Make room.").lines == [
        "fault    disk: full",
        "           Make room.",
    ]
