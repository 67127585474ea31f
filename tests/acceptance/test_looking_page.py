"""The page as a tool, in a real browser: what is decided by keys is kept once and in order, on disk and served."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.runs.decision_files import PAGE_COLUMNS
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.results import RunResults
from patternmill.tables.written import restore
from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import eventually
from tests.row_results import RowResult
from tests.unit.planning.test_takes import CASES, takes
from tests.unit.tables.builders import results_of

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
    "]]>\u2028\u2029&lt;<!--rows-->",
)
#: The last two choose nothing.
HEADER = ("sku", "prompt", "category", "Kollektion", "Preis")
READY = "document.documentElement?.dataset.ready"
WIDTH = "document.querySelector('figure img')?.naturalWidth"
CURRENT = "current && rows[current.rows[0]].sku"
#: One pattern has several.
TAKES = {
    ItemKey(f"p{pattern}"): [
        {
            "item": item,
            "take": n,
            "picture": f"http://x/{pattern}-{n}.png",
            "digest": f"{pattern + n - 1:064x}",
        }
        for n, item in enumerate((f"p{pattern}", "p1-2", "p1-3")[: 3 if pattern == 1 else 1], 1)
    ]
    for pattern in range(30)
}


def rows(patterns: int = 6, products: int = 2) -> list[RowResult]:
    """So many patterns, each with its products, which failed for the fifth; the last row was refused."""
    made = [_row(pattern, product) for pattern in range(patterns) for product in range(products)]
    refusal = RowOutcome(RowStatus.REFUSED, "unknown_value", "unknown value `Linnen`", "Write `linen`.")
    cells = ("=R", "no ink", "Mug", "", "")
    return [*made, RowResult("=R", refusal, 99, cells, "no ink", "Mug")]


def shown(made: Sequence[RowResult]) -> RunResults:
    """Return rows as a page takes them."""
    return results_of(made, HEADER).read()


def _row(pattern: int, product: int) -> RowResult:
    sku, prompt = f"S{pattern}-{product}", f"herons number {pattern}"
    items = (
        ItemOutcome(Stage.PATTERN, ItemKey(f"p{pattern}"), result_id=f"pat-{pattern}"),
        ItemOutcome(Stage.PRODUCT, ItemKey(sku), result_id=f"prd-{sku}"),
    )
    outcome = RowOutcome(RowStatus.SUCCEEDED, None, None, None, items)
    if pattern == 4:
        outcome = RowOutcome(RowStatus.FAILED, "no_ink", "no ink left", "Run again.", items)
    cells = (sku, prompt, "Mug", "Wasser" if product else "", "16,90")
    return RowResult(sku, outcome, pattern + 2, cells, prompt, "Mug", "c", {"size": "S"})


def html(made: Sequence[RowResult] = (), **how: Any) -> bytes:
    known = {key: {"takes": takes} for key, takes in TAKES.items()}
    names = [f"{pattern}-{n}.png" for pattern in range(30) for n in (1, 2, 3)]
    pictures = {f"http://x/{name}": f"pictures/{name}" for name in names}
    return b"".join(page(RUN, shown(made or rows()), pictures, known=known, **how))


def picture(take: int) -> bytes:
    """Return a picture of a take: as many points wide."""
    stream = io.BytesIO()
    Image.new("RGB", (take, take), "teal").save(stream, "PNG")
    return stream.getvalue()


class Desk(ThreadingHTTPServer):
    """Speaks to the page as `patternmill look` does, and has what was saved in the order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.saved: list[dict[str, Any]] = []
        #: What else was posted, and a plan that waits for an approval.
        self.posted: list[tuple[str, Any]] = []
        self.approval: dict[str, Any] | None = None
        self.is_down = False
        self.refuses: str | None = None
        self.patterns = 6
        #: The pictures that were asked for, and whether they are drawn.
        self.asked: list[str] = []
        self.may_draw = threading.Event()
        self.may_draw.set()
        #: What the command would do, and what was begun of it.
        self.plan: dict[str, Any] | None = None
        self.begun: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def acted(self, path: str, sent: Any) -> dict[str, Any]:
        """Answer what is not a decision."""
        self.posted.append((path, sent))
        if path.startswith("/plans/"):
            return {"plan": self.plan}
        if path.startswith("/commands/"):
            self.begun = [
                {"name": path.rpartition("/")[2], "lines": [], "steps": ["Planning …"], "code": None}
            ]
        return {"text": f"{path} is done."}

    def verdicts(self) -> list[tuple[str, str]]:
        return [(event["item"], event["verdict"]) for event in self.saved]


