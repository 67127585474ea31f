"""`python -m benchmarks.looking`: how fast and how safely one decides on the page, in a real Chromium."""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from PIL import Image
from psutil import NoSuchProcess, Process

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.results.row_results import RowResult
from patternmill.states import Outcome, RowStatus, Stage
from tests.acceptance.browser import Browser

KEYS = ("p", "x", "a", " ")
#: From a key to the first frame that has the next picture, decoded, as the page's own clock has it.
CLOCK = """
window.painted = [];
addEventListener('keydown', (event) => {
  const began = event.timeStamp;
  queueMicrotask(() => setTimeout(async () => {
    const image = document.querySelector('#large .stage img');
    await image?.decode().catch(() => {});
    requestAnimationFrame(() => setTimeout(() => painted.push(performance.now() - began)));
  }));
}, true);
"""
KEPT = "Number(document.getElementById('saved').dataset.kept)"
READY = "document.documentElement?.dataset.ready === 'true'"


def rows_of(patterns: int, products: int) -> list[RowResult]:
    return [
        _row(pattern, product, pattern * products + product)
        for pattern in range(patterns)
        for product in range(products)
    ]


def _row(pattern: int, product: int, position: int) -> RowResult:
    sku, prompt = f"SKU-{pattern:05d}-{product}", f"herons and reeds number {pattern}, soft watercolour"
    items = (
        ItemOutcome(
            Stage.PATTERN, ItemKey(f"p{pattern}"), result_id=f"pat-{pattern}", picture_url=_url(pattern)
        ),
        ItemOutcome(Stage.PRODUCT, ItemKey(sku), result_id=f"prd-{position}", picture_url=_url(position + 7)),
    )
    outcome = RowOutcome(RowStatus.SUCCEEDED, None, None, None, items)
    chosen = {"size": "50x50"}
    return RowResult(position, position + 2, sku, (sku, prompt, "Mug"), prompt, "Mug", "cat", chosen, outcome)


def _url(number: int) -> str:
    return f"http://studio.example/{number}.jpg"


def write_page(folder: Path, rows: Sequence[RowResult], pictures: int, run_id: str) -> Path:
    """The page with as many pictures as files beside it; of more rows they come again."""
    at = datetime.now(UTC)
    run = RunRecord(RunId(run_id), "bench", "staging", "b.csv", "0" * 64, None, "", at, at, Outcome.COMPLETED)
    _draw(folder, pictures)
    urls = {item.picture_url for row in rows for item in row.items if item.picture_url}
    files = {
        url: f"pictures/{int(url.rpartition('/')[2].removesuffix('.jpg')) % pictures}.jpg" for url in urls
    }
    path = folder / f"{run_id}.html"
    path.write_bytes(b"".join(page(run, rows, files)))
    return path


def _draw(folder: Path, count: int) -> None:
    """Noise in colours, 512 points wide, as heavy as a pattern is."""
    (folder / "pictures").mkdir(exist_ok=True)
    seeded = random.Random(7)
    for number in range(count):
        path = folder / "pictures" / f"{number}.jpg"
        if not path.exists():
            noise = Image.frombytes("RGB", (64, 64), seeded.randbytes(64 * 64 * 3))
            noise.resize((512, 512), Image.Resampling.BICUBIC).save(path, quality=80)


