"""The figures of the house, on small houses made up for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.house.one_row import PARSED, REQUEST, function_code
from benchmarks.house.source import (
    Function,
    Module,
    cycles,
    dataclasses_of,
    duplicates,
    imports_of,
    percentiles,
    private_prefect_names,
    read_modules,
    repeated_classes,
    repeated_stems,
)


def module(text: str, path: str = "patternmill/some.py") -> Module:
    return Module(path.removesuffix(".py").replace("/", "."), path, text)


def only_function(text: str) -> Function:
    (found,) = module(text).functions()
    return found


def test_modules_are_read_by_their_dotted_names(tmp_path: Path) -> None:
    """A package goes by its folder's name."""
    (tmp_path / "cli" / "commands").mkdir(parents=True)
    for name in ("cli/__init__.py", "cli/main.py", "cli/commands/up.py"):
        (tmp_path / name).write_text("x = 1\ny = 2\n")
    found = read_modules(tmp_path, ["cli"])
    assert sorted(one.name for one in found) == ["cli", "cli.commands.up", "cli.main"]
    assert {one.lines for one in found} == {2}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("def f(): ...", 0),
        ("async def f(a, /, b, *c, d, **e): ...", 5),
        ("class A:\n def f(self, a): ...", 1),
        ("class A:\n @classmethod\n def f(cls, a): ...", 1),
        ("class A:\n @staticmethod\n def f(a): ...", 1),
    ],
)
def test_arguments_that_a_caller_passes(text: str, arguments: int) -> None:
    assert only_function(text).arguments == arguments


def test_function_has_its_lines_and_its_docstring() -> None:
    """Decorators do not count as lines."""
    found = only_function('@flow(name="x")\ndef f():\n    "What it does."\n    return 1\n')
    assert (found.lines, found.is_documented, found.is_flow) == (3, True, True)
    assert found.place == "patternmill/some.py:2"
    assert not only_function("@task\ndef f(): ...").is_flow


def test_dataclasses_are_known_by_their_decorator() -> None:
    text = "@dataclass\nclass A: ...\n@dataclasses.dataclass(frozen=True)\nclass B: ...\nclass C: ..."
    assert dataclasses_of(module(text)) == ["A", "B"]


def test_percentiles() -> None:
    assert percentiles(range(1, 101)) == (51, 91, 100)
    assert percentiles([7]) == (7, 7, 7)


def test_names_in_two_places() -> None:
    """Packages' own files have no stem."""
    house = [
        module("class Cost: ...\nclass Plan: ...", "cli/plan.py"),
        module("class Cost: ...", "flows/plan.py"),
        module("", "cli/__init__.py"),
        module("", "flows/__init__.py"),
    ]
    assert repeated_classes(house) == {"Cost": ["cli/plan.py", "flows/plan.py"]}
    assert repeated_stems(house) == {"plan": ["cli/plan.py", "flows/plan.py"]}


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


def test_imports_that_are_loaded() -> None:
    """Those in functions and for type checkers wait; `from package import module` is the module."""
    text = (
        "import a.b\nfrom a import c, name\nif TYPE_CHECKING:\n import d\n"
        "try:\n import e\nexcept ImportError: ...\ndef f():\n import g\n"
    )
    known = [module("", f"{name}.py") for name in ("a/b", "a/c", "d", "e", "g")]
    assert imports_of([module(text, "x.py"), Module("a", "a/__init__.py", ""), *known])["x"] == {
        "a.b",
        "a.c",
        "a",
        "e",
    }


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


def test_watched_functions_exist() -> None:
    """A renamed one fails by its name."""
    assert function_code(PARSED).co_name == "__init__"
    assert function_code(REQUEST).co_name == "post"
    with pytest.raises(SystemExit, match="is gone"):
        function_code("patternmill.errors:Nothing.here")


@pytest.mark.slow
def test_this_repository_can_be_measured() -> None:
    """As far as nothing has to run."""
    house = read_modules(Path(__file__).resolve().parents[3])
    assert len(house) > 100
    assert all(isinstance(one.tree, ast.Module) for one in house)
    assert imports_of(house)["cli.main"] >= {"cli.terminal", "patternmill.errors"}


def test_flat_signatures_of_flows_may_be_alike() -> None:
    parameters = "".join(f"    value_{number}: int = {number},\n" for number in range(12))
    signature = f"async def run(\n{parameters}) -> None:\n"
    body = "    return None\n"
    flows = [module(f"@flow\n{signature}{body}", path) for path in ("flows/one.py", "flows/two.py")]
    others = [module(signature + body, path) for path in ("tasks/one.py", "tasks/two.py")]
    assert duplicates(flows) == []
    assert [found.lines for found in duplicates(others)] == [15]
