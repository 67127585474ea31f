"""The typical flow of the interface with plain HTTP and a real browser, and the console in it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.browser import Browser
from tests.integration.studio.conftest import StudioProcess

LOADED = "document.readyState === 'complete' && [...document.images].every(one => one.complete && one.naturalWidth)"
#: What a script in the page would do, if the policy let one run.
INJECT = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = true'}))"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[StudioProcess]:
    made = StudioProcess(tmp_path / "studio", ("--pace", "instant"))
    made.start()
    yield made
    if made.process is not None:
        made.end(signal.SIGTERM)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as made:
        yield made


def result(studio: StudioProcess, operation: str, **body: object) -> Any:
    """The ID of the pattern or product that this create makes."""
    job = studio.ended(studio.ask(operation, body).body)
    assert job["status"] == "succeeded", job
    found = job["result"]
    assert isinstance(found, dict)
    return found.get("patternId") or found["productId"]


def product(studio: StudioProcess) -> Any:
    """Prompt, pattern, recolor, product."""
    pattern = result(studio, "patterns/create", requestId="1", prompt="blue herons on cream")
    palette = ["#102030", "#ffd84d", "#e05a3c"]
    recolored = result(studio, "refine/recolor", requestId="2", patternId=pattern, palette=palette)
    categories = studio.ask("categories/list", {}).body["categories"]
    assert isinstance(categories, list)
    category = next(one["categoryId"] for one in categories if one["name"] == "Mug")
    return result(
        studio,
        "products/create",
        requestId="3",
        patternId=recolored,
        categoryId=category,
        selections={"size": "11oz", "finish": "matte"},
    )


def test_prompt_becomes_a_paid_order(studio: StudioProcess, browser: Browser) -> None:
    """Paid by hand on the hosted page; the back button and a second payment change nothing."""
    lines = [{"productId": product(studio), "quantity": 2}]
    checkout = studio.ask("checkouts/create", {"requestId": "4", "lines": lines}).body
    assert studio.ask("orders/get", {"checkoutId": checkout["checkoutId"]}).status == 404

    browser.open(str(checkout["checkoutUrl"]))
    browser.shows("TEST: nothing is charged")
    browser.shows("€28.80")
    browser.until(LOADED)
    assert browser.do("getComputedStyle(document.querySelector('.test-mark')).position") == "sticky"
    browser.do(INJECT)
    assert browser.do("window.ran") is None
    browser.click("Pay €28.80 (test)")
    browser.shows("Thank you")

    order = studio.ask("orders/get", {"checkoutId": checkout["checkoutId"]}).body
    assert order["lines"] == checkout["lines"]
    browser.shows(str(order["orderId"]))
    browser.do("history.back()")
    browser.until("document.readyState === 'complete'")
    browser.shows(str(order["orderId"]))
    orders = studio.ask("orders/list", {}).body["orders"]
    assert isinstance(orders, list)
    assert [one["orderId"] for one in orders] == [order["orderId"]]
