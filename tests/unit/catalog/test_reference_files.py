"""Which pictures are read for rows, and what is said of those that are not."""

from __future__ import annotations

import hashlib
from ipaddress import ip_address
from pathlib import Path

import pytest

from patternmill.catalog import reference_files
from patternmill.catalog.extras import Picture
from patternmill.catalog.problems import Problem
from patternmill.catalog.reference_files import ReferencePlace, is_picture, is_routable, read_references
from patternmill.errors import ConfigurationError

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
JPEG, WEBP = b"\xff\xd8\xff\xe0rest", b"RIFF0000WEBPrest"


@pytest.fixture
def place(tmp_path: Path) -> ReferencePlace:
    (tmp_path / "a.png").write_bytes(PNG)
    return ReferencePlace(tmp_path)


def message(cell: str, place: ReferencePlace) -> str:
    found = read_references([cell], place)[cell]
    assert isinstance(found, Problem)
    return f"{found.message}; {found.remedy}"


def test_pictures_are_known_by_how_they_begin() -> None:
    known = {raw: is_picture(raw) for raw in (PNG, JPEG, WEBP, b"GIF89a", b"<svg/>", b"", b"RIFF")}
    assert [raw for raw, is_known in known.items() if is_known] == [PNG, JPEG, WEBP]


def test_picture_is_its_bytes(place: ReferencePlace) -> None:
    digest = hashlib.sha256(PNG).hexdigest()
    assert read_references(["a.png", "./a.png"], place) == {
        "a.png": Picture(digest, PNG),
        "./a.png": Picture(digest, PNG),
    }


def test_other_files_are_no_pictures(place: ReferencePlace, tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text("KEY=1")
    shown = message("secrets.env", place)
    assert "no PNG, JPEG or WebP" in shown
    assert "KEY" not in shown


def test_large_picture_is_refused(
    place: ReferencePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_files, "MOST_TOGETHER", len(PNG) + 3)
    (tmp_path / "b.png").write_bytes(PNG + b"more")
    read = read_references(["a.png", "b.png"], place)
    assert isinstance(read["a.png"], Picture)
    assert isinstance(read["b.png"], Problem)
    with (tmp_path / "c.png").open("wb") as file:
        file.truncate((20 << 20) + 1)
    assert "than a reference may have" in message("c.png", place)


def test_path_of_a_catalog_at_an_address_is_refused() -> None:
    assert "the catalog has an address" in message("a.png", ReferencePlace(None))


def test_folder_that_is_not_allowed(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise ConfigurationError(f"{path} is outside.")

    assert "is outside" in message("../a.png", ReferencePlace(tmp_path, refuse))


@pytest.mark.parametrize("cell", ["s3://bucket/a.png", "ftp://host/a.png", "memory://a.png"])
def test_other_addresses_are_refused(cell: str, place: ReferencePlace) -> None:
    assert "no http(s) address" in message(cell, place)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.5",
        "169.254.169.254",
        "[::1]",
        "[::ffff:8.8.8.8]",
        "[64:ff9b::a00:5]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a00:5::1]",
        "[2001:0:a00:5::1]",
        "224.0.0.1",
        "8%2e8.8.8",
        "x%2ey.example.com",
    ],
)
def test_private_host_is_refused_for_a_deployment(host: str, tmp_path: Path) -> None:
    public = ReferencePlace(tmp_path, public_only=True)
    assert "public internet" in message(f"http://{host}:9/a.png?token=hush", public)
    assert "hush" not in message(f"http://{host}:9/a.png?token=hush", public)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::6810:84e5"])
def test_hosts_of_the_public_internet_are_routable(address: str) -> None:
    assert is_routable(ip_address(address))


def test_own_host_of_the_catalog_is_allowed(tmp_path: Path) -> None:
    """It is asked, and does not answer here."""
    own = ReferencePlace(None, public_only=True, host="127.0.0.1")
    assert "public internet" not in message("http://127.0.0.1:9/a.png", own)


def test_reading_ends_in_time(place: ReferencePlace) -> None:
    """Many slow addresses keep no run busy for ever."""
    ticks = iter([0.0, 1.0, 601.0])
    read = read_references(["a.png", "b.png"], place, clock=lambda: next(ticks))
    assert isinstance(read["a.png"], Picture)
    assert isinstance(late := read["b.png"], Problem)
    assert "10 min" in late.message
