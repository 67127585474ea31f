"""What `patternmill doctor` finds: a table of states with the fact that each shows, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cli.commands.doctor import fact_lines, own_facts
from cli.main import run
from patternmill.errors import ServiceStopped
from patternmill.ledger.brake import Pause
from patternmill.settings import Settings, load_settings
from patternmill.states import AttemptState
from patternmill.upkeep import facts
from patternmill.upkeep.fact import Fact, Level, gravest
from prefect_host.server_facts import ServerRecord, facts_of, server_facts
from tests.unit.cli.ledgers import HERON, Past

DAY = 86_400
SERVICE = {"PATTERNMILL_STUDIO_URL": "http://127.0.0.1:9/v1", "PATTERNMILL_API_KEY": "sk_key"}
PRICES = {"PATTERNMILL_PATTERN_PRICE": "50", "PATTERNMILL_PRODUCT_PRICE": "200"}
OK, WARNING, FAULT = Level.OK, Level.WARNING, Level.FAULT


@pytest.fixture(autouse=True)
def environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's, and no machine's own room on its disks."""
    for name in list(os.environ):
        if name.startswith(("PATTERNMILL_", "PREFECT_")) and name != "PATTERNMILL_HOME":
            monkeypatch.delenv(name)
    room(monkeypatch, facts.LITTLE_ROOM)


def room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)


@dataclass
class World:
    """What a case changes before it is looked at."""

    past: Past
    home: Path
    patch: pytest.MonkeyPatch

    def bought(self, state: AttemptState = AttemptState.SUCCEEDED) -> None:
        """A pattern and a product, for 250."""
        begun = self.past.begin(HERON)
        begun.make("H-1")
        if state is not AttemptState.SUCCEEDED:
            other = self.past.begin(HERON.replace("herons", "storks"))
            other.attempt(other.pattern("H-1"), state)

    def export(self, **values: str) -> None:
        for name, value in values.items():
            self.patch.setenv(name, value)

    def back_up(self, age: float) -> None:
        copy = self.home / "backups" / "ledger-1.sqlite3"
        copy.parent.mkdir(exist_ok=True)
        with sqlite3.connect(self.home / "ledger.sqlite3") as ledger:
            ledger.execute("VACUUM INTO ?", [str(copy)])
        made = self.past.clock.now - age
        os.utime(copy, (made, made))

    def results_of(self, ledger: str) -> None:
        folder = Path("results/spring/latest")
        folder.mkdir(parents=True)
        record = {"run_id": "r", "environment": "staging", "catalog": "spring", "ledger": ledger}
        manifest = {**record, "studio_url": SERVICE["PATTERNMILL_STUDIO_URL"], "ended_at": None}
        (folder / "manifest.json").write_text(json.dumps(manifest))


def nothing(world: World) -> None:
    """As it is."""


def outdated(world: World) -> None:
    with sqlite3.connect(world.home / "ledger.sqlite3") as ledger:
        ledger.execute("UPDATE ledger SET schema = 1")


def paused(world: World) -> None:
    world.past.ledger.brake.set(Pause("staging", "spring", "wrong prices", "anna"))


def limited(budget: str, currency: str = "") -> Callable[[World], None]:
    def change(world: World) -> None:
        world.bought()
        prices = {name: f"{price}.00" for name, price in PRICES.items()} if currency else PRICES
        world.export(**SERVICE, **prices, PATTERNMILL_DAY_BUDGET=budget, PATTERNMILL_CURRENCY=currency)

    return change


def saved(bought_before: float, saved_before: float | None) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.export(**SERVICE)
        world.bought()
        world.past.clock.now += bought_before
        if saved_before is not None:
            world.back_up(saved_before)

    return change


def with_settings(**values: str) -> Callable[[World], None]:
    return lambda world: world.export(**values)


def with_results(ledger: str | None) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.export(**SERVICE)
        world.results_of(ledger or world.past.ledger.identity)

    return change


