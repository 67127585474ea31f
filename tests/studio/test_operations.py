"""Every operation over HTTP, in this process: what it answers, and what it refuses."""

import asyncio
import json
import re

import pytest

from studio import offer
from studio.operations.table import OPERATIONS
from studio.records import Feedback, Job
from tests.studio.in_process import MUG, Clock, InProcess, encoded_picture

#: Operations that may be repeated, and what they are sent with besides.
REPEATED = {
    "patterns/create": {"prompt": "waves"}, "refine/edit": {"prompt": "with shells"},
    "references/create": {"data": encoded_picture("gold")}, "products/create": MUG, "checkouts/create": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def pattern_id(studio):
    return studio.pattern("first", model="linocut", seed=7, size=256, palette=["#112233", "#ddeeff"])


@pytest.fixture(scope="module")
def product_id(studio, pattern_id):
    return studio.product("first-product", pattern_id)


def test_pattern_shows_what_it_was_made_of(studio, pattern_id):
    pattern = studio.ask("patterns/get", patternId=pattern_id)
    shown = {"patternId": pattern_id, "prompt": "blue herons", "model": "linocut", "seed": 7, "size": 256}
    shown |= {"palette": ["#112233", "#ddeeff"], "parentPatternId": None, "change": None}
    assert {name: pattern[name] for name in shown} == shown
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", pattern["createdAt"])


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("edit", {"prompt": "with lemons"}), ("recolor", {"palette": ["#101010", "#fafafa"]}),
        ("crop", {"x": 0.25, "y": 0, "width": 0.5, "height": 0.5}), ("extend", {"columns": 2, "rows": 1}),
    ],
)  # fmt: skip
def test_refined_pattern_remembers_its_parent(studio, pattern_id, operation, fields):
    """It is a job that makes a new pattern: the parent's, and one change."""
    body = {"requestId": f"refine-{operation}", "patternId": pattern_id, **fields}
    job = studio.ask(f"refine/{operation}", **body)
    assert (job["kind"], job["status"], job["result"]) == ("pattern", "running", None)
    assert studio.ask(f"refine/{operation}", **body)["jobId"] == job["jobId"]

    result = studio.ask("jobs/get", jobId=job["jobId"])["result"]
    pattern = studio.ask("patterns/get", patternId=result["patternId"])
    assert pattern["parentPatternId"] == pattern_id
    assert pattern["change"] == {"operation": operation, **fields}
    assert (pattern["prompt"], pattern["seed"], pattern["size"]) == ("blue herons", 7, 256)


def test_impossible_changes_are_refused(studio, pattern_id):
    crop = {"requestId": "i-1", "patternId": pattern_id, "x": 0.6, "y": 0, "width": 0.5, "height": 1}
    assert studio.code("refine/crop", crop) == (422, "invalid_crop")
    grown = pattern_id
    for step in range(2):
        body = {"requestId": f"i-4-{step}", "patternId": grown, "columns": 3, "rows": 1}
        grown = studio.result("refine/extend", **body)["patternId"]
    more = {"requestId": "i-5", "patternId": grown, "columns": 2, "rows": 1}
    assert studio.code("refine/extend", more) == (422, "too_many_changes")


