"""Every operation over HTTP, in this process: what it answers, what it refuses, and whose it is."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from studio.keys import Keys
from studio.offer import categories_get, categories_list
from studio.operations.table import OPERATIONS
from studio.store import read_record
from studio.store.records import Account

from .in_process import InProcess, encoded_picture

MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "15oz", "finish": "matte"}}
#: Operations that may be repeated, and what they are sent with besides.
REPEATED: dict[str, dict[str, Any]] = {
    "patterns/create": {"prompt": "waves"},
    "refine/edit": {"prompt": "with shells"},
    "references/create": {"data": encoded_picture("gold")},
    "products/create": MUG,
    "checkouts/create": {},
}


@pytest.fixture(scope="module")
def pattern_id(studio: InProcess) -> str:
    return studio.pattern("first", model="linocut", seed=7, size=256, palette=["#112233", "#ddeeff"])


@pytest.fixture(scope="module")
def product_id(studio: InProcess, pattern_id: str) -> str:
    return studio.result("products/create", requestId="first-product", patternId=pattern_id, **MUG)[
        "productId"
    ]


@pytest.fixture
def other_key(studio: InProcess) -> str:
    """Return the key of another account."""
    return Keys(studio.service.store).create("other", Account("other"))[1]


def code(studio: InProcess, operation: str, body: object, key: str | None = None) -> tuple[int, str]:
    answer = studio.request(operation, body, key) if key else studio.request(operation, body)
    return answer.status_code, answer.json()["error"]["code"]


def all_pages(studio: InProcess, operation: str, name: str, limit: int) -> list[dict[str, Any]]:
    """Return the entries of every page of a list."""
    found, cursor = [], ""
    while cursor is not None:
        page = studio.ask(operation, limit=limit, cursor=cursor)
        assert len(page[name]) <= limit
        found += page[name]
        cursor = page["nextCursor"]
    return found


def test_pattern_shows_what_it_was_made_of(studio: InProcess, pattern_id: str) -> None:
    pattern = studio.ask("patterns/get", patternId=pattern_id)

    assert pattern["patternId"] == pattern_id
    assert (pattern["prompt"], pattern["model"]) == ("blue herons", "linocut")
    assert (pattern["seed"], pattern["size"]) == (7, 256)
    assert pattern["palette"] == ["#112233", "#ddeeff"]
    assert pattern["parentPatternId"] is None
    assert pattern["change"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", pattern["createdAt"])


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("edit", {"prompt": "with lemons"}),
        ("recolor", {"palette": ["#101010", "#fafafa"]}),
        ("crop", {"x": 0.25, "y": 0, "width": 0.5, "height": 0.5}),
        ("extend", {"columns": 2, "rows": 1}),
    ],
)
def test_refined_pattern_remembers_its_parent(
    studio: InProcess, pattern_id: str, operation: str, fields: dict[str, Any]
) -> None:
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


def test_impossible_changes_are_refused(studio: InProcess, pattern_id: str) -> None:
    crop = {"requestId": "i-1", "patternId": pattern_id, "x": 0.6, "y": 0, "width": 0.5, "height": 1}
    assert code(studio, "refine/crop", crop) == (422, "invalid_crop")
    assert code(studio, "refine/crop", {**crop, "width": 0}) == (400, "invalid_fields")
    unknown = {"requestId": "i-2", "patternId": "pat_x", "prompt": "more"}
    assert code(studio, "refine/edit", unknown) == (404, "unknown_pattern")
    refused = {"requestId": "i-3", "patternId": pattern_id, "prompt": "[refuse]"}
    assert code(studio, "refine/edit", refused) == (422, "content_refused")

    grown = pattern_id
    for step in range(2):
        grown = studio.result("refine/extend", requestId=f"i-4-{step}", patternId=grown, columns=3, rows=1)[
            "patternId"
        ]
    more = {"requestId": "i-5", "patternId": grown, "columns": 2, "rows": 1}
    assert code(studio, "refine/extend", more) == (422, "too_many_changes")


def test_reference_guides_a_pattern_and_is_deleted(studio: InProcess) -> None:
    """Its picture stays, because a pattern is drawn with it; the reference cannot be used again."""
    body = {"requestId": "ref-1", "data": encoded_picture("teal"), "name": "teal.jpg"}
    reference = studio.ask("references/create", **body)
    assert studio.ask("references/create", **body) == reference
    assert studio.ask("references/get", referenceId=reference["referenceId"]) == reference
    assert reference in studio.ask("references/list")["references"]
    assert (reference["width"], reference["height"], reference["name"]) == (30, 20, "teal.jpg")

    pattern_id = studio.pattern("with-reference", referenceIds=[reference["referenceId"]])
    pattern = studio.ask("patterns/get", patternId=pattern_id)
    assert pattern["referenceIds"] == [reference["referenceId"]]
    assert studio.ask("references/delete", referenceId=reference["referenceId"])["deleted"] is True
    gone = {"referenceId": reference["referenceId"]}
    assert code(studio, "references/get", gone) == (404, "unknown_reference")
    assert code(studio, "references/delete", gone) == (404, "unknown_reference")
    assert studio.service.references.file_of(reference["sha256"]).exists()


def test_models_differ_and_are_listed(studio: InProcess) -> None:
    models = studio.ask("models/list")["models"]

    assert len({model["description"] for model in models}) >= 3
    assert [studio.ask("models/get", modelId=model["modelId"]) for model in models] == models
    assert code(studio, "models/get", {"modelId": "oil"}) == (404, "unknown_model")


def test_category_prices_add_up_to_the_product(studio: InProcess, pattern_id: str, product_id: str) -> None:
    """The price of a product is its category's and the surcharges of its options; it names its pattern."""
    assert studio.ask("categories/list") == categories_list("staging")
    category = studio.ask("categories/get", categoryId="cat_stg_mug")
    assert category == categories_get("staging", "cat_stg_mug")
    product = studio.ask("products/get", productId=product_id)
    options = {option["name"]: option for option in category["options"]}
    chosen = {**MUG["selections"], "colour": options["colour"]["default"]}  # type: ignore[dict-item]
    surcharges = sum(options[name]["surcharges"][value] for name, value in chosen.items())

    assert product["selections"] == chosen
    assert product["price"] == {"amount": category["priceFrom"]["amount"] + surcharges, "currency": "EUR"}
    assert (product["patternId"], product["categoryId"]) == (pattern_id, "cat_stg_mug")
    assert product["patternImageUrl"] == studio.ask("patterns/get", patternId=pattern_id)["imageUrl"]