LOCAL: dict[str, tuple[Callable[[World], None], str, Level, str]] = {
    "a home": (nothing, "home", OK, "can be written"),
    # Nobody writes there, not even root.
    "a home that cannot be made": (with_settings(PATTERNMILL_HOME="/proc/mill"), "home", FAULT, "/proc/mill"),
    "room": (nothing, "disk", OK, "1.0 GB free"),
    "little room": (lambda world: room(world.patch, facts.NO_ROOM), "disk", WARNING, "100 MB free"),
    "no room": (lambda world: room(world.patch, facts.NO_ROOM - 1), "disk", FAULT, "free"),
    "a ledger": (nothing, "ledger", OK, ", schema 2, "),
    "no ledger": (with_settings(PATTERNMILL_HOME="other"), "ledger", OK, "none yet"),
    "an older ledger": (outdated, "ledger", WARNING, "(schema 1)"),
    "its results": (with_results(None), "ledger", OK, "kB"),
    "results of another ledger": (with_results("other"), "ledger", FAULT, "results/spring/latest"),
    "nothing that is in no backup": (saved(DAY / 2, None), "backup", OK, "none in"),
    "purchases in no backup": (saved(2 * DAY, None), "backup", WARNING, "2 purchases of more than a day ago"),
    "a backup": (saved(2 * DAY, 1.0), "backup", OK, "the last one is of 2027-01-17"),
    "an old backup": (saved(2 * DAY, 5 * DAY), "backup", WARNING, "the last one is of 2027-01-12"),
    "no budget": (nothing, "limits", OK, "no day budget"),
    "a budget": (limited("313"), "limits", OK, "250 units spent or reserved today"),
    "most of a budget": (limited("312"), "limits", WARNING, "250 units"),
    "a full budget": (limited("250"), "limits", FAULT, "today's budget is used up"),
    "a budget in another unit": (limited("€9.00", "EUR"), "limits", FAULT, "in another unit"),
    "nothing open": (lambda world: world.bought(), "requests", OK, "0 open"),
    "a request": (lambda world: world.bought(AttemptState.ACCEPTED), "requests", OK, "1 open"),
    "a held request": (lambda world: world.bought(AttemptState.HELD), "requests", WARNING, "1 for a person"),
    "a pause": (paused, "brake", WARNING, "by anna: wrong prices"),
    "no service": (nothing, "service staging", OK, "embedded studio"),
    "a service that is away": (with_settings(**SERVICE), "service staging", FAULT, "no connection"),
}


@pytest.mark.parametrize("case", LOCAL)
def test_what_this_machine_shows(case: str, past: Past, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, about, level, text = LOCAL[case]
    change(World(past, home, monkeypatch))
    monkeypatch.setattr("patternmill.ledger.ledger.time.time", past.clock)
    found = {fact.about: fact for fact in own_facts(load_settings(), Path())}
    assert (found[about].level, text in found[about].text) == (level, True), found[about]
    assert bool(found[about].remedy) == (level is not OK)


class Api:
    """A service as it answers."""

    def __init__(self, error: ServiceStopped | None) -> None:
        self.error = error

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def require_access(self) -> None:
        if self.error is not None:
            raise self.error


async def test_each_service_is_asked_with_its_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = {"url": "https://b.example/v1", "key": "sk_b"}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"production": profiles}))
    for name, value in SERVICE.items():
        monkeypatch.setenv(name, value)
    refusal = ServiceStopped("The service answered 401.", remedy="Check the key.")

    def connect(settings: Settings) -> Any:
        return Api(refusal if settings.environment == "production" else None)

    good, bad = sorted(await facts.service_facts(load_settings(), connect), key=lambda fact: fact.level)[::-1]
    assert good == Fact("service staging", OK, "http://127.0.0.1:9/v1 answers, and takes the key")
    assert bad == Fact("service production", FAULT, "The service answered 401.", "Check the key.")


POOL = {"is_paused": False, "concurrency_limit": None, "active_slots": None}
ONLINE = {"name": "one", "status": "ONLINE"}
NAMES = ("bulk-import", "retry-failed", "catalog-refresh", "remake-patterns", "resume-crashed")
DEPLOYMENTS = [{"name": name, "paused": False, "schedules": []} for name in NAMES]
WELL = ServerRecord(POOL, [ONLINE], DEPLOYMENTS)
SCHEDULED = {"name": "spring (staging)", "paused": False, "schedules": [{"active": True}]}
OFF = SCHEDULED | {"schedules": [{"active": False}]}


