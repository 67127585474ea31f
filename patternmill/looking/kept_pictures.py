"""Keeps the pictures of an embedded studio, which ends with its command: drawn after the run, beside its gallery."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from patternmill.files import private_folder, write_private
from patternmill.ledger.records import RunRecord
from patternmill.results.row_results import RowResult
from patternmill.text import plural

FOLDER = "pictures"
#: The option in a run's record that makes its gallery look for them.
KEPT_PICTURES = "pictures_beside"
#: Sharp on a card of 256 points also where a point has two pixels.
WIDTH = 512
#: The gallery shows tiles for what takes longer, until the same file is run again.
MOST_SECONDS = 600.0
#: For a results directory.
NOT_SHARED = (
    "Pictures cannot be written into {}: the gallery shows tiles for them. Free the disk and run it again."
)
_LOOK_SECONDS = 0.3
#: Of one picture, with those that wait before it.
_PICTURE_SECONDS = 60.0


def picture_name(url: str) -> str:
    """The file name of a picture: from its address's path alone, as the port of a local service changes."""
    return f"{hashlib.sha256(urlsplit(url).path.encode()).hexdigest()[:24]}.png"


def pictures_of(record: RunRecord, rows: Iterable[RowResult]) -> dict[str, str]:
    """From the address of each picture to its place next to the gallery; empty where the service shows them."""
    if not record.options.get(KEPT_PICTURES):
        return {}
    urls = (item.picture_url for row in rows for item in row.items[-2:])
    return {url: f"{FOLDER}/{picture_name(url)}" for url in urls if url is not None}


def picture_urls(results_jsonl: Path) -> Iterator[str]:
    """The addresses of a run's pictures, products first as they are what a gallery shows large."""
    for stage in ("product", "pattern"):
        seen: set[str] = set()
        with results_jsonl.open(encoding="utf-8") as lines:
            for line in lines:
                url = (json.loads(line).get(stage) or {}).get("picture_url")
                if url is not None and url not in seen:
                    seen.add(url)
                    yield url


def picture_cache(home: Path) -> Path:
    """Where the pictures of all runs of a home are kept."""
    return home / "pictures" / f"{WIDTH}"


def keep_pictures(
    out: Path,
    home: Path,
    studio_url: str,
    *,
    takes: Iterable[str] = (),
    step: Callable[[str], None] = lambda text: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Have the studio draw the pictures of the run whose results are in `out`, and put them there.

    `takes`: addresses of what its rows were not built on, to be looked at; kept in the home alone.
    Returns what is left out, in sentences. `step` is told what is being done now; Ctrl-C leaves the rest out.
    """
    deadline = time.monotonic() + MOST_SECONDS
    pool, drawn = _drawing((*picture_urls(out / "results.jsonl"), *takes), home, studio_url)
    with suppress(KeyboardInterrupt):
        while (
            (left := sum(not one.done() for one in drawn))
            and not is_stopped()
            and time.monotonic() < deadline
        ):
            step(f"Drawing the gallery's pictures: {left:,} left. Ctrl-C leaves them out.")
            wait(drawn, _LOOK_SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)
    ended = [one.result() for one in drawn if one.done() and not one.cancelled()]
    left, failed = len(drawn) - len(ended), ended.count(False)
    texts = [f"{plural(left, 'picture')} left out"] if left else []
    texts += [f"{plural(failed, 'picture')} could not be drawn"] if failed else []
    again = "the gallery shows tiles for them. The same import again draws them, and buys nothing."
    said = [f"{'; '.join(texts)}: {again}"] if texts else []
    return said if share_pictures(out, home) else [*said, NOT_SHARED.format(out)]


def draw_few(urls: Iterable[str], home: Path, studio_url: str) -> None:
    """Have the studio draw these pictures at once, where they were not drawn before; some may fail."""
    pool, _ = _drawing(urls, home, studio_url)
    pool.shutdown()


def _drawing(
    urls: Iterable[str], home: Path, studio_url: str
) -> tuple[ThreadPoolExecutor, list[Future[bool]]]:
    """Begin to draw those that were not drawn before."""
    pool, cache = ThreadPoolExecutor(os.cpu_count() or 1, "pictures"), picture_cache(home)
    missing = [url for url in dict.fromkeys(urls) if not (cache / picture_name(url)).exists()]
    return pool, [pool.submit(_draw, url, cache, studio_url) for url in missing]


def share_pictures(out: Path, home: Path) -> bool:
    """Put the pictures of a run that were drawn before into `out`; False when the disk refuses one."""
    folder, cache = out / FOLDER, picture_cache(home)
    try:
        for name in map(picture_name, picture_urls(out / "results.jsonl")):
            if (cache / name).exists() and not (folder / name).exists():
                folder.mkdir(exist_ok=True)
                # No link: files under the home are private, results have the umask's permissions.
                _put(folder / name, partial(shutil.copyfile, cache / name))
    except OSError:
        return False
    return True


def _draw(url: str, cache: Path, studio_url: str) -> bool:
    """At the studio's address of now, whose port changes; False where it cannot be drawn or written."""
    now = urlsplit(studio_url)
    address = urlunsplit((now.scheme, now.netloc, urlsplit(url).path, f"width={WIDTH}", ""))
    try:
        with urllib.request.urlopen(address, timeout=_PICTURE_SECONDS) as answer:  # noqa: S310 - our own studio
            content = answer.read()
        _put(private_folder(cache) / picture_name(url), lambda part: write_private(part, content))
    except (OSError, HTTPException):
        return False
    return True


def _put(target: Path, write: Callable[[Path], object]) -> None:
    """Let a file appear once it is complete. Not synced: a picture can be drawn again."""
    part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        write(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
