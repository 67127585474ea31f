"""Order samples: the rows that a person picked become checkouts, and orders once they are paid."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from patternmill.errors import Overlap
from patternmill.orders.ordering import Ordering
from patternmill.parameters import EnvironmentName, Lines, OrderName, Quantity, WaitTime, wait_time
from patternmill.runs.approval import rejection
from patternmill.runs.request import OrderRequest
from patternmill.states import Outcome
from tasks.checkout_tasks import (
    await_order_approval,
    open_checkout,
    plan_checkouts,
    requested_order,
    show_order,
    wait_for_orders,
)
from tasks.prefect_states import state_of


@flow(name="order-samples", flow_run_name="order {order}", persist_result=False)
async def order_samples(
    results: str | None = None,
    catalog: str | None = None,
    environment: EnvironmentName | None = None,
    sku: tuple[str, ...] = (),
    picks: Path | None = None,
    quantity: Quantity = 1,
    order: OrderName = "samples",
    lines: Lines = 50,
    wait: WaitTime | None = None,
) -> State[Any]:
    """Open a checkout of the picked rows, once, and follow it; where to pay is shown by `patternmill order --address`.

    Args:
        results: A run's ID, or its results file or folder. Default: what the catalog has now.
        catalog: The catalog to order from; needed if there are several.
        environment: staging, production, or another configured environment.
        sku: Order this row's product.
        picks: A CSV with the columns sku and picked (yes or no), and maybe quantity and note.
        quantity: How many of each product whose row names no quantity.
        order: The order's name: under one name no product is ordered twice.
        lines: The most lines of one checkout; further ones make another.
        wait: Wait so long for the orders of the paid checkouts: 30m, 2h. Default: do not wait.
    """
    async with Ordering(await requested_order(OrderRequest(**locals()))) as work:
        plan = await plan_checkouts(work)
        refused = await await_order_approval(work, plan)
        if refused is not None:
            return state_of(Outcome.CANCELLED, rejection(refused).message)
        try:
            await work.begin(plan)
        except Overlap as overlap:
            return state_of(Outcome.SKIPPED_OVERLAP, str(overlap))
        for number, checkout in enumerate(plan.checkouts, 1):
            await open_checkout(work, checkout, number)
        await work.close()
        ending = await work.ending(plan)
        if wait is not None:
            ending = await wait_for_orders(work, ending, wait_time(wait))
        await show_order(ending)
        return state_of(ending.outcome, ending.sentence)
