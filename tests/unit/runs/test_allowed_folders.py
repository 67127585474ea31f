"""Where a run that a deployment starts may read and write, and which pictures are read for rows."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import ValidationError

from patternmill.errors import ConfigurationError
from patternmill.planning.extras import Picture, is_picture
from patternmill.planning.problems import Problem
from patternmill.runs import extras
from patternmill.runs.extras import read_references
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.spec import run_spec
from patternmill.settings import Settings, load_settings
from tests.unit.service.sites import Start, answer, redirect
from tests.unit.service.sites import start as start

ROWS = "sku,prompt,category\nA-1,blue herons,Cushion\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the worker's folder, with another beside it and links from one into the other."""
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


@pytest.mark.parametrize("path", [*OUTSIDE, *INSIDE])
def test_deployment_reads_and_writes_in_the_allowed_folders_alone(path: str, here: Path) -> None:
    """This goes for the file, for sources with and without file://, and for results; the command line is free."""
    for request in (
        ImportRequest(file=Path(path), catalog="c"),
        ImportRequest(file=Path("spring.csv"), catalog="c", out=Path(path)),
        RefreshRequest(source=path, catalog="c"),
        RefreshRequest(source=f"file://{(here / path).absolute()}", catalog="c"),
    ):
        run_spec(request)
        with (
            nullcontext()
            if path in INSIDE
            else pytest.raises(ConfigurationError, match="outside of the folders")
        ):
            run_spec(request, by_deployment=True)


def test_source_of_the_settings_may_be_anywhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"nightly": str(here.parent / "here-too/spring.csv")}
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps(named))
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
    with nullcontext() if allowed else pytest.raises(ConfigurationError, match="the worker allows that"):
        assert run_spec(request, by_deployment=True).copy_below == address.rstrip("/")


# -- pictures

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
JPEG, WEBP = b"\xff\xd8\xff\xe0rest", b"RIFF0000WEBPrest"


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "a.png").write_bytes(PNG)
    return str(tmp_path / "spring.csv")


def message(cell: str, source: str, limits: Settings | None = None) -> str:
    problem = read_references([cell], source, limits)[cell]
    assert isinstance(problem, Problem)
    return f"{problem.message}; {problem.remedy}"


def test_pictures_are_known_by_how_they_begin(source: str, tmp_path: Path) -> None:
    """Each is its bytes, and whatever else a file holds is not shown."""
    known = {raw: is_picture(raw) for raw in (PNG, JPEG, WEBP, b"GIF89a", b"<svg/>", b"", b"RIFF")}
    assert [raw for raw, is_known in known.items() if is_known] == [PNG, JPEG, WEBP]
    assert read_references(["a.png"], source) == {"a.png": Picture(hashlib.sha256(PNG).hexdigest(), PNG)}
    (tmp_path / "secrets.env").write_text("KEY=1")
    shown = message("secrets.env", source)
    assert "no PNG, JPEG or WebP" in shown and "KEY" not in shown


def test_reading_has_limits_of_size_and_time(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one file, of all together, and of many slow addresses, which keep no run busy for ever."""
    ticks = iter([0.0, 1.0, 601.0])
    read = read_references(["a.png", "b.png"], source, clock=lambda: next(ticks))
    assert isinstance(read["a.png"], Picture)
    assert isinstance(late := read["b.png"], Problem) and "10 min" in late.message
    monkeypatch.setattr(extras, "MOST_TOGETHER", len(PNG) + 3)
    (tmp_path / "b.png").write_bytes(PNG + b"more")
    read = read_references(["a.png", "b.png"], source)
    assert isinstance(read["a.png"], Picture) and isinstance(read["b.png"], Problem)
    with (tmp_path / "c.png").open("wb") as file:
        file.truncate((20 << 20) + 1)
    assert "than a reference may have" in message("c.png", source)


def test_deployment_reads_pictures_of_its_folders_and_of_the_public_internet(here: Path) -> None:
    limited = str(here / "spring.csv"), load_settings()
    assert "is outside" in message("../elsewhere/a.png", *limited)
    shown = message("http://169.254.169.254:9/a.png?token=hush", *limited)
    assert "public internet" in shown and "hush" not in shown


def test_reference_follows_no_redirect(source: str, start: Start) -> None:
    """Where it leads could be any host, and for a person nobody has looked at it."""
    first, other = start(), start()
    first.answers("/a.png", redirect(f"{other.url}/a.png?canary"))
    other.answers("/a.png", answer(200, PNG))
    shown = message(f"{first.url}/a.png", source)
    assert "redirects to another address, which is not followed" in shown
    assert "canary" not in shown and other.seen == []
