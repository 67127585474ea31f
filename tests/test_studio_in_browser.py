"""The embedded studio as the service: what is ordered is paid on its page, in a real Chromium, and reports arrive."""

import asyncio
import re
from pathlib import Path

import pytest

from cli.main import run as command
from cli.studio import embedded_studio
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.states import Outcome
from tests.browser import Browser, installed
from tests.test_runs import sheet

pytestmark = pytest.mark.slow
HEADER = ("sku", "prompt", "category", "option:size", "option:finish", "option:colour")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A row that the studio has made; the commands find the studio by themselves, as it is in use."""
    installed()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_HOME", "home")
    monkeypatch.delenv("PATTERNMILL_STUDIO_URL", raising=False)
    sheet(("M-1", "Blue herons", "Mug", "11oz", "glossy", "navy"), header=HEADER)
    with embedded_studio(Path("home"), "instant"), monkeypatch.context() as patched:
        end = asyncio.run(carry_out(Request(verb="import", file="spring.csv")))
        assert end.outcome is Outcome.COMPLETED, end.message
        for name in ("STUDIO_URL", "API_KEY", "ENVIRONMENT", "SERVICE_FILE"):
            patched.delenv(f"PATTERNMILL_{name}")
        yield


def test_a_checkout_is_paid_on_its_page_and_its_name_shows_the_order(made, tmp_path, capfd):
    asked = ["order", "spring", "--sku", "M-1", "--quantity", "3", "--name", "samples", "--yes"]
    assert command(asked) == 0
    said = capfd.readouterr()
    (address,) = re.findall(
        r"samples: 3 pieces to be paid\. (http://127\.0\.0\.1:\d+/checkout/\S+)", said.out
    )
    assert "answers while" in said.err
    with Browser(tmp_path / "profile") as browser:
        browser.send("Page.navigate", url=address)
        browser.says("TEST: nothing is charged")
        pay = "[...document.querySelectorAll('button')].find((one) => one.innerText.startsWith('Pay'))"
        browser.until(pay)
        browser.do(f"{pay}.focus()")
        browser.press("Enter")
        browser.says("Thank you")
        (order,) = set(re.findall(r"ord_\w+", browser.text()))
        assert browser.do("complaints") == []
    for again in (asked, ["order", "spring", "--name", "samples"]):
        assert command(again) == 0
        assert re.search(rf"^samples: ordered, {order} \w+", capfd.readouterr().out)


def test_a_report_is_taken(made, capfd):
    assert command(["explain", "M-1", "--report", "I expected a lighter blue.", "--yes"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("Sent as report-")
