"""The house as it is built: what is installed is what is there, and no flow file can be taken for something else."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Folders with Python in them that are not installed.
NOT_INSTALLED = {"tests", "benchmarks"}
FLOWS = sorted(path for path in (ROOT / "flows").glob("*.py") if path.stem != "__init__")


def packages_of_the_tree() -> set[str]:
    """Return every folder that holds Python files, by its dotted name."""
    tops = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    folders = {
        file.parent.relative_to(ROOT)
        for top in tops
        for file in top.rglob("*.py")
        if top.name not in NOT_INSTALLED
    }
    return {".".join(folder.parts) for folder in folders}


def test_listed_packages_are_those_of_the_tree() -> None:
    """Discovery drops `tasks` silently, so they are listed; and a list is forgotten."""
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_of_the_tree()


def test_every_module_has_a_docstring() -> None:
    """So has the `__init__.py` that every package has."""
    for name in packages_of_the_tree():
        paths = {path.name: path for path in (ROOT / name.replace(".", "/")).glob("*.py")}
        assert "__init__.py" in paths, name
        for path in paths.values():
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def top_level_names() -> set[str]:
    """Return whatever `import name` could mean: the standard library, what is installed, and our own folders."""
    installed = set(importlib.metadata.packages_distributions())
    ours = {path.stem for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py"}
    return set(sys.stdlib_module_names) | installed | ours


def test_flow_files_have_unique_stems() -> None:
    """A flow file that is run by its path is imported under its bare stem, first on the path."""
    assert FLOWS
    modules = {
        path.stem
        for top in ("cli", "tasks", "prefect_host", "patternmill")
        for path in (ROOT / top).rglob("*.py")
    } - {"__init__"}
    stems = {path.stem for path in FLOWS}
    assert stems & top_level_names() == set()
    assert stems & modules == set()


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_flow_files_define_only_flows(path: Path) -> None:
    """Run by path, their definitions exist twice: so no classes, no exceptions, no constants, absolute imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] == []
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []
    assert [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)] == []


def test_command_is_installed() -> None:
    assert PROJECT["project"]["scripts"] == {"patternmill": "cli.main:main"}
    found = [
        script
        for script in importlib.metadata.entry_points(group="console_scripts")
        if script.name == "patternmill"
    ]
    assert {script.value for script in found} == {"cli.main:main"}
    assert callable(found[0].load())


def test_installed_packages_can_be_imported() -> None:
    """Each of them can be, from any working folder."""
    found = importlib.metadata.packages_distributions()
    for top in {name.partition(".")[0] for name in packages_of_the_tree()}:
        assert importlib.util.find_spec(top) is not None
        assert set(found.get(top, ["patternmill"])) == {"patternmill"}, (
            f"{top} belongs to another distribution too"
        )


#: What is declared and not imported, and why.
LOADED_BY_OTHERS = {
    "fastapi": "Prefect's server loads it, and needs it older than it asks for",
    "s3fs": "fsspec loads it for s3:// addresses",
    "gcsfs": "fsspec loads it for gs:// addresses",
    "prefect-redis": "Prefect's server loads it, as its settings name it",
    "distributed": "prefect-dask loads it, older than we need",
}


def declared(requirements: list[str]) -> set[str]:
    """Return the names of distributions, without their extras and versions."""
    return {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in requirements}  # type: ignore[index]


def test_what_is_declared_is_imported_and_the_other_way_round() -> None:
    """The installed packages import it; a package that another one brings along may leave with it."""
    extras = PROJECT["project"]["optional-dependencies"]
    names = declared(PROJECT["project"]["dependencies"]) | declared(
        [one for extra, requirements in extras.items() if extra != "dev" for one in requirements]
    )
    of_module = importlib.metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in packages_of_the_tree()}
    trees = [ast.parse(path.read_text("utf-8")) for top in tops for path in (ROOT / top).rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = (
        {module.partition(".")[0] for module in modules} - tops - {*sys.stdlib_module_names, "_typeshed"}
    )
    imported = {of_module[module][0].lower().replace("_", "-") for module in foreign}
    # pydantic pins the release of pydantic-core.
    assert imported - {"pydantic-core"} == names - LOADED_BY_OTHERS.keys()


def test_what_we_start_imports_nothing_from_the_working_folder() -> None:
    """A `json.py` or `click.py` that somebody left there would have the key: each interpreter is started with -P."""
    tops = {name.partition(".")[0] for name in packages_of_the_tree()}
    paths = [path for top in tops for path in (ROOT / top).rglob("*.py")]
    started = [
        text for path in paths for text in re.findall(r"sys\.executable, ([^,]+),", path.read_text("utf-8"))
    ]
    assert len(started) >= 6 and set(started) == {'"-P"'}
