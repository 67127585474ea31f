"""Which pictures are read for rows, and what is said of those that are not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.planning.extras import Picture, is_picture
from patternmill.planning.problems import Problem
from patternmill.runs import extras
from patternmill.runs.extras import ReferencePlace, read_references
from tests.unit.service.sites import Start, answer, redirect
from tests.unit.service.sites import start as start

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
JPEG, WEBP = b"\xff\xd8\xff\xe0rest", b"RIFF0000WEBPrest"


@pytest.fixture
def place(tmp_path: Path) -> ReferencePlace:
    (tmp_path / "a.png").write_bytes(PNG)
    return ReferencePlace(tmp_path)


def message(cell: str, place: ReferencePlace) -> str:
    problem = read_references([cell], place)[cell]
    assert isinstance(problem, Problem)
    return f"{problem.message}; {problem.remedy}"


def test_pictures_are_known_by_how_they_begin(place: ReferencePlace, tmp_path: Path) -> None:
    """Each is its bytes, and whatever else a file holds is not shown."""
    known = {raw: is_picture(raw) for raw in (PNG, JPEG, WEBP, b"GIF89a", b"<svg/>", b"", b"RIFF")}
    assert [raw for raw, is_known in known.items() if is_known] == [PNG, JPEG, WEBP]
    assert read_references(["a.png"], place) == {"a.png": Picture(hashlib.sha256(PNG).hexdigest(), PNG)}
    (tmp_path / "secrets.env").write_text("KEY=1")
    shown = message("secrets.env", place)
    assert "no PNG, JPEG or WebP" in shown and "KEY" not in shown


def test_reading_has_limits_of_size_and_time(
    place: ReferencePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one file, of all together, and of many slow addresses, which keep no run busy for ever."""
    ticks = iter([0.0, 1.0, 601.0])
    read = read_references(["a.png", "b.png"], place, clock=lambda: next(ticks))
    assert isinstance(read["a.png"], Picture)
    assert isinstance(late := read["b.png"], Problem) and "10 min" in late.message
    monkeypatch.setattr(extras, "MOST_TOGETHER", len(PNG) + 3)
    (tmp_path / "b.png").write_bytes(PNG + b"more")
    read = read_references(["a.png", "b.png"], place)
    assert isinstance(read["a.png"], Picture) and isinstance(read["b.png"], Problem)
    with (tmp_path / "c.png").open("wb") as file:
        file.truncate((20 << 20) + 1)
    assert "than a reference may have" in message("c.png", place)


def test_folder_that_is_not_allowed(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise ConfigurationError(f"{path} is outside.")

    assert "is outside" in message("../a.png", ReferencePlace(tmp_path, refuse))


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "169.254.169.254",
        "[::ffff:8.8.8.8]",
        "[64:ff9b::a00:5]",
        "[2002:a00:5::1]",
        "224.0.0.1",
    ],
)
def test_private_host_is_refused_for_a_deployment(host: str, tmp_path: Path) -> None:
    public = ReferencePlace(tmp_path, public_only=True)
    assert "public internet" in message(f"http://{host}:9/a.png?token=hush", public)
    assert "hush" not in message(f"http://{host}:9/a.png?token=hush", public)


def test_reference_follows_no_redirect(place: ReferencePlace, start: Start) -> None:
    """Where it leads could be any host, and for a person nobody has looked at it."""
    first, other = start(), start()
    first.answers("/a.png", redirect(f"{other.url}/a.png?canary"))
    other.answers("/a.png", answer(200, PNG))
    shown = message(f"{first.url}/a.png", place)
    assert "redirects to another address, which is not followed" in shown
    assert "canary" not in shown and other.seen == []
