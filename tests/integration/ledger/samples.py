"""Items, intents, runs and rows for the tests of the ledger."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, NewItem, RunRecord, RunRow, SpendingLimits
from patternmill.states import AttemptState, Stage
from tests.unit.cli.ledgers import WAYS as WAYS
from tests.unit.cli.ledgers import learned as learned

RUN = RunId("run-1")
STAGING = "staging"
CATALOG = "spring"
UNLIMITED = SpendingLimits()
RAW = b"sku,prompt,category\r\nH-1,blue herons,Cushion\r\nF-1,\xf0\x9f\xa6\xa9 ferns,Mug\r\n"

RECORD = RunRecord(
    run_id=RUN,
    catalog=CATALOG,
    environment=STAGING,
    source="inputs/spring.csv",
    input_sha256=hashlib.sha256(RAW).hexdigest(),
    input_encoding="utf-8",
    studio_url="http://127.0.0.1:9/v1",
    started_at=datetime(2027, 1, 15, 8, 0, tzinfo=UTC),
    versions={"patternmill": "0.1.0"},
    options={"max_in_flight": 200, "notes": ["options were not checked"]},
)


def item(name: str, stage: Stage = Stage.PATTERN, **changes: Any) -> NewItem:
    return replace(NewItem(ItemKey(name), stage, "{}"), **changes)


def intent(name: str, attempt: int = 1, price: int = 0) -> Attempt:
    request_id = RequestId(f"{name}/{attempt}")
    body = f'{{"requestId":"{request_id}"}}'.encode()
    return Attempt(request_id, ItemKey(name), attempt, body=body, price=price)


def begin(
    ledger: Ledger,
    name: str,
    attempt: int = 1,
    *,
    stage: Stage = Stage.PATTERN,
    run: RunId = RUN,
    limits: SpendingLimits = UNLIMITED,
    price: int = 0,
    catalog: str = CATALOG,
    environment: str = STAGING,
    **of_item: Any,
) -> Attempt:
    """Write an item and the intent of an attempt at it, in one transaction."""
    with ledger.transaction():
        ledger.purchases.add_items(environment, catalog, [item(name, stage, **of_item)])
        return ledger.purchases.intend(run, intent(name, attempt, price), limits)


def change(ledger: Ledger, name: str, *states: AttemptState, attempt: int = 1) -> Attempt:
    """Walk an attempt through states, each in a transaction of its own."""
    request_id = RequestId(f"{name}/{attempt}")
    for to in states:
        with ledger.transaction():
            ledger.purchases.change(RUN, request_id, to, **learned(to, f"{name}/{attempt}"))
    attempt_now = ledger.purchases.attempt(request_id)
    assert attempt_now is not None
    return attempt_now


def at_state(ledger: Ledger, name: str, state: AttemptState, attempt: int = 1, **of_item: Any) -> Attempt:
    """An attempt that has come to this state."""
    begin(ledger, name, attempt, **of_item)
    return change(ledger, name, *WAYS[state], attempt=attempt)


def run_row(position: int, pattern: str | None = None, product: str | None = None, row: str = "{}") -> RunRow:
    return RunRow(
        position,
        position + 2,
        f"SKU-{position}",
        ItemKey(pattern) if pattern else None,
        ItemKey(product) if product else None,
        row,
    )
