"""Another port of this machine, in the browser of the person who looks: it gets and does nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from PIL import Image

from patternmill.identifiers import ItemKey
from patternmill.looking.page import page
from patternmill.looking.server import Door, LookServer
from patternmill.looking.viewed_run import ViewedRun
from prefect_host.shared_process import bound_socket
from tests.acceptance.browser import Browser
from tests.acceptance.test_looking_page import READY, RUN, rows, shown
from tests.unit.service.sites import Start, answer
from tests.unit.service.sites import start as start

#: What a page of another port tries: to read, to decide, to approve, with whatever the browser sends by itself.
ATTACK = """(async () => {
  const reached = [];
  for (const [path, how] of [['/page', {}], ['/pictures/0.png', {}],
                             ['/decisions', {method: 'POST', body: '[]'}], ['/approve', {method: 'POST', body: '{}'}],
                             ['/commands/remake', {method: 'POST', body: '{}'}]]) {
    for (const mode of ['cors', 'no-cors']) {
      try { reached.push((await fetch(TARGET + path, {...how, mode, credentials: 'include'})).type); }
      catch { reached.push('refused'); }
    }
  }
  return JSON.stringify([reached, document.cookie, {...sessionStorage}, {...localStorage}]);
})()"""


class _Run:
    """A run whose page and picture are there, and which notes what is asked of it."""

    record = RUN
    items = frozenset[str]()

    def __init__(self, picture: Path) -> None:
        self.asked: list[str] = []
        self._picture = picture

    def page(self, actions: Sequence[str]) -> Iterator[bytes]:
        self.asked.append("page")
        url = "https://studio.example/0.png"
        take = {"item": "p0", "take": 1, "picture": url, "digest": "", "chosen": True, "decision": None}
        looks = {ItemKey("p0"): {"takes": [take]}}
        return page(self.record, shown(rows()), {url: "pictures/0.png"}, patterns=looks, served=True)

    def picture(self, name: str) -> tuple[Path, str]:
        self.asked.append(name)
        return self._picture, "aa"

    def approve(self, digest: str, who: str) -> str:
        self.asked.append("approve")
        return ""

    def ledger(self) -> Any:
        return nullcontext()


@contextmanager
def looking(run: _Run) -> Iterator[str]:
    """The address that opens its page."""
    with bound_socket() as bound:
        door = Door(bound)
        server = LookServer(cast("ViewedRun", run), "Ada", [door]).prepared()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield door.address
        finally:
            server.should_exit = True
            thread.join()


def attack(browser: Browser, url: str, target: str) -> None:
    """The page of another port reaches nothing, and finds nothing that the browser keeps."""
    browser.open(url)
    browser.until("document.title === 'other'")
    reached, *kept = json.loads(browser.do(ATTACK.replace("TARGET", json.dumps(target))))
    assert set(reached) <= {"refused", "opaque"} and kept == ["", {}, {}]


def test_other_port_has_no_session(tmp_path: Path, start: Start) -> None:
    """The person sees pages and pictures, after a reload too; a page of another port, in the same tab, has nothing."""
    Image.new("RGB", (8, 8), "red").save(tmp_path / "picture.png")
    other = start()
    other.answers("/", answer(200, b"<!doctype html><title>other</title>", Content_Type="text/html"))
    run = _Run(tmp_path / "picture.png")
    with looking(run) as address, Browser(tmp_path / "profile") as browser:
        target, secret = address.split("/#")
        browser.watch()
        for _ in range(2):
            browser.open(address)
            browser.until(f"location.href === '{target}/' && {READY}")
            browser.until(
                "[...document.images].some((one) => one.naturalWidth && one.src.startsWith('blob:'))"
            )
            assert browser.do("complaints.join()") == ""
            address = f"{target}/"
        assert browser.do("document.cookie") == ""
        asked = len(run.asked)
        attack(browser, f"{other.url}/", target)
        assert len(run.asked) == asked, run.asked[asked:]
        assert secret not in str(other.seen) and "cookie" not in str(other.seen).lower()
