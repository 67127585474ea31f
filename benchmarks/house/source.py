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
#: `_name`, but neither `_` nor `__name__`.
_PRIVATE = re.compile(r"_(?!_)\w+|__\w*(?<!__)")


@dataclass(frozen=True)
class Function:
    """A function or method; `arguments` does not count `self` and `cls`."""

    name: str
    place: str
    lines: int
    arguments: int
    is_documented: bool
    is_flow: bool


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
    def stem(self) -> str:
        return Path(self.path).stem

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    def functions(self) -> Iterator[Function]:
        methods = {id(node) for owner in self.classes for node in owner.body}
        for node in ast.walk(self.tree):
            if isinstance(node, _Definition):
                yield _function(node, self.path, is_method=id(node) in methods)


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


def _function(node: _Definition, path: str, *, is_method: bool) -> Function:
    args = node.args
    arguments = len(args.posonlyargs + args.args + args.kwonlyargs) + bool(args.vararg) + bool(args.kwarg)
    decorators = {_name_of(decorator) for decorator in node.decorator_list}
    return Function(
        name=node.name,
        place=f"{path}:{node.lineno}",
        lines=(node.end_lineno or node.lineno) - node.lineno + 1,
        arguments=arguments - (is_method and "staticmethod" not in decorators),
        is_documented=ast.get_docstring(node) is not None,
        is_flow="flow" in decorators,
    )


def dataclasses_of(module: Module) -> list[str]:
    return [owner.name for owner in module.classes if "dataclass" in map(_name_of, owner.decorator_list)]


def _name_of(decorator: ast.expr) -> str:
    """`flow` of `@flow`, `@flow(...)` and `@prefect.flow(...)`."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target).rpartition(".")[2]


def percentiles(values: Sequence[int]) -> tuple[int, int, int]:
    """The median, the 90th percentile and the largest."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10], ordered[-1]


def repeated_classes(modules: Sequence[Module]) -> dict[str, list[str]]:
    """The files that define a class of each name that more than one class has."""
    return _repeated((owner.name, module.path) for module in modules for owner in module.classes)


def repeated_stems(modules: Sequence[Module]) -> dict[str, list[str]]:
    """The files of each stem that occurs more than once."""
    return _repeated((module.stem, module.path) for module in modules if module.stem != "__init__")


def _repeated(named: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in named:
        places[name].append(place)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


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
    """By module, which of ours it imports as it is loaded: not in functions, not for type checkers."""
    known = {module.name for module in modules}
    return {
        module.name: {_longest_known(name, known) for name in _loaded(module.tree.body)} - {"", module.name}
        for module in modules
    }


def _loaded(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        yield from _imported_names(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _loaded(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            yield from _loaded([part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)])


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
