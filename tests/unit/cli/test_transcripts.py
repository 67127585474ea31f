"""What the verbs print, word for word: the commands of each file in transcripts/ are run again.

A file begins with its world, a function here, and with what is typed; if nothing is, there is no terminal. Lines of the
error output begin with `!`. With APPROVE=1 in the environment the files are rewritten; read them before you commit
them. A new file needs only its first lines and its commands.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli import main
from cli.services import offer_of
from patternmill.ledger.catalogs import CHANGES
from patternmill.ledger.records import this_process
from patternmill.planning.changes import Change, ChangeKind, ChangeVerdict
from patternmill.planning.items import Scope
from patternmill.service.studio_api import StudioApi
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Outcome
from tests.hostile.in_process import InProcessApi, Service
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, BegunRun, Past, troubled_run

PLACE = Path(__file__).parent / "transcripts"
SHEET = """sku,prompt,category,option:size,option:fabric,option:finish
A-1,blue herons,Cusion,50x50,linen,
A-2,blue herons,Cushion,50x50,Linnen,
A-3,,Mug,11oz,,glossy
A-4,green ferns,Mug,12oz,,matte
"""
GERMAN = "Herbst;;;;\nArt.-Nr.;Motiv;Produktart;Größe;Oberfläche\nA1;Reiher am Fluß;Becher;11 oz;glänzend\n"


@dataclass
class World:
    """The world that a case may change before its commands."""

    past: Past
    patch: pytest.MonkeyPatch


def troubled(world: World) -> BegunRun:
    run = troubled_run(world.past)
    update(world, run)
    return run


def update(world: World, run: BegunRun) -> None:
    with world.past.ledger.transaction():
        world.past.ledger.catalogs.update(run.record)


def claim_lease(world: World, run: BegunRun, **holder: object) -> None:
    """Make this process, or one that differs from it, the driver of a run."""
    record, process = run.record, json.dumps(this_process() | holder)
    with world.past.ledger.transaction():
        world.past.ledger.catalogs.claim_lease(
            record.environment, record.catalog, record.run_id, process, over=None
        )


def priced(world: World) -> None:
    troubled(world)
    served(world)
    world.patch.setenv("PATTERNMILL_PATTERN_PRICE", "50")
    world.patch.setenv("PATTERNMILL_PRODUCT_PRICE", "200")


def served(world: World) -> None:
    """Set up a service in memory, with the offer of the embedded studio."""
    service = Service(offer=offer_of(load_settings()))
    world.patch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(service))
    world.patch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    world.patch.setenv("PATTERNMILL_API_KEY", "key")


def history(world: World) -> None:
    """Record eleven runs of a catalog, a troubled one, and one whose process was killed; set a budget for the day."""
    for number in range(11):
        run = world.past.begin(FERN, catalog="autumn")
        run.make("F-1") if number == 10 else None
        run.end(Outcome.COMPLETED)
    world.past.flow_run = "0f7c"
    troubled(world)
    killed = world.past.begin(HERON, FERN, catalog="winter")
    killed.attempt(killed.pattern("F-1"), AttemptState.ACCEPTED)
    orders = world.past.begin(HERON, catalog=Scope("staging", "spring").of_orders.catalog)
    orders.attempt(orders.pattern("H-1"), AttemptState.ACCEPTED)
    claim_lease(world, killed, born="long ago")
    claim_lease(world, orders)
    world.past.clock.now += 3600
    world.patch.setenv("PATTERNMILL_DAY_BUDGET", "5000")


def in_euro(world: World) -> None:
    world.past.currency = "EUR"
    troubled(world)
    world.patch.setenv("PATTERNMILL_CURRENCY", "EUR")
    world.patch.setenv("PATTERNMILL_DAY_BUDGET", "500.00")


def in_another_unit(world: World) -> None:
    in_euro(world)
    world.patch.setenv("PATTERNMILL_CURRENCY", "JPY")
    world.patch.setenv("PATTERNMILL_DAY_BUDGET", "500")


def refreshed(world: World) -> None:
    """Refresh spring 10 hours ago and autumn 30 hours ago, whose later refresh failed; import summer."""
    for catalog, outcome, hours in (
        ("autumn", Outcome.COMPLETED_WITH_FAILURES, 20),
        ("spring", Outcome.COMPLETED, 10),
        ("autumn", Outcome.FAILED, 0),
    ):
        world.past.begin(HERON, catalog=catalog, options={CHANGES: {"added": 1}}).end(outcome)
        world.past.clock.now += hours * 3600
    world.past.begin(HERON, catalog="summer").end(Outcome.COMPLETED)


def retried(world: World) -> None:
    """Fail H-2's product in the first run and make it in the second; autumn has a row of that name too."""
    first = world.past.begin(HERON, HERON_MUG)
    first.make("H-1")
    first.attempt(first.product("H-2"), AttemptState.FAILED)
    first.end()
    second = world.past.begin(HERON, HERON_MUG)
    second.attempt(second.product("H-2"), AttemptState.SUCCEEDED, 2)
    second.end(Outcome.COMPLETED)
    world.past.begin(HERON_MUG, catalog="autumn")
    world.past.begin(HERON_MUG, environment="production")


