"""Runs and rows for the tests of the results."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.results.results_files import Results, write_results
from patternmill.results.row_results import RowResult
from patternmill.states import AttemptState, Outcome, RowStatus, Stage

HEADER = ("sku", "prompt", "category", "note")
ALL_COLUMNS = range(len(HEADER))
STARTED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
#: Of the items: 75 seconds after the run began.
ENDED = 1_772_357_475.0625
RUN = RunRecord(
    run_id=RunId("run-7"),
    catalog="spring",
    environment="staging",
    source="inputs/spring.csv",
    input_sha256="ab" * 32,
    input_encoding="utf-8",
    studio_url="http://127.0.0.1:9/v1",
    started_at=STARTED,
    ended_at=STARTED + timedelta(minutes=4, seconds=12),
    outcome=Outcome.COMPLETED_WITH_FAILURES,
    versions={"patternmill": "0.1.0"},
    options={"max_in_flight": 200},
)


def item(
    stage: Stage, name: str, state: AttemptState | None = AttemptState.SUCCEEDED, **changes: Any
) -> ItemOutcome:
    """An item that was made, unless `changes` has other values; None: that was never requested."""
    key = ItemKey(f"{stage}-{name}")
    if state is None:
        return ItemOutcome(stage, key)
    made = f"made-{name}" if state is AttemptState.SUCCEEDED else None
    found = ItemOutcome(stage, key, state, 1, RequestId(f"request-{name}"), f"job-{name}", made, since=ENDED)
    return replace(found, **changes)


def row(sku: str, status: RowStatus = RowStatus.SUCCEEDED, **changes: Any) -> RowResult:
    """A row with its items, none where it did not succeed; `changes` are of the row or of its outcome."""
    prompt = f"blue herons of {sku}"
    items = (
        item(Stage.PATTERN, f"pattern-{sku}", result_id=f"pat-{sku}"),
        item(Stage.PRODUCT, f"product-{sku}", result_id=f"prd-{sku}"),
    )
    outcome = RowOutcome(status, items=items if status is RowStatus.SUCCEEDED else ())
    of_outcome = {
        name: changes.pop(name) for name in ("error_code", "error", "remedy", "items") if name in changes
    }
    plain = RowResult(
        position=0,
        line=2,
        sku=sku,
        cells=(sku, prompt, "Cushion", ""),
        prompt=prompt,
        category="Cushion",
        category_id="cat_1",
        selections={"size": "S", "fabric": "linen"},
        outcome=replace(outcome, **of_outcome),
    )
    return replace(plain, **changes)


def refused(sku: str, **changes: Any) -> RowResult:
    problem = {"error_code": "unknown_value", "error": "unknown value `Linnen`", "remedy": "Write `linen`."}
    return row(sku, RowStatus.REFUSED, **{**problem, **changes})


def published(rows: Sequence[RowResult], out: Path, run: RunRecord = RUN) -> Results:
    return write_results(run, HEADER, ALL_COLUMNS, rows, out, page(run, rows, {}))


def table_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