def test_reference_guides_a_pattern_and_is_deleted(studio):
    """Patterns that were made with it stay as they are; it cannot be used again, and its picture is gone."""
    body = {"requestId": "ref-1", "data": encoded_picture("teal"), "name": "teal.jpg"}
    reference = studio.ask("references/create", **body)
    asked = {"referenceId": reference["referenceId"]}
    assert studio.ask("references/create", **body) == reference
    assert studio.ask("references/get", **asked) == reference
    assert reference in studio.ask("references/list")["references"]
    assert (reference["width"], reference["height"], reference["name"]) == (30, 20, "teal.jpg")
    assert studio.get(reference["imageUrl"]).content.startswith(b"\x89PNG")

    pattern = studio.pattern("with-reference", referenceIds=[reference["referenceId"]])
    assert studio.ask("references/delete", **asked)["deleted"] is True
    assert studio.ask("patterns/get", patternId=pattern)["referenceIds"] == [reference["referenceId"]]
    for operation in ("references/get", "references/delete"):
        assert studio.code(operation, asked) == (404, "unknown_reference")
    assert studio.get(reference["imageUrl"]).status_code == 404
    assert not list((studio.home / "references").glob(f"*{reference['imageUrl'][-20:]}"))


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        ("no base64!", 422, "invalid_picture"), ("R0lGODlh", 422, "invalid_picture"),
        ("A" * 6_666_668, 413, "too_large"),
    ],
)  # fmt: skip
def test_uploads_that_cannot_be_used_are_refused(studio, data, status, code):
    assert studio.code("references/create", {"requestId": "u", "data": data}) == (status, code)
    assert not list((studio.home / "references").glob("*.part"))


def test_models_differ_and_are_listed(studio):
    models = studio.ask("models/list")["models"]
    assert len({model["description"] for model in models}) >= 3
    assert [studio.ask("models/get", modelId=model["modelId"]) for model in models] == models


def test_category_prices_add_up_to_the_product(studio, pattern_id, product_id):
    """The price of a product is its category's and the surcharges of its options; it names its pattern."""
    category = studio.ask("categories/get", categoryId="cat_stg_mug")
    assert {**studio.ask("categories/list")["categories"][1], "options": category["options"]} == category
    product = studio.ask("products/get", productId=product_id)
    options = {option["name"]: option for option in category["options"]}
    chosen = {**MUG["selections"], "colour": options["colour"]["default"]}
    surcharges = sum(options[name]["surcharges"][value] for name, value in chosen.items())

    assert product["selections"] == chosen
    assert product["price"] == {"amount": category["priceFrom"]["amount"] + surcharges, "currency": "EUR"}
    assert (product["patternId"], product["categoryId"]) == (pattern_id, "cat_stg_mug")
    assert product["patternImageUrl"] == studio.ask("patterns/get", patternId=pattern_id)["imageUrl"]


def test_ids_of_categories_differ_between_environments():
    for category in offer.CATEGORIES:
        assert len({category.category_id(name) for name in ("staging", "production", "studio")}) == 3


@pytest.mark.parametrize(
    ("selections", "messages"),
    [
        ({"size": "40x40", "fabric": "linen"}, []),
        (
            {"size": "40x40", "fabric": "Linnen"},
            ["option 'fabric' has no value 'Linnen'; offered: cotton, linen, velvet"],
        ),
        (
            {"sise": "x"},
            [
                "Cushion has no option 'sise'; offered: size, fabric, filling",
                "option 'size' has to be selected; offered: 40x40, 50x50, 60x40",
                "option 'fabric' has to be selected; offered: cotton, linen, velvet",
            ],
        ),
    ],
)
def test_invalid_selections_are_all_named(studio, pattern_id, selections, messages):
    """They are named at once, with what is offered instead."""
    body = {"requestId": f"s-{len(messages)}", "patternId": pattern_id, "categoryId": "cat_stg_cushion"}
    answer = studio.request("products/create", {**body, "selections": selections})
    assert answer.status_code == (422 if messages else 200)
    faults = answer.json().get("error", {}).get("fields", [])
    assert [fault["message"] for fault in faults] == messages


def test_lists_are_paged_newest_first(studio, product_id):
    """Each thing once, however small the page."""

    def all_pages(name, limit):
        found, cursor = [], ""
        while cursor is not None:
            page = studio.ask(f"{name}/list", limit=limit, cursor=cursor)
            assert len(page[name]) <= limit
            found, cursor = found + page[name], page["nextCursor"]
        return found

    made = [studio.pattern(f"page-{number}") for number in range(5)]
    patterns = [one["patternId"] for one in all_pages("patterns", 2)]
    assert patterns[:5] == made[::-1]
    assert len(set(patterns)) == len(patterns)
    jobs = all_pages("jobs", 3)
    assert [job["requestId"] for job in jobs[:5]] == [f"page-{number}" for number in (4, 3, 2, 1, 0)]
    assert product_id in [one["productId"] for one in all_pages("products", 1)]
    for cursor in ("x", "9" * 30, "-1"):
        assert studio.code("patterns/list", {"cursor": cursor}) == (404, "unknown_cursor")


