"""The kill loop: the real command is killed at random moments, again and again, until its catalogs are done.

`python -m tests.kill_loop --kills 200 [--rows N] [--ledger postgresql://...]`. Each round has a new service with
faults, and two catalogs with equal rows whose commands run at once; it ends with an audit from outside evidence.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from tests.double import Audit, Double, Line, Weather, serving
from tests.double.audit import sheet_of
from tests.double.server import KEY
from tests.test_runs import table

ROOT = Path(__file__).resolve().parent.parent
FAULTS = {
    "lost": 0.04, "reset": 0.01, "failed": 0.01, "failed_after": 0.02, "half": 0.01, "late": 0.01, "twice": 0.01,
    "busy": 0.005, "limited": 0.005, "no_content": 0.005,
}  # fmt: skip
#: How often a catalog is gone on with that was left unfinished, without a kill.
TRIES = 20


@dataclass
class Round:
    """A service, two sheets, and the processes that are killed over them."""

    folder: Path
    url: str
    double: Double
    sheets: dict[str, list[Line]]
    dice: random.Random
    ledger: str = ""
    #: An environment has one service for good, and each round has another.
    environment: str = field(default_factory=lambda: f"round-{uuid4().hex[:8]}")

    def start(self, catalog: str, verb: str = "import") -> "subprocess.Popen[bytes]":
        """Start the command on a catalog."""
        clean = {n: t for n, t in os.environ.items() if not n.startswith(("PATTERNMILL_", "PREFECT_"))}
        settings = {
            "STUDIO_URL": self.url, "API_KEY": KEY, "ENVIRONMENT": self.environment, "HOME": str(self.folder / "home"),
            "CONFIRM_ABOVE": "100000", "MAX_IN_FLIGHT": "10", "REQUEST_TIMEOUT": "PT2S", "ATTEMPTS": "5",
            **({"LEDGER_URL": self.ledger} if self.ledger else {}),
        }  # fmt: skip
        env = clean | {f"PATTERNMILL_{name}": text for name, text in settings.items()}
        env |= {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PYTHONPATH": str(ROOT)}
        sheet = [] if verb == "retry" else [str(self.folder / f"{catalog}.csv")]
        named = [catalog] if verb == "retry" else [*sheet, "--catalog", catalog]
        command = [verb, *named, "--out", str(self.folder / catalog), "--yes"]
        with (self.folder / f"{catalog}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "cli.main", *command], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill_at_random(self, kills: int) -> int:
        """Start the commands and kill them until there were enough kills or all are done; return the kills."""
        killed, done = 0, set[str]()
        while killed < kills and len(done) < len(self.sheets):
            started = {name: self.start(name) for name in self.sheets if name not in done}
            self._await_work(started)
            for name, process in started.items():
                try:
                    code = process.wait(timeout=self.dice.uniform(0.02, 0.9))
                    done |= {name} if code == 0 else set()
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    killed += 1
        return killed

    def _await_work(self, started: dict[str, "subprocess.Popen[bytes]"]) -> None:
        """Wait for the first purchase or poll; in a third of the cases less long, so that some die while they begin."""
        known, patience = len(self.double.record), self.dice.choice([0.3, 15.0, 15.0])
        until = time.monotonic() + patience
        while time.monotonic() < until and any(process.poll() is None for process in started.values()):
            if any(event.get("operation", "").startswith(("p", "j")) for event in self.double.record[known:]):
                return
            time.sleep(0.01)

    def finish(self) -> Iterator[str]:
        """Run each catalog to its end, and yield what is wrong with it by the evidence."""
        for catalog in self.sheets:
            for attempt in range(TRIES):
                if self.start(catalog, "retry" if attempt > TRIES / 2 else "import").wait(timeout=120) == 0:
                    break
            else:
                yield f"{catalog} did not end: {(self.folder / f'{catalog}.log').read_text()[-600:]}"
        bought = len(self.double.jobs)
        for catalog in self.sheets:
            self.start(catalog).wait(timeout=120)
        if len(self.double.jobs) > bought:
            yield f"finished catalogs bought {len(self.double.jobs) - bought} more"
        yield from self._audit()

    def _audit(self) -> Iterator[str]:
        audit = Audit(self.double.record)
        yield from (f"twice: {one}" for one in audit.bought_twice())
        yield from audit.changed()
        for catalog, lines in self.sheets.items():
            rows = table(self.folder / catalog / "results.csv")
            yield from (f"lost: {one}" for one in audit.lost(lines, rows))
            yield from (f"wrong advice: {one}" for one in audit.wrong_advice(lines, rows))
            yield from (f"{row['sku']} is {row['status']}" for row in rows if row["status"] != "succeeded")


def play(seed: int, kills: int, rows: int, ledger: str = "") -> tuple[Counter[str], list[str]]:
    """Play a round; return its counts and its faults."""
    dice = random.Random(seed)
    dialect = ["same job", "looks up", "in progress"][seed % 3]
    faults = {
        name: share
        for name, share in FAULTS.items()
        if dialect != "looks up" or name not in ("late", "twice")
    }
    weather = Weather(
        dialect, faults, latency=0.005, timeout=2.0, pattern_time=0.4, product_time=0.2, jobs_fail=0.03, pondering=0.02,
        echoes=seed % 2 == 0,
    )  # fmt: skip
    double = Double(weather, str(seed))
    prompts = [f"round {seed} prompt {number if dice.random() < 0.8 else 0}" for number in range(rows)]
    lines = [Line(f"R{seed}-{number:03}", prompt) for number, prompt in enumerate(prompts)]
    sheets = {f"kills-{seed}": lines, f"again-{seed}": lines[rows // 2 :]}
    with tempfile.TemporaryDirectory() as folder, serving(double) as url:
        here = Round(Path(folder), url, double, sheets, dice, ledger)
        for catalog, those in sheets.items():
            (here.folder / f"{catalog}.csv").write_text(sheet_of(those))
        killed = here.kill_at_random(kills)
        wrong = list(here.finish())
    counts = Counter({"kills": killed, "purchases": len(double.jobs), "faults": double.fired.total()})
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.kill_loop")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--ledger", default="", help="a PostgreSQL address; else a file for each round")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first round")
    options = parser.parse_args()
    total, wrong, seed = Counter[str](), list[str](), options.seed
    while total["kills"] < options.kills and not wrong:
        counts, wrong = play(seed, options.kills - total["kills"], options.rows, options.ledger)
        total, seed = total + counts, seed + 1
        print(f"seed {seed - 1}: {_said(counts)}", *wrong[:20], sep="\n  ", flush=True)
    print(f"{_said(total)} in {seed - options.seed} rounds: {len(wrong)} faults")
    return bool(wrong)


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


if __name__ == "__main__":
    sys.exit(main())
