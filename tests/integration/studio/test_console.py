"""The console: who gets in, what each account sees, and keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.keys import Keys
from studio.store.records import Account

from .in_process import KEY, InProcess
from .visitor import Visitor

PAGES = ("patterns", "products", "orders", "settings/api-keys")
HOSTILE = "<script>alert(1)</script> \u202eesrever שלום \"'><img src=x onerror=alert(1)> " + "koi " * 900


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess.open(tmp_path) as made:
        yield made


@pytest.fixture
def visitor(studio: InProcess) -> Visitor:
    """Logged in with the key that the studio was started with."""
    made = Visitor(studio)
    assert made.log_in(KEY).path == "/console/patterns"
    return made


def key_of(studio: InProcess, account: str) -> str:
    return Keys(studio.service.store).create("theirs", Account(account))[1]


@pytest.mark.parametrize("page", ["", *(f"/{name}" for name in PAGES)])
def test_every_page_asks_to_log_in(studio: InProcess, page: str) -> None:
    """Whatever cookie a browser sends: it sends it to every port of the machine."""
    visitor = Visitor(studio)
    visitor.log_in(KEY)
    cookie = {"Cookie": f"studio_session_default={visitor.session}; Studio-Session={visitor.session}"}
    shown = Visitor(studio).get(f"/console{page}", cookie)
    assert shown.status == 401 and shown.form("/console/login")


@pytest.mark.parametrize("key", ["", "wrong", f"{KEY}x", "Bearer", "ä\x00"])
def test_wrong_key_opens_nothing(studio: InProcess, key: str) -> None:
    visitor = Visitor(studio)
    page = visitor.log_in(key)

    assert (page.status, "no API key" in page.text) == (401, True)
    assert not visitor.session
    assert visitor.get("/console/patterns").status == 401


def test_session_is_no_cookie_and_is_kept_as_a_digest(studio: InProcess) -> None:
    visitor = Visitor(studio)
    page = visitor.log_in(KEY)

    assert not [one for one in (*page.answer.history, page.answer) if "set-cookie" in one.headers]
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert visitor.session.encode() not in written


def test_session_ends_when_logged_out(studio: InProcess, visitor: Visitor) -> None:
    """Also for whoever has a copy of it."""
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


def order(studio: InProcess) -> str:
    """Pay two of a new product; the order's ID."""
    product = studio.product("a", studio.pattern("p", "ferns of default"))
    checkout = studio.ask("checkouts/create", requestId="c", lines=[{"productId": product, "quantity": 2}])
    studio.pay(checkout)
    return str(studio.ask("orders/get", checkoutId=checkout["checkoutId"])["orderId"])


def test_orders_are_listed_with_what_is_in_them(studio: InProcess, visitor: Visitor) -> None:
    """Each leads to its page, which says where it is."""
    assert "No order yet" in visitor.get("/console/orders").text
    order_id = order(studio)

    page = visitor.get("/console/orders")
    for shown in (order_id, "2 × Mug, 11oz, matte", "€28.80", "delivered"):
        assert shown in page.text
    [link] = [one for one in page.attributes("a", "href") if one.startswith("/checkout/")]
    assert order_id in visitor.get(link).text


def test_account_sees_only_its_own(studio: InProcess, visitor: Visitor) -> None:
    """Patterns, products, orders and keys."""
    order_id = order(studio)
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
        assert [found for tag, found in page.tags if tag == "script"] in ([], [{"src": "/static/console.js"}])
        assert not [found for _, found in page.tags if "onerror" in found]
