"""`python -m benchmarks.sheets`: what `check` and `--plan-only` take of one catalog in each format, taking turns."""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import CHECKOUT, Usage, run

TIMEOUT = 600.0
_MAKE_XLSX = "import sys; from benchmarks.sheets import write_workbook; write_workbook(*sys.argv[1:])"
VERBS = {"check": ("check",), "plan": ("import", "--plan-only")}


@dataclass(frozen=True)
class Measured:
    """One command on one file, by one checkout."""

    checkout: str
    verb: str
    file: str
    usage: Usage


def write_workbook(source: str, target: str) -> None:
    """The rows of a CSV as texts of a worksheet."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Catalog")
    with Path(source).open(encoding="utf-8", newline="") as file:
        for cells in csv.reader(file):
            sheet.append(cells)
    book.save(target)


def _row(number: int) -> tuple[str, ...]:
    """Of a kind that the embedded studio offers, with a prompt of its own."""
    rest = (("Cushion", "50x50", "linen", ""), ("Mug", "11oz", "", "matte"))[number % 2]
    return f"BENCH-{number:06}", f"blue herons among reeds, study {number}", *rest


def sheets(folder: Path, rows: int) -> Iterator[Path]:
    """The same rows as CSV and as a workbook."""
    plain = folder / "rows.csv"
    with plain.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "prompt", "category", "option:size", "option:fabric", "option:finish"])
        writer.writerows(_row(number) for number in range(rows))
    yield plain
    # In a process of its own: a child's peak memory never reads less than what its parent held.
    workbook = folder / "rows.xlsx"
    subprocess.run([sys.executable, "-c", _MAKE_XLSX, str(plain), str(workbook)], cwd=CHECKOUT, check=True)
    yield workbook


def measure(checkouts: Sequence[Path], rows: int, rounds: int) -> list[Measured]:
    """Every command on every file by every checkout in turn, so often. A peer reads CSV alone."""
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = list(sheets(folder, rows))
        environment = {"PATH": os.environ["PATH"], "PATTERNMILL_HOME": str(folder / "home")}
        for _ in range(rounds):
            for checkout in checkouts:
                for file in files if checkout == CHECKOUT else files[:1]:
                    for verb, words in VERBS.items():
                        command = [str(checkout / ".venv/bin/patternmill"), words[0], str(file), *words[1:]]
                        usage = run(command, environment, folder, timeout=TIMEOUT)
                        if usage.code != 0:
                            raise SystemExit(f"{' '.join(command)} ended with {usage.code}:\n{usage.output}")
                        measured.append(Measured(checkout.name, verb, file.name, usage))
    return measured


def table(measured: Sequence[Measured], checkouts: Sequence[Path]) -> Iterator[str]:
    """The medians, and their ratio to this checkout's own with CSV."""
    yield "| checkout | command | file | wall, s | CPU, s | peak MB | CPU to this CSV |"
    yield "|---|---|---|---|---|---|---|"
    keys = dict.fromkeys((one.checkout, one.verb, one.file) for one in measured)

    def median(key: tuple[str, str, str], figure: Callable[[Usage], float]) -> float:
        chosen = [figure(m.usage) for m in measured if (m.checkout, m.verb, m.file) == key]
        return statistics.median(chosen)

    for key in keys:
        own = (checkouts[0].name, key[1], "rows.csv")
        cpu = median(key, lambda usage: usage.cpu)
        ratio = cpu / median(own, lambda usage: usage.cpu)
        wall, peak = median(key, lambda usage: usage.wall), median(key, lambda usage: usage.peak_mb)
        yield f"| {' | '.join(key)} | {wall:.1f} | {cpu:.1f} | {peak:.0f} | {ratio:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="another checkout, whose CSV is measured too")
    options = parser.parse_args(arguments)
    checkouts = [CHECKOUT, *([options.peer.resolve()] if options.peer else [])]
    measured = measure(checkouts, options.rows, options.rounds)
    print("\n".join(table(measured, checkouts)))


if __name__ == "__main__":
    main()
