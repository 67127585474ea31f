"""What an order of samples would open: the picks of a person as checkouts, and what is known of them from before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from patternmill.engine.options import RunOptions
from patternmill.errors import InputRefused
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts, checkouts_of_products
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.looking.decision_files import decided_run
from patternmill.orders.picked_lines import decided_picks, fitting_picks, picks_of
from patternmill.planning.items import CheckoutItem, Scope, catalog_of, checkout_content
from patternmill.planning.proposal import Proposal, order_proposal
from patternmill.results.picks import Picks
from patternmill.runs.request import OrderRequest
from patternmill.settings import Settings, in_environment, read_settings
from patternmill.states import AttemptState
from patternmill.text import moment


@dataclass(frozen=True)
class OrderSpec:
    """A request, completed: from which catalog, and whose rows."""

    settings: Settings
    options: RunOptions
    catalog: str
    picks: Picks
    name: str = "samples"
    lines: int = 50

    @property
    def scope(self) -> Scope:
        return Scope(self.settings.environment, self.catalog).of_orders


def order_spec(request: OrderRequest) -> OrderSpec:
    """Raises ConfigurationError and InputRefused."""
    settings = read_settings()
    named = picks_of(request)
    wanted = in_environment(settings, request.environment)
    with open_ledger(wanted, must_exist=True) as ledger:
        scope = (request.environment, request.catalog)
        if request.catalog is None:
            scope = _scope_with(ledger, request)
        decided = decided_run(request.picks) if request.picks is not None else None
        record = find_run(ledger, decided or LATEST, environment=scope[0], catalog=scope[1])
        picks = decided_picks(ledger, record, request, wanted.home)
        picks = picks or fitting_picks(ledger, record, request, named)
    its = in_environment(settings, record.environment)
    return OrderSpec(
        settings=its,
        options=RunOptions.from_settings(its),
        catalog=record.catalog,
        picks=picks,
        name=request.order,
        lines=request.lines,
    )


def _scope_with(ledger: Ledger, request: OrderRequest) -> tuple[str | None, str | None]:
    """The environment and the catalog that alone has all skus of the request, if there is one."""
    having = [ledger.catalogs_with(sku, request.environment) for sku in request.sku]
    common = set.intersection(*having) if having else set()
    return common.pop() if len(common) == 1 else (request.environment, None)


def spec_of_checkout(record: CheckoutRecord) -> OrderSpec:
    """For questions about a checkout that is open already. Raises ConfigurationError."""
    settings = in_environment(read_settings(), record.environment)
    return OrderSpec(settings, RunOptions.from_settings(settings), catalog_of(record.scope), Picks(()))


class CheckoutStatus(StrEnum):
    """What is known of a checkout."""

    #: Not asked for, or refused, or given up: it is asked for now.
    NEW = "new"
    #: Asked for, and the answer is missing: the same request is sent again.
    IN_DOUBT = "in_doubt"
    #: A person decides.
    HELD = "held"
    #: Open to be paid, as far as is known.
    OPEN = "open"
    #: The service says so.
    PAID = "paid"
    #: The service says so, and nobody paid it before.
    CANCELLED = "cancelled"


_STATUSES = {
    AttemptState.SUCCEEDED: CheckoutStatus.OPEN,
    AttemptState.INTENDED: CheckoutStatus.IN_DOUBT,
    AttemptState.ACCEPTED: CheckoutStatus.HELD,
    AttemptState.HELD: CheckoutStatus.HELD,
}


def status_of(record: CheckoutRecord | None) -> CheckoutStatus:
    if record is None or record.attempt is None:
        return CheckoutStatus.NEW
    if record.is_cancelled:
        return CheckoutStatus.CANCELLED
    return CheckoutStatus.PAID if record.is_paid else _STATUSES.get(record.attempt.state, CheckoutStatus.NEW)


@dataclass(frozen=True)
class PlannedCheckout:
    """One checkout of the order, with its rows, and what is known of it."""

    item: CheckoutItem
    lines: tuple[PickedLine, ...]
    known: CheckoutRecord | None = None

    @property
    def status(self) -> CheckoutStatus:
        return status_of(self.known)


@dataclass(frozen=True)
class OrderPlan:
    """What would be ordered, under which name; nothing is sent for it."""

    scope: Scope
    name: str
    checkouts: tuple[PlannedCheckout, ...]
    #: What a person should know before paying.
    notes: tuple[str, ...] = ()

    @property
    def proposal(self) -> Proposal:
        new, in_doubt = (
            [checkout.item for checkout in self.checkouts if checkout.status is status]
            for status in (CheckoutStatus.NEW, CheckoutStatus.IN_DOUBT)
        )
        return order_proposal(self.scope, self.name, new, in_doubt)

    @property
    def lines(self) -> tuple[PickedLine, ...]:
        return tuple(line for checkout in self.checkouts for line in checkout.lines)


def plan_order(ledger: Ledger, spec: OrderSpec, lines: Sequence[PickedLine]) -> OrderPlan:
    """The checkouts of these lines. Raises InputRefused for what is ordered already under the same name."""
    known = {record.key: record for record in checkouts_of(ledger, spec)}
    parts = [tuple(lines[first : first + spec.lines]) for first in range(0, len(lines), spec.lines)]
    planned = []
    for part in parts:
        content = checkout_content(spec.name, ((line.product_id, line.quantity) for line in part))
        item = CheckoutItem(spec.scope, content)
        planned.append(PlannedCheckout(item, part, known.get(item.key)))
    own = {checkout.item.key for checkout in planned}
    of_products = checkouts_of_products(ledger, [line.product_key for line in lines])
    notes: list[str] = []
    twice: list[str] = []
    for line in lines:
        for record in of_products.get(line.product_key, ()):
            if record.key in own or record.environment != spec.scope.environment:
                continue
            if record.is_ordered and record.order_name == spec.name and record.key in known:
                # An edited command is no second order.
                twice.append(f"  {line.sku}: {ordered_line(record)}")
            elif record.is_ordered:
                notes.append(f"{line.sku} was ordered before: {ordered_line(record)}.")
            elif record.is_unpaid:
                where = f"checkout {record.checkout_id} too, which is open"
                notes.append(f"{line.sku} is in {where}: pay one of the two.")
    if twice:
        listed = "\n".join(twice)
        raise InputRefused(
            f"Some of this is ordered already:\n{listed}\n",
            code="ordered_already",
            remedy="Leave it out; or, to order it once more, give it another name with --order. Nothing was sent.",
        )
    return OrderPlan(spec.scope, spec.name, tuple(planned), tuple(notes))


def checkouts_of(ledger: Ledger, spec: OrderSpec) -> list[CheckoutRecord]:
    return checkouts(ledger, environment=spec.scope.environment, scope=spec.scope.catalog)


def ordered_line(record: CheckoutRecord) -> str:
    """When something was ordered, under which IDs, and what the service shows of it."""
    assert record.order is not None, "it is shown"
    order = record.order
    named = f"order {order.order_id}" if order.order_id else f"the order of checkout {record.checkout_id}"
    status = f", {order.status}" if order.status else ""
    return f"{named}{status}; seen first on {moment(order.since)} UTC, as part of {record.order_name!r}"
