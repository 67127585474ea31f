"""A crash at every durable write and every call of an import of three rows, then the same command.

The points come from a dry run that counts what leaves the process (see points.py), so none can be forgotten. Without
SOAK=1 each deed is done at the first and the last point of each kind. A power cut is a kill after which whatever was
not synced is lost.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import CHECKOUT, HURRY, Ended, Room, Zygote, some_rows
from tests.acceptance.power.disk import ForgetfulDisk
from tests.hostile import ExpectedRow, Hostile, Plan, Times
from tests.hostile.plan import CATALOG

AT_ONCE = 6
SOAK = bool(os.environ.get("SOAK"))
#: The kinds of points that an import of three rows has at least.
CALLS = {"patterns/create", "products/create", "jobs/get", "categories/list", "categories/get"}
WRITES = {"commit", "fsync", "replace"}
PLAN = Plan(catalog={"Cushion": CATALOG["Cushion"]}, patterns=Times(median=0.01), products=Times(median=0.01))
ROWS = some_rows(3, shared=3, goods=1)
_RECOLOR = {"refine:recolor": '{"palette": ["#1f3a5f"]}'}
#: A whole chain, a shorter one that shares nothing with it but its prompt, and a row without one.
CHAINED = [
    replace(ROWS[0], extras={"reference": "guide.png", **_RECOLOR, "refine:edit": '{"prompt": "no moon"}'}),
    replace(ROWS[1], extras=_RECOLOR),
    ROWS[2],
]
POWER_CUT = "power cut"
#: The points just after a purchase or a write; the power is cut at them where not every point is tried.
ACKNOWLEDGED = ("after patterns/create", "after products/create", "after commit", "after replace")


def room_for(folder: Path, service: Hostile, zygote: Zygote, rows: list[ExpectedRow] = ROWS) -> Room:
    return Room(folder / "room", service, rows, zygote, {"PATTERNMILL_REQUEST_TIMEOUT": "PT0.25S"})


def dry_run(folder: Path, zygote: Zygote, rows: list[ExpectedRow] = ROWS) -> tuple[list[str], list[str]]:
    """Return the points that a whole run passes, and the files that it opens for writing."""
    log = folder / "points"
    with Hostile(PLAN, folder / "dry") as service:
        ended = room_for(folder / "dry", service, zygote, rows).run(inject=(*HURRY, "--points", str(log)))
    assert ended.code == 0, ended.output
    lines = log.read_text().splitlines()
    return [line for line in lines if "#" in line], [line[7:] for line in lines if line.startswith("WRITES ")]


def test_every_kind_of_write_and_call_is_a_crash_point(tmp_path: Path, zygote: Zygote) -> None:
    """A run's files are all written to temporary files and renamed, and its calls and commits are all recorded."""
    points, written = dry_run(tmp_path, zygote)
    kinds = {re.sub(r"(before|after) (.*) #\d+", r"\2", point) for point in points}
    assert kinds >= CALLS | WRITES
    renamed = re.compile(r"/results-home/\.[a-z.]+\.[0-9a-f]{12}\.tmp$")
    assert [name for name in written if not renamed.search(name) and Path(name).is_file()] == []
    assert kinds - WRITES - {"symlink", "rename"} == CALLS, "a call that this test does not know"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "rows", [pytest.param(ROWS, id="rows"), pytest.param(CHAINED, id="chains", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("deed", ["kill", "raise", "hang", POWER_CUT])
def test_crash_at_every_point(tmp_path: Path, zygote: Zygote, deed: str, rows: list[ExpectedRow]) -> None:
    """Whatever happens at any one point, the next run completes every row, and each is bought once."""
    if deed == POWER_CUT and shutil.which("cc") is None:
        pytest.skip("a C compiler watches what is synced")
    points, _ = dry_run(tmp_path, zygote, rows)
    if rows is CHAINED:
        assert {"before references/create #1", "before refine/recolor #2", "after refine/edit #2"} <= set(
            points
        )
    points = points if SOAK else sampled(points, deed)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = list(
            pool.map(
                lambda number, point: crash_once(tmp_path / f"{number:03}", zygote, point, deed, rows),
                range(len(points)),
                points,
            )
        )
    assert [
        f"{deed} {point}: {faults}" for point, (_, faults) in zip(points, ends, strict=True) if faults
    ] == []
    hit = sum(is_hit for is_hit, _ in ends)
    print(f"{deed}: {hit} of {len(points)} points")
    assert hit > 0.7 * len(points), "too many points were not reached"


def sampled(points: list[str], deed: str) -> list[str]:
    """Return the first and the last point of each kind; a failure or hang after the deed is much like a kill."""
    kinds: dict[str, list[str]] = {}
    for point in points:
        if deed == "kill" or point.startswith(ACKNOWLEDGED if deed == POWER_CUT else "before"):
            kinds.setdefault(point.partition(" #")[0], []).append(point)
    # The number of commits and polls depends on how busy the machine is.
    ends = ((kind[len(kind) // 2],) if deed == POWER_CUT else (kind[0], kind[-1]) for kind in kinds.values())
    return sorted({point for end in ends for point in end}, key=points.index)


def crash_once(
    folder: Path, zygote: Zygote, point: str, deed: str, rows: list[ExpectedRow]
) -> tuple[bool, list[str]]:
    """Run with the deed at one point, then the same command again; return whether it was hit, and the faults."""
    with Hostile(PLAN, folder) as service:
        room = room_for(folder, service, zygote, rows)
        first, is_hit = (cut_power if deed == POWER_CUT else crash)(room, point, deed)
        second = room.run()
        faults = Evidence(room).faults() if second.code == 0 else [f"no end: {second.output}"]
    if deed == "raise" and "Traceback" in first.err:
        faults.append(f"a traceback on the terminal: {first.err[-2000:]}")
    return is_hit, faults


def crash(room: Room, point: str, deed: str) -> tuple[Ended, bool]:
    """Run one import with the deed at the point; one that hangs is killed in the end."""
    log = room.folder / "points"
    inject = (*HURRY, "--points", str(log), "--at", point, "--do", "kill" if deed == POWER_CUT else deed)
    started = room.start(inject=inject)
    until = time.monotonic() + 30
    while started.runs and time.monotonic() < until:
        if deed == "hang" and log.exists() and "HERE" in log.read_text():
            until = min(until, time.monotonic() + 0.4)
        time.sleep(0.01)
    ended = started.kill() if started.runs else started.wait()
    return ended, "HERE" in log.read_text()


def cut_power(room: Room, point: str, deed: str) -> tuple[Ended, bool]:
    """Kill one import and leave only what it has synced; it is not forked, as it has to load a library first."""
    disk = ForgetfulDisk(room.folder, room.folder.parent)
    plain: Any = SimpleNamespace(start=subprocess.Popen)
    watched = replace(
        room, zygote=plain, settings=room.settings | disk.environment | {"PYTHONPATH": str(CHECKOUT)}
    )
    try:
        return crash(watched, point, deed)
    finally:
        disk.cut_power()
