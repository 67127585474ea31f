"""The page as a tool, in a real browser: what is decided by keys is kept once and in order, on disk and served."""

from __future__ import annotations

import csv
import json
import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from patternmill.catalog.rows import restore
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.results.row_results import RowResult
from patternmill.states import Outcome, RowStatus, Stage
from tests.acceptance.browser import Browser, installed

RUN = RunRecord(
    RunId("run-1"),
    "spring",
    "staging",
    "spring.csv",
    "ab" * 32,
    "utf-8",
    "http://127.0.0.1:9/v1",
    datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
    ended_at=datetime(2026, 3, 1, 9, 34, tzinfo=UTC),
    outcome=Outcome.COMPLETED_WITH_FAILURES,
)
RUNS_CODE = "document.documentElement.dataset.taken=1"
HOSTILE = (
    f"</script><script>{RUNS_CODE}</script>",
    f"<img src=x onerror='{RUNS_CODE}'>",
    f'"><svg onload="{RUNS_CODE}">',
    "<!--<script>",
)
COLUMNS = ("run", "item", "sku", "picture", "verdict", "note", "by", "at", "id", "checksum")
READY = "document.documentElement?.dataset.ready"
CURRENT = "current && rows[current.rows[0]].sku"
#: One pattern has several.
TAKES = {
    ItemKey(f"p{pattern}"): [
        {"item": item, "take": n, "picture": None, "digest": f"{pattern + n - 1:064x}", "chosen": n == 1}
        for n, item in enumerate((f"p{pattern}", "p1-2", "p1-3")[: 3 if pattern == 1 else 1], 1)
    ]
    for pattern in range(6)
}


def rows(patterns: int = 6, products: int = 2) -> list[RowResult]:
    """So many patterns, each with its products, which failed for the fifth; the last row was refused."""
    made = [_row(pattern, product) for pattern in range(patterns) for product in range(products)]
    refusal = RowOutcome(RowStatus.REFUSED, "unknown_value", "unknown value `Linnen`", "Write `linen`.")
    cells = ("=R", "no ink", "Mug")
    return [*made, RowResult(len(made), 99, "=R", cells, "no ink", "Mug", "", {}, refusal)]


def _row(pattern: int, product: int) -> RowResult:
    sku, prompt = f"S{pattern}-{product}", f"herons number {pattern}"
    items = (
        ItemOutcome(Stage.PATTERN, ItemKey(f"p{pattern}"), result_id=f"pat-{pattern}"),
        ItemOutcome(Stage.PRODUCT, ItemKey(sku), result_id=f"prd-{sku}"),
    )
    outcome = RowOutcome(RowStatus.SUCCEEDED, None, None, None, items)
    if pattern == 4:
        outcome = RowOutcome(RowStatus.FAILED, "no_ink", "no ink left", "Run again.", items)
    cells = (sku, prompt, "Mug")
    return RowResult(pattern, pattern + 2, sku, cells, prompt, "Mug", "c", {"size": "S"}, outcome)


def html(made: Sequence[RowResult] = (), **how: Any) -> bytes:
    prices = {ItemKey(f"p{n}"): 240 for n in range(6)}
    facts: dict[str, Any] = {"takes": TAKES, "price": prices}
    known = {key: {name: of[key] for name, of in facts.items() if key in of} for key in prices}
    return b"".join(page(RUN, made or rows(), {}, known=known, currency="EUR", **how))


class Desk(ThreadingHTTPServer):
    """Speaks to the page as `patternmill look` does, and has what was saved in the order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.saved: list[dict[str, Any]] = []
        self.posts = 0
        self.is_down = False
        self.refuses: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def verdicts(self) -> list[tuple[str, str]]:
        return [(event["item"], event["verdict"]) for event in self.saved]


class _Answer(BaseHTTPRequestHandler):
    server: Desk

    def do_GET(self) -> None:
        self._answer(200, html(served="Ada"))

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.posts += 1
        if self.server.is_down:
            return self._answer(503, b"")
        refused = [{"id": one["id"], "why": "new"} for one in sent if one["item"] == self.server.refuses]
        known = {event["id"] for event in self.server.saved} | {one["id"] for one in refused}
        new = [event for event in sent if event["id"] not in known]
        self.server.saved += new
        return self._answer(
            200, json.dumps({"saved": [one["id"] for one in new], "refused": refused}).encode()
        )

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if self.command == "GET" else "application/json")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    installed()
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        one.watch()
        yield one
        assert one.do("complaints") == []


def opened(browser: Browser, address: str) -> Browser:
    """Anew, even where it is there already; what the browser complained of before fails the test."""
    complaints = browser.do("window.complaints ?? []")
    browser.resize(1400, 900)
    browser.open("about:blank")
    browser.until("location.href === 'about:blank'")
    assert complaints == []
    browser.open(address)
    browser.until(f"location.href === {json.dumps(address)} && {READY}")
    return browser


_NUMBERS = count()


def written(folder: Path, content: bytes) -> str:
    """Each a run of its own: the browser's drafts are by run."""
    path = folder / "gallery.html"
    path.write_bytes(content.replace(b'"run-1"', f'"run-{next(_NUMBERS)}"'.encode()))
    return path.as_uri()


