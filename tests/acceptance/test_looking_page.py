"""The page as a tool, in a real browser: what is decided by keys is kept once and in order, on disk and served."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from patternmill.identifiers import ItemKey
from patternmill.looking.page import page
from patternmill.runs.decision_files import PAGE_COLUMNS
from patternmill.states import RowStatus, Stage
from patternmill.tables.results import RunResults
from patternmill.tables.written import restore
from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import eventually
from tests.row_results import RowResult
from tests.unit.planning.test_takes import CASES, takes
from tests.unit.tables.builders import RUN, item, refused, results_of, row

RUNS_CODE = "document.documentElement.dataset.taken=1"
HOSTILE = (
    f"</script><script>{RUNS_CODE}</script>",
    f"<img src=x onerror='{RUNS_CODE}'>",
    f'"><svg onload="{RUNS_CODE}">',
    "<!--<script>",
    "]]>\u2028\u2029&lt;<!--rows-->",
)
#: The columns of the sheet; the last two select nothing.
HEADER = ("sku", "prompt", "category", "Kollektion", "Preis")
READY = "document.documentElement?.dataset.ready"
CURRENT = "current && rows[current.rows[0]].sku"
SKUS = "[...document.querySelectorAll('.sku')].map((element) => element.textContent).join()"
#: The card of the only pattern that has several takes.
CARD = "cells.get(owners.get('p1'))"


def rows(patterns: int = 6, failed: Sequence[int] = (4,)) -> list[RowResult]:
    """Return rows of so many patterns with two products each, some of which failed; the last row was refused."""
    made = [_row(n, product, is_failed=n in failed) for n in range(patterns) for product in range(2)]
    return [*made, refused("=R", cells=("=R", "no ink", "Mug", "", ""), prompt="no ink")]


def _row(pattern: int, product: int, *, is_failed: bool) -> RowResult:
    sku, prompt = f"S{pattern}-{product}", f"herons number {pattern}"
    pattern_key = ItemKey(f"p{pattern}")
    made = item(Stage.PATTERN, "", key=pattern_key, result_id=f"pat-{pattern}"), item(Stage.PRODUCT, sku)
    cells = (sku, prompt, "Mug", "Wasser" if product else "", "16,90")
    fault = {"error_code": "no_ink", "error": "no ink left", "remedy": "Run again."} if is_failed else {}
    status = RowStatus.FAILED if is_failed else RowStatus.SUCCEEDED
    return row(sku, status, cells=cells, prompt=prompt, items=made, **fault)


def takes_of(pattern: int) -> list[dict[str, Any]]:
    """Return the takes of a pattern; only one has three."""
    items = ("p1", "p1-2", "p1-3") if pattern == 1 else (f"p{pattern}",)
    return [
        {
            "item": item,
            "take": n,
            "picture": f"http://x/{pattern}-{n}.png",
            "digest": f"{pattern + n - 1:064x}",
        }
        for n, item in enumerate(items, 1)
    ]


def shown(made: Sequence[RowResult]) -> RunResults:
    """Return rows in the form that a page takes."""
    return results_of(made, HEADER).read()


def html(made: Sequence[RowResult] = (), **how: Any) -> bytes:
    patterns = {ItemKey(f"p{n}"): {"takes": takes_of(n)} for n in range(30)}
    urls = [take["picture"] for facts in patterns.values() for take in facts["takes"]]
    pictures = {url: f"pictures/{Path(url).name}" for url in urls}
    return b"".join(page(RUN, shown(made or rows()), pictures, patterns=patterns, **how))


class Desk(ThreadingHTTPServer):
    """Serves the page as `patternmill look` does, and keeps what was saved in the order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.saved: list[dict[str, Any]] = []
        #: What else was posted, the plan of the page's command, and what was begun of it.
        self.posted: list[tuple[str, Any]] = []
        self.plan: dict[str, Any] | None = None
        self.begun: list[dict[str, Any]] = []
        self.is_down = False
        self.refuses: str | None = None
        #: The pictures that were asked for, and whether they are drawn.
        self.asked: list[str] = []
        self.may_draw = threading.Event()
        self.may_draw.set()

    def page(self) -> bytes:
        approval = {"digest": "d7", "text": "20 items for €5.00"}
        facts = {"actions": ["remake", "order", "pause"], "approval": approval}
        return html(rows(30), served=True, facts=facts)

    def picture(self, name: str) -> bytes:
        """Return a picture of a take, which is as many pixels wide as the take's number."""
        self.asked.append(name)
        self.may_draw.wait(20)
        stream = io.BytesIO()
        Image.new("RGB", (int(name[-1]), int(name[-1])), "teal").save(stream, "PNG")
        return stream.getvalue()

    def decided(self, sent: list[dict[str, Any]]) -> dict[str, Any]:
        refused = [{"id": event["id"], "why": "new"} for event in sent if event["item"] == self.refuses]
        recorded = {event["id"] for event in (*self.saved, *refused)}
        self.saved += [event for event in sent if event["id"] not in recorded]
        return {"refused": refused}

    def acted(self, path: str, sent: Any) -> dict[str, Any]:
        self.posted.append((path, sent))
        if path.startswith("/plans/"):
            return {"plan": self.plan}
        if path.startswith("/commands/"):
            name = path.rpartition("/")[2]
            self.begun = [{"name": name, "lines": [], "steps": ["Planning …"], "code": None}]
        return {"text": f"{path} is done."}

    def verdicts(self) -> list[tuple[str, str]]:
        return [(event["item"], event["verdict"]) for event in self.saved]


