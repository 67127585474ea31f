"""What the verbs ask of a ledger is answered alike by SQLite and by PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cli.commands.status import Status
from cli.json_output import text_of
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, NewItem, OrderRecord, PickedLine, SpendingLimits
from patternmill.ledger.reports.checkouts import (
    CheckoutStatus,
    checkout_called,
    checkouts,
    checkouts_of_run,
    checkouts_with,
)
from patternmill.ledger.reports.requests import unsettled
from patternmill.ledger.reports.run_lookup import asked_services
from patternmill.ledger.reports.story import stories
from patternmill.planning.items import Scope, canonical_json, checkout_item
from patternmill.runs.request import RetryRequest
from patternmill.runs.retry import select_rows
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.settings import load_settings
from patternmill.states import AttemptState, RowStatus
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, BegunRun, Clock, Past

LIMIT = timedelta(hours=12)


@pytest.fixture
def run(ledger: Ledger, clock: Clock) -> BegunRun:
    """Return a run that is still open, with rows in four states."""
    run = Past(ledger, clock).begin(HERON, HERON_MUG, FERN, FOX, REFUSED)
    run.make("H-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    return run


def test_row_counts_of_open_and_ended_runs_agree(run: BegunRun) -> None:
    states = RowStatus.SUCCEEDED, RowStatus.FAILED, RowStatus.IN_DOUBT, RowStatus.HELD, RowStatus.REFUSED
    assert run.ledger.runs.rows_by_status(run.record) == dict.fromkeys(states, 1)
    assert run.ledger.runs.rows_by_status(run.end()) == dict.fromkeys(states, 1)


def test_status_explain_and_retry_answer(run: BegunRun) -> None:
    """Every question of `status`, `explain` and `retry` has its answer."""
    run.end()
    text = text_of(Status(run.ledger, load_settings()).sections())
    assert "1 pattern waiting for a person's decision" in text
    (story,) = stories(run.ledger, "H-2")
    assert [event.what for event in story.events][-2:] == ["failed", "run_ended"]
    assert story.sharing == ("H-1", "H-2")
    chosen = select_rows(run.ledger, RetryRequest())
    assert list(chosen.rows) == ["H-2", "F-1"]


def test_services_and_products_of_other_runs(run: BegunRun, clock: Clock) -> None:
    """What is known of superseded rows, other services and other catalogs' products."""
    past = run.past
    requested = run.ledger.catalogs.requested_rows("staging", "spring")
    assert requested["h-1"].product_key == run.product("H-1").key and "r-1" not in requested
    refused = past.begin("S-1,storks,Mug,11oz,,", catalog="autumn", studio_url="http://127.0.0.1:7/v1")
    refused.attempt(refused.pattern("S-1"), AttemptState.REJECTED)
    assert [asked.run_id for asked in asked_services(run.ledger)] == [run.record.run_id]
    others = run.ledger.catalogs.products_of_others
    planned = {("spring", sku, run.product(sku).key) for sku in ("H-1", "H-2", "F-1")}
    # What a living run has planned counts, and, once it has ended, what the service may have made or may still make.
    assert planned <= set(others("staging", "summer"))
    run.ledger.catalogs.update(run.end())
    assert {sku for catalog, sku, _ in others("staging", "summer") if catalog == "spring"} >= {"H-1", "F-1"}
    assert all(catalog == "autumn" for catalog, *_ in others("staging", "spring"))
    assert not others("production", "summer")


@pytest.mark.parametrize("decision", [Resolution.RESEND, Resolution.WRITE_OFF])
def test_settling_leaves_a_consistent_ledger(run: BegunRun, clock: Clock, decision: Resolution) -> None:
    """A day later everything undecided is decided; money, events and states agree afterwards."""
    clock.now += 24 * 3600
    waiting = unsettled(run.ledger, LIMIT)
    assert len(waiting) == 2
    settlement = Settlement(decision, "they said so", "A. Weaver")
    assert not asyncio.run(settle(run.ledger, waiting, settlement, limit=LIMIT))
    assert unsettled(run.ledger, LIMIT) == []
    assert list(problems(run.ledger)) == []


def ordered(run: BegunRun) -> str:
    """Open and pay a checkout of the product of H-1; return its request ID."""
    product = run.product("H-1")
    line = PickedLine("H-1", product.key, "prd_1", 2, "for Anna")
    item = checkout_item(Scope("staging", "spring").of_orders, "samples", [("prd_1", 2)])
    request_id, run_id = item.request_id(1), RunId("order-1")
    intent = Attempt(request_id, item.key, 1, body=item.body(request_id))
    with run.ledger.transaction():
        new = NewItem(item.key, item.stage, canonical_json(item.content), picked=(line,))
        purchases = run.ledger.purchases
        for _ in range(2):
            purchases.add_items("staging", item.scope.catalog, [new])
        purchases.intend(run_id, intent, SpendingLimits())
        purchases.change(run_id, request_id, AttemptState.ACCEPTED, job_id="chk_1")
        purchases.change(run_id, request_id, AttemptState.SUCCEEDED, result_id="chk_1")
        for status in ("paid", "paid", "shipped"):
            purchases.record_order(run_id, item.key, OrderRecord("ord_1", status, status == "paid", False))
    return request_id


def test_orders_are_read_alike(run: BegunRun) -> None:
    """By catalog, run, product and checkout; a status that has not changed is no event."""
    assert checkouts(run.ledger) == []
    ordered(run)
    (record,) = checkouts(run.ledger, environment="staging", scope="spring/orders")
    assert record.order is not None and (record.order.order_id, record.order.status) == ("ord_1", "shipped")
    assert record.status is CheckoutStatus.PAID, "said once"
    assert checkouts(run.ledger, environment="production") == []
    assert checkout_called(run.ledger, "chk_1") == record
    assert checkout_called(run.ledger, "chk_2") is None
    assert checkouts_of_run(run.ledger, run.record.run_id) == [record]
    assert checkouts_with(run.ledger, [run.product("H-1").key]) == [record]
    assert stories(run.ledger, "chk_1") == stories(run.ledger, "H-1")
    (story,) = stories(run.ledger, "H-1")
    assert story.checkouts == (record,)
    assert [event.what for event in story.events].count("ordered") == 2
    assert list(problems(run.ledger)) == []
