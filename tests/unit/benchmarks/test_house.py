"""The figures of the house, on small houses made up for it."""

from __future__ import annotations

import ast
import sys
import threading
import tomllib
from pathlib import Path

import pytest

from benchmarks.house.figures import find_cycle, imports, read_trees
from benchmarks.house.rooms import ROOT, read_budgets, table, weights
from benchmarks.one_row import Calls


def test_file_weighs_on_the_deepest_room(tmp_path: Path) -> None:
    """What is no source, and what is in no room, weighs nothing."""
    for name in ("a/x.py", "a/b/y.sql", "a/b/c/z.js", "a/new/w.html", "a/p.png", "other/v.py", "a-b/u.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n2\n")
    weighed = weights(tmp_path, ["a", "a/b", "empty"])
    assert weighed == {"a": 4, "a/b": 4, "empty": 0}
    (line,) = (line for line in table(weighed, {"a": 3, "a/b": 4, "empty": 9}) if "over" in line)
    assert line.split() == ["a", "4", "3", "1", "over"]


def test_every_package_has_a_room() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    tops = {name.partition(".")[0] for name in packages} | {"tests", "benchmarks"}
    assert tops <= {room.partition("/")[0] for room in read_budgets(ROOT)}


def test_imports_of_every_kind() -> None:
    """As a module is loaded, in functions, and for type checkers; `from package import module` is the module."""
    text = "import a.b\nfrom a import c, name\nif TYPE_CHECKING:\n import d\ndef f():\n import g\nimport json"
    trees = {name: ast.parse("") for name in ("a", "a.b", "a.c", "d", "e", "g")}
    assert imports({"x": ast.parse(text), **trees})["x"] == {"a", "a.b", "a.c", "d", "g"}


def test_cycle() -> None:
    """Of whatever length; what is imported along two ways is none."""
    assert set(find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()})) == {"a", "b", "c"}
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.slow
def test_packages_have_no_cycle() -> None:
    graph = imports(read_trees())
    assert graph["cli.main"] >= {"cli.terminal", "patternmill.errors"}
    assert find_cycle(graph) == []


def test_each_function_counts_once(tmp_path: Path) -> None:
    """In every thread; code that loads a module or a class, and code of other folders, does not count."""
    path = tmp_path / "some.py"
    path.write_text("class A:\n    def one(self): return [two() for _ in '12']\ndef two(): return 2\n")
    calls, loaded = Calls((str(tmp_path),)), dict[str, type]()

    def load() -> None:
        exec(compile(path.read_text(), path, "exec"), loaded)
        loaded["A"]().one()

    before = sys.getprofile()
    threading.setprofile(calls)
    try:
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
    finally:
        threading.setprofile(before)
    named = {name for _, name in calls.functions if "<" not in name}
    assert (named, calls.files, calls.before_first_create) == ({"A.one", "two"}, {str(path)}, None)