class _Answer(BaseHTTPRequestHandler):
    server: Desk

    def do_GET(self) -> None:
        if self.path.startswith("/pictures/"):
            self._answer(self.server.picture(Path(self.path).stem), "image/png")
        elif self.path == "/commands":
            self._answer(json.dumps(self.server.begun).encode())
        else:
            self._answer(self.server.page(), "text/html")

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.is_down:
            return self.send_error(503)
        is_decision = self.path == "/decisions"
        answer = self.server.decided(sent) if is_decision else self.server.acted(self.path, sent)
        return self._answer(json.dumps(answer).encode())

    def _answer(self, content: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.may_draw.set()
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
    """Load a page anew, even where it is open already; earlier complaints of the browser fail the test."""
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
    """Write a page as one of a new run, as the browser keeps drafts by run; return its address."""
    path = folder / "gallery.html"
    path.write_bytes(content.replace(b'"run-7"', f'"run-7{next(_NUMBERS)}"'.encode()))
    return path.as_uri()


@pytest.fixture
def on_disk(tmp_path: Path) -> str:
    return written(tmp_path, html())


def saved(browser: Browser, number: int) -> None:
    browser.until(f"document.getElementById('saved').textContent.startsWith('{number} saved')")


def test_every_row_is_found_among_ten_thousand(browser: Browser, tmp_path: Path) -> None:
    """Few are laid out at a time; failures come first, and a search and a status leave the matching rows."""
    opened(browser, written(tmp_path, html(rows(5000, failed=(4, 3500)))))
    browser.until(f"{SKUS}.startsWith('S4-0,S3500-0,=R,S0-0,')")
    assert browser.do("document.querySelectorAll('.sku').length") < 60
    browser.press("End")
    browser.until(f"{CURRENT} === 'S4999-0' && {SKUS}.endsWith('S4999-0')")
    assert browser.do("document.activeElement.getBoundingClientRect().bottom <= innerHeight")
    browser.press("/")
    browser.do("byId('query').value = 'HERONS s77-1'; byId('query').dispatchEvent(new Event('input'))")
    browser.until(f"{SKUS} === 'S77-0'")
    browser.do("clear(); document.querySelector('[data-chip=\"status:failed\"]').click()")
    browser.until(f"{SKUS} === 'S4-0,S3500-0'")
    browser.shows("no ink left")


def test_hostile_texts_stay_text(browser: Browser, tmp_path: Path) -> None:
    """No prompt, sku, selection or reason becomes an element, and none runs, in any view."""
    made = [
        refused(text, cells=(text, text, "", "", ""), prompt=text, selections={text: text}, error=text)
        for text in HOSTILE
    ]
    opened(browser, written(tmp_path, html(made)))
    browser.shows(HOSTILE[1])
    for key in ("e", "c", "g"):
        browser.press(key)
        assert browser.do("document.querySelectorAll('img, svg, script:not([type])').length") == 1
    assert browser.do("document.documentElement.dataset.taken") is None


def test_each_key_is_one_decision_in_order_and_at_once(browser: Browser, desk: Desk) -> None:
    """The pattern whose products failed first; a reason is one more key. Arrows alone decide nothing."""
    opened(browser, desk.url)
    browser.press("p", "x", "a", "3", " ", "u")
    saved(browser, 4)
    first = [("p4", "pick"), ("p0", "reject"), ("p1-3", "again"), ("p1-3", "again")]
    assert desk.verdicts() == [*first, ("p2", "later"), ("p3", "undecided")]
    assert [event["note"] for event in desk.saved] == ["", "", "", "Wrong colours", "", ""]
    assert desk.saved[0]["picture"] == f"{4:064x}" and len({event["id"] for event in desk.saved}) == 6
    browser.do("byId('single-keys').click()")
    try:
        browser.press("p", "ArrowRight")
        browser.until(f"{CURRENT} === 'S6-0'")
        browser.do("document.querySelector('#buttons [data-pressed=pick]').click()")
        assert browser.do("events.slice(6).map((event) => event.item)") == ["p6"]
    finally:
        browser.do("localStorage.clear()")


def test_a_server_that_was_away_gets_each_decision_once(browser: Browser, desk: Desk, tmp_path: Path) -> None:
    """They survive a reload, under the same IDs, and are in a saved file; a refused one is shown and open again."""
    desk.is_down = True
    opened(browser, desk.url)
    browser.press("p", "x")
    browser.shows("2 not yet saved")
    browser.save_files_in(tmp_path)
    browser.click("Save decisions.csv")
    eventually((tmp_path / "decisions.csv").exists, 20)
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
    browser.until("done(draft.transaction('events').objectStore('events').count()).then((n) => n === 4)")
    browser.kill()
    (profile / "DevToolsActivePort").unlink()
    verdicts = (
        "groups.map((group) => decisionOf(group).verdict).filter((word) => word !== 'undecided').join()"
    )
    with Browser(profile) as again:
        opened(again, on_disk)
        assert again.do(verdicts) == "pick,reject,again"
        again.press("e", "z")
        assert again.do(f"[{CURRENT}, view, {verdicts}].join()") == "S1-0,one,pick,reject"
        again.press("z", "z", "z")
        assert again.do(f"[{CURRENT}, {verdicts}].join()") == "S4-0,"


def test_decisions_file_is_a_sheet(browser: Browser, tmp_path: Path, on_disk: str) -> None:
    """It has the rows that share each pattern in the order of the decisions, and nothing that a spreadsheet runs."""
    opened(browser, on_disk)
    assert browser.do("byId('do').childElementCount") == 0, "from disk nothing is bought"
    browser.save_files_in(tmp_path)
    browser.press("p", "a", "Enter")
    browser.do("document.activeElement.value = '=1+1 \"é\", so'")
    browser.press("Enter")
    browser.click("Save decisions.csv")
    saved(browser, 2)
    file = tmp_path / "decisions.csv"
    eventually(lambda: file.exists() and file.read_bytes().endswith(b"\r\n"), 20)
    lines = list(csv.reader(file.read_text("utf-8-sig").splitlines()))
    assert tuple(lines[0]) == PAGE_COLUMNS
    assert {line.pop(0) for line in lines[1:]} == {browser.do("run.cell")}
    assert [[*line[:3], restore(line[3])] for line in lines[1:]] == [
        ["S4-0", "1", "pick", ""],
        ["S4-1", "1", "pick", ""],
        ["S0-0", "1", "again", '=1+1 "é", so'],
        ["S0-1", "1", "again", '=1+1 "é", so'],
    ]


def test_page_and_plan_choose_the_same_take(browser: Browser, on_disk: str) -> None:
    """The page follows each key at once by the rules of the plan, and shows what has become of a row since."""
    opened(browser, on_disk)
    for name, (text, choice, *_) in CASES.items():
        judged = [take for take in takes(text) if take.is_made]
        ended = [{"take": take.number, "item": f"i{take.number}"} for take in judged if not take.is_open]
        group = {"takes": ended, "open": [take.number for take in judged if take.is_open]}
        decided = {
            f"i{take.number}": {"verdict": take.verdict, "sequence": take.sequence}
            for take in judged
            if take.verdict
        }
        browser.do(
            f"verdicts.clear(); Object.entries({json.dumps(decided)}).forEach((entry) => verdicts.set(...entry))"
        )
        chosen = browser.do(f"choiceOf({json.dumps(group)})")
        assert chosen.get("status", chosen.get("take")) == {"choose": "to_choose"}.get(choice, choice), name
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


def test_decision_is_about_the_take_that_is_looked_at(browser: Browser, desk: Desk) -> None:
    """The card shows the take that stands for the pattern; in the large views each take has its own mark."""
    opened(browser, desk.url)
    browser.do("go(owners.get('p1'))")
    browser.press("c", "ArrowRight", "x", "p")
    assert browser.do(CURRENT) == "S2-0"
    saved(browser, 2)
    assert desk.verdicts() == [("p1-2", "reject"), ("p1-3", "pick")]
    assert desk.saved[1]["picture"] == f"{3:064x}"
    browser.press("g")
    browser.until(f"{CARD}.querySelector('.open img')?.naturalWidth === 3")
    assert "Picked: take 3" in browser.do(f"{CARD}.textContent")
    browser.do("go(owners.get('p1'))")
    browser.press("e")
    marks = "[panels[at].take, document.querySelector('figure .marks').textContent].join()"
    assert browser.do(marks) == "3,✓Picked"
    browser.press("ArrowUp", "ArrowUp")
    assert browser.do(marks) == "1,"
    browser.press("ArrowDown", "ArrowDown", "x")
    browser.press("g")
    browser.until(f"{CARD}.querySelector('.open img')?.naturalWidth === 1")


def test_rejected_pattern_is_shown_as_discarded_and_taken_back(browser: Browser, desk: Desk) -> None:
    """It is discarded once all of its takes are rejected; the rows that share it are named before and after."""
    opened(browser, desk.url)
    browser.do("go(owners.get('p1'))")
    assert "also S1-1" in browser.do(f"{CARD}.textContent")
    assert "also S1-1" in browser.do("document.querySelector('#buttons [data-pressed=reject]').title")
    browser.press("c", "x", "x", "x", "g")
    browser.until(f"{CARD}.textContent.includes('Discarded') && {CARD}.textContent.includes('Rejected')")
    browser.do("go(owners.get('p1'))")
    browser.press("u")
    browser.shows("Undecided: S1-0, also S1-1")
    browser.until(f"!{CARD}.textContent.includes('Discarded') && !unsent.length")
    assert desk.verdicts()[-1] == ("p1-3", "undecided")


def test_pictures_of_what_is_shown_come_first_and_hold_up_no_decision(browser: Browser, desk: Desk) -> None:
    """Few are asked for at a time; until a picture is there, the prompt stands in its place."""
    desk.may_draw.clear()
    opened(browser, desk.url, 390, 600)
    browser.until("fetching === 4 && wanted.length")
    eventually(lambda: len(desk.asked) == 4, 20)
    browser.shows("The picture is being made")
    browser.press("p")
    saved(browser, 1)
    browser.press("End")
    browser.until("wanted.some(({ address }) => address.includes('29-1'))", 15)
    desk.may_draw.set()
    browser.until("cells.get(groups.at(-1)).querySelector('.open img')?.naturalWidth")
    assert "4-1" in desk.asked[:4] and "29-1" in desk.asked[4:8], desk.asked


def test_remake_is_one_confirmation_of_what_the_server_plans(browser: Browser, desk: Desk) -> None:
    """It has sum, digest and token, comes once decisions are saved, and is followed to its end, over a reload too."""
    opened(browser, desk.url)
    browser.press("a", "Escape")
    browser.click("Remake…")
    browser.shows("Nothing to remake")
    browser.click("Close")
    desk.plan = {"sum": "1 pattern for €4.80", "lines": ["Cost: €4.80."], "token": "t1"}
    browser.do("document.activeElement.blur(); byId('do-remake').focus()")
    # Enter that is held down opens the plan, and does not confirm it.
    browser.hold("Enter")
    browser.shows("To remake: 1 pattern for €4.80")
    browser.shows("Cost: €4.80.")
    assert desk.begun == [] and desk.verdicts() == [("p4", "again")]
    assert browser.do("document.activeElement.textContent") == "Buy 1 pattern for €4.80"
    browser.press("Enter")
    browser.shows("Remake is running")
    assert desk.posted[-1] == ("/commands/remake", {"token": "t1"})
    browser.shows("Planning …")
    opened(browser, desk.url)
    browser.click("Remake is running…")
    desk.begun[0] |= {"lines": ["Completed: 2 succeeded", "  Pay here: https://pay.example/x?y=1"], "code": 0}
    browser.shows("Completed: 2 succeeded")
    link = "document.querySelector('#deal a')"
    assert browser.do(f"[{link}.href, {link}.rel]") == ["https://pay.example/x?y=1", "noopener noreferrer"]
    assert browser.do("document.activeElement.textContent") == "Reload the page"
    assert [path for path, _ in desk.posted] == ["/plans/remake", "/plans/remake", "/commands/remake"]


def test_page_approves_and_pauses(browser: Browser, desk: Desk) -> None:
    """Both work without a pointer, too."""
    opened(browser, desk.url)
    browser.click("Approve…")
    browser.shows("Approve 20 items for €5.00? This buys them.")
    browser.click("Approve")
    browser.shows("/approve is done.")
    browser.press("Escape")
    browser.until("!document.querySelector('dialog[open]')")
    browser.do("byId('do-pause').focus()")
    browser.press("Enter", "w", "h", "y", "Enter")
    browser.shows("/pause is done.")
    assert desk.posted == [("/approve", {"digest": "d7"}), ("/pause", {"reason": "why"})]


def test_many_are_decided_at_once_and_undone_together(browser: Browser, desk: Desk) -> None:
    """They are chosen one by one, with the pointer, or all that are shown; what has no picture is left out."""
    opened(browser, desk.url)
    browser.press("s", "ArrowRight", "ArrowRight", "s")
    browser.shows("2 selected")
    browser.do("cells.get(owners.get('p5')).click()")
    browser.shows("3 selected")
    browser.press("x")
    saved(browser, 3)
    browser.press("z")
    browser.until("!unsent.length")
    items = ("p4", "p0", "p5")
    assert desk.verdicts() == [(item, verdict) for verdict in ("reject", "undecided") for item in items]
    browser.do("terms = ['wasser', 'herons number 2']; filter()")
    browser.press("S")
    browser.shows("11 selected")
    browser.press("p")
    saved(browser, 11)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_axe_finds_nothing(browser: Browser, on_disk: str, scheme: str, width: int) -> None:
    """Every view meets WCAG 2.2 A and AA, with a verdict of each kind, large targets and no sideways scrolling."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_core_python")
    browser.prefer(scheme)
    opened(browser, on_disk, width)
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
        # At its own width, and at a zoom of 400 %.
        for size in ((320, 256), (width, 900)):
            browser.resize(*size)
            browser.until("document.documentElement.scrollWidth <= innerWidth")
            browser.until(
                "view !== 'sheet' || [...cells.values()].every((cell) => cell.offsetWidth > 100)", 10
            )
