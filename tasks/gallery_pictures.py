"""Keeps the embedded studio's pictures next to the gallery: the studio ends with the command that serves it."""

from __future__ import annotations

import shutil
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from patternmill.results.gallery import FOLDER, picture_name, picture_urls

WIDTH = 256
#: Drawing takes most of a second a picture; what is not drawn by then is a tile in the gallery.
MOST_SECONDS = 60.0
MOST_PICTURES = 300


def keep_pictures(
    out: Path,
    cache: Path,
    studio_url: str,
    report: Callable[[str], None],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Put the pictures of a run into `out`, from `cache` or else drawn by the studio now."""
    urls = list(picture_urls(out / "results.jsonl"))
    missing = [url for url in urls if not (cache / picture_name(url)).exists()]
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if missing:
        report(
            f"Drawing {min(len(missing), MOST_PICTURES)} pictures for the gallery; stopping leaves the rest out."
        )
    try:
        _draw(missing[:MOST_PICTURES], cache, studio_url, is_stopped)
    except KeyboardInterrupt:
        report("The remaining pictures are left out.")
    except OSError as error:
        report(f"The pictures could not be drawn ({type(error).__name__}); the gallery shows tiles.")
    share_pictures(out, cache)


def share_pictures(out: Path, cache: Path) -> None:
    """Put the pictures of a run that were drawn before into `out`."""
    folder = out / FOLDER
    for url in picture_urls(out / "results.jsonl"):
        if (cache / picture_name(url)).exists():
            folder.mkdir(exist_ok=True)
            _copy(cache / picture_name(url), folder / picture_name(url))


def _draw(urls: list[str], cache: Path, studio_url: str, is_stopped: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    for url in urls:
        left = deadline - time.monotonic()
        if left <= 0 or is_stopped():
            return
        address = _at(url, studio_url)
        with urllib.request.urlopen(address, timeout=left) as answer:  # noqa: S310 - our own studio
            content = answer.read()
        partial = cache / f"{picture_name(url)}.part"
        partial.touch(mode=0o600)
        partial.write_bytes(content)
        partial.replace(cache / picture_name(url))


def _at(url: str, studio_url: str) -> str:
    """The picture's address at the studio as it runs now: its port changes."""
    now, then = urlsplit(studio_url), urlsplit(url)
    return urlunsplit((now.scheme, now.netloc, then.path, f"width={WIDTH}", ""))


def _copy(source: Path, target: Path) -> None:
    """No link: files under the home are private, results have the umask's permissions."""
    if not target.exists():
        shutil.copyfile(source, target)
