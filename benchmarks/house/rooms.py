"""`python -m benchmarks.house.rooms`: what each room weighs next to its budget; exit code 1 when one is over it."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = "docs/budgets.toml"
PACKAGES = ("cli", "flows", "tasks", "prefect_host", "patternmill")
#: The suffixes of files that count; generated and binary files have others.
COUNTED = frozenset({".py", ".sql", ".js", ".css", ".html", ".toml"})


def weights(root: Path, rooms: Iterable[str]) -> Counter[str]:
    """Return the lines of each room. A file counts for the deepest room among its folders."""
    lines = Counter(dict.fromkeys(rooms, 0))
    for top in {room.partition("/")[0] for room in lines}:
        for path in (root / top).rglob("*"):
            if path.suffix in COUNTED:
                folders = (folder.as_posix() for folder in path.relative_to(root).parents)
                room = next((folder for folder in folders if folder in lines), None)
                lines.update({room: path.read_bytes().count(b"\n")} if room else {})
    return lines


def table(weighed: Mapping[str, int], budgets: Mapping[str, int]) -> list[str]:
    """Return a line for each room, and one for the sum of the five packages."""
    lines = [f"{'room':24}{'lines':>8}{'budget':>8}"]
    for room, budget in budgets.items():
        over = f"  {weighed[room] - budget:,} over" if weighed[room] > budget else ""
        lines.append(f"{room:24}{weighed[room]:>8,}{budget:>8,}{over}")
    ours = [room for room in budgets if room.partition("/")[0] in PACKAGES]
    sums = sum(weighed[room] for room in ours), sum(budgets[room] for room in ours)
    return [*lines, f"{'the five packages':24}{sums[0]:>8,}{sums[1]:>8,}"]


def read_budgets(root: Path) -> dict[str, int]:
    """Return the most lines that each room may have."""
    rooms: dict[str, int] = tomllib.loads((root / BUDGETS).read_text(encoding="utf-8"))["rooms"]
    return rooms


def main() -> int:
    budgets = read_budgets(ROOT)
    weighed = weights(ROOT, budgets)
    print("\n".join(table(weighed, budgets)))
    if all(weighed[room] <= budget for room, budget in budgets.items()):
        return 0
    print(f"A room is over its budget in {BUDGETS}: what does not fit is left out.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
