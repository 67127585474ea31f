"""`python -m benchmarks.run [cost] [scale] [--rows N]`: what rows cost beside peers, and what a large sheet takes.

`cost`: the program, shown on its own Prefect server, beside plain httpx. `scale`: check, plan and whole run of 100,000
rows, the last unshown and with instant jobs, beside reading the same file. Exits with 1 if a run did not do its job.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.rooms import ROOT

_WINDOW, _TIMEOUT = 500, 3600.0
_MEGABYTE = 1024 if sys.platform != "darwin" else 1024 * 1024
_MILL = [sys.executable, "-P", "-m", "cli.main"]
#: Instant jobs measure what a row costs, not how fast a service is asked that nobody knows.
_UNPACED = """
from patternmill.service.pacing import Bucket
async def at_once(*_):
    pass
Bucket.turn = at_once
from cli.main import main
main()
"""
#: Holds the Prefect server of a home, so that its CPU is not the program's.
_SERVER = """
import asyncio, sys
from pathlib import Path
from cli.server import prefect_server
async def hold():
    async with prefect_server(Path(sys.argv[1]), print) as server:
        print(server.address, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(hold())
"""
#: What any program does with the file: reads it, and gives each row an ID.
_READ = """
import csv, json, sys, uuid
for row in csv.DictReader(open(sys.argv[1])):
    uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(row, sort_keys=True))
"""


@dataclass(frozen=True)
class Usage:
    """What a process has used. Its children count as far as it has waited for them: a Prefect server does not."""

    code: int
    wall: float
    cpu: float
    peak_mb: float
    output: str


def used_by(command: list[str], folder: Path, **env: str) -> Usage:
    """Run a command to its end in a folder, with nothing of the caller's environment but its search paths."""
    log, began = folder / "output.log", time.monotonic()
    with log.open("wb") as file:
        base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(command, cwd=folder, env=base | env, stdout=file, stderr=file)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu, wall = used.ru_utime + used.ru_stime, time.monotonic() - began
    return Usage(child.returncode, wall, cpu, used.ru_maxrss / _MEGABYTE, log.read_text("utf-8", "replace"))


@contextlib.contextmanager
def prefect_server(home: Path) -> Iterator[None]:
    """Have the Prefect server of a home answer meanwhile."""
    pipe, command = subprocess.PIPE, [sys.executable, "-P", "-c", _SERVER, str(home)]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=home.parent, env=env) as server:
        assert server.stdout and server.stdin
        server.stdout.readline()
        try:
            yield
        finally:
            server.stdin.close()


