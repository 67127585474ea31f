"""`python -m benchmarks.scale [ROWS]`: what each step of a large import takes, and a check of a small sheet.

The run is the library's own, against the fake service with instant jobs and without a Prefect server. All steps are
measured in one process: the CPU of each, and the most memory that was resident until its end.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import MEGABYTE, FakeService, run
from benchmarks.scenarios import write_rows

WINDOW = 500
SMALL = 24


class Steps:
    """Prints the CPU of each step since the last one, and the peak memory so far."""

    def __init__(self) -> None:
        self._before = time.process_time()

    def ended(self, name: str) -> None:
        now = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE
        print(f"{name:22} {now - self._before:8.2f} s of CPU {peak:8.0f} MB at most", flush=True)
        self._before = time.process_time()


async def import_rows(source: Path, steps: Steps) -> None:
    """Import a sheet, step by step."""
    # Loaded in a step of its own.
    from patternmill.processes import collect_rarely
    from patternmill.runs.request import ImportRequest
    from patternmill.runs.run import Run
    from patternmill.runs.spec import run_spec
    from patternmill.service import studio_api

    collect_rarely()
    # Instant answers measure what a row costs, not how fast we ask a service that we do not know.
    studio_api.CREATE_RATE = studio_api.POLL_RATE = 100_000.0
    steps.ended("load")
    async with Run(run_spec(ImportRequest(file=str(source), catalog="bench"))) as work:
        await work.read()
        steps.ended("read")
        await work.check()
        steps.ended("check")
        await work.preview()
        steps.ended("plan")
        await work.begin()
        steps.ended("plan again, on record")
        await work.engine.drive()
        steps.ended("make")
        await work.finish()
        steps.ended("end, results")


def check_small(folder: Path, url: str) -> None:
    """Check a small sheet as a person does, with all that starting costs."""
    source = folder / "small.csv"
    write_rows(source, SMALL)
    program = str(Path(sys.executable).with_name("patternmill"))
    env = {"PATH": os.environ["PATH"], "PATTERNMILL_HOME": str(folder / "small")}
    env |= {"PATTERNMILL_STUDIO_URL": url, "PATTERNMILL_API_KEY": "bench"}
    usage = run([program, "check", str(source)], env, folder, timeout=120)
    print(f"check of {SMALL} rows       {usage.cpu:8.2f} s of CPU {usage.peak_mb:8.0f} MB at most")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name, FakeService(0, 0, 0) as service:
        folder, steps = Path(name), Steps()
        check_small(folder, service.url)
        write_rows(folder / "rows.csv", count)
        (folder / "home").mkdir()
        os.environ |= {"PATTERNMILL_STUDIO_URL": service.url, "PATTERNMILL_API_KEY": "bench"}
        os.environ |= {"PATTERNMILL_HOME": str(folder / "home"), "PATTERNMILL_CONFIRM": "staging"}
        os.environ["PATTERNMILL_MAX_IN_FLIGHT"] = str(WINDOW)
        os.chdir(folder)
        asyncio.run(import_rows(folder / "rows.csv", steps))


if __name__ == "__main__":
    main()