@pytest.fixture
def on_disk(tmp_path: Path) -> str:
    return written(tmp_path, html())


def saved(browser: Browser, number: int) -> None:
    browser.until(f"document.getElementById('saved').textContent.startsWith('{number} saved')", 10)


def test_every_row_is_found_among_ten_thousand(browser: Browser, tmp_path: Path) -> None:
    """Few are laid out at a time; what failed comes first, and a search and a status leave the matching ones."""
    made = rows(5000)
    failed = RowOutcome(RowStatus.FAILED, "no_ink", "no ink left", "Run again.", made[7000].items)
    made[7000] = replace(made[7000], outcome=failed)
    opened(browser, written(tmp_path, html(made)))
    skus = "[...document.querySelectorAll('.sku')].map((one) => one.textContent)"
    assert browser.do(skus)[:4] == ["S4-0", "S3500-0", "=R", "S0-0"]
    assert browser.do("document.querySelectorAll('.card').length") < 60
    browser.press("End")
    assert browser.do(CURRENT) == "S4999-0" and "S4999-0" in browser.do(skus)
    assert browser.do("document.activeElement.getBoundingClientRect().bottom <= innerHeight")
    browser.press("/")
    browser.do(
        "document.activeElement.value = 'HERONS s77-1'; document.activeElement.dispatchEvent(new Event('input'))"
    )
    browser.until(f"{skus}.join() === 'S77-0'", 5)
    browser.do("clear(); document.querySelector('[data-chip=\"status:failed\"]').click()")
    browser.until(f"{skus}.join() === 'S4-0,S3500-0'", 5)
    browser.shows("no ink left")


def test_hostile_texts_stay_text(browser: Browser, tmp_path: Path) -> None:
    """No prompt, sku, selection or reason becomes an element, and none runs, in any view."""
    refused = rows()[-1]
    made = [
        replace(
            refused,
            sku=text,
            prompt=text,
            selections={text: text},
            outcome=RowOutcome(RowStatus.REFUSED, "c", text, text),
        )
        for text in HOSTILE
    ]
    opened(browser, written(tmp_path, html(made)))
    browser.shows(HOSTILE[1])
    for key in ("e", "c", "g"):
        browser.press(key)
        assert browser.do("document.querySelectorAll('img, svg, script:not([type])').length") == 1
    assert browser.do("document.documentElement.dataset.taken") is None


def test_each_key_is_one_decision_in_order_and_at_once(browser: Browser, desk: Desk) -> None:
    """The pattern whose products failed first; a refused row is passed over; a reason is one more key."""
    opened(browser, desk.url)
    browser.press("p", "x", "a", "3", " ", "u")
    saved(browser, 4)
    assert desk.verdicts() == [
        ("p4", "pick"),
        ("p0", "reject"),
        ("p1", "again"),
        ("p1", "again"),
        ("p2", "later"),
        ("p3", "undecided"),
    ]
    assert [event["note"] for event in desk.saved] == ["", "", "", "Wrong colours", "", ""]
    assert {event["by"] for event in desk.saved} == {"Ada"}
    assert desk.saved[0]["picture"] == f"{4:064x}"
    assert len({event["id"] for event in desk.saved}) == 6


def test_a_server_that_was_away_gets_each_decision_once(browser: Browser, desk: Desk) -> None:
    """Also over a reload, under the same IDs; what it refuses is said, and asks again."""
    desk.is_down = True
    opened(browser, desk.url)
    browser.press("p", "x")
    browser.shows("2 not yet saved")
    opened(browser, desk.url)
    browser.shows("2 not yet saved")
    desk.is_down, desk.refuses = False, "p1"
    browser.press("a")
    saved(browser, 2)
    assert desk.verdicts() == [("p4", "pick"), ("p0", "reject")]
    browser.shows("Not saved: S1-0 and 1 more: new")
    browser.shows("1 refused")
    assert browser.do("decisionOf(owners.get('p1')).verdict") == "undecided"


def test_undo_outlives_the_page(browser: Browser, on_disk: str) -> None:
    """Step by step, each bringing its picture back; what was undone is not undone again."""
    opened(browser, on_disk)
    browser.press("p", "x", "a", "1", "z")
    assert browser.do(CURRENT) == "S1-0"
    browser.until("document.getElementById('saved').dataset.kept === '5'")
    opened(browser, on_disk)
    browser.press("e", "z")
    assert (browser.do(CURRENT), browser.do("view")) == ("S0-0", "one")
    browser.press("z", "z")
    assert browser.do(CURRENT) == "S4-0"
    assert browser.do("groups.map((group) => decisionOf(group).verdict).join()").split(",") == 7 * [
        "undecided"
    ]


