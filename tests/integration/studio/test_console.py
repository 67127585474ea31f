"""The console: who gets in, what each account sees, keys, lineage, and the inspector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.keys import Keys
from studio.store import Account

from .in_process import KEY, InProcess
from .visitor import Visitor

PAGES = ("patterns", "products", "orders", "jobs", "inspector", "settings/api-keys")
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
    return Keys(studio.service.store).create("theirs", Account(account), studio.service.now())[1]


@pytest.mark.parametrize("page", ["", *(f"/{name}" for name in PAGES), "/patterns/pat_x", "/inspector/1"])
def test_every_page_asks_to_log_in(studio: InProcess, page: str) -> None:
    assert Visitor(studio).get(f"/console{page}").path == "/console/login"


def test_login_leads_to_the_page_that_was_asked(studio: InProcess) -> None:
    assert Visitor(studio).log_in(KEY, "/console/jobs").path == "/console/jobs"
    foreign = Visitor(studio).log_in(KEY, "/console/login?next=//evil.test/")
    assert (foreign.answer.url.host, foreign.path) == ("127.0.0.1", "/console/patterns")


@pytest.mark.parametrize("key", ["", "wrong", f"{KEY}x", "Bearer", "ä\x00"])
def test_wrong_key_opens_nothing(studio: InProcess, key: str) -> None:
    visitor = Visitor(studio)
    page = visitor.log_in(key)

    assert (page.status, "no API key" in page.text) == (401, True)
    assert not visitor.cookies
    assert visitor.get("/console/patterns").path == "/console/login"


def test_session_is_a_strict_cookie_that_is_kept_as_a_digest(studio: InProcess) -> None:
    page = Visitor(studio).log_in(KEY)
    [cookie] = page.answer.history[0].headers.get_list("set-cookie")
    token = cookie.partition("=")[2].partition(";")[0]

    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and "Path=/console" in cookie
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert token.encode() not in written


def test_session_ends_when_logged_out(studio: InProcess, visitor: Visitor) -> None:
    """Also for whoever has a copy of the cookie."""
    copy = Visitor(studio)
    copy.cookies.update(visitor.cookies)
    assert visitor.submit(visitor.get("/console/jobs").form("/logout")).path == "/console/login"

    for one in (visitor, copy):
        assert one.get("/console/jobs").path == "/console/login"


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
    assert other.get("/console/patterns").path == "/console/login"


def test_forms_need_the_token_of_the_session(studio: InProcess, visitor: Visitor) -> None:
    form = visitor.get("/console/settings/api-keys").form("/api-keys")
    other = Visitor(studio)
    other.log_in(KEY)
    foreign = other.get("/console/settings/api-keys").form("/api-keys").fields["form_token"]

    assert visitor.submit(form, form_token=foreign, name="x").status == 403
    assert visitor.submit(form, {"Origin": "http://evil.test"}, name="x").status == 403
    assert "Last used" not in visitor.get("/console/settings/api-keys").text


def test_account_sees_only_its_own(studio: InProcess, visitor: Visitor) -> None:
    """Patterns, keys and requests; those without a valid key are seen by `default`."""
    pattern = studio.pattern("p", "ferns of default")
    studio.request("jobs/list", {}, "no-key")
    key = key_of(studio, "shop")
    studio.request("models/list", {}, key)
    shop = Visitor(studio)
    shop.log_in(key)

    texts = " ".join(shop.get(f"/console/{name}").text for name in PAGES if name != "inspector")
    assert "ferns of default" not in texts
    assert shop.get(f"/console/patterns/{pattern}").status == 404
    requests = shop.get("/console/inspector").text
    assert requests.count("theirs") == 1 and "401" not in requests
    assert shop.get("/console/inspector/1").status == 404
    own = visitor.get("/console/settings/api-keys")
    assert "theirs" not in own.text
    revoke = own.form("/api-keys")
    revoke.action += f"/{studio.service.store.keys.all()[0].key_id}/revoke"
    assert visitor.submit(revoke).status == 404
    seen = visitor.get("/console/inspector").text
    assert "theirs" not in seen and "401" in seen


def test_products_orders_and_jobs_are_shown(studio: InProcess, visitor: Visitor) -> None:
    product = studio.product("a", studio.pattern("p"))
    checkout = studio.ask("checkouts/create", requestId="c", lines=[{"productId": product, "quantity": 3}])
    studio.pay(checkout)
    studio.ask("patterns/create", requestId="f", prompt="x [fail]")

    products, orders, jobs = (visitor.get(f"/console/{name}") for name in ("products", "orders", "jobs"))
    assert product in products.text and "€14.40" in products.text
    assert "3 × Mug, 11oz, matte" in orders.text and "€43.20" in orders.text and "delivered" in orders.text
    [link] = [one for one in orders.attributes("a", "href") if one.endswith("/order")]
    assert visitor.get(link).status == 200
    assert "failed" in jobs.text and "contains [fail]" in jobs.text and product in jobs.text


def test_hostile_texts_stay_text(studio: InProcess, visitor: Visitor) -> None:
    """Prompts, names and paths: no element and no script comes of them."""
    prompt = HOSTILE[:4000]
    pattern = studio.pattern("p<script>", prompt)
    studio.ask("refine/edit", requestId="e", patternId=pattern, prompt=prompt)
    visitor.submit(visitor.get("/console/settings/api-keys").form("/api-keys"), name=HOSTILE[:100])
    studio.request("<script>x", {})

    pages = [*PAGES, f"patterns/{pattern}", "inspector/1", "inspector/3", "nothing<script>"]
    for name in pages:
        page = visitor.get(f"/console/{name}")
        assert page.status in (200, 404)
        assert "script" not in [tag for tag, _ in page.tags]
        assert not [found for _, found in page.tags if "onerror" in found]


def test_inspector_shows_request_and_answer(studio: InProcess, visitor: Visitor) -> None:
    """With who asked, and without what was secret."""
    key = key_of(studio, "default")
    studio.request(
        "feedback/create", {"requestId": "f-1", "text": f"see http://a.test/b?c=d with {key}"}, key
    )
    studio.request("patterns/create", {"requestId": "f-2"})
    listed = visitor.get("/console/inspector?operation=feedback/create")
    [link] = [one for one in listed.attributes("a", "href") if "/inspector/" in one]
    shown = visitor.get(link)

    assert "f-1" in listed.text and "theirs" in listed.text and "f-2" not in listed.text
    assert '"requestId": "f-1"' in shown.text and "http://a.test/b" in shown.text
    assert key not in shown.text and "c=d" not in shown.text
    refused = visitor.get("/console/inspector?status=4&requestId=f-2")
    assert "400" in refused.text and "configured" in refused.text
