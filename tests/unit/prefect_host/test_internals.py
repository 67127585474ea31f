"""Prefect's insides, in one file of ours: what a new release of Prefect moved fails here by its name."""

from __future__ import annotations

import ast
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


def test_flow_keeps_a_sigterm_handler_that_it_recognises() -> None:
    def handler(number: int, frame: object) -> None:
        raise AssertionError("nobody sends it")

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with internals.sigterm_handler_kept(handler), engine.capture_sigterm(), engine.capture_sigterm():
            kept = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert kept is handler, f"Prefect {prefect.__version__} moved capture_sigterm; see {OUR_ONE_FILE}"


@pytest.mark.parametrize(
    "source",
    [
        "from prefect._internal import pytz",
        "import prefect._internal.pytz",
        "from prefect.utilities.engine import _prefect_sigterm_handler",
        "from prefect.events import utilities\nutilities.EventsWorker = None",
        "from prefect.events import utilities\nsetattr(utilities, 'EventsWorker', None)",
        "from prefect.utilities import engine\nengine._bridge",
    ],
)
def test_private_name_is_found(source: str) -> None:
    assert [*private_names(ast.parse(source))]


@pytest.mark.slow
def test_only_internals_uses_private_names_of_prefect() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    names = {
        str(path.relative_to(ROOT)): [*private_names(ast.parse(path.read_text("utf-8")))]
        for path in files
        if "prefect" in path.read_text("utf-8")
    }
    assert names.pop(OUR_ONE_FILE)
    assert {path: private for path, private in names.items() if private} == {}


def private_names(module: ast.Module) -> Iterator[str]:
    """Yield each private name of Prefect that a module uses, and each name of Prefect that it replaces."""
    imported: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "prefect":
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.split(".")[0] == "prefect"]
            imported |= {alias.asname or "prefect": alias.name for alias in names}
    yield from (name for name in imported.values() if "._" in name)
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and root(node) in imported:
            if node.attr.startswith("_") or isinstance(node.ctx, ast.Store):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and root(node.func) == "setattr" and root(node.args[0]) in imported:
            yield ast.unparse(node)


def root(node: ast.expr) -> str | None:
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
