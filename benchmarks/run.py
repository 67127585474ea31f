"""`python -m benchmarks.run`: every contender against the same service, in one run, taking turns."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import FakeService, Usage, cpu_of, run, settle
from benchmarks.report import Measurement, table, targets
from benchmarks.scenarios import CONTENDERS, OURS, SCENARIOS, Scenario, write_rows
from prefect_host.own_server import OwnServer

RESULTS = Path(__file__).parent / "results"
TIMEOUT = 1800.0
#: Instant answers measure what a row costs, not how fast we ask a service that we do not know.
UNPACED = """
from patternmill.service import studio_api
studio_api.CREATE_RATE = studio_api.POLL_RATE = 100_000.0
from cli.main import main
main()
"""


def measure(scenario: Scenario, contender: str, folder: Path, server: OwnServer) -> Measurement:
    """Run one contender in a process of its own, against a service of its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"{scenario.name}-{contender}-", dir=folder))
    rows = folder / "rows.csv"
    write_rows(rows, scenario.rows)
    with FakeService(scenario.pattern_seconds, scenario.product_seconds, scenario.sigma) as service:
        server_before = cpu_of(server.directory)
        if contender == OURS:
            command, env = our_command(rows, scenario), our_environment(rows, scenario, service, server)
        else:
            command = [sys.executable, "-m", "benchmarks.peers", contender, "--url", service.url]
            command += ["--file", str(rows), "--window", str(scenario.window)]
            env = {"PATH": os.environ["PATH"]}
        usage = run(command, env, folder, timeout=TIMEOUT)
        if contender == OURS:
            settle(server.directory)
        score = service.stats(scenario.window)
    return Measurement(
        scenario=scenario.name,
        contender=contender,
        rows=scenario.rows,
        wall=usage.wall,
        cpu=usage.cpu,
        peak_mb=usage.peak_mb,
        server_cpu=cpu_of(server.directory) - server_before if contender == OURS else None,
        service=score,
        fault=find_fault(usage, score, scenario),
    )


def our_command(rows: Path, scenario: Scenario) -> list[str]:
    """Return the command as a person runs it, but without its rates where answers are instant."""
    patternmill = [str(Path(sys.executable).with_name("patternmill"))]
    program = [sys.executable, "-P", "-c", UNPACED] if scenario.instant else patternmill
    return [*program, "import", str(rows), "--out", str(rows.parent / "out"), "--catalog", "bench"]


def our_environment(
    rows: Path, scenario: Scenario, service: FakeService, server: OwnServer
) -> dict[str, str]:
    """Return all settings, with nothing of the caller's own environment but the search path."""
    home = rows.parent / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "PATTERNMILL_STUDIO_URL": service.url,
        "PATTERNMILL_API_KEY": "bench",
        "PATTERNMILL_HOME": str(home),
        "PATTERNMILL_MAX_IN_FLIGHT": str(scenario.window),
        "PATTERNMILL_CONFIRM": "staging",
        **server.client_environment,
    }


def find_fault(usage: Usage, score: dict[str, int], scenario: Scenario) -> str:
    """Return why a run's figures are worthless, as it did not do its job; empty if it did."""
    if usage.code != 0:
        return f"ended with {usage.code}: {usage.output.strip()[-600:]}"
    if score["jobs"] != 2 * scenario.rows or score["unseen"]:
        return f"{score['jobs']} jobs for {scenario.rows} rows, {score['unseen']} of them never seen to end"
    return ""


def measure_all(scenarios: Sequence[Scenario], contenders: Sequence[str]) -> Iterator[Measurement]:
    """Measure the contenders in turn, for as many rounds as each scenario has."""
    with tempfile.TemporaryDirectory(prefix="patternmill-bench-") as name:
        folder = Path(name)
        with OwnServer(folder / "server") as server:
            settle(server.directory)
            for scenario in scenarios:
                for contender in [*contenders] * scenario.rounds:
                    yield measure(scenario, contender, folder, server)


def show(m: Measurement) -> None:
    figures = f"{m.cpu / m.rows * 1000:.1f} ms CPU a row, {m.wall:.1f} s"
    print(f"{m.scenario:12} {m.contender:12} {m.fault or figures}", file=sys.stderr, flush=True)


def machine() -> str:
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("prefect", "httpx", "aiohttp")
    )
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{datetime.now(UTC).isoformat(timespec='seconds')}, {system}, {versions}"


def write(scenarios: Sequence[Scenario], measurements: Sequence[Measurement]) -> None:
    """Write the figures as Markdown, and print them."""
    command = " ".join(["python -m benchmarks.run", *sys.argv[1:]])
    lines = ["# Results of the last run", "", f"`{command}`: {machine()}", "", *targets(measurements), ""]
    text = "\n".join(lines + [table(scenario, measurements) + "\n" for scenario in scenarios])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.md").write_text(text, "utf-8")
    print(text)


def chosen(args: argparse.Namespace) -> list[Scenario]:
    scenarios = [s for s in SCENARIOS if not args.only or s.name in (*args.only, "startup")]
    return [s if s.name == "startup" else replace(s, rows=args.rows or s.rows) for s in scenarios]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--rows", type=int, help="rows of every scenario but `startup`")
    parser.add_argument("--only", action="append", default=[], choices=[s.name for s in SCENARIOS])
    parser.add_argument("--contender", action="append", default=[], choices=CONTENDERS)
    args = parser.parse_args()
    scenarios, measurements = chosen(args), list[Measurement]()
    for measurement in measure_all(scenarios, args.contender or CONTENDERS):
        show(measurement)
        measurements.append(measurement)
    write(scenarios, measurements)
    return int(any(m.fault for m in measurements))


if __name__ == "__main__":
    sys.exit(main())