def retired(world: World) -> None:
    """Remove H-1 from the source, and have a person give up F-1."""
    run = world.past.begin(HERON)
    run.make("H-1")
    run.end(Outcome.COMPLETED)
    update(world, run)
    gone = world.past.begin(FERN)
    held = gone.attempt(gone.pattern("F-1"), AttemptState.HELD)
    before = next(world.past.ledger.catalogs.rows("staging", "spring"))
    detail = json.dumps({"decision": "write_off", "by": "A. Weaver", "reason": "refunded"})
    with world.past.ledger.transaction():
        change = Change("H-1", ChangeKind.REMOVED, (), before, ChangeVerdict.RETIRED)
        world.past.ledger.catalogs.add_changes(gone.record.run_id, [change])
        world.past.ledger.catalogs.update(gone.record.with_options({CHANGES: {"retired": 1}}))
        world.past.ledger.record_event(gone.record.run_id, "settled", held.request_id, detail=detail)


def two_catalogs(world: World) -> None:
    """Record two catalogs, and a run of the first one that another run kept from beginning."""
    world.past.begin(HERON).end()
    world.past.begin(HERON, catalog="autumn").end()
    world.past.begin(HERON).end(Outcome.SKIPPED_OVERLAP)


def undecided(world: World) -> None:
    """Leave F-1 of spring in doubt, too recently for a person, and H-1 held; a living run drives autumn."""
    run = world.past.begin(FERN, HERON)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("H-1"), AttemptState.HELD)
    other = world.past.begin(FERN, catalog="autumn")
    other.attempt(other.pattern("F-1"), AttemptState.INTENDED)
    claim_lease(world, other, pid=1, machine="looms/1")


def many_held(world: World) -> None:
    run = world.past.begin(HERON, FERN, FOX)
    for sku in ("H-1", "F-1", "X-1"):
        run.attempt(run.pattern(sku), AttemptState.HELD)
    world.patch.setattr("cli.commands.settle._MOST_ITEMS", 2)


def of_a_service(world: World) -> None:
    troubled(world)
    served(world)
    Path("picks.csv").write_text("sku,decision\nS 1,pick\n")
    Path("spring.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")


def another_service(world: World) -> None:
    of_a_service(world)
    world.patch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.invalid/v1")


def no_ledger(world: World) -> None:
    world.patch.setenv("PATTERNMILL_HOME", "elsewhere")


def sheet(world: World) -> None:
    Path("spring.csv").write_text(SHEET, encoding="utf-8")


def foreign_sheets(world: World) -> None:
    Path("spring.csv").write_bytes(GERMAN.encode("cp1252"))
    run_id = world.past.begin(HERON).record.run_id
    Path("rows.csv").write_text(f"sku,prompt,category,run\nH-1,herons,Mug,{run_id}\n")


def planned(world: World) -> None:
    """Make a catalog of two rows, and sheets that change it."""
    served(world)
    run = world.past.begin(HERON, HERON_MUG)
    run.make("H-1", "H-2")
    run.end(Outcome.COMPLETED)
    update(world, run)
    header = "sku,prompt,category,option:size,option:fabric,option:finish\n"
    Path("spring.csv").write_text(
        f"{header}H-1,grey herons,Cushion,50x50,linen,\nN-1,owls,Mug,11oz,,matte\n,owls,Mug,,,\n"
    )


def nothing(world: World) -> None:
    """Leave the ledger without a past."""


@pytest.mark.parametrize("name", sorted(path.stem for path in PLACE.glob("*.txt")))
def test_transcript(
    name: str,
    past: Past,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    approved: Callable[[str, Path], None],
) -> None:
    path = PLACE / f"{name}.txt"
    given = path.read_text(encoding="utf-8")
    header = dict(re.findall(r"^# (world|typed): (.*)$", given, re.MULTILINE))
    answers: list[str] = []
    if "typed" in header:
        answers = request.getfixturevalue("answers")
        answers += header["typed"].split(" | ")
    monkeypatch.setattr("patternmill.ledger.database.Clock.__call__", lambda clock: past.clock.now)
    monkeypatch.setenv("LOGNAME", "anna")
    globals()[header["world"]](World(past, monkeypatch))
    lines = [*(f"# {word}: {text}" for word, text in header.items()), ""]
    for command in re.findall(r"^\$ patternmill (.*)$", given, re.MULTILINE):
        code = main.run(shlex.split(command))
        out, errors = capsys.readouterr()
        lines += [f"$ patternmill {command}", *out.splitlines()]
        lines += [*(f"! {line}" for line in errors.splitlines()), f"exit code {code}", ""]
    for mapping in sorted(tmp_path.rglob("*.mapping.toml")):
        lines += [f"== {mapping.relative_to(tmp_path)}", mapping.read_text(encoding="utf-8")]
    text = "\n".join(lines)
    assert answers == [] and "canary" not in text.replace("key:canary@", "")
    assert not Path("elsewhere").exists()
    text = text.replace(str(tmp_path), "HERE").replace(f"process {os.getpid()}", "process PID")
    approved(re.sub(r"[\d,]+ bytes", "N bytes", text), path)