class _Answer(BaseHTTPRequestHandler):
    server: Desk

    def do_GET(self) -> None:
        if self.path.startswith("/pictures/"):
            self.server.asked.append(Path(self.path).stem)
            self.server.may_draw.wait(20)
            return self._answer(200, picture(int(self.path[-5])), "image/png")
        if self.path == "/commands":
            return self._answer(200, json.dumps(self.server.begun).encode())
        facts = {"actions": ["remake", "order", "pause"], "approval": self.server.approval}
        page = html(rows(self.server.patterns), served=True, facts=facts)
        return self._answer(200, page, "text/html")

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.is_down:
            return self._answer(503, b"")
        if self.path != "/decisions":
            return self._answer(200, json.dumps(self.server.acted(self.path, sent)).encode())
        refused = [
            {"id": event["id"], "why": "new"} for event in sent if event["item"] == self.server.refuses
        ]
        recorded = {event["id"] for event in (*self.server.saved, *refused)}
        new = [event for event in sent if event["id"] not in recorded]
        self.server.saved += new
        return self._answer(
            200, json.dumps({"saved": [event["id"] for event in new], "refused": refused}).encode()
        )

    def _answer(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
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
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.watch()
        yield browser
        assert browser.do("complaints") == []


def opened(browser: Browser, address: str, width: int = 1400, height: int = 900) -> Browser:
    """Anew, even where it is there already; what the browser complained of before fails the test."""
    complaints = browser.do("window.complaints ?? []")
    browser.resize(width, height)
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
    skus = "[...document.querySelectorAll('.sku')].map((element) => element.textContent)"
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
        ("p1-3", "again"),
        ("p1-3", "again"),
        ("p2", "later"),
        ("p3", "undecided"),
    ]
    assert [event["note"] for event in desk.saved] == ["", "", "", "Wrong colours", "", ""]
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
    desk.is_down, desk.refuses = False, "p1-3"
    browser.press("a")
    saved(browser, 2)
    assert desk.verdicts() == [("p4", "pick"), ("p0", "reject")]
    browser.shows("Not saved: S1-0, also S1-1: new")
    browser.shows("1 refused")
    assert browser.do("decisionOf(owners.get('p1')).verdict") == "undecided"


def test_a_killed_browser_loses_nothing(tmp_path: Path, on_disk: str) -> None:
    """What the page says it has is there when it is opened again, and is undone step by step, in any view."""
    profile = tmp_path / "profile"
    browser = opened(Browser(profile), on_disk)
    browser.press("p", "x", "a", "1")
    browser.until("document.getElementById('saved').dataset.stored === '4'")
    browser.kill()
    (profile / "DevToolsActivePort").unlink()
    with Browser(profile) as again:
        opened(again, on_disk)
        verdicts = (
            "groups.map((group) => decisionOf(group).verdict).filter((word) => word !== 'undecided').join()"
        )
        assert again.do(verdicts) == "pick,reject,again"
        again.press("e", "z")
        assert (again.do(CURRENT), again.do("view"), again.do(verdicts)) == ("S1-0", "one", "pick,reject")
        again.press("z", "z", "z")
        assert (again.do(CURRENT), again.do(verdicts)) == ("S4-0", "")


def test_decisions_file_is_a_sheet(browser: Browser, tmp_path: Path, on_disk: str) -> None:
    """Of the rows that share each pattern, in the order of the decisions, and nothing that a spreadsheet would run."""
    opened(browser, on_disk)
    browser.save_files_in(tmp_path)
    browser.press("p", "a", "Enter")
    browser.do("document.activeElement.value = '=1+1 \"é\", so'")
    browser.press("Enter")
    browser.click("Save decisions.csv")
    saved(browser, 2)
    lines = list(csv.reader(_whole(tmp_path / "decisions.csv").decode("utf-8-sig").splitlines()))
    assert tuple(lines[0]) == PAGE_COLUMNS
    (run,) = {line.pop(0) for line in lines[1:]}
    assert browser.do("run.cell") == run
    note = restore('\'=1+1 "é", so')
    assert [[*line[:3], restore(line[3])] for line in lines[1:]] == [
        ["S4-0", "1", "pick", ""],
        ["S4-1", "1", "pick", ""],
        ["S0-0", "1", "again", note],
        ["S0-1", "1", "again", note],
    ]


