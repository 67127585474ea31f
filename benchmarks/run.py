"""`python -m benchmarks.run`: every contender against the same service, in one run, taking turns."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import ours
from benchmarks.measure import FakeService, PrefectServer, Usage, run
from benchmarks.report import Measurement, table, targets
from benchmarks.scenarios import OURS, PLAIN, SCENARIOS, Scenario, quickened, write_rows

RESULTS = Path(__file__).parent / "results"
TIMEOUT = 1800.0


@dataclass
class Bench:
    """One run of the bench: its folder, its Prefect server and what it has measured."""

    folder: Path
    server: PrefectServer

    def measure(self, scenario: Scenario, contender: str) -> Measurement:
        folder = Path(tempfile.mkdtemp(prefix=f"{scenario.name}-{contender}-", dir=self.folder))
        rows = folder / "rows.csv"
        write_rows(rows, scenario.rows)
        with FakeService(scenario.pattern_seconds, scenario.product_seconds, scenario.sigma) as service:
            server_before = self.server.cpu()
            usage = self._start(scenario, contender, service.url, rows)
            if contender != PLAIN:
                self.server.settle()
            used = self.server.cpu() - server_before
            score = service.stats(scenario.window)
        return Measurement(
            scenario=scenario.name,
            contender=contender,
            rows=scenario.rows,
            wall=usage.wall,
            cpu=usage.cpu,
            peak_mb=usage.peak_mb,
            server_cpu=None if contender == PLAIN else used,
            service=score,
            fault=_fault(usage, score, scenario),
            settings={"rates": "unpaced"} if contender == OURS and scenario.instant else {},
        )

    def _start(self, scenario: Scenario, contender: str, url: str, rows: Path) -> Usage:
        folder = rows.parent
        if contender == OURS:
            (folder / "home").mkdir()
            env = ours.environment(url, self.server.api_url, folder / "home", window=scenario.window)
            command = ours.command(rows, folder / "out", paced=not scenario.instant)
        else:
            env = self._peer_environment(folder)
            command = [sys.executable, "-m", "benchmarks.peers", contender, "--url", url]
            command += ["--file", str(rows), "--window", str(scenario.window)]
        return run(command, env, folder, timeout=TIMEOUT)

    def _peer_environment(self, folder: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PREFECT_API_URL": self.server.api_url,
            "PREFECT_HOME": str(folder / "prefect"),
            "DO_NOT_TRACK": "1",
        }


def _fault(usage: Usage, score: dict[str, int], scenario: Scenario) -> str:
    """Figures of a run that did not do its job are worth nothing."""
    if usage.code != 0:
        return f"ended with {usage.code}: {usage.output.strip()[-600:]}"
    if score["jobs"] != 2 * scenario.rows or score["unseen"]:
        return f"{score['jobs']} jobs for {scenario.rows} rows, {score['unseen']} of them never seen to end"
    return ""


def turns(scenario: Scenario, only: Sequence[str]) -> Iterator[str]:
    for _ in range(scenario.rounds):
        yield from (c for c in scenario.contenders if not only or c in only)


def measure_all(scenarios: Sequence[Scenario], contenders: Sequence[str]) -> list[Measurement]:
    measurements = []
    with tempfile.TemporaryDirectory(prefix="patternmill-bench-") as name:
        folder = Path(name)
        with PrefectServer(folder) as server:
            bench = Bench(folder, server)
            server.settle()
            for scenario in scenarios:
                for contender in turns(scenario, contenders):
                    measurements.append(bench.measure(scenario, contender))
                    _print(measurements[-1])
    return measurements


def _print(m: Measurement) -> None:
    verdict = (
        m.fault.splitlines()[0] if m.fault else f"{m.cpu / m.rows * 1000:.1f} ms CPU a row, {m.wall:.1f} s"
    )
    print(f"{m.scenario:12} {m.contender:12} {verdict}", file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    packages = ("patternmill", "prefect", "httpx", "httpx-aiohttp")
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{package: importlib.metadata.version(package) for package in packages},
    }


def written(scenarios: Sequence[Scenario], measurements: Sequence[Measurement], command: str) -> str:
    facts = machine()
    where = ", ".join([facts.pop("when"), facts.pop("system"), *(f"{k} {v}" for k, v in facts.items())])
    lines = ["# Results of the last run", "", f"`{command}`: {where}"]
    lines += ["", *targets(measurements), ""]
    lines += [table(scenario, measurements) + "\n" for scenario in scenarios]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the rows: shows that it works, not how fast"
    )
    parser.add_argument("--rows", type=int, help="rows of every scenario but `startup`")
    parser.add_argument("--only", action="append", default=[], choices=[s.name for s in SCENARIOS])
    parser.add_argument(
        "--contender", action="append", default=[], choices=["patternmill", "plain", "prefect-map"]
    )
    return parser.parse_args()


def chosen(args: argparse.Namespace) -> list[Scenario]:
    scenarios = [s for s in SCENARIOS if not args.only or s.name in args.only or s.name == "startup"]
    if args.quick:
        scenarios = [quickened(s) for s in scenarios]
    if args.rows:
        scenarios = [s if s.name == "startup" else replace(s, rows=args.rows) for s in scenarios]
    return scenarios


def main() -> int:
    args = arguments()
    scenarios = chosen(args)
    measurements = measure_all(scenarios, args.contender)
    text = written(scenarios, measurements, " ".join(["python -m benchmarks.run", *sys.argv[1:]]))
    RESULTS.mkdir(exist_ok=True)
    facts = {"machine": machine(), "measurements": [asdict(m) for m in measurements]}
    (RESULTS / "latest.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    (RESULTS / "latest.md").write_text(text, "utf-8")
    print(text)
    return 1 if any(m.fault for m in measurements) else 0


if __name__ == "__main__":
    sys.exit(main())
