"""How a run fares in parts: `python -m tests.acceptance.spread_figures --rows 2000 --window 200 --parts 1 2 4`.

Two workers on this machine, Prefect as the compose file has it, and a service whose own record has the figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from prefect_host.work_pool import POOL
from tests.acceptance.harness import COMMAND, some_rows, write_csv
from tests.acceptance.prefect_servers import eventually, everything
from tests.acceptance.several_machines import Machines, machines, most_in_flight, of
from tests.hostile import Hostile, Plan, Times, audit

JOBS = Plan(patterns=Times(kind="lognormal", median=3.0), products=Times(kind="lognormal", median=2.0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--window", type=int, default=200)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 4], help="1: a run that is not spread")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Hostile(JOBS, Path(folder) / "service") as service,
        machines(Path(folder)) as site,
    ):
        site.environment.update(service.environment)
        site.prefect("work-pool", "create", POOL, "--type", "process")
        site.prefect("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
        with (
            site.worker("left", home=Path(folder) / "left"),
            site.worker("right", home=Path(folder) / "right"),
        ):
            eventually(lambda: site.online() == 2, 120)
            for parts in options.parts:
                print(_figures(site, service, Path(folder), options.rows, options.window, parts), flush=True)


def _figures(site: Machines, service: Hostile, folder: Path, count: int, window: int, parts: int) -> str:
    about = f"parts{parts}"
    rows = some_rows(count, about=about)
    file = write_csv(folder / f"{about}.csv", rows)
    asked = ["--out", str(folder / about), "--max-in-flight", str(window)]
    asked += ["--spread", str(parts)] if parts > 1 else []
    began = time.monotonic()
    ended = subprocess.run(
        [str(COMMAND), "import", str(file), *asked], cwd=folder, env=site.environment, capture_output=True
    )
    took = time.monotonic() - began
    lines, found = of(service, about), audit(service.record, rows)
    moments = [line["at"] for line in lines]
    states = Counter(run["state_name"] for run in everything(site.api, "task_runs"))
    return (
        f"{parts} parts: exit {ended.returncode}, {took:.0f} s, of these {max(moments) - min(moments):.0f} s "
        f"with jobs; {len(lines) // 2} jobs, at most {most_in_flight(lines)} in flight, "
        f"{len(found.double_purchases)} bought twice, {sum(found.never_bought().values())} never; "
        f"task runs so far: {dict(states)}"
    )


if __name__ == "__main__":
    sys.exit(main())