def test_lists_are_paged_newest_first(studio: InProcess, product_id: str) -> None:
    """Each thing once, however small the page."""
    made = [studio.pattern(f"page-{number}") for number in range(5)]

    patterns = [one["patternId"] for one in all_pages(studio, "patterns/list", "patterns", 2)]
    assert patterns[:5] == made[::-1]
    assert len(set(patterns)) == len(patterns)
    jobs = all_pages(studio, "jobs/list", "jobs", 3)
    assert [job["requestId"] for job in jobs[:5]] == [f"page-{number}" for number in (4, 3, 2, 1, 0)]
    assert jobs[0]["operation"] == "patterns/create"
    products = all_pages(studio, "products/list", "products", 1)
    assert product_id in [one["productId"] for one in products]
    assert code(studio, "patterns/list", {"cursor": "x"}) == (404, "unknown_cursor")
    assert code(studio, "patterns/list", {"limit": 101}) == (400, "invalid_fields")


def test_checkout_keeps_prices_and_becomes_one_order(studio: InProcess, product_id: str) -> None:
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
    assert code(studio, "orders/get", asked) == (404, "unknown_order")

    for _ in range(3):
        studio.pay(checkout)
    order = studio.ask("orders/get", **asked)
    assert [one["orderId"] for one in studio.ask("orders/list")["orders"]] == [order["orderId"]]
    assert (order["checkoutId"], order["total"]) == (checkout["checkoutId"], checkout["total"])
    assert order["lines"] == checkout["lines"]
    assert studio.ask("checkouts/get", **asked)["status"] == "paid"


def test_checkout_of_an_unknown_product_is_refused(studio: InProcess, pattern_id: str) -> None:
    """A pattern is no product either."""
    for product_id in ("prod_x", pattern_id):
        body = {"requestId": "lines", "lines": [{"productId": product_id, "quantity": 1}]}
        assert code(studio, "checkouts/create", body) == (404, "unknown_product")


