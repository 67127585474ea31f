"""`python -m benchmarks.house [--static]`: today's figures of the house, each next to its target. It fails nothing."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.house.one_row import OneRow
from benchmarks.house.source import (
    PACKAGES,
    Function,
    Module,
    cycles,
    dataclasses_of,
    duplicates,
    imports_of,
    percentiles,
    private_prefect_names,
    read_modules,
    repeated_classes,
    repeated_stems,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "inputs" / "spring_catalog.csv"
INTERNALS = "prefect_host/internals.py"
ARGUMENTS = 8
CHAIN = 18
CHAIN_FILES = 10
#: The run's own; that of its planning, during which the lease keeps its heartbeat; that of the results.
CONNECTIONS = 3
FILE_LINES = 450
ROOM_LINES = 6_000
IMPORT_SECONDS = 300.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--static", action="store_true", help="leave out the import of one row")
    asked = parser.parse_args(arguments)
    modules = read_modules(ROOT)
    show_sizes(modules)
    show_functions([function for module in modules for function in module.functions()])
    show_names(modules)
    show_structure(modules)
    if not asked.static:
        show_one_row(import_one_row())


def show(name: str, value: object, target: str = "") -> None:
    print(f"{name:44}{value!s:>14}   {target}".rstrip())


def show_each(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"    {line}")


def show_places(places: Mapping[str, Sequence[str]]) -> None:
    show_each(f"{name}: {', '.join(found)}" for name, found in places.items())


def show_sizes(modules: Sequence[Module]) -> None:
    for package in PACKAGES:
        inside = [module for module in modules if module.name.partition(".")[0] == package]
        show(package, f"{len(inside)} files", f"{sum(module.lines for module in inside):,} lines")
    show("all", f"{len(modules)} files")
    show("lines", f"{sum(module.lines for module in modules):,}")
    longest = max(modules, key=lambda module: module.lines)
    show("longest file", longest.lines, f"target: at most {FILE_LINES}")
    show_each([longest.path])
    rooms = Counter[str]()
    for module in modules:
        rooms[str(Path(module.path).parent)] += module.lines
    ((largest, lines),) = rooms.most_common(1)
    show("largest room", f"{lines:,} lines", f"target: at most {ROOM_LINES:,}")
    show_each([largest])
    show("dataclasses", sum(len(dataclasses_of(module)) for module in modules))


def show_functions(functions: Sequence[Function]) -> None:
    show("functions", len(functions))
    lines = percentiles([function.lines for function in functions])
    show("  lines: median / p90 / max", "{} / {} / {}".format(*lines))
    longest = sorted(functions, key=lambda function: -function.lines)[:5]
    show_each(f"{function.place} {function.name}: {function.lines} lines" for function in longest)
    documented = sum(function.is_documented for function in functions) / len(functions)
    show("  documented", f"{documented:.0%}")
    counted = [function for function in functions if not function.is_flow]
    arguments = percentiles([function.arguments for function in counted])
    show("  arguments: median / p90 / max", "{} / {} / {}".format(*arguments), f"target: at most {ARGUMENTS}")
    show_each(
        f"{function.place} {function.name}: {function.arguments} arguments"
        for function in counted
        if function.arguments > ARGUMENTS
    )


def show_names(modules: Sequence[Module]) -> None:
    private = private_prefect_names(modules)
    show("files that name what is private to Prefect", len(private), f"target 1: {INTERNALS}")
    show_places(private)
    classes = repeated_classes(modules)
    show("class names that occur twice", len(classes), "target 0")
    show_places(classes)
    stems = repeated_stems(modules)
    show("module stems in two folders", len(stems))
    show_places(stems)


def show_structure(modules: Sequence[Module]) -> None:
    circles = cycles(imports_of(modules))
    show("import cycles", len(circles), "target 0")
    show_each(" ".join(circle) for circle in circles)
    twice = duplicates(modules)
    show("over ten lines written twice", len(twice), "target 0")
    show_each(f"{found.lines} lines: {found.first} and {found.second}" for found in twice)


def import_one_row() -> OneRow:
    """Import the sample's first row in a process and a home of its own. Raises SystemExit if that fails."""
    with tempfile.TemporaryDirectory(prefix="patternmill-house-") as name:
        folder = Path(name)
        lines = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "row.csv").write_text("".join(lines[:2]), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.house.one_row", "row.csv", "figures.json"],
            cwd=folder,
            env=_clean_environment(folder),
            capture_output=True,
            text=True,
            timeout=IMPORT_SECONDS,
        )
        figures = folder / "figures.json"
        if done.returncode or not figures.exists():
            raise SystemExit(f"The import of one row failed:\n{done.stdout}{done.stderr}")
        return OneRow(**json.loads(figures.read_text(encoding="utf-8")))


def _clean_environment(folder: Path) -> dict[str, str]:
    foreign = ("PATTERNMILL_", "PREFECT_", "STUDIO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    homes = {"PATTERNMILL_HOME": str(folder / "home"), "PREFECT_HOME": str(folder / "prefect")}
    return {**kept, **homes, "PYTHONPATH": str(ROOT)}


def show_one_row(found: OneRow) -> None:
    show("one row: files of which a function runs", len(found.files))
    show("one row: CSV parsed", found.parsed, "target 1")
    show("one row: ledger connections", found.ledger_connections, f"target: at most {CONNECTIONS}")
    files = {frame.partition(":")[0] for frame in found.chain}
    show("one row: frames from verb to request", len(found.chain), f"target: at most {CHAIN}")
    show("one row: files of these frames", len(files), f"target: at most {CHAIN_FILES}")
    show_each(found.chain)


if __name__ == "__main__":
    main()
