"""The page as a tool, in a real Chromium: decided by keys alone, searched, ordered, narrow, without storage."""

import asyncio
import json
import threading
import time

import pytest
import uvicorn

from patternmill.contract import Contract
from patternmill.ledger.brake import brakes_on
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Verdict, decide, decisions_of, move
from patternmill.looking.cards import Made, gallery
from patternmill.looking.deeds import Deeds
from patternmill.looking.pictures import Pictures
from patternmill.looking.server import Desk, Door, app_of, listening
from patternmill.looking.view import View
from patternmill.settings import Settings
from tests.browser import BLOCKED, Browser, installed
from tests.shelf import ended, shelved

pytestmark = pytest.mark.slow
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f00050001ffa8a3b1e50000000049454e44ae426082"
)
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
ROWS = (
    ("herons", "succeeded"), ("herons", "failed"), ("ferns", "succeeded"), (HOSTILE, "waiting"),
    ("moss", "held"), ("sage", "refused"), ("lemons", "in_doubt"),
)  # fmt: skip
CURRENT = "document.activeElement.querySelector('h3')?.textContent"
#: Gives a field another value, as a person does.
SET = "{ const one = document.getElementById('%s'); one.value = '%s'; one.dispatchEvent(new Event('%s')) }"
#: The texts whose contrast with what is behind them is below 4.5.
FAINT = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (color) => rgb(color).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    const color = element ? getComputedStyle(element).backgroundColor : 'rgb(255, 255, 255)';
    return rgb(color)[3] === 0 ? behind(element.parentElement) : color;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest(':disabled, script, style')) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) found.push(node.textContent);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browsers(tmp_path_factory):
    """An ordinary browser, and one that keeps nothing."""
    installed()
    with (
        Browser(tmp_path_factory.mktemp("profile")) as usual,
        Browser(tmp_path_factory.mktemp("blocked"), BLOCKED) as bare,
    ):
        yield {"usual": usual, "blocked": bare}


@pytest.fixture
def browser(browsers):
    return browsers["usual"]


class Served:
    """A page that is served from a thread, with its ledger."""

    def __init__(self, folder):
        self.database = Database(str(folder / "ledger.sqlite3"))
        self.patterns = shelved(self.database, *ROWS)
        (folder / "pictures").mkdir()
        (folder / "pictures/pat_herons.png").write_bytes(PNG)
        self._socket = listening()
        self.door = Door(self._socket.getsockname()[1])
        self._folder = folder
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))
        self._ready = threading.Event()
        self._thread.start()
        self._ready.wait(10)

    async def _serve(self):
        self.deeds = deeds = Deeds(
            self.database, Settings(environment="production"), "production", "spring", None
        )
        pictures = Pictures(self._folder / "pictures", None, None, "")
        desk = Desk(View(self.database, "production", "spring"), deeds, pictures, self.door, Contract())
        self._server = uvicorn.Server(
            uvicorn.Config(app_of(desk, self.door), log_config=None, ws="none", lifespan="off")
        )
        self._ready.set()
        await self._server.serve(sockets=[self._socket])
        await pictures.close()

    def becomes(self, sku, status):
        self.database.change(lambda connection: ended(connection, sku, status))

    def verdicts(self):
        found = decisions_of(self.database, "production").values()
        return sorted((one.verdict, one.note) for one in found if one.verdict or one.note)

    def comes_to(self, *verdicts):
        """Wait until these are saved: the page shows a decision before that."""
        deadline = time.monotonic() + 20
        while (found := self.verdicts()) != list(verdicts):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def close(self):
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        self.database.disconnect()


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    served = Served(tmp_path)
    yield served
    served.close()


def test_a_catalog_is_decided_about_by_keys_alone(browser, served):
    browser.show(served.door.link)
    browser.press("j")
    assert browser.do(CURRENT) == "herons"
    browser.press("p", "ArrowRight", "x", "j", "a", "k", "n")
    browser.until("document.activeElement.name === 'note'")
    browser.press(*"dull", "Tab", "Enter")
    browser.says("dull", "article:nth-child(2)")
    browser.until("!document.querySelector('dialog').open")
    assert browser.do(CURRENT) == "ferns"
    browser.says("Remake 1 pattern")
    served.comes_to(("again", ""), ("pick", ""), ("reject", "dull"))
    browser.press("z")
    browser.until("!document.querySelector('article:nth-child(2) q')")
    browser.press("z")
    browser.until("!document.querySelector('article.again')")
    served.comes_to(("pick", ""), ("reject", ""))
    browser.press("?")
    browser.says("the next pattern", "dialog")
    browser.press("Escape")
    browser.until("!document.querySelector('dialog').open")
    assert browser.do("complaints") == []


