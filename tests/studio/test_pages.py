"""The hosted checkout page, which makes one order or none, and the console: who gets in, and what it shows."""

import asyncio

import pytest

from tests.studio.in_process import HOST, KEY, InProcess
from tests.studio.visitor import FORM, Visitor

PAGES = ("patterns", "products", "orders", "settings/api-keys")
HOSTILE = "<script>alert(1)</script> \u202eesrever שלום \"'><img src=x onerror=alert(1)> " + "koi " * 900


@pytest.fixture
def studio(tmp_path):
    with InProcess.open(tmp_path) as made:
        yield made


def opened(studio):
    """Open a checkout with two of one mug and one of another."""
    pattern = studio.pattern("p")
    quantities = {studio.product("a", pattern): 2, studio.product("b", pattern): 1}
    lines = [{"productId": product, "quantity": quantity} for product, quantity in quantities.items()]
    return studio.ask("checkouts/create", requestId="c", lines=lines)


@pytest.fixture
def checkout(studio):
    return opened(studio)


def orders(studio):
    return studio.ask("orders/list")["orders"]


def test_page_shows_what_is_to_be_paid(studio, checkout):
    """Pictures, quantities and totals of the stored prices; a test mark; nothing to type."""
    page = Visitor(studio).get(checkout["checkoutUrl"])

    assert page.status == 200
    assert "TEST: nothing is charged" in page.text
    for shown in ("Mug, 11oz, matte", "€14.40", "€28.80", "€43.20"):
        assert shown in page.text
    assert [one.partition("?")[0] for one in page.attributes("img", "src")] == [
        product["imageUrl"].removeprefix(HOST)
        for product in reversed(studio.ask("products/list")["products"])
    ]
    assert page.attributes("input", "type") == []
    assert page.attributes("script", "src") == ["/static/checkout.js"]


def test_payment_makes_one_order(studio, checkout):
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


def test_fifty_payments_at_once_make_one_order(studio, checkout):
    form = Visitor(studio).get(checkout["checkoutUrl"]).form("/pay")

    async def pay():
        return await asyncio.gather(*(studio.send("POST", form.action, b"", FORM) for _ in range(50)))

    assert {one.headers["location"] for one in asyncio.run(pay())} == {form.action.replace("/pay", "/order")}
    assert len(orders(studio)) == 1


def test_cancelled_checkout_cannot_be_paid(studio, checkout):
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


def test_order_is_cancelled_while_it_is_not_in_production(tmp_path):
    with InProcess.open(tmp_path) as studio:
        checkout = opened(studio)
    with InProcess.open(tmp_path, pace="realistic") as studio:
        visitor = Visitor(studio)
        paid = visitor.submit(visitor.get(checkout["checkoutUrl"]).form("/pay"))
        assert "not yet" in paid.text

        cancelled = visitor.submit(paid.form("/order/cancel"))

        assert "Order cancelled" in cancelled.text
        assert [form.action for form in cancelled.forms] == []
        assert orders(studio)[0]["status"] == "cancelled"
        assert visitor.submit(paid.form("/order/cancel")).status == 200


def test_order_in_production_is_not_cancelled(studio, checkout):
    visitor = Visitor(studio)
    form = visitor.get(checkout["checkoutUrl"]).form("/pay")
    visitor.submit(form)
    form.action = form.action.replace("/pay", "/order/cancel")
    late = visitor.submit(form)
    assert (late.status, "it cannot be cancelled" in late.text) == (409, True)
    assert orders(studio)[0]["status"] == "delivered"


def test_forms_of_other_sites_are_refused(studio, checkout):
    visitor = Visitor(studio)
    form = visitor.get(checkout["checkoutUrl"]).form("/pay")

    for origin in ("http://evil.test", "null"):
        assert visitor.submit(form, {"Origin": origin}).status == 403
    assert orders(studio) == []
    assert visitor.submit(form, {"Origin": HOST}).status == 200


def test_pages_have_strict_headers(studio, checkout):
    """Pages that refuse have them too."""
    for address in (checkout["checkoutUrl"], "/checkout/x", "/console"):
        page = Visitor(studio).get(address)
        headers = page.answer.headers
        policy = headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"} <= set(policy)
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert page.attributes("html", "lang") == ["en"]
        names = {name for _, attributes in page.tags for name in attributes}
        assert not [name for name in names if name == "style" or name.startswith("on")]


