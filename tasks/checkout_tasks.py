"""The steps of an order of samples, as Prefect tasks, and its page: never with the address of a checkout."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from prefect import State, task
from prefect.artifacts import acreate_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment

from patternmill.errors import RowFailed
from patternmill.ledger.records import Approval
from patternmill.ledger.reports.order_report import CheckoutRecord
from patternmill.orders.order_plan import OrderPlan, OrderSpec, PlannedCheckout, order_spec
from patternmill.orders.ordering import OrderEnding, Ordering
from patternmill.planning.checkout_items import catalog_of
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.request import OrderRequest
from patternmill.states import Outcome
from patternmill.text import moment, more, readable
from prefect_host.service_blocks import addressed_settings
from tasks.approval_form import UNVERIFIED, ApprovalPage, await_decision
from tasks.markup import cell, logged, markdown
from tasks.prefect_states import failed_state, state_of

_MOST_LINES = 100


async def requested_order(request: OrderRequest) -> OrderSpec:
    """Raises ConfigurationError and InputRefused."""
    spec = await asyncio.to_thread(order_spec, request, by_deployment=deployment.id is not None)
    return replace(spec, settings=await addressed_settings(spec.settings))


@task(name="plan-order", task_run_name="read the picks", cache_policy=NO_CACHE, persist_result=False)
async def plan_checkouts(work: Ordering) -> OrderPlan:
    plan = await work.plan()
    for note in plan.notes:
        logged(f"Note: {note}")
    return plan


async def await_order_approval(work: Ordering, plan: OrderPlan) -> Approval | None:
    """A person's decision against the order; None where it may be begun. Else the flow run is suspended."""
    return await await_decision(work.spec, plan.proposal, lambda: _page(plan))


@task(
    name="open-checkout",
    task_run_name="open checkout {number}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def open_checkout(work: Ordering, checkout: PlannedCheckout, number: int) -> State[Any]:
    record = await work.open(checkout)
    if record.checkout_id is not None:
        what = "paid" if record.is_paid else "open"
        return state_of(Outcome.COMPLETED, logged(f"Checkout {record.checkout_id} is {what}"))
    attempt = record.attempt
    assert attempt is not None, "it was begun"
    code = attempt.error_code or attempt.state.value
    return failed_state(RowFailed(attempt.error or "", code=code, request_id=attempt.request_id))


@task(
    name="wait-for-orders", task_run_name="wait for the orders", cache_policy=NO_CACHE, persist_result=False
)
async def wait_for_orders(work: Ordering, ending: OrderEnding, limit: timedelta) -> OrderEnding:
    def log(record: CheckoutRecord) -> None:
        assert record.order is not None, "it has changed"
        logged(f"Checkout {record.checkout_id}: {record.order.order_id}, {record.order.status}")

    return await work.wait(ending, limit, on_change=log)


async def show_order(ending: OrderEnding) -> None:
    """Put what was ordered on the flow run's page."""
    name = f"{catalog_of(ending.plan.scope.catalog)} {ending.plan.name}".casefold()
    key = re.sub(r"[^a-z0-9]+", "-", f"order {name}").strip("-")
    await acreate_markdown_artifact(
        key=key, markdown="\n".join(_ending_lines(ending)), description=markdown(ending.sentence)
    )


def _page(plan: OrderPlan) -> ApprovalPage:
    proposal, scope = plan.proposal, plan.scope
    catalog = f"{catalog_of(scope.catalog)} ({scope.environment})"
    digest = proposal.digest()[:LEAST_DIGEST]
    return ApprovalPage(
        summary=(
            f"Order {digest} from catalog {catalog}: {proposal}. It is listed in the run's artifacts.",
            "What it costs is shown on the page of each checkout, before anybody pays.",
        ),
        lines=(
            f"## Waiting for approval: {proposal}",
            "",
            f"Order {markdown(plan.name)} from catalog {markdown(catalog)}, digest `{proposal.digest()}`.",
            "",
            "**Resume**, at the top of the run's page or in its menu, approves or rejects.",
            f"The form asks for a name. {UNVERIFIED}",
            "",
            *(f"> {markdown(note)}\n" for note in plan.notes),
            *_table((checkout.lines, readable(checkout.status.value)) for checkout in plan.checkouts),
        ),
    )


def _ending_lines(ending: OrderEnding) -> Iterator[str]:
    plan = ending.plan
    yield f"## {markdown(ending.sentence)}\n"
    yield f"Order {markdown(plan.name)} from catalog {markdown(catalog_of(plan.scope.catalog))}.\n"
    if any(record.is_unpaid for record in ending.checkouts):
        yield "Where to pay is shown to whoever runs `patternmill order --address CHECKOUT`, and nowhere else.\n"
    yield from _table((record.lines, _status_text(record)) for record in ending.checkouts)


def _status_text(record: CheckoutRecord) -> str:
    order = record.order
    shown = f"{order.order_id or record.checkout_id} {order.status or ''}" if order is not None else ""
    if order is not None and record.is_paid:
        return f"paid, seen {moment(order.since)} UTC: {shown}"
    if record.checkout_id is not None:
        return f"open: {record.checkout_id}{f'; the service shows {shown}' if shown else ''}"
    error = record.attempt.error if record.attempt is not None else None
    return f"not opened: {error or 'the same order sends its request again'}"


def _table(checkouts: Iterable[tuple[Iterable[Any], str]]) -> Iterator[str]:
    rows = [(line, status) for lines, status in checkouts for line in lines]
    yield "| sku | quantity | note | checkout |"
    yield "|---|---|---|---|"
    for line, status in rows[:_MOST_LINES]:
        yield f"| {cell(line.sku)} | {line.quantity} | {cell(line.note or '')} | {cell(status)} |"
    yield ""
    yield from more(len(rows), _MOST_LINES, indent="")
