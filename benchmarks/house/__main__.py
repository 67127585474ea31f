"""`python -m benchmarks.house`: what shape the house has today, each figure next to its target. It fails nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.house.source import (
    Module,
    cycles,
    data_classes,
    duplicates,
    function_lines,
    imports_of,
    late_imports,
    private_prefect_names,
    public_definitions,
    read_modules,
    settings,
    verbs,
)

ROOT = Path(__file__).resolve().parents[2]
INTERNALS = "prefect_host/internals.py"


def main() -> None:
    modules = read_modules(ROOT)
    show_counts(modules)
    show_functions(modules)
    show_structure(modules)


def show(name: str, value: object, target: str = "") -> None:
    print(f"{name:44}{value!s:>14}   {target}".rstrip())


def show_each(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"    {line}")


def show_counts(modules: Sequence[Module]) -> None:
    show("files", len(modules))
    show("data classes of any kind", len(data_classes(modules)), "target: at most 100")
    show("verbs", len(verbs(modules)), "target: at most 16")
    show("settings", len(settings(modules)), "target: at most 25")


def show_functions(modules: Sequence[Module]) -> None:
    lines = function_lines(modules)
    show(
        "lines of a function: median / p90 / max",
        f"{lines[len(lines) // 2]} / {lines[len(lines) * 9 // 10]} / {lines[-1]}",
    )
    public = public_definitions(modules)
    share = sum(documented for _, documented in public) / len(public)
    show("public definitions with a docstring", f"{share:.1%}", "target: at least 73 %")


def show_structure(modules: Sequence[Module]) -> None:
    show("imports inside functions", len(late_imports(modules)))
    circles = cycles(imports_of(modules))
    show("import cycles, late and for types included", len(circles), "target 0")
    show_each(" ".join(circle) for circle in circles)
    private: Mapping[str, Sequence[str]] = private_prefect_names(modules)
    show("files that name what is private to Prefect", len(private), f"target 1: {INTERNALS}")
    show_each(f"{name}: {', '.join(found)}" for name, found in private.items())
    twice = duplicates(modules)
    show("over ten lines written twice", len(twice), "target 0")
    show_each(f"{found.lines} lines: {found.first} and {found.second}" for found in twice)


if __name__ == "__main__":
    main()
