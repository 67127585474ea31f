"""The verb `order`: samples of picked rows, as checkouts that a person pays, and the orders that become of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from cli.json_output import Part, fields_of, show, show_parts
from cli.run_options import verb
from cli.services import available_service
from cli.terminal import can_ask, echo, echo_lines
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.checkouts import (
    CheckoutRecord,
    CheckoutStatus,
    checkout_called,
    checkouts,
)
from patternmill.orders.order_plan import Order, checkout_lines, note_lines, plan_lines
from patternmill.parameters import wait_time
from patternmill.planning.items import catalog_of
from patternmill.runs.request import OrderRequest
from patternmill.settings import Settings, load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration, shown

if TYPE_CHECKING:
    from patternmill.orders.ordering import Ordering

#: The time for which an order at the embedded studio is followed on a terminal: its page ends with the command.
_EMBEDDED_WAIT = "1h"
#: The number of paid orders, the latest ones, that `--refresh` asks about.
_LATEST = 20


@verb("order", OrderRequest, approves=True)
@click.option("--plan-only", is_flag=True, help="Show what would be ordered; no checkout is opened.")
@click.option("--refresh", is_flag=True, help="Only ask what became of open checkouts and the latest orders.")
@click.option("--address", metavar="CHECKOUT", help="Only show the address of this open checkout again.")
def command(
    request: OrderRequest, approve: str | None, plan_only: bool, refresh: bool, address: str | None
) -> int:
    """Order samples of rows: those of --sku, --category and the like, or of a file of picks; by default your picks.

    Opens a checkout (several, where there are many lines) and shows its address, where a person pays. The same command
    again opens nothing new: it shows the address until the checkout is paid, and then the order. Anyone who has the
    address can pay, so it is stored nowhere; it is asked for again each time.

    \b
    Examples:
      patternmill order --sku SPR-CUS-001 --sku SPR-MUG-004 --quantity 2
      patternmill order --picks picks.csv --wait 2h
      patternmill order --address chk_4c1f

    Exit codes: 0 every checkout is open, or paid where that was waited for; 3 some are not; 2 refused or not approved,
    and nothing was opened; 1 failed; 4 another order from this catalog goes on; 130 interrupted.
    """
    if (refresh or address) and not request.is_empty:
        raise click.UsageError("--refresh and --address order nothing: name no rows.")
    if address is not None:
        record = _called(request.environment, address)
        return _with_service(record.environment, partial(_show_address, record=record))
    if refresh:
        return _refresh(request.environment, request.catalog)
    # Imported here so that --help does not wait for what draws pictures.
    from patternmill.orders.picked_rows import read_order

    order = read_order(request)
    steps = partial(_order, order=order, wait=request.wait, approve=approve, plan_only=plan_only)
    return _with_service(order.scope.environment, steps)


async def _order(work: Ordering, order: Order, wait: str | None, approve: str | None, plan_only: bool) -> int:
    from cli.approval_prompt import is_approved

    settings, addresses = work.settings, dict[str, str]()
    wait = wait or (_EMBEDDED_WAIT if settings.embedded and can_ask() else None)

    async def opened(record: CheckoutRecord) -> None:
        echo_lines(checkout_lines(record))
        if record.status is CheckoutStatus.OPEN and (wait is not None or not settings.embedded):
            try:
                addresses[record.key] = await work.address(record)
                echo(f"  Pay here: {addresses[record.key]}")
            except ServiceStopped as error:
                echo(f"  {error}", err=True)

    async with _notice_of_waiting(work):
        order = await work.plan(order)
        if plan_only:
            show(lambda: _report(order, addresses), plan_lines(order))
            return EXIT_CODES[Outcome.COMPLETED]
        await work.refuse_paused(order)
        if not is_approved(settings, order.proposal, approve, lambda: plan_lines(order)):
            return EXIT_REFUSED
        echo_lines(note_lines(order))
        order = await work.open(order, opened)
        if wait is not None:
            if order.pending:
                time = duration(wait_time(wait))
                echo(f"Waiting up to {time}. If you stop, run the same command to continue.")
            order = await work.follow(
                order, wait_time(wait), lambda record: echo_lines(checkout_lines(record))
            )
    show(lambda: _report(order, addresses), [order.sentence.removesuffix(".") + "."])
    if settings.embedded and wait is None and order.pending:
        echo("The embedded studio ends with this command: add --wait to pay at its page.")
    return EXIT_CODES[order.outcome]


def _report(order: Order, addresses: Mapping[str, str]) -> dict[str, object]:
    """Return an order for programs; `addresses`: where a person pays, by the keys of the checkouts."""
    opened = [{**_fields(record), "address": addresses.get(record.key)} for record in order.checkouts]
    fields = fields_of(order, "left_out", "notes")
    return {"order": order.name, "digest": order.proposal.digest, **fields, "checkouts": opened}


def _fields(record: CheckoutRecord) -> dict[str, object]:
    lines = [fields_of(line, "sku", "product_id", "quantity", "note") for line in record.lines]
    order_id = record.order.order_id if record.order is not None else None
    fields = fields_of(record, "checkout_id", "environment", "order_name", "status")
    return {**fields, "order_id": order_id, "lines": lines}


@asynccontextmanager
async def _notice_of_waiting(work: Ordering) -> AsyncIterator[None]:
    """Say once that the service does not answer well, rather than stay silent for as long as it is retried."""

    async def notice() -> None:
        while not work.waiting:  # noqa: ASYNC110 - a notice for people, about nothing that could be awaited
            await asyncio.sleep(1)
        echo(f"The order is {work.waiting}.", err=True)

    watch = asyncio.create_task(notice())
    try:
        yield
    finally:
        watch.cancel()


def _called(environment: str | None, checkout_id: str) -> CheckoutRecord:
    with open_ledger(load_settings(environment), must_exist=True) as ledger:
        record = checkout_called(ledger, checkout_id)
    if record is None:
        raise ConfigurationError(
            f"There is no checkout {shown(checkout_id)} in this ledger.", remedy="See `patternmill status`."
        )
    return record


async def _show_address(work: Ordering, record: CheckoutRecord) -> int:
    record = await work.refresh(record)
    echo_lines(checkout_lines(record))
    address = await work.address(record) if record.status is CheckoutStatus.OPEN else None
    show(lambda: {**_fields(record), "address": address}, [f"  Pay here: {address}"] if address else [])
    return EXIT_CODES[Outcome.COMPLETED]


def _refresh(environment: str | None, catalog: str | None) -> int:
    """Ask what became of the open checkouts and the latest orders, one environment after the other."""
    with open_ledger(load_settings(environment), must_exist=True) as ledger:
        every = checkouts(ledger, environment=environment)
    records = [record for record in every if catalog in (None, catalog_of(record.scope))]
    paid = [record for record in records if record.status is CheckoutStatus.PAID]
    due = defaultdict[str, list[CheckoutRecord]](list)
    for record in records:
        if record.status is CheckoutStatus.OPEN or record in paid[-_LATEST:]:
            due[record.environment].append(record)
    parts = list[Part]()
    codes = [_with_service(name, partial(_ask_about, records=due[name], parts=parts)) for name in sorted(due)]
    show_parts({"checkouts": parts or [({}, "There is no checkout.")]})
    return max(codes, default=EXIT_CODES[Outcome.COMPLETED])


async def _ask_about(work: Ordering, records: list[CheckoutRecord], parts: list[Part]) -> int:
    """Add what has become of checkouts; return the exit code."""
    outcome = Outcome.COMPLETED
    for record in records:
        try:
            now = await work.refresh(record)
            parts.append((_fields(now), "\n".join(checkout_lines(now))))
        except ServiceStopped as stopped:
            echo(f"Checkout {record.checkout_id}: {stopped}", err=True)
            outcome = Outcome.COMPLETED_WITH_FAILURES
    return EXIT_CODES[outcome]


def _with_service(environment: str, steps: Callable[[Ordering], Awaitable[int]]) -> int:
    """Run the steps of an order at the service of an environment; return the exit code."""
    from patternmill.orders.ordering import Ordering

    async def main(settings: Settings) -> int:
        async with Ordering(settings) as work:
            return await steps(work)

    with available_service(load_settings(environment)) as settings:
        return asyncio.run(main(settings))