def test_request_id_is_for_one_operation(studio: InProcess, pattern_id: str, product_id: str) -> None:
    """Over jobs, references and checkouts alike; and for one body."""
    lines = [{"productId": product_id, "quantity": 1}]
    for operation, body in (
        ("checkouts/create", {"lines": lines}),
        ("references/create", {"data": encoded_picture("red")}),
        ("refine/edit", {"patternId": pattern_id, "prompt": "more"}),
        ("patterns/create", {"prompt": "red herons"}),
        ("patterns/create", {"prompt": "blue herons"}),
    ):
        assert code(studio, operation, {"requestId": "first", **body}) == (409, "request_id_conflict")


def test_another_account_finds_nothing(
    studio: InProcess, pattern_id: str, product_id: str, other_key: str
) -> None:
    """What is not its own is unknown to it: reading, using, deleting, listing."""
    job = studio.ask("patterns/create", requestId="mine", prompt="ferns")
    reference = studio.ask("references/create", requestId="mine-too", data=encoded_picture("pink"))
    lines = [{"productId": product_id, "quantity": 1}]
    checkout = studio.ask("checkouts/create", requestId="mine-as-well", lines=lines)
    studio.pay(checkout)

    for operation, body, what in (
        ("jobs/get", {"jobId": job["jobId"]}, "job"),
        ("patterns/get", {"patternId": pattern_id}, "pattern"),
        ("refine/extend", {"requestId": "o", "patternId": pattern_id, "columns": 1, "rows": 2}, "pattern"),
        (
            "patterns/create",
            {"requestId": "o", "prompt": "x", "referenceIds": [reference["referenceId"]]},
            "reference",
        ),
        ("products/create", {"requestId": "o", "patternId": pattern_id, **MUG}, "pattern"),
        ("products/get", {"productId": product_id}, "product"),
        ("references/get", {"referenceId": reference["referenceId"]}, "reference"),
        ("references/delete", {"referenceId": reference["referenceId"]}, "reference"),
        ("checkouts/create", {"requestId": "o", "lines": lines}, "product"),
        ("checkouts/get", {"checkoutId": checkout["checkoutId"]}, "checkout"),
        ("orders/get", {"checkoutId": checkout["checkoutId"]}, "checkout"),
    ):
        assert code(studio, operation, body, other_key) == (404, f"unknown_{what}"), operation
    for name in ("jobs", "patterns", "products", "references", "orders"):
        assert studio.request(f"{name}/list", {}, other_key).json()[name] == []


@pytest.mark.parametrize("operation", REPEATED)
def test_twenty_at_once_on_one_request_id_are_one(
    studio: InProcess, pattern_id: str, product_id: str, operation: str
) -> None:
    request_id, lines = f"twenty-{operation}", [{"productId": product_id, "quantity": 1}]
    sent = {"requestId": request_id, "patternId": pattern_id, "lines": lines, **REPEATED[operation]}
    raw = json.dumps(sent).encode()

    async def storm() -> list[Any]:
        return await asyncio.gather(*(studio.send("POST", f"/v1/{operation}", raw) for _ in range(20)))

    ids = {
        next(value for name, value in one.json().items() if name.endswith("Id"))
        for one in asyncio.run(storm())
    }
    verdicts = [
        line.verdict for line in read_record(studio.home / "studio.db") if line.request_id == request_id
    ]
    assert len(ids) == 1
    assert sorted(verdicts) == ["accepted", *["repeated"] * 19]


