"""Keeps the pictures of an embedded studio, which ends with its command: drawn as they are made, side by side."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from patternmill.files import private_folder, write_private
from patternmill.results.gallery import FOLDER, picture_name, picture_urls
from patternmill.text import plural

#: Sharp on a card of 256 points also where a point has two pixels.
WIDTH = 512
#: How long it goes on once the run has ended; the gallery shows tiles for the rest, until the same file is run again.
MOST_SECONDS = 600.0
#: For a results directory.
NOT_SHARED = (
    "Pictures cannot be written into {}: the gallery shows tiles for them. Free the disk and run it again."
)
_POLL_SECONDS = 0.3
#: Of one picture, with those that wait before it.
_PICTURE_SECONDS = 120.0


def picture_cache(home: Path) -> Path:
    """Where the pictures of all runs of a home are kept."""
    return home / "pictures" / f"{WIDTH}"


class PictureKeeper:
    """Has the studio draw pictures into `cache`, two or more at a time."""

    def __init__(self, cache: Path, studio_url: str) -> None:
        self._cache, self._studio_url = cache, studio_url
        self._asked: set[str] = set()
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._over = threading.Event()
        self._followed = threading.Event()
        self._following: threading.Thread | None = None
        self._threads: list[threading.Thread] = []
        self.drawn = self.failed = self._to_draw = 0

    @property
    def left(self) -> int:
        return self._to_draw - self.drawn - self.failed

    def ask(self, urls: Iterable[str]) -> None:
        """Have the pictures drawn that are not there, and were not asked for before."""
        for url in urls:
            name = picture_name(url)
            if name in self._asked:
                continue
            self._asked.add(name)
            if not (self._cache / name).exists():
                self._to_draw += 1
                self._waiting.put(url)
                self._start_thread()

    def follow(self, made: Callable[[], Iterable[str]]) -> None:
        """Ask for what `made` returns, again and again, until `finish`."""

        def following() -> None:
            while not self._followed.wait(_POLL_SECONDS):
                self.ask(made())

        self._following = self._start_daemon(following)

    def finish(
        self,
        out: Path,
        *,
        step: Callable[[str], None] = lambda text: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """Wait for the pictures of the run whose results are in `out`, and put them there; returns what is left out.

        `step` is told what is being done now.
        """
        self._followed.set()
        if self._following is not None:
            self._following.join()
        with suppress(OSError):
            self.ask(picture_urls(out / "results.jsonl"))
        deadline = time.monotonic() + MOST_SECONDS
        with suppress(KeyboardInterrupt):
            while self.left and not is_stopped() and time.monotonic() < deadline:
                step(f"Drawing the gallery's pictures: {self.left:,} left. Ctrl-C leaves them out.")
                time.sleep(_POLL_SECONDS)
        self._over.set()
        missing = [self._missing()] if self.left or self.failed else []
        return missing if share_pictures(out, self._cache) else [*missing, NOT_SHARED.format(out)]

    def _missing(self) -> str:
        failed = f"{plural(self.failed, 'picture')} could not be drawn" if self.failed else ""
        left = f"{plural(self.left, 'picture')} left out" if self.left else ""
        return (
            f"{'; '.join(filter(None, (left, failed)))}: the gallery shows tiles for them. "
            "The same import again draws them, and buys nothing."
        )

    def _start_thread(self) -> None:
        if len(self._threads) < (os.cpu_count() or 1):
            self._threads.append(self._start_daemon(self._draw_waiting))

    def _start_daemon(self, work: Callable[[], None]) -> threading.Thread:
        # A daemon: a command that fails does not wait for pictures.
        thread = threading.Thread(target=work, name="pictures", daemon=True)
        thread.start()
        return thread

    def _draw_waiting(self) -> None:
        while not self._over.is_set():
            try:
                url = self._waiting.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            is_drawn = self._draw(url)
            with self._counting:
                self.drawn += is_drawn
                self.failed += not is_drawn

    def _draw(self, url: str) -> bool:
        try:
            target = private_folder(self._cache) / picture_name(url)
            address = _current_address(url, self._studio_url)
            with urllib.request.urlopen(address, timeout=_PICTURE_SECONDS) as answer:  # noqa: S310 - our own studio
                content = answer.read()
            with _replacing(target) as partial:
                write_private(partial, content)
        except (OSError, HTTPException):
            return False
        return True


def share_pictures(out: Path, cache: Path) -> bool:
    """Put the pictures of a run that were drawn before into `out`; False when the disk refuses one."""
    folder = out / FOLDER
    try:
        for url in picture_urls(out / "results.jsonl"):
            if (cache / picture_name(url)).exists():
                folder.mkdir(exist_ok=True)
                _copy(cache / picture_name(url), folder / picture_name(url))
    except OSError:
        return False
    return True


def _current_address(url: str, studio_url: str) -> str:
    """The picture's address at the studio as it runs now: its port changes."""
    now, then = urlsplit(studio_url), urlsplit(url)
    return urlunsplit((now.scheme, now.netloc, then.path, f"width={WIDTH}", ""))


def _copy(source: Path, target: Path) -> None:
    """No link: files under the home are private, results have the umask's permissions."""
    if not target.exists():
        with _replacing(target) as partial:
            shutil.copyfile(source, partial)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A file that takes the target's place when it is complete. Not synced: a picture can be drawn again."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