# -- the console


@pytest.fixture
def visitor(studio):
    """Return a visitor who is logged in with the key that the studio was started with."""
    made = Visitor(studio)
    assert made.log_in(KEY).path == "/console/patterns"
    return made


def test_every_page_asks_to_log_in(studio):
    """Whatever cookie a browser sends: it sends it to every port of the machine."""
    for page in ("", *PAGES):
        shown = Visitor(studio).get(f"/console/{page}".rstrip("/"), {"Cookie": f"studio={KEY}"})
        assert (shown.status, "no API key" in shown.text) == (401, False)
        assert shown.attributes("input", "id") == ["key"]


@pytest.mark.parametrize("key", ["wrong", f"{KEY}x", "ä"])
def test_wrong_key_opens_nothing(studio, key):
    page = Visitor(studio).log_in(key)
    assert (page.status, "no API key" in page.text) == (401, True)


def test_key_is_shown_once_and_opens_the_service(studio, visitor):
    page = visitor.get("/console/settings/api-keys")
    created = visitor.submit(page.form("/api-keys"), name="nightly run")
    key = next(word for word in created.text.split() if word.startswith("studio_"))
    again = visitor.get(str(created.answer.url))

    assert "not shown again" in created.text and "nightly run" in created.text and "never" in created.text
    assert key not in again.text
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert b"nightly run" in written and key[7:15].encode() not in written
    assert studio.request("categories/list", {}, key).status_code == 200
    assert "never" not in visitor.get("/console/settings/api-keys").text


def test_revoked_key_is_refused_and_logged_out(studio, visitor):
    page = visitor.submit(visitor.get("/console/settings/api-keys").form("/api-keys"), name="nightly")
    other = Visitor(studio)
    other.log_in(next(word for word in page.text.split() if word.startswith("studio_")))
    shown = other.get("/console/settings/api-keys")
    assert "you are logged in with it" in shown.text

    revoked = visitor.submit(page.form("/revoke"))

    assert "revoked" in revoked.text
    assert studio.request("categories/list", {}, other.key).status_code == 401
    assert other.get("/console/patterns").status == 401
    form = page.form("/revoke")
    form.action = form.action.replace("key_", "key_x")
    assert visitor.submit(form).status == 404


def test_forms_need_the_key(studio, visitor):
    form = visitor.get("/console/settings/api-keys").form("/api-keys")

    assert Visitor(studio).submit(form, name="x").status == 401
    assert visitor.submit(form, {"Origin": "http://evil.test"}, name="x").status == 403
    assert "Last used" not in visitor.get("/console/settings/api-keys").text


def test_orders_are_listed_with_what_is_in_them(studio, visitor):
    """Each leads to its page, which says where it is."""
    assert "No order yet" in visitor.get("/console/orders").text
    studio.pay(opened(studio))
    order_id = orders(studio)[0]["orderId"]

    page = visitor.get("/console/orders")
    for shown in (order_id, "2 × Mug, 11oz, matte", "€43.20", "delivered"):
        assert shown in page.text
    [link] = [one for one in page.attributes("a", "href") if one.startswith("/checkout/")]
    assert order_id in visitor.get(link).text


def test_a_long_list_has_pages(studio, visitor):
    for number in range(25):
        studio.pattern(f"p-{number}", f"prompt {number}.")
    first = visitor.get("/console/patterns")
    [older] = [one for one in first.attributes("a", "href") if "cursor" in one]
    assert ("prompt 24." in first.text, "prompt 0." in first.text) == (True, False)
    assert "prompt 0." in visitor.get(older).text
    assert visitor.get("/console/patterns?cursor=x").status == 404


def test_hostile_texts_stay_text(studio, visitor):
    """Prompts, names and paths: no element and no script comes of them."""
    prompt = HOSTILE[:4000]
    pattern = studio.pattern("p<script>", prompt)
    studio.ask("refine/edit", requestId="e", patternId=pattern, prompt=prompt)
    visitor.submit(visitor.get("/console/settings/api-keys").form("/api-keys"), name=HOSTILE[:100])

    for name in [*PAGES, "nothing<script>"]:
        page = visitor.get(f"/console/{name}")
        assert page.status in (200, 404)
        assert [its for tag, its in page.tags if tag == "script"] in ([], [{"src": "/static/console.js"}])
        assert not [its for _, its in page.tags if "onerror" in its]
