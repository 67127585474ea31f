"""The hosted checkout page: what it shows, and that however it is used there is one order or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.pace import Pace

from .in_process import InProcess
from .visitor import HOST, Page, Visitor

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess.open(tmp_path) as made:
        yield made


@pytest.fixture
def checkout(studio: InProcess) -> dict[str, Any]:
    """Two of one mug and one of another."""
    pattern = studio.pattern("p")
    lines = [
        {"productId": studio.product(request_id, pattern), "quantity": quantity}
        for request_id, quantity in (("a", 2), ("b", 1))
    ]
    return studio.ask("checkouts/create", requestId="c", lines=lines)


def orders(studio: InProcess) -> list[dict[str, Any]]:
    found = studio.ask("orders/list")["orders"]
    assert isinstance(found, list)
    return found


def test_page_shows_what_is_to_be_paid(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Pictures, quantities and totals of the stored prices; a test mark; nothing to type."""
    page = Visitor(studio).get(checkout["checkoutUrl"])

    assert page.status == 200
    assert "TEST: nothing is charged" in page.text
    for shown in ("Mug, 11oz, matte", "€14.40", "€28.80", "€43.20"):
        assert shown in page.text
    pictures = page.attributes("img", "src")
    assert len(pictures) == 2
    assert all(studio.service.picture(one.split("/")[-1].split(".")[0]) for one in pictures)
    assert page.attributes("input", "type") == []
    assert page.attributes("script", "src") == ["/static/checkout.js"]


def test_payment_makes_one_order(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Pressed twice, reloaded, and pressed in another tab that was open before."""
    first, second = Visitor(studio), Visitor(studio)
    page, other = first.get(checkout["checkoutUrl"]), second.get(checkout["checkoutUrl"])

    paid = [
        first.submit(page.form("/pay")),
        first.submit(page.form("/pay")),
        second.submit(other.form("/pay")),
    ]

    [order] = orders(studio)
    assert order["checkoutId"] == checkout["checkoutId"]
    for one in (*paid, first.get(checkout["checkoutUrl"])):
        assert (one.status, one.path.endswith("/order")) == (200, True)
        assert order["orderId"] in one.text and "Delivered" in one.text


def test_fifty_payments_at_once_make_one_order(studio: InProcess, checkout: dict[str, Any]) -> None:
    form = Visitor(studio).get(checkout["checkoutUrl"]).form("/pay")

    async def pay() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(studio.app), base_url=HOST) as client:
            return await asyncio.gather(*(client.post(form.action, headers=FORM) for _ in range(50)))

    assert {one.headers["location"] for one in asyncio.run(pay())} == {form.action.replace("/pay", "/order")}
    assert len(orders(studio)) == 1


def test_cancelled_checkout_cannot_be_paid(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Not in a tab that was open before either."""
    visitor = Visitor(studio)
    page = visitor.get(checkout["checkoutUrl"])

    cancelled = visitor.submit(page.form("/cancel"))
    late = visitor.submit(page.form("/pay"))

    assert (cancelled.status, cancelled.forms) == (200, [])
    assert "This checkout was cancelled" in cancelled.text
    assert (late.status, late.forms) == (409, [])
    assert "cannot be paid any more" in late.text and "Nothing was ordered" in late.text
    assert visitor.submit(page.form("/cancel")).status == 200
    assert orders(studio) == []
    asked = {"checkoutId": checkout["checkoutId"]}
    assert studio.ask("orders/get", **asked) == asked | {"status": "cancelled"}
    assert visitor.get(late.path).status == 200


def test_order_is_cancelled_while_it_is_not_in_production(tmp_path: Path) -> None:
    with InProcess.open(tmp_path) as studio:
        product = studio.product("a", studio.pattern("p"))
    with InProcess.open(tmp_path, pace=Pace.REALISTIC) as studio:
        checkout = studio.ask(
            "checkouts/create", requestId="c", lines=[{"productId": product, "quantity": 1}]
        )
        visitor = Visitor(studio)
        paid = visitor.submit(visitor.get(checkout["checkoutUrl"]).form("/pay"))
        assert "not yet" in paid.text

        cancelled = visitor.submit(paid.form("/order/cancel"))

        assert "Order cancelled" in cancelled.text
        assert [form.action for form in cancelled.forms] == []
        assert orders(studio)[0]["status"] == "cancelled"
        assert visitor.submit(paid.form("/order/cancel")).status == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.test"}, {"Origin": "null"}])
def test_forms_of_other_sites_are_refused(
    studio: InProcess, checkout: dict[str, Any], headers: dict[str, str]
) -> None:
    visitor = Visitor(studio)
    form = visitor.get(checkout["checkoutUrl"]).form("/pay")

    assert visitor.submit(form, headers).status == 403
    assert orders(studio) == []
    assert visitor.submit(form, {"Origin": HOST}).status == 200


def test_pages_have_strict_headers(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Also those that refuse."""
    visitor = Visitor(studio)
    for page in (visitor.get(checkout["checkoutUrl"]), visitor.get("/checkout/x"), visitor.get("/console")):
        _check_headers(page)


def _check_headers(page: Page) -> None:
    headers = page.answer.headers
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"} <= set(policy)
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert page.attributes("html", "lang") == ["en"]
    assert not [
        found for _, found in page.tags if "style" in found or any(one.startswith("on") for one in found)
    ]
