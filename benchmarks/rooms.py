"""`python -m benchmarks.rooms`: the lines of each room beside its budget; exits with 1 above a wall."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cli", "flows", "tasks", "patternmill")
#: The most lines of the four packages together.
WALL = 13_800
#: Files of other kinds are generated, or no code.
_COUNTED = frozenset({".py", ".sql", ".js", ".css", ".html", ".toml"})
#: Of the reserve: run (+160), ledger (+260), service (+145). Of the 300 lines for one run on several machines, beside
#: `shares` and what lies in tasks: run (+5), ledger (+50).
#: The most lines of each room: a folder with all below it, or some modules of `patternmill`.
BUDGETS = {
    "flows": 250,
    "tasks": 800,
    "cli": 2_300,
    "states items changes plan offer text vocabulary errors settings files contract logs": 1_600,
    "request records run pipeline agreement ending mark settlement remake": 1_265,
    "engine halt fanout": 700,
    "shares": 130,
    "patternmill/ledger": 1_910,
    "patternmill/service": 1_245,
    "patternmill/tables": 2_200,
    "patternmill/looking": 1_500,
    "orders": 250,
    "studio": 4_000,
    "tests": 15_000,
    "benchmarks": 800,
}
_OURS = list(BUDGETS)[:12]


def files_of(room: str, root: Path = ROOT) -> list[Path]:
    """Return the files of a room that count."""
    folder = root / room
    if folder.is_dir():
        return sorted(path for path in folder.rglob("*") if path.suffix in _COUNTED)
    return [
        path
        for name in room.split()
        for kind in _COUNTED
        if (path := root / f"patternmill/{name}{kind}").exists()
    ]


def lines_of(room: str, root: Path = ROOT) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files_of(room, root))


def homeless(root: Path = ROOT) -> list[str]:
    """Return the files of the packages that no room counts."""
    counted = {path for room in _OURS for path in files_of(room, root)}
    found = [path for package in PACKAGES for path in files_of(package, root)]
    return [str(path.relative_to(root)) for path in found if path not in counted and path.stat().st_size]


def main() -> int:
    """Print the table, and return the exit code."""
    lines = {room: lines_of(room) for room in BUDGETS}
    total, is_well = sum(lines[room] for room in _OURS), True
    for room, weight, budget in [
        *((room, lines[room], BUDGETS[room]) for room in BUDGETS),
        (" ".join(PACKAGES), total, WALL),
    ]:
        over = f"  {weight - budget:,} over" if weight > budget else ""
        is_well = is_well and not over
        print(f"{room:66}{weight:>8,}{budget:>8,}{over}")
    for path in homeless():
        is_well = False
        print(f"{path} is in no room", file=sys.stderr)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
