"""The studio as a process: what survives its death, how it ends, its pictures, and its pages in a real browser."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image

from studio.server import main
from tests.browser import Browser

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "11oz", "finish": "matte"}}


def wait_for(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


class Running:
    """A studio in a process of its own."""

    def __init__(self, home, pace="instant", port=0):
        self.home, self.pace, self.port = home, pace, port
        self.start()

    def start(self):
        """Start it, or start it again at the same address and with the same state."""
        options = ["--home", str(self.home), "--pace", self.pace, "--port", str(self.port)]
        command = [sys.executable, "-m", "studio", *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, umask=0o022)
        self.base_url = json.loads(self.process.stdout.readline())["base_url"]
        self.origin, self.port = self.base_url.removesuffix("/v1"), urlsplit(self.base_url).port
        self.key = (self.home / "api-key").read_text().strip()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, operation, /, **body):
        head = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.post(f"{self.base_url}/{operation}", json=body, headers=head, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def result(self, operation, /, **body):
        job = self.ask(operation, **body)["jobId"]
        wait_for(lambda: self.ask("jobs/get", jobId=job)["status"] != "running", "the job ends")
        return self.ask("jobs/get", jobId=job)["result"]

    def children(self):
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(one) for one in found]


@contextmanager
def running(*options, **more):
    studio = Running(*options, **more)
    try:
        yield studio
    finally:
        studio.end()


def test_everything_survives_a_kill(tmp_path):
    """From the prompt to the order, killed after what is paid for, at the same address."""
    with running(tmp_path) as studio:

        def restart():
            address = studio.base_url
            studio.end()
            studio.start()
            assert studio.base_url == address

        pattern = studio.result("patterns/create", requestId="1", prompt="ferns")["patternId"]
        restart()
        assert studio.result("patterns/create", requestId="1", prompt="ferns")["patternId"] == pattern
        product = studio.result("products/create", requestId="3", patternId=pattern, **MUG)["productId"]
        order = {"requestId": "4", "lines": [{"productId": product, "quantity": 2}]}
        checkout = studio.ask("checkouts/create", **order)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert httpx.post(f"{checkout['checkoutUrl']}/pay", headers=form).status_code == 303
        paid = studio.ask("orders/get", checkoutId=checkout["checkoutId"])
        restart()
        assert studio.ask("checkouts/create", **order) == checkout | {"status": "paid"}
        assert studio.ask("orders/get", checkoutId=checkout["checkoutId"]) == paid


def test_drawing_ahead_and_the_end_of_its_processes(tmp_path):
    """A page of new patterns does not stay blank; when the studio is killed, what draws for it ends too."""
    with running(tmp_path, pace="quick") as studio:
        studio.result("patterns/create", requestId="1", prompt="ferns")
        drawn = tmp_path / "pictures"
        wait_for(lambda: list(drawn.glob("*-256.png")), "the picture is drawn before anybody looks")
        children = studio.children()
        assert children
    wait_for(lambda: not any(map(_is_alive, children)), "the drawing processes are gone")


def _is_alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_home_is_private_and_of_one_studio(tmp_path, capsys):
    """Whatever the umask of the process that starts it; asked to stop, it ends well."""
    with running(tmp_path / "home") as studio:
        url = studio.result("patterns/create", requestId="1", prompt="ferns")["imageUrl"]
        assert httpx.get(url, timeout=30).status_code == 200
        written = list(studio.home.rglob("*"))
        assert [path for path in written if path.is_file() and path.stat().st_mode & 0o077] == []
        assert any(path.name == "studio.db" for path in written)
        assert main(["--home", str(studio.home)]) == 2
        assert "locked" in capsys.readouterr().err
        studio.process.terminate()
        assert studio.process.wait(20) == 0


def test_a_file_of_another_version_is_refused_as_it_is(tmp_path, capsys):
    with sqlite3.connect(tmp_path / "studio.db") as database:
        database.execute("PRAGMA user_version = 7")
    before = (tmp_path / "studio.db").read_bytes()
    assert main(["--home", str(tmp_path)]) == 2
    assert "another version" in capsys.readouterr().err
    assert (tmp_path / "studio.db").read_bytes() == before


def test_pictures_are_served_without_a_key_to_who_asks_by_the_own_name(tmp_path):
    """PNGs in the offered widths. To a browser, a page of another name that leads here would be the studio's own."""
    with running(tmp_path) as studio:
        address = studio.result("patterns/create", requestId="1", prompt="ferns")["imageUrl"]
        [drawn] = [httpx.get(f"{address}?width=128", timeout=30)]
        assert (drawn.status_code, drawn.headers["Content-Type"]) == (200, "image/png")
        assert Image.open(io.BytesIO(drawn.content)).size == (128, 128)
        assert httpx.get(f"{address}?width=9999").status_code == 400
        assert httpx.get(address, headers={"Host": "rebound.example"}).status_code == 400
        for pid in studio.children():
            os.kill(pid, 9)
        assert httpx.get(f"{address}?width=256", timeout=30).status_code == 200  # drawn by new processes


def test_the_console_in_a_browser(tmp_path):
    """Logged in with a key, from page to page, logged out; the checkout says when the studio has ended."""
    (tmp_path / "profile").mkdir()
    with running(tmp_path / "home") as studio, Browser(tmp_path / "profile") as browser:
        pattern = studio.result("patterns/create", requestId="1", prompt="ferns")["patternId"]
        product = studio.result("products/create", requestId="3", patternId=pattern, **MUG)["productId"]
        lines = [{"productId": product, "quantity": 2}]
        checkout = studio.ask("checkouts/create", requestId="4", lines=lines)

        def click(text):
            find = (
                f"[...document.querySelectorAll('a, button')].find(one => one.textContent.includes({text!r}))"
            )
            browser.until(find)
            browser.do(f"{find}.click()")

        def log_in(key):
            browser.until("document.querySelector('#login') && !document.querySelector('#login').hidden")
            browser.do(f"document.querySelector('#key').value = {key!r}")
            click("Log in")

        browser.send("Page.navigate", url=f"{studio.origin}/console")
        log_in("wrong")
        browser.says("no API key")
        log_in(studio.key)
        browser.says("ferns")
        browser.until("[...document.images].every(one => one.complete && one.naturalWidth)")
        click("Products")
        browser.says("Mug")
        click("Settings")
        browser.until("document.querySelector('#name')")
        browser.do("document.querySelector('#name').value = 'nightly'")
        click("Create key")
        browser.says("It is not shown again")
        browser.send("Page.reload")  # the tab keeps the key
        browser.says("nightly")
        assert browser.do("window.complaints") == []
        click("Log out")
        log_in(studio.key)
        browser.says("nightly")

        browser.send("Page.navigate", url=checkout["checkoutUrl"])
        browser.says("Checkout", "h1")
        browser.until(
            "document.readyState === 'complete'"
        )  # until its script is there, the form is sent as it is
        studio.end()
        click("Pay")
        browser.says("The studio has ended")
