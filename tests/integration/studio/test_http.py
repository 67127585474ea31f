"""The studio over real sockets: the interface as written, and its choices where that is silent."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from studio.offer import CATEGORIES, categories_get, categories_list
from studio.operations.table import OPERATIONS

from .conftest import KEY, StudioProcess

CUSHION = CATEGORIES[0].category_id("staging")


def result(job: dict[str, object]) -> dict[str, str]:
    found = job["result"]
    assert isinstance(found, dict)
    return found


def test_prompt_becomes_a_product(studio: StudioProcess) -> None:
    """The typical flow of the interface, from prompt to productId."""
    job = studio.ask("patterns/create", {"requestId": "flow-1", "prompt": "blue herons on cream"}).body
    assert (job["kind"], job["status"], job["result"]) == ("pattern", "running", None)
    pattern = studio.ended(job)

    order = {"patternId": result(pattern)["patternId"], "categoryId": CUSHION}
    selections = {"size": "40x40", "fabric": "linen"}
    build = studio.ask("products/create", {"requestId": "flow-2", **order, "selections": selections}).body
    assert (build["kind"], build["status"], build["result"]) == ("product", "running", None)

    product = studio.ended(build)
    assert product["status"] == "succeeded"
    assert result(product)["productId"]


def test_category_answers_match_the_offer(studio: StudioProcess) -> None:
    assert studio.ask("categories/list", {}).body == categories_list("staging")
    assert studio.ask("categories/get", {"categoryId": CUSHION}).body == categories_get("staging", CUSHION)


def test_every_operation_needs_a_key(studio: StudioProcess) -> None:
    """Before anything else is checked."""
    refused = {
        "missing_key": ({}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {KEY}"}),
        "invalid_key": ({"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {KEY}x"}),
    }
    for operation in (*(one.name for one in OPERATIONS), "no/such"):
        for code, all_headers in refused.items():
            for headers in all_headers:
                answer = studio.ask(operation, b"{", key=None, **headers)
                assert (answer.status, answer.code) == (401, code), (operation, headers)
                assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("operation", "body", "status", "code"),
    [
        ("patterns/create", b"{", 400, "malformed_json"),
        ("patterns/create", {"requestId": "e-1"}, 400, "invalid_fields"),
        ("products/create", {"requestId": "e-1", "selections": {"size": 3}}, 400, "invalid_fields"),
        ("jobs/get", {"jobId": "job_nothing"}, 404, "unknown_job"),
        ("categories/get", {"categoryId": "cat_live_cushion"}, 404, "unknown_category"),
        (
            "products/create",
            {"requestId": "e-2", "patternId": "pat_x", "categoryId": CUSHION, "selections": {}},
            404,
            "unknown_pattern",
        ),
        ("patterns/create", {"requestId": "e-3", "prompt": "x [refuse]"}, 422, "content_refused"),
        ("patterns/create", b" " * 1_000_001, 413, "too_large"),
        ("patterns/nothing", {}, 404, "unknown_operation"),
    ],
)
def test_errors_have_a_status_and_a_code(
    studio: StudioProcess, operation: str, body: object, status: int, code: str
) -> None:
    """Each kind of mistake has its status and its code, in one shape."""
    answer = studio.ask(operation, body)

    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["content-type"] == "application/json"


def test_operations_are_posts_of_json(studio: StudioProcess) -> None:
    """Another method or type of body is refused in JSON too."""
    headers = {"Authorization": f"Bearer {KEY}"}
    asked = studio.request("GET", f"{studio.base_url}/jobs/get", headers=headers)
    typed = studio.ask("jobs/get", b"jobId=1", **{"Content-Type": "application/x-www-form-urlencoded"})

    assert (asked.status, asked.code) == (405, "method_not_allowed")
    assert (typed.status, typed.code) == (415, "not_json")


def test_pictures_are_served_without_a_key(studio: StudioProcess) -> None:
    """PNGs of patterns and products, in the offered widths."""
    pattern = studio.ended(studio.ask("patterns/create", {"requestId": "pic-1", "prompt": "lemons"}).body)
    order = {"patternId": result(pattern)["patternId"], "categoryId": CATEGORIES[1].category_id("staging")}
    selections = {"size": "11oz", "finish": "glossy"}
    build = studio.ask("products/create", {"requestId": "pic-2", **order, "selections": selections}).body
    product = studio.ended(build)

    sizes = []
    for job, width in ((pattern, 128), (product, 256)):
        answer = studio.request("GET", f"{result(job)['imageUrl']}?width={width}")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        sizes.append(Image.open(io.BytesIO(answer.raw)).size)
    assert sizes == [(128, 128), (256, 256)]
    assert studio.request("GET", f"{result(pattern)['imageUrl']}?width=9999").status == 400