def _whole(path: Path) -> bytes:
    for _ in range(100):
        if path.exists() and path.read_bytes().endswith(b"\r\n"):
            return path.read_bytes()
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} is not there")


def test_compare_decides_on_the_take_that_is_looked_at(browser: Browser, desk: Desk) -> None:
    """Takes side by side: those that are rejected, and the one that is picked."""
    opened(browser, desk.url)
    browser.do("go(owners.get('p1'))")
    browser.press("c", "ArrowRight", "x", "p")
    assert browser.do(CURRENT) == "S2-0"
    saved(browser, 2)
    assert desk.verdicts() == [("p1-2", "reject"), ("p1-3", "pick")]
    assert desk.saved[1]["picture"] == f"{3:064x}"
    browser.press("g")
    browser.shows("Picked: take 3")


def test_page_and_plan_choose_the_same_take(browser: Browser, on_disk: str) -> None:
    """The page follows each key at once, by the rules of the plan."""
    opened(browser, on_disk)
    for name, (text, choice, *_) in CASES.items():
        judged = [take for take in takes(text) if take.is_made]
        group = {
            "takes": [
                {"take": take.number, "item": f"i{take.number}"} for take in judged if not take.is_open
            ],
            "open": [take.number for take in judged if take.is_open],
        }
        decisions = [
            [f"i{take.number}", {"verdict": take.verdict, "sequence": take.sequence}]
            for take in judged
            if take.verdict
        ]
        browser.do(
            f"verdicts.clear(); {json.dumps(decisions)}.forEach(([item, decision]) => verdicts.set(item, decision))"
        )
        chosen = browser.do(f"choiceOf({json.dumps(group)})")
        expected = {"choose": "to_choose"}.get(choice, choice)
        assert chosen.get("status", chosen.get("take")) == expected, name


def test_rejected_pattern_is_shown_as_discarded_and_taken_back(browser: Browser, desk: Desk) -> None:
    """Once all of its takes are; and the rows that share it are named, before and after."""
    opened(browser, desk.url)
    browser.do("go(owners.get('p1'))")
    card = "cells.get(owners.get('p1'))"
    assert "also S1-1" in browser.do(f"{card}.textContent")
    assert "also S1-1" in browser.do("document.querySelector('#buttons [data-pressed=reject]').title")
    browser.press("c", "x", "x", "x", "g")
    browser.until(f"{card}.textContent.includes('Discarded')", 5)
    assert "Rejected" in browser.do(f"{card}.textContent")
    browser.do("go(owners.get('p1'))")
    browser.press("u")
    browser.shows("Undecided: S1-0, also S1-1")
    browser.until(f"!{card}.textContent.includes('Discarded')", 5)
    browser.until("!unsent.length", 5)
    assert desk.verdicts()[-1] == ("p1-3", "undecided")


def test_pictures_near_the_window_come_first_and_hold_up_no_decision(browser: Browser, desk: Desk) -> None:
    """Few are asked for at a time; until one is there the prompt stands in its place."""
    desk.patterns = 30
    desk.may_draw.clear()
    opened(browser, desk.url, 390, 600)
    browser.until("fetching === 4", 5)
    eventually(lambda: {"4-1", "0-1"} < set(desk.asked), 5)
    browser.shows("The picture is being made")
    browser.press("p")
    saved(browser, 1)
    browser.press("End")
    desk.may_draw.set()
    browser.until("cells.get(groups.at(-1)).querySelector('.open img')?.naturalWidth", 5)
    assert {"28-1", "29-1"} & set(desk.asked[4:6])


def test_mark_stands_over_the_picture_that_it_is_about(browser: Browser, desk: Desk) -> None:
    """On the sheet the take that decisions come to; in the large view each take its own, and that one first."""
    opened(browser, desk.url)
    card = "cells.get(owners.get('p1'))"
    browser.do("go(owners.get('p1'))")
    browser.press("e", "ArrowDown")
    browser.until(f"panels[at].take === 2 && {WIDTH}", 5)
    browser.press("p")
    browser.do("go(owners.get('p1'))")
    assert browser.do("panels[at].take") == 2
    browser.shows("Picked")
    browser.press("ArrowUp")
    assert browser.do("document.querySelector('figure .marks').textContent") == ""
    browser.press("g")
    browser.until(f"{card}.querySelector('.open img')?.naturalWidth === 2", 5)
    assert "Picked: take 2" in browser.do(f"{card}.textContent")
    browser.do("commit([decide(owners.get('p1').takes[1], 'reject')])")
    browser.until(f"{card}.querySelector('.open img')?.naturalWidth === 1", 5)