class Service:
    """The double as a process of its own."""

    def __init__(self, **weather: float) -> None:
        self._command = [sys.executable, "-m", "benchmarks.service", json.dumps(weather)]

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout
        self.url, self.key = self._process.stdout.readline().split()
        return self

    def score(self) -> dict[str, Any]:
        """Return what it has seen since the last time."""
        assert self._process.stdin and self._process.stdout
        print(file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def settings(self, home: Path) -> dict[str, str]:
        """Return what the program is told of it."""
        settings = {
            "STUDIO_URL": self.url,
            "API_KEY": self.key,
            "HOME": str(home),
            "MAX_IN_FLIGHT": str(_WINDOW),
        }
        return {
            f"PATTERNMILL_{name}": text for name, text in (settings | {"CONFIRM_ABOVE": "1000000"}).items()
        }


def write_rows(path: Path, count: int, first: int = 0) -> Path:
    """Write a sheet in which every row has a prompt of its own, so that every row is two jobs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "prompt", "category", "option:size"])
        for number in range(first, first + count):
            category = ("cat_tote", "cat_mug")[number % 2]
            writer.writerow([f"BENCH-{number:06}", f"blue herons among reeds, study {number}", category, "m"])
    return path


def checked(usage: Usage, score: dict[str, Any], rows: int) -> Usage:
    """Return what was used, or exit where the figures are worthless."""
    if usage.code or score["jobs"] != 2 * rows or score["seen"] != 2 * rows:
        sys.exit(f"It ended with {usage.code}, {score} for {rows} rows:\n{usage.output[-800:]}")
    return usage


def shortest(score: dict[str, Any]) -> float:
    """Return the shortest possible span: the longest row, or all jobs' time shared by the window."""
    return max(float(score["longest"]), float(score["work"]) / _WINDOW)


def cost(folder: Path, rows: int) -> None:
    """Measure the program beside a plain script: jobs of 10 s and 3 s, up to 500 rows in flight."""
    one, many = write_rows(folder / "one.csv", 1, 10**6), write_rows(folder / "many.csv", rows)
    home = folder / "home"
    with Service(pattern_time=10.0, product_time=3.0, spread=0.3) as service, prefect_server(home):
        env, mine = service.settings(home), [*_MILL, "import", "--catalog", "bench"]
        start = checked(used_by([*mine, str(one)], folder, **env), service.score(), 1)
        whole = used_by([*mine, str(many)], folder, **env)
        score = service.score()
        again = used_by([*mine, str(many)], folder, **env)
        asked = service.score()["jobs"]
        checked(whole, score, rows)
        peer = [sys.executable, "-m", "benchmarks.peers", service.url, service.key, str(many), str(_WINDOW)]
        plain = used_by(peer, folder)
        beside = service.score()
        checked(plain, beside, rows)
    ours, its = 1000 * (whole.cpu - start.cpu) / rows, 1000 * plain.cpu / rows
    print(f"start: {start.cpu:.1f} s CPU, {start.peak_mb:.0f} MB")
    print(
        f"CPU a row of {rows:,}: {ours:.2f} ms, plain httpx {its:.2f} ms: {ours / its:.2f}; {whole.peak_mb:.0f} MB"
    )
    for name, found in (("program", score), ("httpx", beside)):
        print(f"{name}: span {found['span']:.0f} s, {found['span'] / shortest(found):.2f} of the shortest, "
              f"{found['polls']:.1f} polls a job, lag p50 {found['lag']:.1f} s")  # fmt: skip
    print(f"nothing to do: {again.wall:.1f} s, {again.cpu:.1f} s CPU, {asked} jobs")


def scale(folder: Path, rows: int) -> None:
    """Measure check, plan and whole run of a large sheet beside reading it."""
    sheet = write_rows(folder / "rows.csv", rows)
    reading = min(used_by([sys.executable, "-c", _READ, str(sheet)], folder).cpu for _ in range(2))
    print(f"reading {rows:,} rows: {reading:.1f} s CPU", flush=True)
    with Service(pattern_time=0.0, product_time=0.0) as service:
        # A server that does not answer: the run is not shown.
        env = service.settings(folder / "home") | {"PREFECT_API_URL": "http://127.0.0.1:9/api"}
        buy = ["import", str(sheet), "--catalog", "bench"]
        for name, command in (
            ("check", [*_MILL, "check", str(sheet)]),
            ("plan", [*_MILL, *buy, "--plan-only"]),
            ("whole run", [sys.executable, "-P", "-c", _UNPACED, *buy]),
        ):
            usage = used_by(command, folder, **env)
            ratio = (
                f"{usage.cpu / reading:.1f} x"
                if name != "whole run"
                else f"{1000 * usage.cpu / rows:.2f} ms a row"
            )
            print(
                f"{name}: {usage.cpu:.1f} s CPU ({ratio}), {usage.wall:.0f} s, {usage.peak_mb:.0f} MB",
                flush=True,
            )
            if usage.code:
                sys.exit(usage.output[-800:])
        checked(usage, service.score(), rows)


def main() -> None:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("what", nargs="*", choices=[[], "cost", "scale"], default=[])
    parser.add_argument("--rows", type=int, help="other than 1,500 and 100,000")
    given = parser.parse_args()
    for name, measure, rows in (("cost", cost, 1_500), ("scale", scale, 100_000)):
        if not given.what or name in given.what:
            with tempfile.TemporaryDirectory() as folder:
                measure(Path(folder), given.rows or rows)


if __name__ == "__main__":
    main()
