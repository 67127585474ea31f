"""A merchandiser's first hour: a sheet of her own in German, questions, the page, another take, an order, and back."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from prefect_host import shared_process
from studio.store import read_record
from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import clean_environment

pytestmark = pytest.mark.timeout(240)

SHEET = """Artikelnummer;Bezeichnung;Motiv;Produktart;Größe;Stoff;Preis
K-1;Kissen Reiher;Blaue Reiher im Schilf;Kissen;50x50;Leinen;16,90
K-2;Kissen Reiher groß;Blaue Reiher im Schilf;Kissen;60x40;Leinen;19,90
K-3;Kissen Fuchs;Rote Füchse im Schnee;Kissen;50x50;Baumwolle;16,90
K-4;Kissen Farn;Grüne Farne;Kissen;40x40;Samt;16,90
K-5;Kissen Zitrone;Zitronen auf Creme;Kissen;40x40;Leinen;16,90
"""
READY = "document.documentElement?.dataset.ready === 'true'"


class Terminal:
    """A command on a terminal, and what it has shown."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = clean_environment() | {
            "HOME": str(folder / "home"),
            "PREFECT_API_URL": "http://127.0.0.1:9/api",
            "PREFECT_CLIENT_MAX_RETRIES": "0",
        }
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        command = [sys.executable, "-m", "cli.main", *arguments]
        self.process = shared_process.start_process(command, cwd=folder, env=environment, **streams)
        os.close(theirs)
        self.text, self._seen = "", 0

    def expect(self, pattern: str, within: float = 90) -> re.Match[str]:
        """Wait until it shows new text that matches this pattern."""
        until = time.monotonic() + within
        while (match := re.compile(pattern).search(self.text, self._seen)) is None:
            assert time.monotonic() < until and self._read(), f"{pattern} is not in\n{self.text}"
        self._seen = match.end()
        return match

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Interrupt it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> str:
        """Return all that it has shown, once it has ended successfully."""
        while self._read():
            pass
        os.close(self._ours)
        assert self.process.wait(20) == 0, self.text
        return self.text

    def _read(self) -> bool:
        """Read what has arrived, after a short wait; return False once it has ended."""
        if not select.select([self._ours], [], [], 0.2)[0]:
            return True
        with suppress(OSError):
            self.text += os.read(self._ours, 65536).decode(errors="replace")
            return True
        return False


def bought(folder: Path) -> Counter[str]:
    """Count what the embedded studio has made, by its own record."""
    return Counter(line.operation for line in read_record(folder / ".patternmill" / "studio" / "studio.db"))


def confirm(browser: Browser, action: str, title: str) -> None:
    """Start a command of the page by its button, and confirm it with one more key."""
    browser.do(f"document.getElementById('do-{action}').focus()")
    browser.press("Enter")
    browser.shows(title)
    browser.until("document.activeElement.matches('.strong')")
    browser.press("Enter")


def import_sheet(folder: Path) -> None:
    """Say what her columns and words mean: accept what is proposed, and name the column of the prompts."""
    (folder / "kollektion.csv").write_text(SHEET, encoding="utf-8")
    terminal = Terminal(folder, "import", "kollektion.csv")
    terminal.expect(r'"Artikelnummer" = "sku"[^?]*Is that right\?')
    terminal.type("\r")
    terminal.expect(r"2\) Motiv[^:]*Number or name: ")
    terminal.type("2\r")
    for proposal in ('"Kissen" = "Cushion"', '"Samt" = "velvet"'):
        terminal.expect(rf"{proposal}[^?]*Is that right\?")
        terminal.type("\r")
    assert "Completed: 5 succeeded" in terminal.end()


def test_a_merchandisers_first_hour(tmp_path: Path) -> None:
    """She starts in an empty folder with an empty home, and stays on one page from the first look to the payment."""
    installed()
    import_sheet(tmp_path)
    assert bought(tmp_path) == {"patterns/create": 4, "products/create": 5}

    with Browser(tmp_path / "profile") as browser:
        look = Terminal(tmp_path, "look", "kollektion")
        browser.open(look.expect(r"http://127\.0\.0\.1:\d+/#\S+")[0])
        browser.until(READY)
        # Herons, foxes, ferns and lemons, of which another take is wanted.
        browser.press("p", "x", "x", "a", "1")
        browser.shows("4 saved")
        confirm(browser, "remake", "To remake: 1 pattern and 1 product")
        browser.shows("Made in this run: 1 pattern and 1 product", 90)
        # The page that is being left is ready too, and would take the next keys with it.
        browser.do("window.isLeft = true")
        browser.click("Reload the page")
        browser.until(f"!window.isLeft && {READY} && commands.length")
        assert bought(tmp_path) == {"patterns/create": 5, "products/create": 6}

        browser.press("End", "p")
        browser.shows("Picked: take 2")
        confirm(browser, "order", "To order: 3 pieces in 1 checkout")
        browser.shows("Pay here: ", 60)
        browser.open(browser.do("document.querySelector('#deal a').href"))
        browser.shows("TEST: nothing is charged")
        browser.until("!!document.querySelector('button.primary')")
        browser.do("document.querySelector('button.primary').click()")
        browser.shows("Thank you")
        browser.click("Look again")
        browser.shows("Where it is")
        look.interrupt()
        look.end()
        browser.click("Look again")
        browser.shows("The studio has ended, and nothing was sent.")

    assert "is paid" in Terminal(tmp_path, "order", "--refresh").end()
    before = bought(tmp_path)
    assert "Nothing to do." in Terminal(tmp_path, "import", "results/kollektion/sheet.csv").end()
    assert bought(tmp_path) == before
