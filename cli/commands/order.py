"""The verb `order`: samples of picked rows, as checkouts that a person pays, and the orders that become of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import click

from cli.available_service import available_service
from cli.run_options import approve_option, request_command, run_options
from cli.terminal import echo, echo_lines
from patternmill.errors import Overlap, ServiceStopped
from patternmill.parameters import wait_time
from patternmill.runs.request import OrderRequest
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.ledger.reports.order_report import CheckoutRecord
    from patternmill.orders.order_plan import OrderSpec
    from patternmill.orders.ordering import Ordering

#: On a terminal: the page to pay at ends with the command.
_EMBEDDED_WAIT = "1h"


@click.command("order", cls=request_command(OrderRequest))
@run_options(OrderRequest, declared=())
@approve_option
@click.option("--plan-only", is_flag=True, help="Show what would be ordered; no checkout is opened.")
@click.option("--refresh", is_flag=True, help="Only ask what has become of open checkouts and latest orders.")
@click.option("--address", metavar="CHECKOUT", help="Only show the address of this open checkout again.")
def command(
    request: OrderRequest, approve: str | None, plan_only: bool, refresh: bool, address: str | None
) -> int:
    """Order samples of the rows that a person picked: by --sku, --category and the like, or in a file of picks.

    Opens a checkout at the service (several, where there are many lines) and shows its address, where a person pays.
    The same command again opens nothing new: it shows the address as long as the checkout is not paid, and the order
    once it is. What the catalog has now is ordered. Whoever has the address can pay, so it is kept nowhere: each time
    it is asked for again.

    \b
    Examples:
      patternmill order --sku SPR-CUS-001 --sku SPR-MUG-004 --quantity 2
      patternmill order --picks picks.csv --wait 2h
      patternmill order --address chk_4c1f

    Exit codes: 0 every checkout is open, or ordered where that was waited for; 3 some are not; 2 refused or not
    approved, and nothing was opened; 1 failed; 4 another order from this catalog goes on; 130 interrupted.
    """
    if (refresh or address) and not request.is_empty:
        raise click.UsageError("--refresh and --address order nothing: name no rows.")
    if address is not None:
        return _show_address(request, address)
    if refresh:
        return _refresh(request)
    # Late, so that --help waits for no pictures: what was picked is read with them.
    from patternmill.orders.order_plan import order_spec

    spec = order_spec(request)
    with available_service(spec.settings) as settings:
        return asyncio.run(_order(replace(spec, settings=settings), request, approve, plan_only))


async def _order(spec: OrderSpec, request: OrderRequest, approve: str | None, plan_only: bool) -> int:
    from cli.approval_prompt import is_approved
    from patternmill.orders.order_text import checkout_lines, plan_lines
    from patternmill.orders.ordering import Ordering

    async with Ordering(spec) as work, _notice_of_waiting(work):
        plan = await work.plan()
        if plan_only:
            echo_lines(plan_lines(plan))
            return EXIT_CODES[Outcome.COMPLETED]
        if not await is_approved(spec.settings, plan.proposal, approve, lambda: plan_lines(plan)):
            return EXIT_REFUSED
        echo_lines(f"Note: {note}" for note in plan.notes)
        try:
            await work.begin(plan)
        except Overlap as overlap:
            echo(str(overlap), err=True)
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        wait = request.wait or (_EMBEDDED_WAIT if spec.settings.embedded and sys.stdout.isatty() else None)
        for item, _ in plan.checkouts:
            record = await work.open(item)
            echo_lines(checkout_lines(record))
            if wait is not None or not spec.settings.embedded:
                await _echo_address(work, record)
        await work.close()
        if wait is not None:
            await _wait(work, wait)
    echo(work.sentence.removesuffix(".") + ".")
    if spec.settings.embedded and wait is None and work.pending:
        echo("The embedded studio ends with this command: add --wait to pay at its page.")
    return EXIT_CODES[work.outcome]


@asynccontextmanager
async def _notice_of_waiting(work: Ordering) -> AsyncIterator[None]:
    """Say once that the service does not answer well, instead of nothing for as long as it is tried."""

    async def notice() -> None:
        while not work.waiting:  # noqa: ASYNC110 - a notice for people, about nothing that could be awaited
            await asyncio.sleep(1)
        echo(f"The order is {work.waiting}.", err=True)

    watch = asyncio.create_task(notice())
    try:
        yield
    finally:
        watch.cancel()


async def _wait(work: Ordering, wait: str) -> None:
    from patternmill.orders.order_text import checkout_lines

    if work.pending:
        echo(f"Waiting for {wait} at most; stopped, the same command goes on.")
    await work.wait(wait_time(wait), on_change=lambda record: echo_lines(checkout_lines(record)))


async def _echo_address(work: Ordering, record: CheckoutRecord) -> None:
    if not record.is_unpaid:
        return
    try:
        echo(f"  Pay here: {await work.address(record)}")
    except ServiceStopped as error:
        echo(f"  {error}", err=True)


def _show_address(request: OrderRequest, checkout_id: str) -> int:
    from patternmill.orders.order_text import checkout_lines
    from patternmill.orders.ordering import called_checkout

    record = called_checkout(request.environment, checkout_id)

    async def show(work: Ordering) -> int:
        now = await work.refresh(record)
        echo_lines(checkout_lines(now))
        if now.is_unpaid:
            echo(f"  Pay here: {await work.address(now)}")
        return EXIT_CODES[Outcome.COMPLETED]

    return _asked(record, show)


def _refresh(request: OrderRequest) -> int:
    """Ask for the orders of the open checkouts, and for the latest ones, an environment after the other."""
    from patternmill.orders.ordering import current_checkouts

    found = sorted(current_checkouts(request.environment, request.catalog), key=lambda one: one.environment)
    codes = [_refresh_all(list(group)) for _, group in groupby(found, key=lambda one: one.environment)]
    if not found:
        echo("There is no checkout.")
    return max(codes, default=EXIT_CODES[Outcome.COMPLETED])


def _refresh_all(records: list[CheckoutRecord]) -> int:
    from patternmill.orders.order_text import checkout_lines

    async def ask(work: Ordering) -> int:
        code = EXIT_CODES[Outcome.COMPLETED]
        for record in records:
            try:
                echo_lines(checkout_lines(await work.refresh(record)))
            except ServiceStopped as stopped:
                echo(f"Checkout {record.checkout_id}: {stopped}", err=True)
                code = EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES]
        return code

    return _asked(records[0], ask)


def _asked(record: CheckoutRecord, steps: Callable[[Ordering], Awaitable[int]]) -> int:
    """Do something at the service that a checkout is at."""
    from patternmill.orders.order_plan import spec_of_checkout
    from patternmill.orders.ordering import Ordering

    async def main(spec: OrderSpec) -> int:
        async with Ordering(spec) as work:
            return await steps(work)

    spec = spec_of_checkout(record)
    with available_service(spec.settings) as settings:
        return asyncio.run(main(replace(spec, settings=settings)))