def test_checkout_keeps_prices_and_becomes_one_order(studio, product_id):
    """It becomes one order however often it is paid."""
    body = {"requestId": "checkout-1", "lines": [{"productId": product_id, "quantity": 3.0}]}
    checkout = studio.ask("checkouts/create", **body)
    price = studio.ask("products/get", productId=product_id)["price"]["amount"]
    assert checkout["status"] == "open"
    assert checkout["checkoutUrl"].startswith("http://127.0.0.1/checkout/")
    assert [line["quantity"] for line in checkout["lines"]] == [3]
    assert checkout["total"] == {"amount": 3 * price, "currency": "EUR"}
    assert studio.ask("checkouts/create", **body) == checkout
    asked = {"checkoutId": checkout["checkoutId"]}
    assert studio.code("orders/get", asked) == (404, "unknown_order")

    for _ in range(3):
        studio.pay(checkout)
    order = studio.ask("orders/get", **asked)
    assert [one["orderId"] for one in studio.ask("orders/list")["orders"]] == [order["orderId"]]
    assert (order["checkoutId"], order["total"]) == (checkout["checkoutId"], checkout["total"])
    assert order["lines"] == checkout["lines"]
    assert studio.ask("checkouts/get", **asked)["status"] == "paid"


def test_request_id_is_for_one_operation(studio, pattern_id, product_id):
    """Over jobs, references and checkouts alike; and for one body."""
    lines = [{"productId": product_id, "quantity": 1}]
    for operation, body in (
        ("checkouts/create", {"lines": lines}),
        ("references/create", {"data": encoded_picture("red")}),
        ("refine/edit", {"patternId": pattern_id, "prompt": "more"}),
        ("patterns/create", {"prompt": "red herons"}),
        ("patterns/create", {"prompt": "blue herons"}),
    ):
        assert studio.code(operation, {"requestId": "first", **body}) == (409, "request_id_conflict")


@pytest.mark.parametrize("operation", REPEATED)
def test_twenty_at_once_on_one_request_id_are_one(studio, pattern_id, product_id, operation):
    request_id, lines = f"twenty-{operation}", [{"productId": product_id, "quantity": 1}]
    sent = {"requestId": request_id, "patternId": pattern_id, "lines": lines, **REPEATED[operation]}
    raw = json.dumps(sent).encode()

    async def storm():
        return await asyncio.gather(*(studio.send("POST", f"/v1/{operation}", raw) for _ in range(20)))

    bodies = [answer.json() for answer in asyncio.run(storm())]
    assert len({next(value for name, value in one.items() if name.endswith("Id")) for one in bodies}) == 1


# -- jobs, by a clock that the test sets


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def slow(tmp_path, clock):
    """Yield a studio whose jobs take as long as the interface says."""
    with InProcess.open(tmp_path, "realistic", clock) as made:
        yield made


def test_pattern_takes_one_to_two_minutes(slow, clock):
    """Until then there is no pattern to build on, and no picture."""
    job = slow.ask("patterns/create", requestId="1", prompt="ferns")
    [(_, kept)] = slow.store.newest(Job)
    build = {"requestId": "2", "patternId": kept.result_id, **MUG}
    clock.pass_time(59)
    assert slow.ask("jobs/get", jobId=job["jobId"]) == {**job, "status": "running", "result": None}
    assert slow.code("products/create", build) == (404, "unknown_pattern")
    assert slow.get(f"/pictures/{kept.picture_id}.png").status_code == 404
    clock.pass_time(61)
    result = slow.ask("jobs/get", jobId=job["jobId"])["result"]
    assert result == {
        "patternId": kept.result_id,
        "imageUrl": f"http://127.0.0.1/pictures/{kept.picture_id}.png",
    }
    product = slow.ask("products/create", **build)
    clock.pass_time(20)
    assert slow.ask("jobs/get", jobId=product["jobId"])["result"]["productId"].startswith("prod_")