def test_rows_say_what_was_decided_since_their_run(browser: Browser, on_disk: str) -> None:
    """A row whose take was picked has its product, or waits for it; that a person chooses first is true no longer."""
    opened(browser, on_disk)
    chosen = """(() => {
        const takes = [{ take: 1, item: "x", pattern: rows[0].pattern }, { take: 2, item: "y", pattern: "other" }];
        const group = { rows: [0], takes };
        const decided = (item, verdict, sequence) => {
            verdicts.set(item, { verdict, sequence });
            return [statusOf(group), faultOf(group, rows[0]) !== null];
        };
        Object.assign(rows[0], { status: "to_choose", error: "Its pattern has several takes." });
        return [decided("x", "later", 1), decided("x", "pick", 1), decided("y", "pick", 2)];
    })()"""
    assert browser.do(chosen) == [["to_choose", True], ["succeeded", False], ["not_started", False]]


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


def test_remake_is_one_confirmation_of_what_the_server_plans(browser: Browser, desk: Desk) -> None:
    """With its sum, digest and token, once decisions are saved; and it is followed to its end, over a reload too."""
    opened(browser, desk.url)
    browser.press("a", "Escape")
    browser.click("Remake…")
    browser.shows("Nothing to remake")
    browser.click("Close")
    desk.plan = {
        "sum": "1 pattern and 2 products for €4.80",
        "lines": ["Cost: €4.80."],
        "digest": "d1",
        "token": "t1",
    }
    browser.click("Remake…")
    browser.shows("To remake: 1 pattern and 2 products for €4.80")
    browser.shows("Cost: €4.80.")
    assert desk.begun == [] and desk.verdicts() == [("p4", "again")]
    buy = "Buy 1 pattern and 2 products for €4.80"
    assert browser.do("document.activeElement.textContent") == buy
    browser.click(buy)
    browser.shows("Remake is running")
    assert desk.posted[-1] == ("/commands/remake", {"sum": desk.plan["sum"], "digest": "d1", "token": "t1"})
    browser.shows("Planning …")
    opened(browser, desk.url)
    browser.click("Remake is running…")
    desk.begun[0] |= {"lines": ["Completed: 2 succeeded", "  Pay here: https://pay.example/x?y=1"], "code": 0}
    browser.shows("Completed: 2 succeeded")
    link = "document.querySelector('#deal a')"
    assert browser.do(f"[{link}.href, {link}.rel]") == ["https://pay.example/x?y=1", "noopener noreferrer"]
    assert browser.do("document.activeElement.textContent") == "Reload the page"
    browser.click("Close")


def reached(browser: Browser, what: str) -> str:
    """Go by Tab to something of the page; what it says."""
    for _ in range(60):
        browser.press("Tab")
        if browser.do(f"document.activeElement.matches({what!r})"):
            return str(browser.do("document.activeElement.textContent"))
    raise AssertionError(f"{what} is not reached by Tab")


def test_dialogs_need_no_pointer(browser: Browser, desk: Desk) -> None:
    """Each opens by its button or key, is left with Escape, and confirms with one Enter that is not held down."""
    desk.plan = {"sum": "1 pattern", "lines": ["Cost: €4.80."], "digest": "d1", "token": "t1"}
    is_open = "!!document.querySelector('dialog[open]')"
    opened(browser, desk.url)
    browser.press("?")
    assert reached(browser, "#keys button") == "Close"
    browser.press("Escape")
    browser.until(f"!{is_open}", 5)

    reached(browser, "#do-remake")
    browser.press("Enter")
    browser.shows("To remake: 1 pattern")
    browser.press("Escape")
    browser.until(f"!{is_open} && document.activeElement.id === 'do-remake'", 5)
    browser.hold("Enter")
    browser.shows("To remake: 1 pattern")
    assert reached(browser, "#deal-buttons button:last-child") == "Close"
    assert reached(browser, "#deal-buttons button:first-child") == "Buy 1 pattern"
    assert desk.begun == []
    browser.press("Enter")
    browser.shows("Remake is running")
    browser.press("Escape")

    reached(browser, "#do-pause")
    browser.press("Enter", "w", "h", "y", "Enter")
    browser.shows("/pause is done.")
    browser.press("Escape", "p")
    saved(browser, 1)
    assert [path for path, _ in desk.posted] == [*["/plans/remake"] * 2, "/commands/remake", "/pause"]
    assert desk.posted[-1] == ("/pause", {"reason": "why"})