def one_more(deployment: dict[str, Any]) -> ServerRecord:
    return replace(WELL, deployments=[*DEPLOYMENTS, deployment])


SERVER: dict[str, tuple[ServerRecord, str, Level, str]] = {
    "nothing of ours": (ServerRecord(None), "deployments", WARNING, "none are registered"),
    "a worker": (WELL, "workers", OK, "1 online: one"),
    "no worker": (replace(WELL, workers=[ONLINE | {"status": "OFFLINE"}]), "workers", FAULT, "0 online"),
    "a paused pool": (replace(WELL, pool=POOL | {"is_paused": True}), "workers", FAULT, "is paused"),
    "a full pool": (
        replace(WELL, pool=POOL | {"concurrency_limit": 2, "active_slots": 2}),
        "workers",
        WARNING,
        "2 of 2 slots",
    ),
    "deployments": (WELL, "deployments", OK, "5 registered"),
    "a missing one": (
        replace(WELL, deployments=DEPLOYMENTS[1:]),
        "deployments",
        WARNING,
        "without bulk-import",
    ),
    "a paused one": (one_more(SCHEDULED | {"paused": True}), "deployments", WARNING, "paused: spring"),
    "a full one": (
        one_more(SCHEDULED | {"global_concurrency_limit": {"limit": 1, "active_slots": 1}}),
        "deployments",
        WARNING,
        "no slot is free: spring",
    ),
    "no schedule": (WELL, "schedules", OK, "none active"),
    "a schedule": (one_more(SCHEDULED), "schedules", OK, "active: spring (staging)"),
    "a schedule that is off": (one_more(OFF), "schedules", WARNING, "switched off: spring (staging)"),
    "a late run": (replace(WELL, late=[{"name": "import spring"}]), "schedules", WARNING, "import spring"),
    "nobody to tell": (WELL, "automations", OK, "0 of 8"),
    "nobody told of a schedule": (one_more(SCHEDULED), "automations", WARNING, "says it failed"),
    "a block that is gone": (replace(WELL, lost_blocks=frozenset({"b1"})), "automations", FAULT, "b1"),
}


@pytest.mark.parametrize("case", SERVER)
def test_what_the_prefect_server_shows(case: str) -> None:
    record, about, level, text = SERVER[case]
    found = {fact.about: fact for fact in facts_of(record)}
    assert (found[about].level, text in found[about].text) == (level, True), found[about]
    assert bool(found[about].remedy) == (level is not OK)


def test_server_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is needed, unless `up` has served here or one is configured."""
    assert [fact.level for fact in server_facts(home)] == [OK]
    home.mkdir()
    (home / "worker.log").touch()
    assert [fact.level for fact in server_facts(home)] == [WARNING]
    monkeypatch.setenv("PREFECT_API_URL", "prefect.example")
    assert [fact.level for fact in server_facts(home)] == [FAULT]


def test_exit_code_is_that_of_the_gravest_fact(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON, and for settings that cannot be read too. Nothing is made."""
    assert run(["doctor"]) == 0
    assert "ok       ledger: none yet" in capsys.readouterr().out
    assert not home.exists()
    home.mkdir()
    (home / "worker.log").touch()
    assert run(["doctor", "--json"]) == 3
    last = json.loads(capsys.readouterr().out)["facts"][-1]
    assert (last["about"], last["level"]) == ("prefect", "warning")
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "many")
    assert run(["doctor", "--json"]) == 2
    (only,) = json.loads(capsys.readouterr().out)["facts"]
    assert (only["about"], only["level"]) == ("settings", "fault")
    assert gravest([]) is OK
    assert list(fact_lines([Fact("disk", FAULT, "full.", "Make room.")])) == [
        "fault    disk: full",
        "           Make room.",
    ]
