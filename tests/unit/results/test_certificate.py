"""A rehearsal's certificate: what counts as bought twice and lost, and a page that runs and loads nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patternmill.results.certificate import (
    Bought,
    Certificate,
    FaultCount,
    Kills,
    RefusedRow,
    RehearsalRecord,
    RehearsedFile,
    certificate_json,
    certificate_page,
    findings_of,
)
from patternmill.states import Stage

HOSTILE = "<script>alert(1)</script>&\"'"


MUG = {"patternId": "pat-1", "categoryId": "cat_mug", "selections": {"size": "11oz", "colour": "white"}}
SCARF = MUG | {"categoryId": "cat_scarf"}
HERONS = {"prompt": "herons", "parentPatternId": None}


def row(
    sku: str, product: str | None, pattern: str | None = "pat-1", status: str = "succeeded"
) -> dict[str, Any]:
    """It asks for a mug with herons."""
    asked = {"prompt": "herons", "category_id": "cat_mug", "selections": {"size": "11oz"}}
    return {"sku": sku, "status": status, "product_id": product, "pattern_id": pattern, **asked}


def record(*rows: dict[str, Any], **changes: Any) -> RehearsalRecord:
    """Of a studio that has one pattern, and two products that are alike."""
    found: dict[str, Any] = {
        "purchases": [],
        "doubles": [],
        "products": {"prod-1": MUG, "prod-2": MUG},
        "patterns": {"pat-1": HERONS},
        "rows": rows,
        "expected": len(rows),
    }
    return RehearsalRecord(**found | changes)


ALIKE = (row("A", "prod-1"), row("B", "prod-2"))


def test_rows_that_are_alike_are_bought_once_each() -> None:
    """The meter suspects the second one."""
    suspected = [{"operation": "products/create", "requestIds": ("a", "b")}]
    assert list(findings_of(record(*ALIKE, doubles=suspected))) == []


def test_product_without_a_row_is_bought_twice_or_lost() -> None:
    """Twice, when it is like one that a row has."""
    twice = record(*ALIKE, products={"prod-1": MUG, "prod-2": MUG, "prod-3": MUG})
    assert (twice.bought_twice(), twice.lost()) == (1, {})
    lost = record(*ALIKE, products={"prod-1": MUG, "prod-2": MUG, "prod-3": SCARF})
    assert lost.bought_twice() == 0
    assert list(findings_of(lost)) == ["Products of the studio in no row: 1 (prod-3)."]


def test_pattern_that_the_meter_suspects_is_bought_twice() -> None:
    suspected = [{"operation": "patterns/create", "requestIds": ("a", "b")}]
    found = record(*ALIKE, doubles=suspected, patterns={"pat-1": HERONS, "pat-2": HERONS})
    assert (found.bought_twice(), found.lost()) == (1, {})


def test_rows_are_lost_without_a_final_status_or_a_product_that_exists() -> None:
    found = record(row("A", "prod-1"), row("B", None, None, "waiting"), row("C", "prod-9"), expected=4)
    assert set(found.lost()) == {
        "Rows that did not come out",
        "Rows without a final status",
        "Products of rows that the studio does not know",
    }
    assert found.bought_twice() == 1


def test_product_of_something_else_is_no_product_of_the_row() -> None:
    """Another category, selection, pattern, or a pattern of another prompt."""
    for made in (
        SCARF,
        MUG | {"selections": {"size": "15oz"}},
        MUG | {"patternId": "pat-2"},
    ):
        found = record(row("A", "prod-1"), products={"prod-1": made})
        assert "Rows with a product of something else" in found.lost()
    found = record(
        row("A", "prod-1"), products={"prod-1": MUG}, patterns={"pat-1": HERONS | {"prompt": "owls"}}
    )
    assert list(findings_of(found)) == ["Rows with a product of something else: 1 (A)."]


def test_budget_counts_failed_jobs() -> None:
    purchases = [
        {"operation": "patterns/create", "amount": 50},
        {"operation": "patterns/create", "amount": 0},
        {"operation": "products/create", "amount": 10},
    ]
    prices = {Stage.PATTERN: 40, Stage.PRODUCT: 10}
    assert record(purchases=purchases).bought(prices, "EUR").amount == 90
    assert record(purchases=purchases).bought(dict.fromkeys(prices, 0), None).amount is None


def certificate(*findings: str) -> Certificate:
    return Certificate(
        made_at=datetime(2027, 1, 15, tzinfo=UTC),
        program="patternmill 0",
        seed=1,
        file=RehearsedFile(name=f"{HOSTILE}.csv", sha256="0", rows=3, rehearsed=2, stand_ins=1),
        window=10,
        attempts=2,
        findings=findings,
        bought_twice=len(findings),
        lost=0,
        rows={"succeeded": 1, "refused": 1},
        refused=(RefusedRow(line=3, sku=HOSTILE, code="unknown_value", message=HOSTILE),),
        bought=Bought(patterns=1, products=1, failed=0, amount=None, currency=None),
        calls={"jobs/get": 3},
        kills=Kills(requested=1, imports=(0.5,), studio=(), starts=3),
        faults=(FaultCount(name="slow poll", calls=3, fired=0),),
        forecast=None,
        seconds=12.5,
    )


def test_page_runs_and_loads_nothing() -> None:
    """Every text of the file is text."""
    page = certificate_page(certificate(HOSTILE)).decode()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "default-src 'none'" in page.replace("&#39;", "'")
    assert "http:" not in page and "https:" not in page
    assert "Not clean" in page


def test_json_says_whether_it_is_clean() -> None:
    assert json.loads(certificate_json(certificate()))["clean"] is True
    assert json.loads(certificate_json(certificate("something")))["clean"] is False


def test_committed_example_is_of_this_form() -> None:
    """Its page is what its JSON makes now."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    kept = (docs / "rehearsal-example.json").read_bytes()
    example = Certificate.model_validate_json(kept)
    assert example.is_clean and example.file.rows == 300
    assert certificate_json(example) == kept
    assert certificate_page(example) == (docs / "rehearsal-example.html").read_bytes()
