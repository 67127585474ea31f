"""The tables: what each contender used, side by side, and in relation to the plain script."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.scenarios import OURS, PLAIN, Scenario


@dataclass(frozen=True)
class Measurement:
    scenario: str
    contender: str
    rows: int
    #: The whole process, from its start to its end.
    wall: float
    cpu: float
    peak_mb: float
    #: CPU of the Prefect server during the run, until it had settled; None: it was not in use.
    server_cpu: float | None
    #: The service's own score: see benchmarks.fake.
    service: dict[str, Any]
    #: Why the figures do not count; empty if they do.
    fault: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def over_shortest(self) -> float | None:
        return self.service["span"] / self.service["shortest"] if self.service["shortest"] else None


COLUMNS = (
    "contender",
    "rows/s",
    "CPU a row, ms",
    "beyond start-up, ms",
    "CPU to plain",
    "Prefect server CPU a row, ms",
    "peak MB",
    "makespan, s",
    "over shortest",
    "whole run, s",
    "requests a row",
    "polls a job",
    "lag median / p95 / max, s",
)


def typical(measurements: Iterable[Measurement], scenario: str, contender: str) -> Measurement | None:
    """The run with the median CPU."""
    fitting = [m for m in measurements if (m.scenario, m.contender) == (scenario, contender) and not m.fault]
    if not fitting:
        return None
    middle = statistics.median_low(m.cpu for m in fitting)
    return next(m for m in fitting if m.cpu == middle)


def table(scenario: Scenario, measurements: Sequence[Measurement]) -> str:
    """One scenario as a Markdown table."""
    runs = [typical(measurements, scenario.name, contender) for contender in scenario.contenders]
    lines = [f"### {scenario.title}", "", _facts(scenario, runs), ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(_cells(run, measurements)) + " |" for run in runs if run]
    lines += [
        f"- **{m.contender}: {m.fault}**" for m in measurements if m.scenario == scenario.name and m.fault
    ]
    return "\n".join(lines)


def _facts(scenario: Scenario, runs: Sequence[Measurement | None]) -> str:
    facts = f"{scenario.rows} rows, window {scenario.window}, {scenario.rounds} round(s)."
    shortest = next((run.service["shortest"] for run in runs if run), 0.0)
    return f"{facts} Shortest possible: {shortest:.1f} s." if shortest else facts


def _cells(run: Measurement, measurements: Sequence[Measurement]) -> list[str]:
    plain = typical(measurements, run.scenario, PLAIN)
    startup = typical(measurements, "startup", run.contender)
    span = run.service["span"]
    beyond = (run.cpu - startup.cpu) / (run.rows - 1) if startup and run.rows > 1 else None
    server = None if run.server_cpu is None else run.server_cpu / run.rows
    kinds = run.service["kinds"]
    return [
        run.contender,
        f"{run.rows / span:.0f}" if span else "-",
        _milli(run.cpu / run.rows),
        _milli(beyond),
        f"{run.cpu / plain.cpu:.2f}" if plain else "-",
        _milli(server),
        f"{run.peak_mb:.0f}",
        f"{span:.1f}",
        f"{run.over_shortest:.3f}" if run.over_shortest else "-",
        f"{run.wall:.1f}",
        f"{sum(run.service['requests'].values()) / run.rows:.1f}",
        " / ".join(f"{kind['polls_mean']:.1f}" for kind in kinds.values() if kind),
        "; ".join(_lag(kind) for kind in kinds.values() if kind),
    ]


def _milli(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _lag(kind: dict[str, float]) -> str:
    return f"{kind['lag_median']:.2f} / {kind['lag_p95']:.2f} / {kind['lag_max']:.2f}"


def targets(measurements: Sequence[Measurement]) -> list[str]:
    """What was to be reached, and whether it was: one line each, for what was measured."""
    lines = [_cpu_target(measurements, scenario) for scenario in ("instant-500", "memory")]
    lines.append(_makespan_target(measurements))
    lines += [_polling_target(measurements), _memory_target(measurements)]
    return [line for line in lines if line]


def _target_line(what: str, value: str, reached: bool) -> str:
    return f"- {'reached' if reached else 'MISSED'}: {what}: {value}"


def _cpu_target(measurements: Sequence[Measurement], scenario: str) -> str:
    ours, plain = (typical(measurements, scenario, name) for name in (OURS, PLAIN))
    if not ours or not plain:
        return ""
    ratio = ours.cpu / plain.cpu
    return _target_line(
        f"CPU a row at most half of the plain script's, 500 in flight, start-up included, {ours.rows} rows",
        f"{ratio:.2f}",
        ratio <= 0.5,
    )


def _makespan_target(measurements: Sequence[Measurement]) -> str:
    ours = typical(measurements, "short", OURS)
    if not ours or not ours.over_shortest:
        return ""
    return _target_line(
        "makespan at most 1.05 of the shortest possible",
        f"{ours.over_shortest:.3f}",
        ours.over_shortest <= 1.05,
    )


def _polling_target(measurements: Sequence[Measurement]) -> str:
    ours = typical(measurements, "long", OURS)
    if not ours:
        return ""
    pattern = ours.service["kinds"]["pattern"]
    value = f"{pattern['polls_mean']:.1f} polls, {pattern['lag_median']:.2f} s"
    reached = pattern["polls_mean"] <= 5 and pattern["lag_median"] < 2
    return _target_line(
        "at most 5 polls a job and a median lag under 2 s, jobs of 75 s that are alike", value, reached
    )


def _memory_target(measurements: Sequence[Measurement]) -> str:
    ours = typical(measurements, "memory", OURS)
    if not ours:
        return ""
    return _target_line(
        f"peak memory under 350 MB at {ours.rows} rows", f"{ours.peak_mb:.0f} MB", ours.peak_mb < 350
    )
