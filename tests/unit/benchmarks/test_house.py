"""The figures of the house, on small houses made up for it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks.house.rooms import ROOT, read_budgets, table, weights
from benchmarks.house.source import (
    Module,
    cycles,
    data_classes,
    duplicates,
    imports_of,
    late_imports,
    private_prefect_names,
    read_modules,
    settings,
    verbs,
)


def module(text: str, path: str = "patternmill/some.py") -> Module:
    return Module(path.removesuffix(".py").replace("/", "."), path, text)


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
    tops = {name.partition(".")[0] for name in packages}
    assert tops <= {room.partition("/")[0] for room in read_budgets(ROOT)}


def test_data_classes_are_known_by_decorator_and_base() -> None:
    """Also by the base of a base, in another module."""
    one = module(
        "@dataclass\nclass A: ...\n@dataclasses.dataclass(frozen=True)\nclass B: ...\n"
        "class C: ...\nclass D(NamedTuple): ...\nclass E(pydantic.BaseModel): ..."
    )
    other = module("class F(E): ...\nclass G(F): ...\nclass H(C): ...", "cli/other.py")
    assert [name[-1] for name in data_classes([other, one])] == ["F", "G", "A", "B", "D", "E"]


def test_verbs_and_settings_are_counted() -> None:
    text = "VERBS: dict[str, str] = {'a': 'x', 'b': 'y'}\nclass Settings(BaseSettings):\n a: int = 1\n _b: int = 2"
    assert verbs([module(text)]) == ["a", "b"]
    assert settings([module(text)]) == ["a"]


def test_late_imports() -> None:
    text = "import a\ndef f():\n import b\n def g():\n  from c import d\nif TYPE_CHECKING:\n import e"
    assert late_imports([module(text)]) == ["patternmill/some.py:3", "patternmill/some.py:5"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from prefect._internal.x import Y", ["prefect._internal.x.Y"]),
        ("import prefect.a._b", ["prefect.a._b"]),
        ("import prefect\nclient._loop.stop()", ["client._loop"]),
        ("from prefect import Thing\nclass A(Thing):\n def _f(self): super()._f()", ["super()._f"]),
        ("import prefect\nname = 'prefect._vendor'", ["'prefect._vendor'"]),
        ("import prefect\nself._mine = 1\nother._mine", []),
        ("import prefect\nos._exit(1); x.__class__", []),
        ("client._loop.stop()", []),
    ],
)
def test_private_names_of_prefect(text: str, names: list[str]) -> None:
    """Where Prefect is imported, an underscore that we did not write."""
    assert private_prefect_names([module(text)]) == ({"patternmill/some.py": names} if names else {})


def test_imports_of_every_kind() -> None:
    """As a module is loaded, in functions, and for type checkers; `from package import module` is the module."""
    text = "import a.b\nfrom a import c, name\nif TYPE_CHECKING:\n import d\ndef f():\n import g\nimport json"
    known = [module("", f"{name}.py") for name in ("a/b", "a/c", "d", "e", "g")]
    found = imports_of([module(text, "x.py"), Module("a", "a/__init__.py", ""), *known])
    assert found["x"] == {"a.b", "a.c", "a", "d", "g"}


def test_cycles() -> None:
    """Of whatever length, each once."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f", "a"}}
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["f", "g"]]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_code_written_twice() -> None:
    """Indentation, blank lines, comments, docstrings and imports make no difference."""
    lines = [f"x{number} = {number}" for number in range(12)]
    one = module("\n".join(["import os", "first = 1", *lines, "end = 1"]), "one.py")
    other = module("def f():\n" + "\n".join(f"    # why\n\n    {line}" for line in lines), "other.py")
    (found,) = duplicates([one, other])
    assert (found.lines, found.first, found.second) == (12, "one.py:3", "other.py:4")
    assert duplicates([one, other], longer_than=12) == []


@pytest.mark.slow
def test_this_repository_can_be_measured() -> None:
    house = read_modules(ROOT)
    assert imports_of(house)["cli.main"] >= {"cli.terminal", "patternmill.errors"}
    assert "import" in verbs(house) and "home" in settings(house) and data_classes(house)
    assert cycles(imports_of(house)) == []
