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


@pytest.mark.parametrize("path", OUTSIDE)
def test_deployment_is_refused_outside_of_the_allowed_folders(path: str, here: Path) -> None:
    """As the file, as the source with and without file://, and as the results' destination; not the command line."""
    requests = (
        ImportRequest(file=Path(path)),
        ImportRequest(file=Path("spring.csv"), catalog="c", out=Path(path)),
        RefreshRequest(source=path, catalog="c"),
        RefreshRequest(source=f"file://{(here / path).absolute()}", catalog="c"),
        RefreshRequest(source="spring.csv", catalog="c", out=Path(path)),
    )
    for request in requests:
        with pytest.raises(ConfigurationError) as error:
            run_spec(request, by_deployment=True)
        assert error.value.code == "folder_not_allowed"
        run_spec(request)


def test_deployment_is_allowed_inside(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the worker's folder and the home, whether the file exists or not; a source of the settings anywhere."""
    for path in INSIDE:
        run_spec(ImportRequest(file=Path(path), catalog="c", out=Path("results/x")), by_deployment=True)
        run_spec(RefreshRequest(source=path, catalog="c"), by_deployment=True)
    sources = {"nightly": str(here.parent / "here-too/spring.csv")}
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps(sources))
    run_spec(RefreshRequest(source="nightly", catalog="c"), by_deployment=True)


@pytest.mark.parametrize("address", ["ftp://h/x.csv", "FILE:///etc/passwd"])
def test_other_kinds_of_addresses_are_refused(address: str, here: Path) -> None:
    """For everybody, as a source and as a place for results, where a path has lost one of its slashes."""
    with pytest.raises(ConfigurationError, match="not read here"):
        run_spec(RefreshRequest(source=address, catalog="c"))
    for place in (address, Path(address), Path("s3://bucket/x")):
        with pytest.raises(ValidationError, match="must be a path, or an address that begins with s3://"):
            RefreshRequest(source="spring.csv", catalog="c", out=place)


PLACES = (
    *("s3://me:canary@bucket/x", "s3://bucket/x?sig=canary", "s3://bucket/x#canary", "s3:///canary"),
    *("s3://bucket/../canary", "s3://bucket//canary", "s3://bucket/x%2e%2e/canary"),
    *("simplecache::s3://bucket/canary", "s3://bucket/x::file:///canary"),
)


@pytest.mark.parametrize("address", PLACES)
def test_address_of_results_is_a_bucket_and_a_path_alone(address: str) -> None:
    """Prefect stores it in clear, and what it means is not for the store to find out. The refusal shows none of it."""
    with pytest.raises(ValidationError) as refused:
        ImportRequest(file="spring.csv", out=address)
    (fault,) = refused.value.errors()
    assert "canary" not in fault["msg"]


@pytest.mark.parametrize(
    ("below", "address", "allowed"),
    [
        ("", "s3://bucket/x", False),
        ("s3://bucket/x", "s3://bucket/x/", True),
        ("s3://bucket/x/", "s3://bucket/x/y", True),
        ("s3://bucket/x", "s3://bucket/xy", False),
        ("s3://bucket/x", "gs://bucket/x", False),
        ("s3://bucket", "s3://bucket/x", True),
    ],
)
def test_deployment_copies_below_the_workers_address_alone(
    below: str, address: str, allowed: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line anywhere; the results stay where they are without it."""
    request = ImportRequest(file="spring.csv", catalog="c", out=address)
    if below:
        monkeypatch.setenv("PATTERNMILL_OUT_BELOW", below)
    spec = run_spec(request)
    assert (spec.out, spec.copy_below) == (None, address.rstrip("/"))
    if allowed:
        assert run_spec(request, by_deployment=True).copy_below == address.rstrip("/")
        return
    with pytest.raises(ConfigurationError) as refused:
        run_spec(request, by_deployment=True)
    assert refused.value.code == "address_not_allowed"
