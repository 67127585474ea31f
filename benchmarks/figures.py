"""`python -m benchmarks.figures`: how many functions and classes there are, and how long the functions are."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.rooms import PACKAGES, ROOT

_LONGEST, _SHOWN = 50, 5


def functions_of(path: Path, tree: ast.AST) -> list[tuple[int, str]]:
    """Return the lines of each function of a file, with its place."""
    place = path.relative_to(ROOT)
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{place}:{node.lineno} {node.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def main() -> None:
    """Print the figures."""
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    functions = sorted(one for path, tree in trees.items() for one in functions_of(path, tree))
    lengths = [lines for lines, _ in functions]
    classes = sum(isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree))
    print(f"functions        {len(lengths):>6,}   in {len(trees)} files, with {classes} classes")
    print(f"lines, mean      {sum(lengths) / len(lengths):>6.1f}   target: 8")
    print(f"lines, median    {lengths[len(lengths) // 2]:>6,}")
    print(
        f"above {_LONGEST} lines   {sum(lines > _LONGEST for lines in lengths):>6,}   target: 0; the longest:"
    )
    for lines, place in functions[: -_SHOWN - 1 : -1]:
        print(f"{lines:>23,}   {place}")


if __name__ == "__main__":
    main()
