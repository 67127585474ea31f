"""`python -m benchmarks.house.figures`: the shape of the five packages, each figure next to its target."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from benchmarks.house.rooms import PACKAGES, ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = Mapping[str, ast.Module]


def read_trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the packages by the dotted names of their modules."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8"))
        for name, path in zip(names, paths, strict=True)
    }


def function_lines(trees: Trees) -> list[int]:
    """Return how long each function is, the shortest first."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function))
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def imported_names(tree: ast.AST) -> set[str]:
    """Return what is imported anywhere in a tree: in functions and for type checkers too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imports(trees: Trees) -> dict[str, set[str]]:
    """Return what each module imports of the others; `from package import name` may name a module or its content."""
    graph = {}
    for module, tree in trees.items():
        names = imported_names(tree)
        graph[module] = (names | {name.rpartition(".")[0] for name in names - trees.keys()}) & trees.keys()
    return graph


def find_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of a cycle of imports in their order; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def main() -> None:
    trees = read_trees()
    lines = function_lines(trees)
    print(f"functions                   {len(lines):>6,}   in {len(trees)} files")
    print(f"lines of one, median        {lines[len(lines) // 2]:>6,}   target: 5 to 10")
    print(f"lines of one, the longest   {lines[-1]:>6,}   target: rarely above 30")
    cycle = " -> ".join(find_cycle(imports(trees))) or "none"
    print(f"a cycle of imports          {cycle:>6}   target: none")


if __name__ == "__main__":
    main()
