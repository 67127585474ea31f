"""Order samples: the rows that a person picked become checkouts, and orders once they are paid."""

from typing import Any

from prefect import State, flow

from patternmill.errors import Overlap
from patternmill.orders.ordering import Ordering
from patternmill.parameters import wait_time
from patternmill.runs.approval import rejection
from patternmill.runs.request import OrderRequest
from patternmill.states import Outcome
from tasks.approval_form import await_decision
from tasks.checkout_tasks import (
    open_checkout,
    order_page,
    plan_checkouts,
    requested_order,
    show_order,
    wait_for_orders,
)
from tasks.flow_parameters import asks_for
from tasks.prefect_states import state_of


@flow(name="order-samples", flow_run_name="order {order}", persist_result=False)
@asks_for(OrderRequest, "results", "catalog", "environment")
async def order_samples(**asked: Any) -> State[Any]:
    """Open a checkout of the picked rows, once, and follow it; `patternmill order --address` shows where to pay."""
    request = OrderRequest(**asked)
    async with Ordering(await requested_order(request)) as work:
        plan = await plan_checkouts(work)
        refused = await await_decision(work.spec, plan.proposal, lambda: order_page(plan))
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
        if request.wait is not None:
            ending = await wait_for_orders(work, ending, wait_time(request.wait))
        await show_order(ending)
        return state_of(ending.outcome, ending.sentence)