def test_a_killed_browser_loses_nothing(tmp_path: Path, on_disk: str) -> None:
    """What the page says it has is there when it is opened again, and once."""
    profile = tmp_path / "profile"
    browser = opened(Browser(profile), on_disk)
    browser.press("p", "x", "p", "x")
    browser.until("document.getElementById('saved').dataset.kept === '4'")
    browser.kill()
    (profile / "DevToolsActivePort").unlink()
    with Browser(profile) as again:
        opened(again, on_disk)
        verdicts = again.do("events.map((event) => [event.item, event.verdict])")
    assert verdicts == [["p4", "pick"], ["p0", "reject"], ["p1", "pick"], ["p2", "reject"]]


def test_decisions_file_is_whole(browser: Browser, tmp_path: Path, on_disk: str) -> None:
    """One line each pattern, with a checksum of its cells, and nothing that a spreadsheet would run."""
    opened(browser, on_disk)
    browser.save_files_in(tmp_path)
    browser.press("p", "a", "Enter")
    browser.do("document.activeElement.value = '=1+1 \"é\", so'")
    browser.press("Enter")
    browser.click("Save decisions.csv")
    saved(browser, 2)
    path = tmp_path / "decisions.csv"
    lines = list(csv.reader(_whole(path).decode("utf-8-sig").splitlines()))
    assert tuple(lines[0]) == COLUMNS
    assert [(line[1], line[2], line[4], line[5]) for line in lines[1:]] == [
        ("p4", "S4-0, S4-1", "pick", ""),
        ("p0", "S0-0, S0-1", "again", '\'=1+1 "é", so'),
    ]
    for line in lines[1:]:
        cells = "\x1f".join(map(restore, line[:-1])).encode()
        assert line[-1] == f"{zlib.crc32(cells):08x}"


def _whole(path: Path) -> bytes:
    for _ in range(100):
        if path.exists() and path.read_bytes().endswith(b"\r\n"):
            return path.read_bytes()
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} is not there")


def test_compare_decides_on_the_take_that_is_looked_at(browser: Browser, desk: Desk) -> None:
    """Takes side by side: those that are rejected, and the one that is picked."""
    opened(browser, desk.url)
    browser.do("go(groups.find((group) => group.item === 'p1'))")
    browser.press("c", "ArrowRight", "x", "p")
    assert browser.do(CURRENT) == "S2-0"
    saved(browser, 2)
    assert desk.verdicts() == [("p1-2", "reject"), ("p1-3", "pick")]
    assert desk.saved[1]["picture"] == f"{3:064x}"
    browser.press("g")
    browser.shows("Picked: take 3")


def test_single_keys_can_be_switched_off(browser: Browser, on_disk: str) -> None:
    """Arrows and buttons remain; a key that is held down decides once."""
    opened(browser, on_disk)
    browser.press("?")
    browser.do("document.getElementById('single-keys').click()")
    browser.click("Close")
    browser.until("!document.querySelector('dialog[open]')", 5)
    try:
        browser.press("p", "ArrowRight", "ArrowRight")
        browser.until(f"{CURRENT} === 'S0-0'", 5)
        assert browser.do("events.length") == 0
        browser.do("document.querySelector('#buttons [data-pressed=pick]').click()")
        assert browser.do("events.map((event) => event.item)") == ["p0"]
    finally:
        browser.do("localStorage.clear()")


def test_what_buys_is_named_with_its_sum(browser: Browser, on_disk: str) -> None:
    opened(browser, on_disk)
    browser.press("a", "a", "Escape")
    browser.click("Remake 2…")
    browser.shows("2 new takes and up to 4 products on them: €4.80.")
    browser.shows("--picks decisions.csv")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, on_disk: str, scheme: str) -> None:
    """WCAG 2.2 A and AA: every view, with a verdict of each kind; every target is large enough."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_core_python")
    browser.prefer(scheme)
    opened(browser, on_disk)
    browser.press("p", "x", "a", "1", " ")
    browser.do(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8") + "; true")
    small = """[...document.querySelectorAll('button, a, input')].filter((one) => {
        const { width, height } = one.getBoundingClientRect();
        const isText = one.matches('.files a, .quiet, .skip, #single-keys');
        const least = one.closest('#buttons, .why, .keep') ? 44 : isText ? 18 : 24;
        return width && height && (width < least || height < least);
    }).map((one) => one.outerHTML)"""
    for key in ("g", "a", "e", "c", "?"):
        browser.press(key)
        found = browser.do("axe.run().then((result) => result.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], key
        assert browser.do(small) == [], key


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 256)], ids=["phone", "400 % zoom"])
def test_narrow_pages_reflow(browser: Browser, on_disk: str, width: int, height: int) -> None:
    """No view scrolls sideways."""
    opened(browser, on_disk)
    browser.resize(width, height)
    for key in ("g", "e", "c"):
        browser.press(key)
        browser.until("document.documentElement.scrollWidth <= innerWidth", 5)
    browser.resize(1400, 900)
