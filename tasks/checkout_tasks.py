"""The steps of an order of samples, as Prefect tasks, and its page: never with the address of a checkout."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from prefect import State, task

from patternmill.errors import RowFailed
from patternmill.ledger.reports.order_report import CheckoutRecord
from patternmill.orders.order_plan import OrderPlan, OrderSpec, PlannedCheckout, order_spec
from patternmill.orders.order_text import checkout_lines, plan_lines
from patternmill.orders.ordering import OrderEnding, Ordering
from patternmill.planning.checkout_items import catalog_of
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.request import OrderRequest
from patternmill.states import Outcome
from prefect_host.service_blocks import addressed_settings
from tasks.approval_form import ApprovalPage
from tasks.flow_parameters import in_worker_folder
from tasks.markup import logged, markdown, markdown_lines
from tasks.prefect_states import failed_state, state_of
from tasks.run_page import show_text


async def requested_order(request: OrderRequest) -> OrderSpec:
    """Raises ConfigurationError and InputRefused."""
    spec = await asyncio.to_thread(order_spec, request, by_deployment=in_worker_folder())
    return replace(spec, settings=await addressed_settings(spec.settings))


@task(name="plan-order", task_run_name="read the picks", persist_result=False)
async def plan_checkouts(work: Ordering) -> OrderPlan:
    plan = await work.plan()
    for note in plan.notes:
        logged(f"Note: {note}")
    return plan


@task(name="open-checkout", task_run_name="open checkout {number}", persist_result=False)
async def open_checkout(work: Ordering, checkout: PlannedCheckout, number: int) -> State[Any]:
    record = await work.open(checkout)
    if record.checkout_id is not None:
        what = "paid" if record.is_paid else "open"
        return state_of(Outcome.COMPLETED, logged(f"Checkout {record.checkout_id} is {what}"))
    attempt = record.attempt
    assert attempt is not None, "it was begun"
    code = attempt.error_code or attempt.state.value
    return failed_state(RowFailed(attempt.error or "", code=code, request_id=attempt.request_id))


@task(name="wait-for-orders", task_run_name="wait for the orders", persist_result=False)
async def wait_for_orders(work: Ordering, ending: OrderEnding, limit: timedelta) -> OrderEnding:
    def log(record: CheckoutRecord) -> None:
        assert record.order is not None, "it has changed"
        logged(f"Checkout {record.checkout_id}: {record.order.order_id}, {record.order.status}")

    return await work.wait(ending, limit, on_change=log)


async def show_order(ending: OrderEnding) -> None:
    """Put what was ordered on the flow run's page."""
    name = f"{catalog_of(ending.plan.scope.catalog)} {ending.plan.name}".casefold()
    key = re.sub(r"[^a-z0-9]+", "-", f"order {name}").strip("-")
    await show_text(key, _ending_text(ending), markdown(ending.sentence))


def order_page(plan: OrderPlan) -> ApprovalPage:
    """What a person sees who approves an order."""
    proposal, catalog = plan.proposal, f"{catalog_of(plan.scope.catalog)} ({plan.scope.environment})"
    return f"Order {proposal.digest[:LEAST_DIGEST]} from catalog {catalog}: {proposal}.", plan_lines(plan)


def _ending_text(ending: OrderEnding) -> str:
    """As markdown."""
    pay = (
        "Where to pay is shown to whoever runs `patternmill order --address CHECKOUT`, and nowhere else.\n\n"
    )
    lines = (line for record in ending.checkouts for line in checkout_lines(record))
    is_open = any(record.is_unpaid for record in ending.checkouts)
    return f"## {markdown(ending.sentence)}\n\n{pay if is_open else ''}{markdown_lines(lines)}"
