"""Change the code that decides about money, one place at a time, and count the changes that its tests notice.

`python -m tests.mutants [TARGET ...] [--most N]` plays all mutants of the targets, or N of each, one after another
in a child process of low priority, against the tests of the target until one of them notices.
"""

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {  # its module, and the tests that are to notice
    "items": "patternmill/items.py tests/test_items.py",
    "answers": "patternmill/service/answers.py tests/test_answers.py tests/test_reporting.py",
    "evidence": "patternmill/service/evidence.py tests/test_evidence.py tests/test_answers.py",
    "purchases": "patternmill/ledger/purchases.py tests/test_ledger.py tests/test_engine.py tests/test_money.py",
    "leases": "patternmill/ledger/leases.py tests/test_ledger.py tests/test_databases.py",
    "engine": "patternmill/engine.py tests/test_engine.py tests/test_money.py",
    "trust": "patternmill/halt.py tests/test_trust.py tests/test_ledger.py",
    "remake": "patternmill/remake.py tests/test_remake.py",
}
HEAVY = ("httpx_aiohttp", "pandas", "psycopg")
OPTIONS = "-x -q -p no:cacheprovider -p no:xdist --assert=plain"
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, BitOr BitAnd"
SWAPPED = {
    getattr(ast, name): getattr(ast, other)
    for pair in PAIRS.split(", ")
    for name, other in (pair.split(), pair.split()[::-1])
}


class Mutant(NamedTuple):
    """A module with one change."""

    line: int
    change: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Yield each change of the code inside functions, one at a time."""
    whole = ast.parse(source)
    functions = [node for node in ast.walk(whole) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = {node: None for function in functions for part in function.body for node in ast.walk(part)}
    types = [getattr(node, name, None) for node in ast.walk(whole) for name in ("annotation", "returns")]
    never_run = {node for root in types if root is not None for node in ast.walk(root)}
    for node, change in ((n, change) for n in nodes if n not in never_run for change in changes_of(n)):
        copies: dict[int, Any] = {}
        changed = copy.deepcopy(whole, copies)
        place, before = copies[id(node)], _short(node)
        change(place)
        yield Mutant(place.lineno, f"{before} -> {_short(place)}", ast.fix_missing_locations(changed))


def _short(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0][:70]


def changes_of(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    """Yield the changes that can be made to a node."""
    match node:
        case ast.Compare(ops=[how]) if type(how) in SWAPPED:
            yield lambda place: setattr(place, "ops", [SWAPPED[type(how)]()])
        case ast.BoolOp(op=how) | ast.BinOp(op=how) if type(how) in SWAPPED:
            yield lambda place: setattr(place, "op", SWAPPED[type(how)]())
        case ast.UnaryOp(op=ast.Not()):
            yield lambda place: setattr(place, "operand", ast.UnaryOp(ast.Not(), place.operand))
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield lambda place: setattr(place, "test", ast.UnaryOp(ast.Not(), place.test))
        case ast.Constant(value=bool()):
            yield lambda place: setattr(place, "value", not place.value)
        case ast.Constant(value=int() | float()):
            yield lambda place: setattr(place, "value", place.value + 1)
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield lambda place: setattr(place, "value", ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            yield lambda place: setattr(place, "__class__", ast.Pass)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module as a mutant has it."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._name, self._path, self._tree = path.removesuffix(".py").replace("/", "."), ROOT / path, tree

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def exit_code(path: str, tree: ast.Module, tests: Sequence[str]) -> int:
    """Run tests with a changed module in a forked process, which is killed after a while; return pytest's exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            signal.alarm(900)
            sys.meta_path.insert(0, Changed(path, tree))
            os._exit(int(pytest.main([*OPTIONS.split(), *tests])))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--most", type=int, help="mutants of each target, drawn by chance")
    options = parser.parse_args(arguments)
    os.nice(10)
    os.chdir(ROOT)
    list(map(importlib.import_module, HEAVY))
    played = survived = 0
    for target in options.targets:
        path, *tests = TARGETS[target].split()
        source = (ROOT / path).read_text("utf-8")
        if code := exit_code(path, ast.parse(source), tests):
            raise SystemExit(f"{path}: its tests end with exit code {code} without any change")
        chosen = list(mutants(source))
        random.Random(target).shuffle(chosen)
        chosen = sorted(chosen[: options.most], key=lambda mutant: mutant.line)
        left = [mutant for mutant in chosen if exit_code(path, mutant.tree, tests) == 0]
        print(*(f"  {path}:{mutant.line}: {mutant.change}\n" for mutant in left), sep="", end="")
        print(f"{target}: {len(chosen) - len(left)} of {len(chosen)} mutants noticed", flush=True)
        played, survived = played + len(chosen), survived + len(left)
    print(f"score: {100 * (played - survived) / played:.1f} % of {played}")


if __name__ == "__main__":
    main(sys.argv[1:])
