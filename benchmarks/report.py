"""The tables: what each contender used, side by side, and in relation to the peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scenarios import AIOHTTP, CONTENDERS, HTTPX, OURS, Scenario


@dataclass(frozen=True)
class Measurement:
    """One run of one contender. Times are in seconds."""

    scenario: str
    contender: str
    rows: int
    #: The whole process, from its start to its end.
    wall: float
    cpu: float
    peak_mb: float
    #: CPU of the Prefect server during the run, until it settled; None: it was not in use.
    server_cpu: float | None
    #: The service's own score: see `tests.hostile.__main__`.
    service: dict[str, Any]
    #: Why the figures do not count; empty if they do.
    fault: str = ""

    @property
    def over_shortest(self) -> float | None:
        return self.service["span"] / self.service["shortest"] if self.service["shortest"] else None


COLUMNS = (
    "contender",
    "rows/s",
    "CPU a row, ms",
    "beyond start-up, ms",
    "CPU to httpx",
    "CPU to aiohttp",
    "Prefect server CPU a row, ms",
    "peak MB",
    "makespan, s",
    "over shortest",
    "whole run, s",
    "requests a row",
    "polls a job",
    "lag median / p95, s",
)


def typical(measurements: Iterable[Measurement], scenario: str, contender: str) -> Measurement | None:
    """Return the run with the median CPU."""
    fitting = [m for m in measurements if (m.scenario, m.contender) == (scenario, contender) and not m.fault]
    if not fitting:
        return None
    middle = statistics.median_low(m.cpu for m in fitting)
    return next(m for m in fitting if m.cpu == middle)


def table(scenario: Scenario, measurements: Sequence[Measurement]) -> str:
    """Return one scenario as a Markdown table."""
    runs = [run for name in CONTENDERS if (run := typical(measurements, scenario.name, name))]
    facts = f"{scenario.rows} rows, window {scenario.window}, {scenario.rounds} round(s)."
    if runs and runs[0].service["shortest"]:
        facts += f" Shortest possible: {runs[0].service['shortest']:.1f} s."
    lines = [f"### {scenario.title}", "", facts, ""]
    lines += [_line(COLUMNS), "|" + "---|" * len(COLUMNS)]
    lines += [_line(_cells(run, measurements)) for run in runs]
    faults = (m for m in measurements if m.scenario == scenario.name and m.fault)
    return "\n".join(lines + [f"- **{m.contender}: {m.fault}**" for m in faults])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(run: Measurement, measurements: Sequence[Measurement]) -> list[str]:
    startup = typical(measurements, "startup", run.contender)
    span = run.service["span"]
    beyond = (run.cpu - startup.cpu) / (run.rows - 1) if startup and run.rows > 1 else None
    kinds = [kind for kind in run.service["kinds"].values() if kind]
    return [
        run.contender,
        f"{run.rows / span:.0f}" if span else "-",
        _milliseconds(run.cpu / run.rows),
        _milliseconds(beyond),
        *(_decimals(cpu_ratio(run, measurements, peer)) for peer in (HTTPX, AIOHTTP)),
        _milliseconds(None if run.server_cpu is None else run.server_cpu / run.rows),
        f"{run.peak_mb:.0f}",
        f"{span:.1f}",
        _decimals(run.over_shortest),
        f"{run.wall:.1f}",
        f"{sum(run.service['requests'].values()) / run.rows:.1f}",
        " / ".join(f"{kind['polls_mean']:.1f}" for kind in kinds),
        "; ".join(f"{kind['lag_median']:.2f} / {kind['lag_p95']:.2f}" for kind in kinds),
    ]


def cpu_ratio(run: Measurement, measurements: Sequence[Measurement], peer: str) -> float | None:
    """Return the CPU of a run over that of a peer in the same scenario; None if the peer was not measured."""
    other = typical(measurements, run.scenario, peer)
    return run.cpu / other.cpu if other else None


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _decimals(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def targets(measurements: Sequence[Measurement]) -> list[str]:
    """Return a line for each target that was measured: what it is, and whether it was reached."""

    def value(name: str, read: Callable[[Measurement], float | None]) -> float | None:
        run = typical(measurements, name, OURS)
        return read(run) if run else None

    def to_httpx(run: Measurement) -> float | None:
        return cpu_ratio(run, measurements, HTTPX)

    lag = value("long", lambda run: float(run.service["kinds"]["pattern"]["lag_median"]))
    targets = (
        ("CPU a row over that of plain httpx", value("instant", to_httpx), 0.5),
        ("CPU a row over that of plain httpx, many rows", value("memory", to_httpx), 0.5),
        ("makespan over the shortest possible", value("short", lambda run: run.over_shortest), 1.05),
        ("median lag in seconds, jobs of 75 s", lag, 2),
        ("peak memory in MB, many rows", value("memory", lambda run: run.peak_mb), 350),
    )
    return [
        f"- {'reached' if reached <= most else 'MISSED'}: {what}: {reached:.2f}, at most {most}"
        for what, reached, most in targets
        if reached is not None
    ]
