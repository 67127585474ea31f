"""What can be read off the source: sizes, names, imports; nothing here runs it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGES = ("cli", "flows", "tasks", "prefect_host", "patternmill")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_FIELD_BASES = frozenset({"NamedTuple", "TypedDict", "BaseModel", "BaseSettings"})
#: `_name`, but neither `_` nor `__name__`.
_PRIVATE = re.compile(r"_(?!_)\w+|__\w*(?<!__)")


@dataclass(frozen=True)
class Module:
    """A file, by its dotted name and by its path in the checkout."""

    name: str
    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]


def read_modules(root: Path, packages: Sequence[str] = PACKAGES) -> list[Module]:
    """Every Python file of the packages."""
    paths = [
        path.relative_to(root) for package in packages for path in sorted((root / package).rglob("*.py"))
    ]
    return [
        Module(_dotted(path), path.as_posix(), (root / path).read_text(encoding="utf-8")) for path in paths
    ]


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def data_classes(modules: Sequence[Module]) -> list[str]:
    """Classes that hold fields, of any kind: by their decorator, or by a base, directly or through another of ours."""
    owners = [(module, owner) for module in modules for owner in module.classes]
    holding: set[str] = set(_FIELD_BASES)
    size = 0
    while size != len(holding):
        size = len(holding)
        holding |= {owner.name for _, owner in owners if holding & set(map(_name_of, owner.bases))}
    return [
        f"{module.path}: {owner.name}"
        for module, owner in owners
        if owner.name in holding or "dataclass" in map(_name_of, owner.decorator_list)
    ]


def public_definitions(modules: Sequence[Module]) -> list[tuple[str, bool]]:
    """Functions, classes and their methods whose names and owners have no underscore first; each with whether it has a
    docstring.
    """
    return [found for module in modules for found in _public(module.tree.body, f"{module.path}: ")]


def _public(body: Sequence[ast.stmt], place: str) -> Iterator[tuple[str, bool]]:
    for node in body:
        if isinstance(node, _Definition | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{place}{node.name}", ast.get_docstring(node) is not None
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{place}{node.name}.")


def function_lines(modules: Sequence[Module]) -> list[int]:
    """How long each function is, the shortest first."""
    nodes = (node for module in modules for node in ast.walk(module.tree) if isinstance(node, _Definition))
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def verbs(modules: Sequence[Module]) -> list[str]:
    """The keys of the table of verbs."""
    (table,) = (
        node.value
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "VERBS"
    )
    assert isinstance(table, ast.Dict)
    return [key.value for key in table.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def settings(modules: Sequence[Module]) -> list[str]:
    """The fields of the class that reads them, private ones aside."""
    (owner,) = (owner for module in modules for owner in module.classes if owner.name == "Settings")
    fields = (ast.unparse(node.target) for node in owner.body if isinstance(node, ast.AnnAssign))
    return [name for name in fields if not name.startswith("_") and name != "model_config"]


def late_imports(modules: Sequence[Module]) -> list[str]:
    """Where an import is made only when a function runs."""
    return sorted(
        {
            f"{module.path}:{node.lineno}"
            for module in modules
            for function in ast.walk(module.tree)
            if isinstance(function, _Definition)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    )


def _name_of(decorator: ast.expr) -> str:
    """`flow` of `@flow`, `@flow(...)` and `@prefect.flow(...)`."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target).rpartition(".")[2]


def private_prefect_names(modules: Sequence[Module]) -> dict[str, list[str]]:
    """By file, what it names of Prefect that begins with an underscore.

    An attribute counts where the file imports Prefect and no file of ours defines a name like that.
    """
    ours = {name for module in modules for name in _defined_names(module.tree)}
    found = {module.path: sorted(set(_private_names(module.tree, ours))) for module in modules}
    return {path: names for path, names in found.items() if names}


