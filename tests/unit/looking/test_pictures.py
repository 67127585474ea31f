"""The pictures of a home: each is drawn or fetched once, what somebody waits for first, and put next to a gallery."""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.identifiers import ItemKey
from patternmill.looking.pictures import WIDTH, Pictures, draw, picture_cache, picture_name, source_of
from patternmill.profiles import Profile
from patternmill.runs.catalog_takes import PatternTake
from patternmill.settings import Settings
from patternmill.states import AttemptState
from tests.unit.service.sites import Site, Start, answer, redirect
from tests.unit.service.sites import start as start

PICTURE = b"\x89PNG\r\n\x1a\n, and so on"


@pytest.fixture
def painter(start: Start) -> Site:
    """Draw the pictures that are asked for, except those called broken, cut, page or moved."""
    site = start()
    answers = {
        **dict.fromkeys("ab", answer(200, PICTURE)),
        "broken": answer(500),
        "cut": answer(200, PICTURE, Content_Length="1000"),
        "page": answer(200, b"<html>"),
        "moved": redirect("/v1/pictures/a.png"),
    }
    for name, drawn in answers.items():
        path = f"/v1/pictures/{name}.png"
        site.pages |= {path: drawn, f"{path}?width={WIDTH}": drawn}
    return site


def url(name: str) -> str:
    """Return the URL of a picture as it was at the time: the studio's port changes."""
    return f"http://127.0.0.1:1/v1/pictures/{name}.png"


def test_pictures_are_drawn_once_and_known_by_their_bytes(tmp_path: Path, painter: Site) -> None:
    """They come from the present address, for their owner alone; those that failed are asked for again."""
    for _ in range(2):
        pictures = Pictures(tmp_path, partial(draw, f"{painter.url}/v1"))
        paths = pictures.get_all(map(url, ("a", "b", "a", "broken", "cut", "page")))
        assert [path.name for path in paths] == [picture_name(url(name)) for name in "aba"]
    drawn = [f"/v1/pictures/{name}.png?width={WIDTH}" for name in "ab"]
    assert sorted(path for path in painter.paths if path in drawn) == drawn
    takes = [
        PatternTake(1, AttemptState.SUCCEEDED, item=ItemKey(name), pattern=ItemKey(""), picture_url=url(name))
        for name in ("a", "broken")
    ]
    assert pictures.digests(takes) == {"a": hashlib.sha256(PICTURE).hexdigest()}
    assert {path.stat().st_mode & 0o777 for path in picture_cache(tmp_path).iterdir()} == {0o600}


def test_what_somebody_waits_for_is_had_first(tmp_path: Path) -> None:
    """All others follow, and each is put next to the gallery."""
    asked: list[str] = []
    is_asked, may_end = threading.Event(), threading.Event()

    def source(address: str) -> bytes:
        asked.append(address)
        if address == url("wanted"):
            is_asked.set()
            may_end.wait(20)
        return PICTURE

    pictures = Pictures(tmp_path, source)
    waiting = [threading.Thread(target=pictures.get, args=(url("wanted"),)) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert is_asked.wait(20)
    filling = pictures.fill(map(url, ("a", "wanted", "b")), tmp_path / "out")
    assert asked == [url("wanted")]
    may_end.set()
    for thread in (*waiting, *filling):
        thread.join(20)
    assert sorted(asked) == sorted(map(url, ("a", "wanted", "b")))
    beside = {path.name for path in (tmp_path / "out" / "pictures").iterdir()}
    assert beside == {picture_name(url(name)) for name in ("a", "wanted", "b")}


def test_disk_that_refuses_pictures_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    assert Pictures(tmp_path / "a-file", lambda url: PICTURE).get(url("a")) is None
    pictures = Pictures(tmp_path, lambda url: PICTURE)
    assert pictures.get(url("a")) is not None
    pictures.share([url("a")], tmp_path / "a-file")


@pytest.mark.parametrize(
    ("service", "name", "is_asked", "is_there"),
    [("{}", "a", True, True), ("https://studio.example/v1", "a", False, False), ("{}", "moved", True, False)],
    ids=["its own host", "another host of this network", "a redirect"],
)
def test_pictures_of_a_service_come_from_its_host(
    tmp_path: Path, painter: Site, service: str, name: str, is_asked: bool, is_there: bool
) -> None:
    address = f"{painter.url}/v1"
    profiles = {"staging": Profile(url=service.format(address), key=SecretStr("key"))}
    pictures = Pictures(tmp_path, source_of(Settings(home=tmp_path, profiles=profiles)))
    assert (pictures.get(f"{address}/pictures/{name}.png") is not None) == is_there
    assert painter.paths == [f"/v1/pictures/{name}.png"] * is_asked
