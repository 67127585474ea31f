"""The hosted checkout page, which makes one order or none, and the console: who gets in, and what each sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.keys import Keys
from studio.pace import Pace
from studio.store.records import Account

from .in_process import HOST, KEY, InProcess
from .visitor import FORM, Page, Visitor

PAGES = ("patterns", "products", "orders", "settings/api-keys")
HOSTILE = "<script>alert(1)</script> \u202eesrever שלום \"'><img src=x onerror=alert(1)> " + "koi " * 900


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess.open(tmp_path) as made:
        yield made


@pytest.fixture
def checkout(studio: InProcess) -> dict[str, Any]:
    """Open a checkout with two of one mug and one of another."""
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
        return await asyncio.gather(*(studio.send("POST", form.action, b"", FORM) for _ in range(50)))

    assert {one.headers["location"] for one in asyncio.run(pay())} == {form.action.replace("/pay", "/order")}
    assert len(orders(studio)) == 1


def test_cancelled_checkout_cannot_be_paid(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Nor can it be paid in a tab that was open before."""
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


def test_forms_of_other_sites_are_refused(studio: InProcess, checkout: dict[str, Any]) -> None:
    visitor = Visitor(studio)
    form = visitor.get(checkout["checkoutUrl"]).form("/pay")

    for origin in ("http://evil.test", "null"):
        assert visitor.submit(form, {"Origin": origin}).status == 403
    assert orders(studio) == []
    assert visitor.submit(form, {"Origin": HOST}).status == 200


def test_pages_have_strict_headers(studio: InProcess, checkout: dict[str, Any]) -> None:
    """Pages that refuse have them too."""
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
        names for _, names in page.tags if "style" in names or any(one.startswith("on") for one in names)
    ]


# -- the console


@pytest.fixture
def visitor(studio: InProcess) -> Visitor:
    """Return a visitor who is logged in with the key that the studio was started with."""
    made = Visitor(studio)
    assert made.log_in(KEY).path == "/console/patterns"
    return made


def key_of(studio: InProcess, account: str) -> str:
    return Keys(studio.service.store).create("theirs", Account(account))[1]


def test_every_page_asks_to_log_in(studio: InProcess) -> None:
    """Whatever cookie a browser sends: it sends it to every port of the machine."""
    visitor = Visitor(studio)
    visitor.log_in(KEY)
    cookie = {"Cookie": f"studio_session_default={visitor.session}; Studio-Session={visitor.session}"}
    for page in ("", *PAGES):
        shown = Visitor(studio).get(f"/console/{page}".rstrip("/"), cookie)
        assert shown.status == 401 and shown.form("/console/login")


def test_wrong_key_opens_nothing(studio: InProcess) -> None:
    visitor = Visitor(studio)
    for key in ("", "wrong", f"{KEY}x", "ä\x00"):
        page = visitor.log_in(key)
        assert (page.status, "no API key" in page.text) == (401, True)
        assert not visitor.session


def test_session_is_no_cookie_and_is_kept_as_a_digest(studio: InProcess) -> None:
    visitor = Visitor(studio)
    page = visitor.log_in(KEY)
    assert not [one for one in (*page.answer.history, page.answer) if "set-cookie" in one.headers]
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert visitor.session.encode() not in written


def test_session_ends_when_logged_out(studio: InProcess, visitor: Visitor) -> None:
    """It ends for whoever has a copy of it, too."""
    copy = Visitor(studio)
    copy.session = visitor.session
    assert visitor.submit(visitor.get("/console/products").form("/logout")).status == 401

    for one in (visitor, copy):
        assert one.get("/console/products").status == 401


def test_key_is_shown_once_and_opens_the_service(studio: InProcess, visitor: Visitor) -> None:
    page = visitor.get("/console/settings/api-keys")
    created = visitor.submit(page.form("/api-keys"), name="nightly run")
    key = next(word for word in created.text.split() if word.startswith("studio_"))
    again = visitor.get(str(created.answer.url))

    assert "not shown again" in created.text and "nightly run" in created.text and "never" in created.text
    assert key not in again.text
    assert studio.request("categories/list", {}, key).status_code == 200
    assert "never" not in visitor.get("/console/settings/api-keys").text


def test_revoked_key_is_refused_and_its_session_is_over(studio: InProcess, visitor: Visitor) -> None:
    page = visitor.submit(visitor.get("/console/settings/api-keys").form("/api-keys"), name="nightly")
    key = next(word for word in page.text.split() if word.startswith("studio_"))
    other = Visitor(studio)
    assert other.log_in(key).path == "/console/patterns"

    revoked = visitor.submit(page.form("/revoke"))

    assert "revoked" in revoked.text
    assert studio.request("categories/list", {}, key).status_code == 401
    assert other.get("/console/patterns").status == 401


def test_forms_need_the_session(studio: InProcess, visitor: Visitor) -> None:
    form = visitor.get("/console/settings/api-keys").form("/api-keys")

    assert Visitor(studio).submit(form, name="x").status == 401
    assert visitor.submit(form, {"Origin": "http://evil.test"}, name="x").status == 403
    assert "Last used" not in visitor.get("/console/settings/api-keys").text


def paid_order(studio: InProcess) -> str:
    """Pay two of a new product; the order's ID."""
    product = studio.product("a", studio.pattern("p", "ferns of default"))
    checkout = studio.ask("checkouts/create", requestId="c", lines=[{"productId": product, "quantity": 2}])
    studio.pay(checkout)
    return str(studio.ask("orders/get", checkoutId=checkout["checkoutId"])["orderId"])


def test_orders_are_listed_with_what_is_in_them(studio: InProcess, visitor: Visitor) -> None:
    """Each leads to its page, which says where it is."""
    assert "No order yet" in visitor.get("/console/orders").text
    order_id = paid_order(studio)

    page = visitor.get("/console/orders")
    for shown in (order_id, "2 × Mug, 11oz, matte", "€28.80", "delivered"):
        assert shown in page.text
    [link] = [one for one in page.attributes("a", "href") if one.startswith("/checkout/")]
    assert order_id in visitor.get(link).text


def test_account_sees_only_its_own(studio: InProcess, visitor: Visitor) -> None:
    """That goes for patterns, products, orders and keys."""
    order_id = paid_order(studio)
    shop = Visitor(studio)
    shop.log_in(key_of(studio, "shop"))

    texts = " ".join(shop.get(f"/console/{name}").text for name in PAGES)
    assert not [one for one in ("ferns of default", "Mug", order_id) if one in texts]
    own = visitor.get("/console/settings/api-keys")
    assert "theirs" not in own.text
    revoke = own.form("/api-keys")
    revoke.action += f"/{studio.service.store.keys.all()[0].key_id}/revoke"
    assert visitor.submit(revoke).status == 404


def test_hostile_texts_stay_text(studio: InProcess, visitor: Visitor) -> None:
    """Prompts, names and paths: no element and no script comes of them."""
    prompt = HOSTILE[:4000]
    pattern = studio.pattern("p<script>", prompt)
    studio.ask("refine/edit", requestId="e", patternId=pattern, prompt=prompt)
    visitor.submit(visitor.get("/console/settings/api-keys").form("/api-keys"), name=HOSTILE[:100])

    pages = [*PAGES, "nothing<script>"]
    for name in pages:
        page = visitor.get(f"/console/{name}")
        assert page.status in (200, 404)
        assert [its for tag, its in page.tags if tag == "script"] in ([], [{"src": "/static/console.js"}])
        assert not [its for _, its in page.tags if "onerror" in its]
