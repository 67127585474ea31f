"""The pictures of an embedded studio, kept next to the gallery."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from patternmill.identifiers import ItemKey
from patternmill.looking.kept_pictures import (
    WIDTH,
    keep_pictures,
    picture_cache,
    picture_name,
    share_pictures,
)
from patternmill.looking.pictures import Pictures
from patternmill.looking.takes import Take

PICTURE = b"\x89PNG\r\n\x1a\n, and so on"


class Painter(ThreadingHTTPServer):
    """Draws what it is asked for; not what is called broken."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Painter)
        self.server.asked.append(self.path)
        self.send_response(500 if "broken" in self.path else 200)
        if "cut" in self.path:
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(PICTURE)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def painter() -> Iterator[Painter]:
    with Painter() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url(name: str) -> str:
    """As it was at the time: the studio's port changes."""
    return f"http://127.0.0.1:1/v1/pictures/{name}.png"


def results(out: Path, *names: str) -> Path:
    """Every product on the same pattern."""
    out.mkdir()
    lines = [{"product": {"picture_url": url(name)}, "pattern": {"picture_url": url("p")}} for name in names]
    (out / "results.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return out


def test_pictures_are_drawn_once_and_kept_next_to_the_gallery(tmp_path: Path, painter: Painter) -> None:
    """The next run of the same rows draws nothing."""
    out, again = results(tmp_path / "out", "a", "b", "b"), results(tmp_path / "again", "a", "b")
    assert keep_pictures(out, tmp_path, painter.url) == []
    assert sorted(painter.asked) == [f"/v1/pictures/{name}.png?width={WIDTH}" for name in "abp"]
    assert keep_pictures(again, tmp_path, painter.url) == [] and len(painter.asked) == 3
    for folder in (out, again):
        names = {path.name for path in (folder / "pictures").iterdir()}
        assert names == {picture_name(url(name)) for name in "abp"}


def test_what_cannot_be_drawn_is_said(tmp_path: Path, painter: Painter) -> None:
    """The others are drawn all the same; an answer that ends too early is no picture."""
    out = results(tmp_path / "out", "a", "broken", "cut")
    said = keep_pictures(out, tmp_path, painter.url)
    assert said[0].startswith("2 pictures could not be drawn: the gallery shows tiles")
    assert len(list((out / "pictures").iterdir())) == 2


def test_a_disk_that_refuses_pictures_fails_no_run(
    tmp_path: Path, painter: Painter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the home nor in the results; a part of a picture never counts as one."""
    out = results(tmp_path / "out", "a")
    (tmp_path / "a-file").touch()
    said = keep_pictures(out, tmp_path / "a-file", painter.url)
    assert said[0].startswith("2 pictures could not be drawn")
    with monkeypatch.context() as full:
        full.setattr("shutil.copyfile", _copied_in_part)
        said = keep_pictures(out, tmp_path, painter.url)
    assert said[-1].startswith(f"Pictures cannot be written into {out}: the gallery shows tiles")
    assert list((out / "pictures").iterdir()) == []
    assert share_pictures(out, tmp_path)
    assert len(list((out / "pictures").iterdir())) == 2


def _copied_in_part(source: Path, target: Path) -> None:
    target.write_bytes(b"a pic")
    raise OSError(28, "No space left on device")


def test_a_stop_leaves_the_rest_out(
    tmp_path: Path, painter: Painter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As does the end of the time for it; nothing waits for the picture that is being drawn."""
    out, may_draw = results(tmp_path / "out", *(str(number) for number in range(50))), threading.Event()
    monkeypatch.setattr(_Answer, "do_GET", lambda answer: may_draw.wait(5))
    said = keep_pictures(out, tmp_path, painter.url, is_stopped=lambda: True)
    monkeypatch.setattr("patternmill.looking.kept_pictures.MOST_SECONDS", -1.0)
    said += keep_pictures(out, tmp_path, painter.url)
    may_draw.set()
    assert [line.partition(":")[0] for line in said] == ["51 pictures left out"] * 2


def test_pictures_of_a_service_are_fetched_once_and_known_by_their_bytes(
    tmp_path: Path, painter: Painter
) -> None:
    """They are private, and one that cannot be had is left out."""
    takes = [
        Take(ItemKey(name), 1, "", f"pat-{name}", f"{painter.url}/pictures/{name}.png")
        for name in ("a", "broken")
    ]
    Pictures(tmp_path, painter.url).fetch(take.picture_url or "" for take in takes)
    asked = painter.asked.count("/v1/pictures/a.png")
    again = Pictures(tmp_path, painter.url)
    again.fetch(take.picture_url or "" for take in takes)
    assert painter.asked.count("/v1/pictures/a.png") == asked > 0
    assert again.digests(takes) == {"a": hashlib.sha256(PICTURE).hexdigest()}
    assert [f"{path.stat().st_mode & 0o777:o}" for path in picture_cache(tmp_path).iterdir()] == ["600"]


def test_no_picture_is_fetched_from_another_host_of_this_network(tmp_path: Path, painter: Painter) -> None:
    Pictures(tmp_path, "https://studio.example/v1").fetch([f"{painter.url}/pictures/a.png"])
    assert painter.asked == []
