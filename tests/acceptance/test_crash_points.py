"""A kill, an error and a hang at every durable write and every call of an import of three rows, then the same command.

The points come from a dry run that counts what leaves the process (see points.py), so none can be forgotten. Without
SOAK=1 each deed is done at the first and the last point of each kind.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Ended, Room, Zygote, some_rows
from tests.hostile import ExpectedRow, Hostile, Plan, Times
from tests.hostile.plan import CATALOG

AT_ONCE = 6
SOAK = bool(os.environ.get("SOAK"))
#: The points of an import of three rows, at least.
CALLS = {"patterns/create", "products/create", "jobs/get", "categories/list", "categories/get"}
WRITES = {"commit", "fsync", "replace"}
PLAN = Plan(catalog={"Cushion": CATALOG["Cushion"]}, patterns=Times(median=0.01), products=Times(median=0.01))


def points_of(room: Room, log: Path) -> tuple[list[str], list[str]]:
    """The points that a whole run passes, and the files that it opens for writing."""
    ended = room.run(inject=(*HURRY, "--points", str(log)))
    assert ended.code == 0, ended.output
    lines = log.read_text().splitlines()
    return [line for line in lines if "#" in line], [line[7:] for line in lines if line.startswith("WRITES ")]


ROWS = some_rows(3, shared=3, goods=1)
_RECOLOR = {"refine:recolor": '{"palette": ["#1f3a5f"]}'}
#: A whole chain, a shorter one that shares nothing with it but its prompt, and a row without one.
CHAINED = [
    replace(ROWS[0], extras={"reference": "guide.png", **_RECOLOR, "refine:edit": '{"prompt": "no moon"}'}),
    replace(ROWS[1], extras=_RECOLOR),
    ROWS[2],
]


def room_for(folder: Path, service: Hostile, zygote: Zygote, rows: list[ExpectedRow] = ROWS) -> Room:
    """Three rows of two prompts."""
    settings = {"PATTERNMILL_REQUEST_TIMEOUT": "PT0.25S"}
    return Room(folder / "room", service, rows, zygote, settings)


def dry_run(folder: Path, zygote: Zygote, rows: list[ExpectedRow] = ROWS) -> tuple[list[str], list[str]]:
    with Hostile(PLAN, folder / "dry") as service:
        return points_of(room_for(folder / "dry", service, zygote, rows), folder / "points")


def test_every_kind_of_write_and_call_is_a_crash_point(tmp_path: Path, zygote: Zygote) -> None:
    """A run's files are all written to temporary files and renamed, and its calls and commits are all recorded."""
    points, written = dry_run(tmp_path, zygote)
    kinds = {re.sub(r"(before|after) (.*) #\d+", r"\2", point) for point in points}
    assert kinds >= CALLS | WRITES
    renamed = re.compile(r"/results-home/\.[a-z.]+\.[0-9a-f]{12}\.tmp$")
    assert [name for name in written if not renamed.search(name) and Path(name).is_file()] == []
    asked = {line.split(" ", 1)[1].split(" #")[0] for line in points if line.startswith("before")} - WRITES
    assert asked - {"symlink", "rename"} == CALLS, "a call that this test does not know"


@dataclass(frozen=True)
class Case:
    number: int
    point: str
    deed: str


@dataclass(frozen=True)
class Found:
    case: Case
    hit: bool
    faults: Sequence[str]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("deed", ["kill", "raise", "hang"])
def test_crash_at_every_point(tmp_path: Path, zygote: Zygote, deed: str) -> None:
    """Whatever happens at any one point, the next run makes every row, each bought once."""
    points, _ = dry_run(tmp_path, zygote)
    crash_everywhere(tmp_path, zygote, deed, points, ROWS)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("deed", ["kill", "raise", "hang"])
def test_crash_at_every_point_of_a_chain(tmp_path: Path, zygote: Zygote, deed: str) -> None:
    """The same of rows with a reference and refinements, whose requests are points too."""
    points, _ = dry_run(tmp_path, zygote, CHAINED)
    assert {"before references/create #1", "before refine/recolor #2", "after refine/edit #2"} <= set(points)
    crash_everywhere(tmp_path, zygote, deed, points, CHAINED)


def crash_everywhere(
    folder: Path, zygote: Zygote, deed: str, points: list[str], rows: list[ExpectedRow]
) -> None:
    if not SOAK:
        points = sampled(points, deed)
    cases = [Case(number, point, deed) for number, point in enumerate(points)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda case: crash_once(folder, zygote, case, rows), cases))
    assert [f"{f.case.deed} {f.case.point}: {f.faults}" for f in found if f.faults] == []
    hit = sum(f.hit for f in found)
    print(f"{deed}: {hit} of {len(cases)} points")
    assert hit > 0.9 * len(cases), "too many points were not reached"


def sampled(points: list[str], deed: str) -> list[str]:
    """Return the first and the last point of each kind; what fails or hangs after it was done is much like a kill."""
    kinds: dict[str, list[str]] = {}
    for point in points:
        if deed == "kill" or point.startswith("before"):
            kinds.setdefault(point.partition(" #")[0], []).append(point)
    return sorted({end for kind in kinds.values() for end in (kind[0], kind[-1])}, key=points.index)


def crash_once(folder: Path, zygote: Zygote, case: Case, rows: list[ExpectedRow]) -> Found:
    """Run with the deed at one point, then the same command again."""
    place = folder / f"{case.number:03}"
    with Hostile(PLAN, place) as service:
        room = room_for(place, service, zygote, rows)
        first = crash(room, case)
        second = room.run()
        faults = Evidence(room).faults() if second.code == 0 else [f"no end: {second.output}"]
    if case.deed == "raise" and "Traceback" in first.err:
        faults.append(f"a traceback on the terminal: {first.err[-2000:]}")
    return Found(case, "HERE" in (room.folder / "points").read_text(), faults)


def crash(room: Room, case: Case) -> Ended:
    """One import to whom it happens; one that hangs is killed in the end."""
    log = room.folder / "points"
    inject = (*HURRY, "--points", str(log), "--at", case.point, "--do", case.deed)
    started = room.start(inject=inject)
    until = time.monotonic() + 30
    while started.runs and time.monotonic() < until:
        if case.deed == "hang" and log.exists() and "HERE" in log.read_text():
            until = min(until, time.monotonic() + 0.4)
        time.sleep(0.01)
    return started.kill() if started.runs else started.wait()
