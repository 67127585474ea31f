"""A page of another port of this machine, in the browser of the person who looks: it reads and does nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from patternmill.looking.pictures import picture_cache, picture_name
from patternmill.looking.server import Door, LookServer
from patternmill.looking.viewed_run import ViewedRun
from patternmill.states import Stage
from prefect_host.shared_process import bound_socket
from tests.acceptance.browser import Browser
from tests.acceptance.test_looking_page import READY
from tests.hostile.in_process import made
from tests.unit.runs.conftest import home as home
from tests.unit.runs.conftest import service as service
from tests.unit.runs.conftest import shop as shop
from tests.unit.runs.workshop import Workshop, rows
from tests.unit.service.sites import Start, answer
from tests.unit.service.sites import start as start

HERONS = "http://127.0.0.1:9/herons.png"
#: Tries, as a page of another port, to read, decide and approve, with whatever the browser sends by itself.
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


@contextmanager
def looking(run: ViewedRun) -> Iterator[str]:
    """Serve the page of a run, and yield the address that opens it."""
    with bound_socket() as bound:
        door = Door(bound)
        server = LookServer(run, "Ada", [door]).prepared()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield door.address
        finally:
            server.should_exit = True
            thread.join()


def noted(asked: list[str], serve: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a run that writes down when it serves something."""

    def noting(*given: Any) -> Any:
        asked.append(serve.__name__)
        return serve(*given)

    return noting


def attack(browser: Browser, url: str, target: str) -> None:
    """Check that a page of another port reaches nothing, and finds nothing that the browser keeps."""
    browser.open(url)
    browser.until("document.title === 'other'")
    reached, *kept = json.loads(browser.do(ATTACK.replace("TARGET", json.dumps(target))))
    assert set(reached) <= {"refused", "opaque"} and kept == ["", {}, {}]


def test_other_port_has_no_session(
    tmp_path: Path, shop: Workshop, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person sees pages and pictures, after a reload too; a page of another port, in the same tab, has nothing."""
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-herons", patternUrl=HERONS)]
    picture_cache(shop.home).mkdir(parents=True)
    Image.new("RGB", (8, 8), "red").save(picture_cache(shop.home) / picture_name(HERONS), "PNG")
    record = shop.run(rows(("A", "herons"))).ending.record
    asked = list[str]()
    for name in ("page", "picture"):
        monkeypatch.setattr(ViewedRun, name, noted(asked, getattr(ViewedRun, name)))
    other = start()
    other.answers("/", answer(200, b"<!doctype html><title>other</title>", Content_Type="text/html"))
    with looking(ViewedRun(shop.settings, record)) as address, Browser(tmp_path / "profile") as browser:
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
        with shop.ledger() as ledger:
            before = len(asked), list(ledger.database.rows("SELECT * FROM events"))
            attack(browser, f"{other.url}/", target)
            assert (len(asked), list(ledger.database.rows("SELECT * FROM events"))) == before
        assert secret not in str(other.seen) and "cookie" not in str(other.seen).lower()