def test_every_operation_is_in_the_document(studio: InProcess) -> None:
    """Each is there with its bodies, its errors and the key."""
    document = studio.get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {f"/{one.name}" for one in OPERATIONS}
    for path in document["paths"].values():
        assert path["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {"200", "400", "401"} <= set(path["post"]["responses"])
    assert document["security"] == [{"bearer": []}]


# -- what is refused


def test_every_operation_needs_a_key(studio: InProcess) -> None:
    """The key is checked before anything else."""
    for operation in (*(one.name for one in OPERATIONS), "no/such"):
        for header, reason in (
            ("Bearer", "missing_key"),
            ("Basic x", "missing_key"),
            ("Bearer wrong", "invalid_key"),
        ):
            answer = studio.post(operation, b"{", {"Authorization": header})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, reason), operation
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("operation", "body", "status", "code"),
    [
        ("patterns/create", b"{", 400, "malformed_json"),
        ("patterns/create", b'{"requestId": "e-1"}', 400, "invalid_fields"),
        ("products/create", b'{"requestId": "e-1", "selections": {"size": 3}}', 400, "invalid_fields"),
        ("jobs/get", b'{"jobId": "job_nothing"}', 404, "unknown_job"),
        ("categories/get", b'{"categoryId": "cat_live_cushion"}', 404, "unknown_category"),
        ("patterns/create", b'{"requestId": "e-3", "prompt": "x [refuse]"}', 422, "content_refused"),
        ("patterns/create", b" " * 1_000_001, 413, "too_large"),
        ("patterns/nothing", b"{}", 404, "unknown_operation"),
    ],
)
def test_errors_have_a_status_and_a_code(
    studio: InProcess, operation: str, body: bytes, status: int, code: str
) -> None:
    """Each kind of mistake has its status and its code, in one shape."""
    answer = studio.post(operation, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"


def test_operations_are_posts_of_json(studio: InProcess) -> None:
    """Another method or type of body is refused in JSON too."""
    asked = studio.get("/v1/jobs/get")
    typed = studio.post("jobs/get", b"jobId=1", {"Content-Type": "application/x-www-form-urlencoded"})
    assert (asked.status_code, asked.json()["error"]["code"]) == (405, "method_not_allowed")
    assert (typed.status_code, typed.json()["error"]["code"]) == (415, "not_json")


# -- reports

LEAST = {"requestId": "f", "text": "t"}
WITHIN: list[dict[str, Any]] = [
    {},
    {"requestId": " "},
    {"requestId": "r" * 128},
    {"text": "t" * 4000},
    {"procedure": "p" * 200},
    {"request": {"body": None, "userAgent": ""}},
    {"request": {"body": [1, {"a": "b"}], "userAgent": "u" * 500}},
    {"response": {"status": 0, "body": "x", "durationMs": 0}},
    {"response": {"status": 599, "body": {}, "durationMs": 1e9}},
    {"agent": "a" * 100},
    {"reportedAt": "2026-01-31T12:00:00Z"},
    {"reportedAt": "2026-01-31T12:00:00.5+02:00"},
]
BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"requestId": ""}, "requestId"),
    ({"requestId": "r" * 129}, "requestId"),
    ({"text": ""}, "text"),
    ({"text": "t" * 4001}, "text"),
    ({"procedure": "p" * 201}, "procedure"),
    ({"request": []}, "request"),
    ({"request": {"userAgent": "u" * 501}}, "request.userAgent"),
    ({"response": {"status": -1}}, "response.status"),
    ({"response": {"status": 600}}, "response.status"),
    ({"response": {"durationMs": -0.1}}, "response.durationMs"),
    ({"agent": "a" * 101}, "agent"),
    ({"reportedAt": "yesterday"}, "reportedAt"),
    ({"text": None}, "text"),
]


def test_reports_within_the_bounds_are_accepted(studio: InProcess) -> None:
    """The answer echoes the report's identifier, which is no idempotency key: what is delivered twice is kept twice."""
    for fields in WITHIN:
        report = {**LEAST, **fields}
        for _ in range(2):
            assert studio.ask("feedback/create", **report) == {"requestId": report["requestId"]}
        kept = studio.service.store.feedback.all()[-2:]
        assert [one.report["text"] for one in kept] == [report["text"]] * 2


def test_reports_beyond_the_bounds_are_refused(studio: InProcess) -> None:
    for fields, field in BEYOND:
        answer = studio.request("feedback/create", {**LEAST, **fields})
        assert answer.status_code == 400, fields
        assert [fault["field"] for fault in answer.json()["error"]["fields"]] == [field]


def test_secrets_are_removed_before_it_is_kept(studio: InProcess) -> None:
    """No byte of them is in the file."""
    secret = "c4nary-in-feedback"
    studio.ask(
        "feedback/create",
        requestId="s",
        text=f"GET https://host/x?key={secret} with Bearer {secret}",
        request={"body": {"deep": [{"password": secret}]}, "userAgent": f"x api_key={secret}"},
        response={"body": f'{{"token": "{secret}"}}', "headers": {"set-cookie": secret}},
    )
    report = studio.service.store.feedback.all()[-1].report
    assert report["request"] == {"body": {"deep": [{}]}, "userAgent": "x api_key=[removed]"}
    written = b"".join(path.read_bytes() for path in studio.home.glob("studio.db*"))
    assert secret.encode() not in written
    assert b"https://host/x" in written
