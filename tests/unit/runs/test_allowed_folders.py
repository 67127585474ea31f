"""Runs that a deployment starts read and write in the allowed folders alone; the command line anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from patternmill.errors import ConfigurationError
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.spec import run_spec

ROWS = "sku,prompt,category\nA-1,blue herons,Cushion\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker's folder, with another beside it and links from one into the other."""
    folder = tmp_path / "here"
    for name in ("here", "elsewhere", "home", "here-too"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spring.csv").write_text(ROWS)
    (folder / "link.csv").symlink_to(tmp_path / "elsewhere" / "spring.csv")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "inward.csv").symlink_to(folder / "spring.csv")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    return folder


OUTSIDE = ("/etc/passwd", "../here-too/spring.csv", "link.csv", "x/../../elsewhere/spring.csv")
INSIDE = ("spring.csv", "inward.csv", "no-such.csv", "x/../spring.csv", "../home/spring.csv")


def begin(source: str, by_deployment: bool = True, out: str | None = None) -> None:
    place = Path(out) if out else None
    run_spec(ImportRequest(file=Path(source), catalog="c", out=place), by_deployment=by_deployment)
    run_spec(RefreshRequest(source=source, catalog="c", out=place), by_deployment=by_deployment)


@pytest.mark.parametrize("path", OUTSIDE)
def test_deployment_is_refused_outside_of_the_allowed_folders(path: str, here: Path) -> None:
    """As the file, as the source with and without file://, and as the results' destination."""
    absolute = str((here / path).absolute())
    for refused in (
        lambda: run_spec(ImportRequest(file=Path(path), catalog="c"), by_deployment=True),
        lambda: run_spec(ImportRequest(file=Path(path)), by_deployment=True),
        lambda: run_spec(
            ImportRequest(file=Path("spring.csv"), catalog="c", out=Path(path)), by_deployment=True
        ),
        lambda: run_spec(RefreshRequest(source=path, catalog="c"), by_deployment=True),
        lambda: run_spec(RefreshRequest(source=f"file://{absolute}", catalog="c"), by_deployment=True),
        lambda: run_spec(
            RefreshRequest(source="spring.csv", catalog="c", out=Path(path)), by_deployment=True
        ),
    ):
        with pytest.raises(ConfigurationError) as error:
            refused()
        assert error.value.code == "folder_not_allowed"


def test_deployment_is_allowed_inside(here: Path) -> None:
    """Below the worker's folder and the home, whether the file exists or not, and links that stay inside."""
    for path in INSIDE:
        begin(path, out="results/x")


def test_command_line_is_not_restricted(here: Path) -> None:
    """The person may read what they may read."""
    for path in OUTSIDE:
        begin(path, by_deployment=False, out="../elsewhere")


def test_source_of_the_settings_needs_no_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PATTERNMILL_SOURCES", json.dumps({"nightly": str(here.parent / "here-too/spring.csv")})
    )
    run_spec(RefreshRequest(source="nightly", catalog="c"), by_deployment=True)


@pytest.mark.parametrize("address", ["ftp://h/x.csv", "FILE:///etc/passwd", "smb://h/x"])
def test_other_kinds_of_addresses_are_refused(address: str, here: Path) -> None:
    """For everybody, as a source and as a place for results."""
    with pytest.raises(ConfigurationError, match="not read here"):
        run_spec(RefreshRequest(source=address, catalog="c"))
    with pytest.raises(ValidationError, match="not an address"):
        RefreshRequest(source="spring.csv", catalog="c", out=Path(address))