def test_a_decision_that_comes_too_late_says_so_and_is_taken_back(browser, served):
    browser.show(served.door.link)
    browser.do("window.old = window.fetch, 0")
    browser.do("window.fetch = (path, how) => old(path, how.body ? {...how, body: LATER} : how), 0".replace(
        "LATER", """how.body.replace('"take":1', '"take":7')"""
    ))  # fmt: skip
    browser.press("j", "p")
    browser.says("There is a newer take", "#said")
    browser.until("!document.querySelector('article.pick')")
    assert served.verdicts() == []


def test_running_rows_move_by_themselves_and_what_did_not_change_is_left_alone(browser, served):
    browser.show(served.door.link)
    browser.says("1 waiting", "#counts")
    browser.do("for (const article of document.querySelectorAll('article')) article.firstChild.before('')")
    browser.do("document.querySelectorAll('article li').forEach((line) => (line.dataset.old = 'x'))")
    served.becomes("A-5", "succeeded")
    browser.until("!document.querySelector('.waiting')")
    browser.says("3 succeeded", "#counts")
    assert browser.do("document.querySelectorAll('li:not([data-old])').length") == 1


def test_search_and_filters(browser, served):
    prompts = "[...document.querySelectorAll('h3')].map((one) => one.textContent).join()"
    browser.show(served.door.link)
    browser.press("/", *"ER")
    browser.until(f"{prompts} === {json.dumps(f'herons,ferns,{HOSTILE}')}")
    browser.press("Escape")
    browser.do("document.querySelector('[data-status=failed]').click()")
    browser.until(f"{prompts} === 'herons'")
    browser.until("document.querySelectorAll('article li').length === 2")
    browser.do("document.querySelector('[data-status=failed]').click()")
    browser.press("p")
    browser.do(SET % ("search", "", "input"))
    browser.do(SET % ("verdict", "none", "change"))
    browser.do(SET % ("category", "Mug", "change"))
    browser.until(f"{prompts} === {json.dumps(f'herons,{HOSTILE},sage')}")
    browser.do(SET % ("verdict", "pick", "change"))
    browser.says("Nothing here fits")


def test_what_is_ticked_is_planned_with_its_quantities_and_errors_are_sentences(browser, served):
    browser.show(served.door.link)
    browser.press("j", " ", "j", " ")
    browser.says("Order 2 products")
    browser.press("o")
    browser.until("document.activeElement.name === 'name'")
    browser.press("Tab", "3", "Enter")
    browser.says("Make the checkout spring", "dialog")
    browser.says("× A-2", "dialog")
    browser.press("Tab", "Enter")
    browser.says("Set PATTERNMILL_API_KEY.", "dialog")


def test_takes_are_compared_and_another_one_is_asked_for_by_keys_alone(browser, served):
    place = served.database, "production"
    decide(*place, served.patterns[0], 1, Verdict.AGAIN)
    seen = decisions_of(*place)[served.patterns[0]]
    served.database.change(lambda connection: move(connection, "production", seen, 2))
    wanted = "UPDATE catalog_rows SET take = 2 WHERE pattern = :pattern"
    served.database.change(lambda connection: connection.execute(wanted, pattern=served.patterns[0]))
    browser.show(served.door.link)
    browser.until("document.querySelector('[data-do=takes]')")
    assert "take 2 of 2: herons" in browser.names("button")
    browser.press("j", "t")
    browser.says("Take 2 · not made", "dialog")
    browser.press("Tab")
    assert browser.do("document.activeElement.ariaLabel") == "Use this one: take 1"
    browser.press("Enter")
    browser.says("Use take 1: herons", "dialog")
    browser.says("PATTERNMILL_", "dialog")
    browser.press("Escape")
    assert browser.do(CURRENT) == "herons"