class Desk(ThreadingHTTPServer):
    """A server of the page that has what was saved, and may be killed between any two."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, saved: list[dict[str, Any]], html: bytes) -> None:
        super().__init__(("127.0.0.1", port), _Answer)
        self.saved, self.html = saved, html
        self.ids = {event["id"] for event in saved}
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(cast(Desk, self.server).html, "text/html")

    def do_POST(self) -> None:
        desk = cast(Desk, self.server)
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        new = [event for event in sent if event["id"] not in desk.ids]
        desk.ids |= {event["id"] for event in new}
        desk.saved += new
        self._answer(json.dumps({"saved": [event["id"] for event in new]}).encode(), "application/json")

    def _answer(self, content: bytes, kind: str) -> None:
        with suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    with suppress(FileNotFoundError):
        (profile / "DevToolsActivePort").unlink()
    with Browser(profile) as one:
        one.resize(1440, 900)
        yield one


def opened(one: Browser, address: str) -> None:
    one.open(address)
    one.until(f"location.href === {json.dumps(address)} && {READY}", 60)


def type_keys(one: Browser, keys: Sequence[str], per_second: float) -> None:
    """At an even pace, which does not wait for the page."""
    began = time.monotonic()
    for number, key in enumerate(keys):
        time.sleep(max(0.0, began + number / per_second - time.monotonic()))
        one.press(key)


def p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def megabytes() -> tuple[float, float]:
    """What the page's own process has in memory, and what all of the browser's have."""
    own, everything = 0.0, 0.0
    for process in Process().children(recursive=True):
        with suppress(NoSuchProcess):
            used, line = process.memory_full_info().uss / 1e6, process.cmdline()
            everything += used
            own = max(own, used if "--type=renderer" in line else 0.0)
    return own, everything


def measure_keys(folder: Path, pictures: int, per_second: float) -> dict[str, Any]:
    """`pictures` decisions in view one, then an undo of each of the last hundred."""
    path = write_page(folder, rows_of(pictures, 2), pictures, "keys")
    keys = [KEYS[number % len(KEYS)] for number in range(pictures)]
    with browser(folder / "profile-keys") as one:
        opened(one, path.as_uri())
        one.press("e")
        one.do(CLOCK + "true")
        type_keys(one, keys, per_second)
        one.until(f"{KEPT} === {pictures}", 60)
        painted = one.do("painted")
        events = one.do("events.map((event) => [event.item, event.verdict])")
        one.do("painted.length = 0")
        type_keys(one, ["z"] * 100, 10)
        one.until("painted.length === 100", 60)
        undone = one.do("painted")
    names = {"p": "pick", "x": "reject", "a": "again", " ": "later"}
    wanted = [[f"p{number}", names[key]] for number, key in enumerate(keys)]
    return {
        "decisions": len(events),
        "keys a decision": len(keys) / len({item for item, _ in events}),
        "lost, twice or out of order": sum(a != b for a, b in zip(events, wanted, strict=True)),
        "key to next picture painted, p95 ms": round(p95(painted), 1),
        "undo painted, p95 ms": round(p95(undone), 1),
    }


def measure_size(folder: Path, rows: int) -> dict[str, Any]:
    """First paint and memory of a page of so many rows, each with a pattern of its own; scrolled to its end."""
    path = write_page(folder, rows_of(rows, 1), 2000, "size")
    with browser(folder / "profile-size") as one:
        opened(one, path.as_uri())
        paint = one.do("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        ready = one.do("performance.now()")
        frames = one.do(
            """(async () => {
              const gaps = [];
              for (let frame = 0, last = performance.now(); frame < 600; frame++) {
                scrollBy(0, 240);
                await new Promise(requestAnimationFrame);
                gaps.push(performance.now() - last);
                last = performance.now();
              }
              return gaps;
            })()"""
        )
        own, everything = megabytes()
    return {
        "page, MB": round(path.stat().st_size / 1e6, 1),
        "first paint, ms": round(paint),
        "ready within, ms": round(ready),
        "scrolling, p95 ms a frame": round(p95(frames), 1),
        "memory of the page, MB": round(own),
        "memory of the browser, MB": round(everything),
    }


def measure_kills(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Browsers and servers killed in mid-typing: what the page said it kept or saved is there, once, in order."""
    seeded, saved = random.Random(seed), list[dict[str, Any]]()
    path = write_page(folder, rows_of(2000, 1), 200, "kills")
    html = path.read_bytes().replace(b"<title>", b'<meta name="patternmill-served" content="Ada"><title>')
    html = html.replace(b"default-src 'none';", b"default-src 'none'; connect-src 'self';")
    desk = Desk(0, saved, html)
    port, profile = desk.server_port, folder / "profile-kills"
    kept: list[str] = []
    lost, browsers, servers = 0, 0, 0
    while browsers + servers < kills:
        with browser(profile) as one:
            opened(one, f"http://127.0.0.1:{port}/")
            ids = one.do("events.map((event) => event.id)")
            lost += len(set(kept) - set(ids))
            for _ in range(seeded.randint(1, 3)):
                type_keys(one, seeded.choices(KEYS[:2], k=seeded.randint(1, 12)), 20)
                if seeded.random() < 0.6 and browsers + servers < kills - 1:
                    desk.shutdown()
                    desk.server_close()
                    type_keys(one, seeded.choices(KEYS[:2], k=seeded.randint(0, 5)), 20)
                    desk = Desk(port, saved, html)
                    servers += 1
            kept = one.do(f"events.slice(0, {KEPT}).map((event) => event.id)")
            one.kill()
            browsers += 1
    with browser(profile) as one:
        opened(one, f"http://127.0.0.1:{port}/")
        one.until("unsent.length === 0", 60)
        order = one.do("events.map((event) => event.id)")
    arrived = [event["id"] for event in saved]
    return {
        "browsers killed": browsers,
        "servers killed": servers,
        "decisions": len(order),
        "kept and lost": lost + len(set(kept) - set(order)),
        "not saved": len(set(order) - set(arrived)),
        "saved twice": len(arrived) - len(set(arrived)),
        "out of order": sum(
            a != b for a, b in zip([i for i in arrived if i in set(order)], order, strict=False)
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--keys-a-second", type=float, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["keys", "size", "kills"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        benches: dict[str, Callable[[], dict[str, Any]]] = {
            "keys": lambda: measure_keys(folder, chosen.pictures, chosen.keys_a_second),
            "size": lambda: measure_size(folder, chosen.rows),
            "kills": lambda: measure_kills(folder, chosen.kills, chosen.seed),
        }
        for title, bench in benches.items():
            if chosen.only in (None, title):
                print(title, *(f"  {what}: {value}" for what, value in bench().items()), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