def _defined_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, _Definition | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _private_names(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    imported = [name for node in ast.walk(tree) for name in _imported_names(node)]
    from_prefect = [name for name in imported if name.partition(".")[0] == "prefect"]
    yield from (name for name in from_prefect if any(map(_PRIVATE.fullmatch, name.split("."))))
    if not from_prefect:
        return
    bases = {name.rpartition(".")[2] for name in from_prefect}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and bases & set(map(_name_of, node.bases)):
            yield from (f"super().{name}" for name in _private_names_of_super(node))
        if isinstance(node, ast.Attribute) and _PRIVATE.fullmatch(node.attr) and node.attr not in ours:
            owner = ast.unparse(node.value)
            if owner.partition(".")[0] not in ("os", "sys"):
                yield f"{owner}.{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "prefect._" in node.value:
            yield repr(node.value)


def _private_names_of_super(owner: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(owner):
        is_private = isinstance(node, ast.Attribute) and _PRIVATE.fullmatch(node.attr)
        if isinstance(node, ast.Attribute) and is_private and ast.unparse(node.value) == "super()":
            yield node.attr


def _imported_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of(modules: Sequence[Module]) -> dict[str, set[str]]:
    """By module, which of ours it imports: as it is loaded, in functions, and for type checkers."""
    known = {module.name for module in modules}
    return {
        module.name: {
            _longest_known(name, known) for node in ast.walk(module.tree) for name in _imported_names(node)
        }
        - {"", module.name}
        for module in modules
    }


def _longest_known(name: str, known: set[str]) -> str:
    """The module that `from module import name` or `import module` loads."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another (Tarjan's strongly connected components)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_nodes: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        open_nodes.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in numbers:
                visit(target)
            if target in open_nodes:
                lowest[node] = min(lowest[node], lowest[target])
        if lowest[node] == numbers[node]:
            start = open_nodes.index(node)
            found.append(sorted(open_nodes[start:]))
            del open_nodes[start:]

    for node in sorted(graph):
        if node not in numbers:
            visit(node)
    return [group for group in found if len(group) > 1 or group[0] in graph[group[0]]]


@dataclass(frozen=True)
class Duplicate:
    """The same lines of code in two places, blank lines and comments aside."""

    lines: int
    first: str
    second: str


def duplicates(modules: Sequence[Module], longer_than: int = 10) -> list[Duplicate]:
    """Code over so many lines that is written twice, the longest first.

    Imports, docstrings and the flat signatures of flows, which a test holds against their model, do not count.
    """
    code = {module.path: _code_lines(module) for module in modules}
    size = longer_than + 1
    starts: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, lines in code.items():
        for index in range(len(lines) - size + 1):
            starts[tuple(text for _, text in lines[index : index + size])].append((path, index))
    pairs = {(first, other) for places in starts.values() for first in places[:1] for other in places[1:]}
    found = [
        _grown(code, pair, size)
        for pair in pairs
        if not {((pair[0][0], pair[0][1] - 1), (pair[1][0], pair[1][1] - 1))} & pairs
    ]
    return sorted(found, key=lambda one: (-one.lines, one.first))


def _grown(
    code: Mapping[str, list[tuple[int, str]]], pair: tuple[tuple[str, int], tuple[str, int]], size: int
) -> Duplicate:
    """A pair of equal windows, as far as both go on alike."""
    (one, start), (other, begin) = pair
    first, second = code[one], code[other]
    while (
        start + size < len(first)
        and begin + size < len(second)
        and first[start + size][1] == second[begin + size][1]
    ):
        size += 1
    return Duplicate(size, f"{one}:{first[start][0]}", f"{other}:{second[begin][0]}")


def _code_lines(module: Module) -> list[tuple[int, str]]:
    """The lines of code with their numbers, without their indentation."""
    left_out: Counter[int] = Counter()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            assert isinstance(node, ast.stmt)
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, _Definition) and "flow" in map(_name_of, node.decorator_list):
            left_out.update(range(node.lineno, node.body[0].lineno))
    numbered = enumerate(map(str.strip, module.text.splitlines()), start=1)
    return [(at, line) for at, line in numbered if line and line[0] != "#" and not left_out[at]]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
