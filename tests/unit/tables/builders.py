"""Runs and rows for the tests of the results."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from patternmill.files import json_bytes
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.planning.rows import RowRecord
from patternmill.runs.results_files import Results, RunMoney, write_files
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from patternmill.tables.catalog import read_catalog
from patternmill.tables.results import RunResults
from tests.row_results import RowResult

HEADER = ("sku", "prompt", "category", "note")
STARTED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
#: The time at which the items ended: 75 seconds after the run began.
ENDED = 1_772_357_475.0625
RUN = RunRecord(
    run_id=RunId("run-7"),
    catalog="spring",
    environment="staging",
    source="inputs/spring.csv",
    input_sha256="ab" * 32,
    input_encoding="utf-8",
    studio_url="http://127.0.0.1:9/v1",
    machine="mill-1",
    started_at=STARTED,
    ended_at=STARTED + timedelta(minutes=4, seconds=12),
    outcome=Outcome.COMPLETED_WITH_FAILURES,
    versions={"patternmill": "0.1.0"},
    options={"max_in_flight": 200},
)


def item(
    stage: Stage, name: str, state: AttemptState | None = AttemptState.SUCCEEDED, **changes: Any
) -> ItemOutcome:
    """Return an item that was made, unless `changes` says otherwise; with None, it was never requested."""
    key = ItemKey(f"{stage}-{name}")
    if state is None:
        return ItemOutcome(stage, key)
    made = f"made-{name}" if state is AttemptState.SUCCEEDED else None
    found = ItemOutcome(stage, key, state, 1, RequestId(f"request-{name}"), f"job-{name}", made, since=ENDED)
    return replace(found, **changes)


def row(sku: str, status: RowStatus = RowStatus.SUCCEEDED, **changes: Any) -> RowResult:
    """Return a row with its items, none where it did not succeed; `changes` are of the row or of its outcome."""
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


MONEY = RunMoney(expected={"EUR": 900}, at_most={"EUR": 1800}, spent={"EUR": 600}, in_doubt={"EUR": 300})


def results_of(rows: Sequence[RowResult], header: Sequence[str] = HEADER) -> RunResults:
    """Return rows as they are read from a ledger, with a sheet that has their cells."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([header, *(row.cells for row in rows)])
    catalog, records = read_catalog(text.getvalue().encode(), "spring.csv", empty=True), []
    for line, one in zip(catalog.sheet.rows.index.tolist(), rows, strict=True):
        understood = {"prompt": one.prompt, "category": one.category_id, "selections": dict(one.selections)}
        records.append(RowRecord(line, one.sku, json.dumps(understood), outcome_text(one.outcome)))
    return RunResults(RUN.run_id, catalog, records)


def outcome_text(outcome: RowOutcome) -> str:
    """Return an outcome as the ledger has it, even with half a character in it."""
    return json_bytes(asdict(outcome)).decode()


def published(rows: Sequence[RowResult], out: Path, run: RunRecord = RUN) -> Results:
    results = results_of(rows)
    return write_files(run, results, out, lambda: page(run, results, {}), MONEY)


def table_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
