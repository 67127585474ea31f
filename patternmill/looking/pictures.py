"""The pictures of a home: each is fetched once, and decisions are bound to the digest of its bytes.

An embedded studio draws them, at an address whose port changes; other services say where theirs are.
"""

from __future__ import annotations

import hashlib
import os
import queue
import threading
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from patternmill.addresses import is_web_address, shown_address
from patternmill.errors import PatternmillError
from patternmill.files import private_folder, replace_private, write_whole
from patternmill.identifiers import ItemKey
from patternmill.ledger.records import RunRecord
from patternmill.planning.extras import is_picture
from patternmill.reading import Reading
from patternmill.runs.catalog_takes import PatternTake
from patternmill.settings import Settings
from patternmill.text import plain

if TYPE_CHECKING:
    from patternmill.tables.results import ResultLine

#: The folder next to a gallery.
FOLDER = "pictures"
#: The width of a picture in pixels: sharp on a card of 256 CSS pixels, even at twice the resolution.
WIDTH = 512
#: The most bytes of one picture, and the longest time to read or draw it.
_MOST, _TIME = 20 << 20, timedelta(seconds=60)
#: A function that returns the bytes of a picture by its URL; empty if it is not available.
Source = Callable[[str], bytes]


def picture_name(url: str) -> str:
    """Return the file name of a picture: by the path of its URL alone, as the port of a local service changes."""
    try:
        path = urlsplit(url).path
    except ValueError:
        # There is no picture at such a URL.
        path = url
    return f"{hashlib.sha256(path.encode()).hexdigest()[:24]}.png"


def picture_urls(rows: Iterable[ResultLine], takes: Iterable[PatternTake]) -> list[str]:
    """Return the URLs of a page's pictures: those of takes, and of the rows' patterns and products."""
    of_takes = (take.picture_url for take in takes)
    of_rows = (url for row in rows for url in (row.picture_url, row.product_picture))
    return [url for url in dict.fromkeys((*of_takes, *of_rows)) if url is not None]


def is_drawn(record: RunRecord) -> bool:
    """Return whether an embedded studio made a run's items: nobody else can draw their pictures."""
    return not record.studio_url


def picture_cache(home: Path) -> Path:
    """Return the folder where the pictures of all runs of a home are kept."""
    return home / "pictures" / f"{WIDTH}"


class Pictures:
    """The pictures that a home has, and the source of those that it lacks."""

    def __init__(self, home: Path, source: Source = lambda url: b"") -> None:
        self._folder, self._source = picture_cache(home), source
        self._digests: dict[str, str] = {}
        self._changed = threading.Condition()
        #: The number of callers that wait for a picture, and the pictures that are being fetched.
        self._waiting, self._busy = 0, set[str]()

    def path(self, name: str) -> Path | None:
        """Return the file of a picture by its name; None if it is not here yet."""
        path = self._folder / name
        return path if path.name == name and path.is_file() else None

    def digest(self, url: str | None) -> str:
        """Return the SHA-256 of a picture in hexadecimal; "" if it is not here yet."""
        name = picture_name(url) if url is not None else ""
        if name not in self._digests and (path := self.path(name)) is not None:
            self._digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._digests.get(name, "")

    def digests(self, takes: Iterable[PatternTake]) -> dict[ItemKey, str]:
        """Return the digest of each take's picture that is here, by pattern item."""
        digests = ((take.item, self.digest(take.picture_url)) for take in takes)
        return {item: digest for item, digest in digests if digest}

    def get(self, url: str) -> Path | None:
        """Return the file of a picture that somebody waits for; None if it is not available."""
        with self._changed:
            self._waiting += 1
        try:
            return self._fetched(url)
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def get_all(self, urls: Iterable[str]) -> list[Path]:
        """Return the files of the pictures that are available, in their order."""
        with ThreadPoolExecutor() as pool:
            return [path for path in pool.map(self.get, urls) if path is not None]

    def fill(self, urls: Iterable[str], beside: Path | None = None) -> list[threading.Thread]:
        """Start fetching all of them, whenever nobody waits for one, and put each next to the gallery `beside`."""
        left = queue.SimpleQueue[str]()
        for url in urls:
            left.put(url)

        def work() -> None:
            with suppress(queue.Empty):
                while True:
                    with self._changed:
                        self._changed.wait_for(lambda: not self._waiting)
                    url = left.get_nowait()
                    if self._fetched(url) is not None and beside is not None:
                        self.share([url], beside)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(os.cpu_count() or 1)]
        for thread in threads:
            thread.start()
        return threads

    def share(self, urls: Iterable[str], beside: Path) -> None:
        """Put the pictures that are here next to a gallery, as far as the disk takes them."""
        with suppress(OSError):
            for name in map(picture_name, urls):
                target, path = beside / FOLDER / name, self.path(name)
                if path is not None and not target.exists():
                    # A copy, not a link: files of the home are private, and results have the umask's permissions.
                    write_whole(target, [path.read_bytes()])

    def _fetched(self, url: str) -> Path | None:
        """Return the file of a picture, which is fetched unless it is here; None if it is not available."""
        name = picture_name(url)
        with self._changed:
            self._changed.wait_for(lambda: name not in self._busy)
            if (path := self.path(name)) is not None:
                return path
            self._busy.add(name)
        try:
            raw = self._source(url)
            if is_picture(raw):
                with suppress(OSError):  # a full disk: fetched again the next time
                    replace_private(private_folder(self._folder) / name, raw)
            return self.path(name)
        finally:
            with self._changed:
                self._busy.discard(name)
                self._changed.notify_all()


def source_of(settings: Settings) -> Source:
    """Return the source of pictures of an environment's service; without a service it has none."""
    service = settings.service
    if service is None:
        return lambda url: b""
    return (
        partial(draw, service.url) if settings.embedded else partial(_fetch, urlsplit(service.url).hostname)
    )


def draw(studio_url: str, url: str) -> bytes:
    """Return a picture that the embedded studio draws, at its present address; empty if it cannot."""
    now = urlsplit(studio_url)
    address = urlunsplit((now.scheme, now.netloc, urlsplit(url).path, f"width={WIDTH}", ""))
    try:
        with urllib.request.urlopen(address, timeout=_TIME.total_seconds()) as response:  # noqa: S310 - our own studio
            return bytes(response.read())
    except (OSError, HTTPException):
        return b""


def _fetch(host: str | None, url: str) -> bytes:
    """Return what is at a public address, or one of the service's own host; empty if it is not available."""
    if not is_web_address(url):
        return b""
    # Imported here because it loads httpx, which is needed for missing pictures only.
    from patternmill.service.web_reader import Access, read_page

    reading = Reading(plain(shown_address(url), 300), _MOST, time=_TIME, noun="a picture")
    access = Access(redirects=0, public_only=True, own_host=host, pause=0)
    with suppress(PatternmillError):
        return reading.in_time(lambda: read_page(url, reading, access).content)
    return b""