def test_page_approves(browser: Browser, desk: Desk) -> None:
    desk.approval = {"digest": "d7", "items": 20, "expected": 500, "currency": "EUR"}
    opened(browser, desk.url)
    browser.click("Approve…")
    browser.shows("Approve 20 items, €5.00? This buys them.")
    browser.click("Approve")
    browser.shows("/approve is done.")
    assert desk.posted == [("/approve", {"digest": "d7"})]


def test_many_are_decided_at_once_and_undone_together(browser: Browser, desk: Desk) -> None:
    """One by one, with the pointer, or all that are shown; what has no picture is left out."""
    opened(browser, desk.url)
    browser.press("s", "ArrowRight", "ArrowRight", "s")
    browser.shows("2 selected")
    browser.do("cells.get(groups.at(-1)).click()")
    browser.shows("3 selected")
    browser.press("x")
    saved(browser, 3)
    browser.press("z")
    browser.until("!unsent.length", 5)
    assert desk.verdicts() == [
        (item, verdict) for verdict in ("reject", "undecided") for item in ("p4", "p0", "p5")
    ]
    browser.do("terms = ['herons', 's3']; filter()")
    browser.do("document.querySelector('#buttons [title^=\"Select all\"]').click()")
    browser.shows("1 selected")
    browser.do("clear()")
    browser.press("S")
    browser.shows("6 selected")
    browser.press("p")
    saved(browser, 6)
    assert [event["verdict"] for event in desk.saved[6:]] == ["pick"] * 6


def test_large_view_has_the_sheets_own_columns(browser: Browser, desk: Desk) -> None:
    """Of the row that is looked at, where it has something there; and they are found."""
    opened(browser, desk.url)
    browser.press("e")
    pairs = "[...document.querySelectorAll('.words dt')].map((dt) => [dt.textContent, dt.nextSibling.textContent])"
    facts = f"Object.fromEntries({pairs})"
    assert browser.do(facts)["Preis"] == "16,90" and "Kollektion" not in browser.do(facts)
    browser.press("ArrowDown", "ArrowDown")
    assert browser.do(facts)["Kollektion"] == "Wasser"
    browser.do("terms = ['wasser']; filter()")
    assert browser.do("shown.length") == 6


def test_keys_are_shown_on_the_buttons(browser: Browser, on_disk: str) -> None:
    """Where there is a keyboard; each button has a name. From disk, and over the network, none buys."""
    opened(browser, on_disk)
    assert browser.do("byId('do').childElementCount") == 0
    buttons = "[...document.querySelectorAll('#buttons button')]"
    assert browser.do(f"{buttons}.map((button) => button.lastChild.innerText)") == [
        *"PXA␣UZS",
        "⇧S",
        *"GECF?",
    ]
    assert browser.do(f"{buttons}.every((button) => button.title)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, on_disk: str, scheme: str) -> None:
    """WCAG 2.2 A and AA: every view, with a verdict of each kind; every target is large enough."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_core_python")
    browser.prefer(scheme)
    opened(browser, on_disk)
    browser.press("p", "x", "a", "1", " ")
    browser.do(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8") + "; true")
    small = """[...document.querySelectorAll('button, a, input')].filter((target) => {
        const { width, height } = target.getBoundingClientRect();
        const isText = target.matches('.quiet, .skip, #single-keys');
        const least = target.closest('#buttons, .why, .keep') ? 44 : isText ? 18 : 24;
        return width && height && (width < least || height < least);
    }).map((target) => target.outerHTML)"""
    for key in ("g", "a", "e", "c", "?"):
        browser.press(key)
        violations = browser.do("axe.run().then((result) => result.violations)")
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in violations] == [], key
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
