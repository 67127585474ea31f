"""Scenarios: who is measured, with how many rows, how many jobs at once, and how long the jobs take."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OURS, HTTPX, AIOHTTP = CONTENDERS = ("patternmill", "httpx", "aiohttp")


@dataclass(frozen=True)
class Scenario:
    """One load for every contender. Times are medians in seconds; 0 answers at once."""

    name: str
    title: str
    rows: int
    window: int
    pattern_seconds: float = 0.0
    product_seconds: float = 0.0
    #: The spread of job times: the sigma of their lognormal distribution.
    sigma: float = 0.3
    #: The number of rounds of each contender; contenders take turns.
    rounds: int = 1

    @property
    def instant(self) -> bool:
        return not self.pattern_seconds


SCENARIOS = (
    Scenario("startup", "One row: what starting costs", 1, 1),
    Scenario("instant", "Instant answers, 500 in flight", 2000, 500, rounds=3),
    Scenario("short", "Jobs of 10 s and 3 s, all in flight", 500, 500, 10.0, 3.0),
    Scenario("long", "Jobs of 75 s and 20 s that are much alike, all in flight", 300, 300, 75.0, 20.0, 0.05),
    Scenario("long-spread", "Jobs of 75 s and 20 s that are not, all in flight", 300, 300, 75.0, 20.0),
    Scenario("memory", "Memory: instant answers, many rows", 10_000, 500),
)


def write_rows(path: Path, count: int) -> None:
    """Write a catalog in which every row has a prompt of its own, so that every row is two jobs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "prompt", "category", "option:size"])
        writer.writerows(_row(number) for number in range(count))


def _row(number: int) -> Sequence[str]:
    category, size = (("Cushion", "40x40"), ("Mug", "11oz"))[number % 2]
    return f"BENCH-{number:06}", f"blue herons among reeds, study {number}", category, size
