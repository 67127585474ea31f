"""The walk of a person who decides by looking: takes, picks by keyboard, remakes, refreshes and an order.

Each command is killed in its middle and begun again; the studio's own record says what was bought.
"""

from __future__ import annotations

import csv
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from studio.testing import Studio
from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import clean_environment
from tests.acceptance.test_order_walk import opened

pytestmark = pytest.mark.timeout(600)

#: A and B share a pattern.
SOURCE = """sku,prompt,category,option:size,option:finish
A,blue herons,Mug,11oz,matte
B,blue herons,Mug,15oz,matte
C,red foxes,Mug,11oz,matte
D,green ferns,Mug,11oz,matte
"""


class Person:
    """Who types commands in one folder, at one studio."""

    def __init__(self, folder: Path, studio: Studio) -> None:
        self.folder, self.studio = folder, studio
        (folder / "spring.csv").write_text(SOURCE)
        self._environment = clean_environment() | {
            "PATTERNMILL_STUDIO_URL": studio.base_url,
            "PATTERNMILL_API_KEY": studio.key,
            "PREFECT_API_URL": "http://127.0.0.1:9/api",
            "PREFECT_CLIENT_MAX_RETRIES": "0",
        }

    def start(self, *arguments: str, terminal: int | None = None) -> subprocess.Popen[bytes]:
        stream = subprocess.DEVNULL if terminal is None else terminal
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", *arguments],
            cwd=self.folder,
            env=self._environment,
            stdin=stream,
            stdout=subprocess.PIPE if terminal is None else terminal,
            stderr=subprocess.STDOUT if terminal is None else terminal,
        )

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """The command killed in its middle, and then to its end."""
        killed = self.start(*arguments)
        before = len(self.bought)
        until = time.monotonic() + 4
        while time.monotonic() < until and len(self.bought) == before and killed.poll() is None:
            time.sleep(0.05)
        killed.kill()
        killed.communicate()
        done = self.start(*arguments)
        output = done.communicate(timeout=120)[0].decode()
        assert done.returncode in codes, output
        return output

    @property
    def bought(self) -> list[str]:
        """What the studio has made, one for each request: of patterns the prompt, of products the sku's size."""
        return [one["requestId"] for one in self.studio.meter.read()["purchases"]]

    def made(self) -> Counter[str]:
        return Counter(one["operation"] for one in self.studio.meter.read()["purchases"])

    def products(self) -> dict[str, str]:
        with (self.folder / "results" / "spring" / "catalog.csv").open(
            encoding="utf-8-sig", newline=""
        ) as file:
            return {row["sku"]: row["product_id"] for row in csv.DictReader(file)}

    @contextmanager
    def looking(self) -> Iterator[str]:
        """The address of the page that `look` serves, as its terminal shows it."""
        ours, theirs = pty.openpty()
        served = self.start("look", "spring", terminal=theirs)
        shown = b""
        try:
            while not (address := re.search(rb"http://127\.0\.0\.1:\d+/#\S+", shown)):
                shown += os.read(ours, 4096)
            yield address[0].decode()
        finally:
            served.send_signal(signal.SIGINT)
            assert served.wait(20) == 0
            os.close(ours)
            os.close(theirs)


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with Studio(process=True) as studio:
        yield Person(tmp_path, studio)


def decide(person: Person, profile: Path, *keys: str, saved: int) -> None:
    """In the browser, by keys alone; it is killed once so many decisions are saved, those of before included."""
    with person.looking() as address:
        browser = Browser(profile)
        browser.open(address)
        browser.until("document.documentElement?.dataset.ready === 'true'")
        browser.press(*keys)
        browser.shows(f"{saved} saved")
        browser.kill()


def test_what_a_person_decided_by_looking_lasts(person: Person, tmp_path: Path) -> None:
    installed()
    person.run("import", "spring.csv", "--takes", "3", codes=(3,))
    assert person.made() == {"patterns/create": 9}

    # Herons: the second take; foxes: the first; ferns are rejected, all takes of them.
    decide(person, tmp_path / "one", "c", "ArrowRight", "p", "p", "x", "x", "x", saved=5)
    person.run("import", "spring.csv", codes=(3,))
    assert person.made() == {"patterns/create": 9, "products/create": 3}
    first = person.products()
    assert set(first) == {"A", "B", "C"}

    # All foxes are rejected after all: those and the ferns are made again, and what is built on them.
    decide(person, tmp_path / "two", "End", "c", "x", "x", "x", saved=7)
    person.run("remake", "--yes", codes=(0, 2, 3))  # 2: it was killed with nothing left to do
    remade = person.made()
    assert remade["patterns/create"] == 11
    second = person.products()
    assert {sku: second[sku] == first.get(sku) for sku in "ABCD"} == {
        "A": True,
        "B": True,
        "C": False,
        "D": False,
    }

    # A refresh of the unchanged source undoes nothing, and buys nothing.
    person.run("refresh", "spring.csv", codes=(0,))
    assert (person.made(), person.products()) == (remade, second)

    # Of a changed one: what changed.
    (tmp_path / "spring.csv").write_text(SOURCE.replace("green ferns", "grey owls"))
    person.run("refresh", "spring.csv", codes=(0,))
    third = person.products()
    assert person.made() - remade == Counter({"patterns/create": 1, "products/create": 1})
    assert [sku for sku in "ABCD" if third[sku] != second[sku]] == ["D"]

    ordered = person.run("order", "--catalog", "spring", "--environment", "staging")
    assert re.findall(r"^  ([A-D])  × 1", ordered, re.MULTILINE) == ["A", "B"]
    assert len(opened(person.studio)) == 1
