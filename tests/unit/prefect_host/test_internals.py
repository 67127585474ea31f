"""Prefect's insides, in one file of ours: what a new release of Prefect moved fails here by its name."""

from __future__ import annotations

import ast
import importlib
import signal
from collections.abc import Iterator
from pathlib import Path

import prefect
import pytest
from prefect.utilities import engine

from prefect_host import internals

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("cli", "flows", "tasks", "prefect_host", "patternmill", "studio", "benchmarks")
OUR_ONE_FILE = "prefect_host/internals.py"
MOVED = f"Prefect {prefect.__version__} moved {{}}; see {OUR_ONE_FILE}"


def test_flow_keeps_a_sigterm_handler_that_it_recognises() -> None:
    def handler(number: int, frame: object) -> None:
        raise AssertionError("nobody sends it")

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with internals.sigterm_handler_kept(handler), engine.capture_sigterm(), engine.capture_sigterm():
            found = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found is handler, MOVED.format("capture_sigterm")


@pytest.mark.slow
def test_only_internals_uses_private_names_of_prefect() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in files
        if str(path.relative_to(ROOT)) != OUR_ONE_FILE
        for line, name in private_names(ast.parse(path.read_text("utf-8")))
    ]
    assert len(files) > 100
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "from prefect._internal import pytz",
        "import prefect._internal.pytz",
        "from prefect.utilities.engine import _prefect_sigterm_handler",
        "from prefect.events import utilities\nutilities.EventsWorker = None",
        "from prefect.events import utilities\nsetattr(utilities, 'EventsWorker', None)",
        "from prefect.utilities import engine\nengine._bridge",
        "from prefect.utilities import engine\ngetattr(engine, '_bridge')",
        "from prefect import get_client\nclient = get_client()\nclient._loop",
        "from prefect.events.worker import EventsWorker\n"
        "class Ours(EventsWorker):\n    async def _handle(self): ...",
        "from prefect.events.worker import EventsWorker\n"
        "class Ours(EventsWorker):\n    def ours(self): self._queue",
    ],
)
def test_private_name_is_found(source: str) -> None:
    assert [*private_names(ast.parse(source))]


def private_names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each private name of Prefect, and of what is put in the place of a name of Prefect."""
    imported = {node: names for node in ast.walk(module) if (names := from_prefect(node))}
    ours = {alias: name for names in imported.values() for alias, name in names.items()}
    for node, names in imported.items():
        yield from ((line_of(node), name) for name in names.values() if is_private(name))
    made = ours | {
        target.id: "a thing of Prefect"
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and root(node.value.func) in ours
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and root(node) in made:
            if is_private(node.attr) or (isinstance(node.ctx, ast.Store) and root(node) in ours):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and root(node.func) in {"getattr", "setattr", "hasattr"}:
            yield from by_text(node, made)
        elif isinstance(node, ast.ClassDef):
            yield from ((node.lineno, name) for name in inherited(node, ours))


def from_prefect(node: ast.AST) -> dict[str, str]:
    """The names that an import binds, and what of Prefect they are."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "prefect":
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    if isinstance(node, ast.Import):
        names = [alias for alias in node.names if alias.name.split(".")[0] == "prefect"]
        return {alias.asname or "prefect": alias.name for alias in names}
    return {}


def by_text(call: ast.Call, made: dict[str, str]) -> Iterator[tuple[int, str]]:
    thing, name = call.args[0], call.args[1]
    text = name.value if isinstance(name, ast.Constant) else ""
    if root(thing) in made and (root(call.func) == "setattr" or is_private(str(text))):
        yield call.lineno, ast.unparse(call)


def inherited(node: ast.ClassDef, ours: dict[str, str]) -> Iterator[str]:
    """Private names that a class derived from one of Prefect overrides, or reads and never sets."""
    methods = {
        child.name for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    own = [child for child in ast.walk(node) if isinstance(child, ast.Attribute) and root(child) == "self"]
    kept = methods | {child.attr for child in own if isinstance(child.ctx, ast.Store)}
    for name in {ours[base] for base in map(root, node.bases) if base in ours}:
        module, _, attribute = name.rpartition(".")
        theirs = dir(getattr(importlib.import_module(module), attribute))
        foreign = {child.attr for child in own} - kept | methods.intersection(theirs)
        yield from (f"{name}.{one}" for one in sorted(foreign) if is_private(one))


def root(node: ast.AST) -> str | None:
    """The name that an expression begins with."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
