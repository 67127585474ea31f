"""Orders: one checkout a name for products that a catalog has, the address where it is paid, and its order."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from patternmill.engine import Engine
from patternmill.errors import Halted, Refusal
from patternmill.halt import Admission, Halt, stops
from patternmill.items import Item, Stage, checkout_item
from patternmill.ledger import catalogs
from patternmill.ledger.attempts import last_attempts
from patternmill.ledger.checkouts import claim, find_checkout, note_order
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Verdict
from patternmill.ledger.leases import Lease
from patternmill.ledger.purchases import Purchases, check_environment
from patternmill.mark import check_marks, write_marks
from patternmill.plan import Step, next_action
from patternmill.service.client import Client
from patternmill.settings import STUDIO, Settings
from patternmill.states import Attempt, CatalogRow, Outcome, State
from patternmill.text import counted, sku_key

#: What has come to nothing, so that its name can be given to other lines.
_VOID = frozenset({State.FAILED, State.REJECTED, State.WRITTEN_OFF})


@dataclass(frozen=True)
class Line:
    """A product that is ordered."""

    sku: str
    product_id: str
    quantity: int


@dataclass(frozen=True)
class OrderPlan:
    """The lines of an order; `left_out` says in sentences which rows are not among them, and why."""

    catalog: str
    lines: tuple[Line, ...]
    left_out: tuple[str, ...] = ()

    @property
    def pieces(self) -> int:
        return sum(line.quantity for line in self.lines)

    @property
    def words(self) -> str:
        return f"{counted(len(self.lines), 'product')}, {counted(self.pieces, 'piece')}"


@dataclass(frozen=True)
class Checkout:
    """A checkout that a person pays at its address; `order` is what the service says of its order, empty before."""

    name: str
    checkout_id: str
    address: str
    pieces: int
    order: str = ""

    @property
    def words(self) -> str:
        """Return what a person is told of it."""
        if self.order:
            return f"{self.name}: ordered, {self.order}."
        place = self.address or "The service named no address: look in its console."
        return f"{self.name}: {counted(self.pieces, 'piece')} to be paid. {place}"


def plan_order(
    database: Database,
    environment: str,
    catalog: str,
    quantities: Mapping[str, int] | None,
    quantity: int = 1,
) -> OrderPlan:
    """Return the lines of an order: of these skus with their quantities, or so many of each that is picked.

    Raises Refusal for a sku that the catalog does not have, and where nothing is left to order.
    """
    rows = {
        row.key: row for row in catalogs.catalog_rows(database, environment, catalog) if row.retired is None
    }
    if quantities is None:
        wanted = {name: quantity for name, row in rows.items() if row.verdict == Verdict.PICK}
    else:
        wanted = {sku_key(sku): number for sku, number in quantities.items()}
        if unknown := [sku for sku in quantities if sku_key(sku) not in rows]:
            message = f"{catalog} has no sku {', '.join(unknown[:5])}."
            raise Refusal("unknown_sku", message, f"`patternmill catalog {catalog}` lists its products.")
    lines, left_out = list[Line](), list[str]()
    for name, number in wanted.items():
        row = rows[name]
        if why := _unfit(row):
            left_out.append(f"{row.sku} is left out: {why}.")
        else:
            lines.append(Line(row.sku, row.product_id, number))
    if not lines:
        remedy = " ".join(left_out) or "Pick some on the page, or name them with --sku."
        raise Refusal("nothing_to_order", f"Nothing of {catalog} can be ordered.", remedy)
    return OrderPlan(catalog, tuple(lines), tuple(left_out))


def _unfit(row: CatalogRow) -> str:
    if row.verdict == Verdict.REJECT:
        return "its pattern is rejected"
    if row.product_id:
        return ""
    return "its new product is not made yet" if row.has_product_id else "it has no product"


async def find_order(database: Database, settings: Settings, catalog: str, name: str) -> Checkout:
    """Return the checkout of a name as the service knows it now. Raises Refusal where the catalog has none."""
    check_environment(database, settings)
    found = find_checkout(database, settings.service, name)
    if not found or found.catalog != catalog or found.state != State.SUCCEEDED:
        remedy = "Say what it holds, with --sku or --picked."
        raise Refusal("no_checkout", f"{catalog} has no checkout {name} yet.", remedy)
    async with Client(settings) as client:
        return await _checkout(database, settings, client, name)


def check_order_name(database: Database, environment: str, name: str, plan: OrderPlan) -> Any:
    """Return what is on record of a name. Raises Refusal where it stands for other lines."""
    found = find_checkout(database, environment, name)
    if (
        found
        and found.item_id != _item(environment, name, plan).id
        and not (found.state is None or found.state in _VOID)
    ):
        message = f"The order {name} has other lines: {counted(found.pieces, 'piece')} of {found.catalog}."
        raise Refusal("order_exists", message, "Give this one another name.")
    return found


def _item(environment: str, name: str, plan: OrderPlan) -> Item:
    return checkout_item(environment, name, [(line.product_id, line.quantity) for line in plan.lines])


async def place_order(database: Database, settings: Settings, name: str, plan: OrderPlan) -> Checkout:
    """Return the checkout of a name, made if need be, with the order that it became. Raises Refusal.

    Again and again the same: it is one checkout, whatever crashes, and is refused with other lines.
    """
    check_environment(database, settings)
    item = _item(settings.service, name, plan)
    found = check_order_name(database, settings.service, name, plan)
    async with Client(settings) as client:
        if not found or found.item_id != item.id or found.state != State.SUCCEEDED:
            attempt = await _make(database, settings, client, item, plan, found.item_id if found else "")
            if attempt.state is not State.SUCCEEDED:
                words = f"The checkout of {name} is {attempt.state}: {attempt.message}"
                remedy = f"`patternmill explain {attempt.request_id}` says more."
                if attempt.state in _VOID:
                    raise Refusal("no_checkout", words, remedy)
                raise Halted(Outcome.FAILED, "no_checkout", words, remedy)  # it may exist
        return await _checkout(database, settings, client, name)


async def _checkout(database: Database, settings: Settings, client: Client, name: str) -> Checkout:
    """Return a checkout with the order that it became, as the service says, or as it said before."""
    found = find_checkout(database, settings.service, name)
    answer = await client.read("orders/get", {"checkoutId": found.result_id})
    if (order := _order_in(answer, found.result_id)) and order != found.made_order:
        note_order(database, settings.service, name, order)
    address = _reachable(found.address, settings)
    return Checkout(name, found.result_id, address, found.pieces, order or found.made_order)


async def _make(
    database: Database, settings: Settings, client: Client, item: Item, plan: OrderPlan, seen: str
) -> Attempt:
    """Make the checkout, with a lease of its own. Returns its attempt in the state that it reached."""
    shelf, halt = Path("results") / plan.catalog, Halt()
    check_marks([shelf], database, settings.service)
    lease = Lease(database, settings.service, plan.catalog, order=item.label)
    checkout = {
        "environment": settings.service,
        "name": item.label,
        "catalog": plan.catalog,
        "item_id": item.id,
    }

    def write(connection: Connection) -> None:
        if not claim(connection, seen=seen, pieces=plan.pieces, **checkout):
            raise Refusal("order_exists", f"The order {item.label} has just got other lines.", "Look again.")

    run = {
        "verb": "order",
        "source": item.label,
        "max_items": None,
        "budget": None,
        "currency": settings.currency,
    }
    await lease.take(run, write)
    purchases = Purchases(lease, settings)
    client.ready, client.confirm, client.halted = lease.renew, lease.confirm, halt.__bool__
    await purchases.stand([Stage.CHECKOUT])
    engine = Engine(
        purchases, client, halt, Admission(halt, purchases.standings), settings.in_doubt_limit.total_seconds()
    )
    last = last_attempts(database, settings.service, [item.id]).get(item.id)
    most = last.number + 1 if last else 1
    beating = asyncio.create_task(
        lease.keep(halt.set, lambda: write_marks([shelf], database, settings.service))
    )
    outcome = Outcome.FAILED
    try:
        with stops.watched(halt):
            if not await engine.admission.admit(Stage.CHECKOUT):
                raise halt.first_reason or Refusal("stopped", "It was stopped.")
            attempt = await engine.make(Step(item, next_action(last, most, True), most, last, True))
        outcome = Outcome.COMPLETED if attempt.state is State.SUCCEEDED else Outcome.FAILED
        return attempt
    finally:
        beating.cancel()
        await lease.give_back(outcome, plan.words)
        write_marks([shelf], database, settings.service)


def _order_in(answer: Any, checkout_id: str) -> str:
    """Return what an answer says of the order of a checkout; empty where it shows none, or another one's."""
    order = answer.get("order", answer) if isinstance(answer, dict) else None
    if not isinstance(order, dict) or order.get("checkoutId", checkout_id) != checkout_id:
        return ""
    texts = [
        str(order[name])[:100] for name in ("orderId", "status") if isinstance(order.get(name), str | int)
    ]
    is_made = isinstance(order.get("orderId"), str | int) and " ".join(texts).isprintable()
    return " ".join(texts) if is_made else ""


def _reachable(address: str, settings: Settings) -> str:
    """Return an address of the embedded studio where it is now: at another port each time it is started."""
    if settings.service != STUDIO or not address:
        return address
    return urlsplit(address)._replace(netloc=urlsplit(settings.studio_url).netloc).geturl()