@pytest.mark.parametrize(
    ("prompt", "statuses"),
    [
        ("x [fail]", ["failed", "failed"]), ("x [FAIL once]", ["failed", "succeeded"]),
        ("x", ["succeeded", "succeeded"]),
    ],
)  # fmt: skip
def test_failures_can_be_rehearsed(slow, clock, prompt, statuses):
    """Marks in a prompt make its jobs fail, with a reason, and never with a result."""
    jobs = [slow.ask("patterns/create", requestId=name, prompt=prompt) for name in "12"]
    clock.pass_time(120)
    ended = [slow.ask("jobs/get", jobId=job["jobId"]) for job in jobs]
    assert [job["status"] for job in ended] == statuses
    assert all(("error" in job) == (job["result"] is None) for job in ended)


# -- what is refused


def test_every_operation_needs_a_key(studio):
    """The key is checked before anything else."""
    for operation in (*OPERATIONS, "no/such"):
        for header, reason in (
            ("Bearer", "missing_key"), ("Basic x", "missing_key"), ("Bearer wrong", "invalid_key"),
        ):  # fmt: skip
            answer = studio.post(operation, b"{", {"Authorization": header})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, reason), operation
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("operation", "body", "status", "code"),
    [
        ("patterns/create", b"{", 400, "malformed_json"),
        ("patterns/create", b"[]", 400, "malformed_json"),
        ("patterns/create", b'{"requestId": "e-1"}', 400, "invalid_fields"),
        ("products/create", b'{"requestId": "e-1", "selections": {"size": 3}}', 400, "invalid_fields"),
        ("jobs/get", b'{"jobId": "job_nothing"}', 404, "unknown_job"),
        ("categories/get", b'{"categoryId": "cat_live_cushion"}', 404, "unknown_category"),
        ("models/get", b'{"modelId": "oil"}', 404, "unknown_model"),
        ("patterns/create", b'{"requestId": "e-3", "prompt": "x [refuse]"}', 422, "content_refused"),
        ("patterns/create", b" " * 1_000_001, 413, "too_large"),
        ("patterns/nothing", b"{}", 404, "unknown_operation"),
    ],
)
def test_errors_have_a_status_and_a_code(studio, operation, body, status, code):
    """Each kind of mistake has its status and its code, in one shape."""
    answer = studio.post(operation, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"


def test_operations_are_posts_of_json(studio):
    """Another method or type of body is refused in JSON too."""
    asked = studio.get("/v1/jobs/get")
    typed = studio.post("jobs/get", b"jobId=1", {"Content-Type": "application/x-www-form-urlencoded"})
    assert (asked.status_code, asked.json()["error"]["code"]) == (405, "method_not_allowed")
    assert asked.headers["allow"] == "POST"
    assert (typed.status_code, typed.json()["error"]["code"]) == (415, "not_json")


def test_an_error_of_the_studio_tells_nothing_of_its_inside(studio, monkeypatch):
    monkeypatch.setattr("studio.keys.Keys.holder", lambda *_: 1 / 0)
    assert studio.request("jobs/list", {}).json() == {
        "error": {"code": "internal_error", "message": "The studio failed to answer."}
    }


def test_every_operation_is_in_the_document(studio):
    """Each is there with its bodies, its errors and the key."""
    document = studio.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {f"/{name}" for name in OPERATIONS}
    for path in document["paths"].values():
        assert path["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {"200", "400", "401"} <= set(path["post"]["responses"])
    assert document["security"] == [{"bearer": []}]


# -- reports

LEAST = {"requestId": "f", "text": "t"}
WITHIN = [
    {}, {"requestId": " "}, {"requestId": "r" * 128}, {"text": "t" * 4000}, {"procedure": "p" * 200},
    {"request": {"body": None, "userAgent": ""}}, {"request": {"body": [1, {"a": "b"}], "userAgent": "u" * 500}},
    {"response": {"status": 0, "body": "x", "durationMs": 0}},
    {"response": {"status": 599, "body": {}, "durationMs": 1e9}}, {"agent": "a" * 100},
    {"reportedAt": "2026-01-31T12:00:00.5+02:00"},
]  # fmt: skip
BEYOND = [
    ({"requestId": ""}, "requestId"), ({"requestId": "r" * 129}, "requestId"), ({"text": ""}, "text"),
    ({"text": "t" * 4001}, "text"), ({"procedure": "p" * 201}, "procedure"), ({"request": []}, "request"),
    ({"request": {"userAgent": "u" * 501}}, "request.userAgent"), ({"response": {"status": -1}}, "response.status"),
    ({"response": {"status": 600}}, "response.status"), ({"response": {"durationMs": -0.1}}, "response.durationMs"),
    ({"agent": "a" * 101}, "agent"), ({"reportedAt": "yesterday"}, "reportedAt"), ({"text": None}, "text"),
]  # fmt: skip


def reports(studio):
    return [one.report for _, one in studio.store.newest(Feedback)]


def test_reports_within_the_bounds_are_accepted(studio):
    """The answer echoes the report's identifier, which is no idempotency key: what is delivered twice is kept twice."""
    for fields in WITHIN:
        report = {**LEAST, **fields}
        for _ in range(2):
            assert studio.ask("feedback/create", **report) == {"requestId": report["requestId"]}
        assert [kept["text"] for kept in reports(studio)[:2]] == [report["text"]] * 2


def test_reports_beyond_the_bounds_are_refused(studio):
    for fields, field in BEYOND:
        answer = studio.request("feedback/create", {**LEAST, **fields})
        assert answer.status_code == 400, fields
        assert [fault["field"] for fault in answer.json()["error"]["fields"]] == [field]


SECRET = "c4nary-Value"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://host/v1/jobs?key={SECRET} failed", f"https://host/v1/jobs#access_token={SECRET}",
        f"/v1/jobs?signature={SECRET}", f"https://user:{SECRET}@host/v1",
        f"curl -H 'Authorization: Bearer {SECRET}' host", f"password={SECRET}&n=1", f"api_key: {SECRET}",
        f'{{"apiKey": "{SECRET} and more"}}', json.dumps(json.dumps({"client_secret": SECRET})),
        f"the key was studio_{SECRET * 2}", f"sk-{SECRET}-{SECRET}", f"eyJhbGciOi.eyJzdWIi.{SECRET}",
        rf"https:\/\/host\/v1?x={SECRET}",
    ],
)  # fmt: skip
def test_secrets_are_removed_from_the_text_of_a_report(studio, text):
    studio.ask("feedback/create", requestId="s", text=text)
    assert SECRET not in json.dumps(reports(studio)[0])


@pytest.mark.parametrize(
    "name", ["Authorization", "Set-Cookie", "password", "passwd", "clientSecret", "access_token", "x-api-key"]
)
def test_credential_fields_are_removed_at_any_depth(studio, name):
    """The field goes with all that is in it; its neighbours stay."""
    studio.ask("feedback/create", **LEAST, request={"body": [{"kept": 1, name: {"a": [SECRET]}}]})
    assert reports(studio)[0]["request"] == {"body": [{"kept": 1}]}


def test_what_is_no_secret_is_kept(studio):
    """IDs, numbers, questions and addresses without a query string are no secrets."""
    report = {
        "requestId": "0b4d4a52-4bd0-5f3b-9a10-3a6b7d3b2a11",
        "text": "Why 409? See https://host/v1/jobs, or and/or; issue #4 is like it.",
        "response": {"status": 409, "body": None, "durationMs": 1.5, "ok": [True]},
    }
    studio.ask("feedback/create", **report)
    assert reports(studio)[0] == report
