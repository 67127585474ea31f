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
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.results.results_files import Results, write_results
from patternmill.results.row_files import ItemTrace, RowResult
from patternmill.states import AttemptState, Outcome, RowStatus, Stage

HEADER = ("sku", "prompt", "category", "note")
ALL_COLUMNS = range(len(HEADER))
STARTED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
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


def trace(stage: Stage, name: str, *attempts: Attempt) -> ItemTrace:
    return ItemTrace(stage, ItemKey(f"{stage}-{name}"), attempts)


def attempt(name: str, number: int = 1, **changes: Any) -> Attempt:
    """An attempt that succeeded, unless `changes` has other values."""
    made = Attempt(
        RequestId(f"request-{name}-{number}"),
        ItemKey(name),
        number,
        AttemptState.SUCCEEDED,
        job_id=f"job-{name}-{number}",
        result_id=f"made-{name}",
        intended_at=1_772_357_400.25,
        accepted_at=1_772_357_400.5,
        ended_at=1_772_357_475.0625,
    )
    return replace(made, **changes)


def row(sku: str, status: RowStatus = RowStatus.SUCCEEDED, **changes: Any) -> RowResult:
    """A row with its pattern and product; without them where it did not succeed."""
    prompt, made = f"blue herons of {sku}", status is RowStatus.SUCCEEDED
    plain = RowResult(
        position=0,
        line=2,
        sku=sku,
        cells=(sku, prompt, "Cushion", ""),
        prompt=prompt,
        category_id="cat_1",
        selections={"size": "S", "fabric": "linen"},
        status=status,
        product_id=f"prd-{sku}" if made else None,
        pattern_id=f"pat-{sku}" if made else None,
        pattern=trace(Stage.PATTERN, sku, attempt(f"pattern-{sku}")) if made else None,
        product=trace(Stage.PRODUCT, sku, attempt(f"product-{sku}")) if made else None,
    )
    return replace(plain, **changes)


def refused(sku: str, **changes: Any) -> RowResult:
    problem = {"error_code": "unknown_value", "error": "unknown value `Linnen`", "remedy": "Write `linen`."}
    return row(sku, RowStatus.REFUSED, **{**problem, **changes})


def published(rows: Sequence[RowResult], out: Path, run: RunRecord = RUN) -> Results:
    return write_results(run, HEADER, ALL_COLUMNS, rows, out)


def table_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