def test_the_address_of_a_checkout_is_a_link_and_stays_on_the_page(browser, served):
    line = "samples: 1 piece to be paid. https://pay.example/chk_1"
    browser.show(served.door.link)
    served.deeds.jobs = [{"number": 1, "question": "", "lines": [line], "over": True}]
    browser.says(line, "#job")
    assert browser.do("document.querySelector('#job a').href") == "https://pay.example/chk_1"


def test_a_pause_asks_for_its_reason_and_is_seen(browser, served):
    browser.show(served.door.link)
    browser.do("document.querySelector('[data-deed=pause]').click()")
    browser.until("document.activeElement.name === 'reason'")
    browser.press(*"a review", "Enter")
    browser.says("Pause production/spring?", "dialog")
    assert brakes_on(served.database, "production", "spring") == []
    browser.do("document.getElementById('go').click()")
    browser.says("Paused: production/spring.", "dialog")
    browser.press("Escape")
    browser.says("(a review)", "#news")
    browser.says("Unpause", "#deeds")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_contrast_and_nothing_is_wider_than_the_screen(
    browser, served, width, scheme
):
    browser.show(served.door.link, width, scheme)
    browser.press("j", "p", "j", "x", "j", "a")
    browser.until("document.querySelector('article.again')")
    browser.until("[...document.images].some((image) => image.naturalWidth)")
    assert browser.do("document.documentElement.scrollWidth <= innerWidth")
    assert browser.do(FAINT) == []
    buttons = browser.names("button")
    assert all(buttons)
    assert {"Pick: herons", "Reject: ferns", f"Again: {HOSTILE}", "Note: moss"} <= set(buttons)
    assert set(browser.names("checkbox")) == {"Order A-2: herons", "Order A-4: ferns"}
    assert all(browser.names("combobox") + browser.names("searchbox"))
    assert "Pattern: herons" in browser.names("image")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.do(outline) != "none"
    browser.press("?")
    browser.until("document.querySelector('dialog').open")
    assert browser.do(FAINT) == []
    browser.press("Escape")
    assert browser.do("document.title") == "spring: patterns"


def test_it_works_where_the_browser_stores_nothing(browsers, served):
    browser = browsers["blocked"]
    browser.show(served.door.link)
    browser.until("[...document.images].some((image) => image.naturalWidth)")
    browser.says("This browser keeps nothing", "#news")
    browser.press("j", "p")
    browser.says("Saved: picked, herons", "#said")
    served.comes_to(("pick", ""))
    assert browser.do("complaints") == []


def test_a_gallery_is_a_file_with_its_pictures_beside_it_and_needs_no_storage(browsers, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/pat_1.png").write_bytes(PNG)
    rows = [
        Made(f"pat_{number}", prompt, f"A-{number}", "Mug", "{}", "succeeded", "prd", "")
        for number, prompt in enumerate(["herons", HOSTILE], 1)
    ]
    (tmp_path / "run/gallery.html").write_text(gallery("spring", rows))
    for browser in browsers.values():
        browser.show(f"file://{tmp_path}/run/gallery.html")
        assert browser.text("#about") == "2 rows, 2 patterns"
        browser.until("[...document.images].filter((image) => image.naturalWidth).length === 1")
        browser.says("no picture", "article:nth-child(2)")
        assert browser.do("document.querySelectorAll('article button, article input').length") == 0
        assert (browser.do("document.title"), browser.do("complaints")) == ("spring: patterns", [])


def test_ten_thousand_rows_are_there_within_a_second_or_two_and_are_searched_at_once(browser, served):
    shelved(served.database, *((f"herons {number}", "succeeded") for number in range(10_000)))
    browser.show(served.door.link)
    browser.says("10,000 rows", "#about")
    assert browser.do("document.querySelectorAll('article').length") < 200
    search = "const began = performance.now(), search = document.getElementById('search'); search.value = 'a-9876';"
    search += "search.dispatchEvent(new Event('input')); return performance.now() - began"
    spent = browser.do(f"(() => {{ {search} }})()")
    assert (browser.do("document.querySelector('h3').textContent"), spent < 500) == ("herons 9874", True)
