"""What an order of samples would open: the picks of a person as checkouts, and what is known of them from before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts, checkouts_of_products
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.orders.picked_lines import decided_picks, fitting_picks, named_picks
from patternmill.planning.items import Item, Scope, catalog_of, checkout_item
from patternmill.planning.proposal import Proposal, order_proposal
from patternmill.results.file_origin import require_environment
from patternmill.results.picks import Picks
from patternmill.runs.request import OrderRequest
from patternmill.settings import Settings, in_environment, read_settings
from patternmill.states import AttemptState
from patternmill.text import moment


@dataclass(frozen=True)
class OrderSpec:
    """A request, completed: from which catalog, and whose rows."""

    settings: Settings
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
    decided, named = named_picks(request)
    wanted = in_environment(settings, request.environment)
    with open_ledger(wanted, must_exist=True) as ledger:
        environment, catalog = _scope_with(ledger, request)
        record = find_run(ledger, decided or LATEST, environment=environment, catalog=catalog)
        if decided is not None:
            assert request.picks is not None, "the decisions are in a file"
            require_environment(request.picks.name, record, request.environment, settings)
        if decided is not None or request.is_empty:
            picks = decided_picks(ledger, record, request, wanted.home)
        else:
            picks = fitting_picks(ledger, record, request, named)
    its = in_environment(settings, record.environment)
    return OrderSpec(its, record.catalog, picks, request.order, request.lines)


def _scope_with(ledger: Ledger, request: OrderRequest) -> tuple[str | None, str | None]:
    """The environment and the catalog that are named; else those of the one catalog that has all skus, if there is."""
    having = [ledger.catalogs.having(sku, request.environment) for sku in request.sku if not request.catalog]
    common = set.intersection(*having) if having else set()
    return common.pop() if len(common) == 1 else (request.environment, request.catalog)


def spec_of_checkout(record: CheckoutRecord) -> OrderSpec:
    """For questions about a checkout that is open already. Raises ConfigurationError."""
    settings = in_environment(read_settings(), record.environment)
    return OrderSpec(settings, catalog_of(record.scope), Picks(()))


#: A checkout that is not asked for, or was refused or given up, is asked for now; of one in doubt the same request is
#: sent again, as its answer is missing; what is held a person decides; open is to be paid, as far as is known.
NEW, IN_DOUBT = "new", "in doubt"
_STATUSES = {
    AttemptState.SUCCEEDED: "open",
    AttemptState.INTENDED: IN_DOUBT,
    AttemptState.ACCEPTED: "held",
    AttemptState.HELD: "held",
}


def status_of(record: CheckoutRecord) -> str:
    """What is known of a checkout, in a word or two."""
    if record.is_paid:
        return "paid"
    if record.is_cancelled:
        return "cancelled"
    return NEW if record.attempt is None else _STATUSES.get(record.attempt.state, NEW)


@dataclass(frozen=True)
class OrderPlan:
    """What would be ordered, under which name; nothing is sent for it."""

    scope: Scope
    name: str
    #: Each with what is known of it.
    checkouts: tuple[tuple[Item, CheckoutRecord], ...]
    #: What a person should know before paying.
    notes: tuple[str, ...] = ()

    @property
    def proposal(self) -> Proposal:
        new, in_doubt = (
            [item for item, known in self.checkouts if status_of(known) == status]
            for status in (NEW, IN_DOUBT)
        )
        return order_proposal(self.scope, self.name, new, in_doubt)

    @property
    def lines(self) -> tuple[PickedLine, ...]:
        return tuple(line for _, known in self.checkouts for line in known.lines)


def plan_order(ledger: Ledger, spec: OrderSpec, lines: Sequence[PickedLine]) -> OrderPlan:
    """The checkouts of these lines. Raises InputRefused for what is ordered already under the same name."""
    scope, known = spec.scope, {record.key: record for record in checkouts_of(ledger, spec)}
    planned: dict[ItemKey, tuple[Item, CheckoutRecord]] = {}
    for first in range(0, len(lines), spec.lines):
        part = tuple(lines[first : first + spec.lines])
        item = checkout_item(scope, spec.name, ((line.product_id, line.quantity) for line in part))
        new = CheckoutRecord(item.key, scope.environment, scope.catalog, spec.name, part)
        planned[item.key] = item, known.get(item.key, new)
    of_products = checkouts_of_products(ledger, [line.product_key for line in lines])
    notes: list[str] = []
    twice: list[str] = []
    for line in lines:
        for record in of_products.get(line.product_key, ()):
            if record.key in planned or record.environment != scope.environment:
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
    return OrderPlan(scope, spec.name, tuple(planned.values()), tuple(notes))


def checkouts_of(ledger: Ledger, spec: OrderSpec) -> list[CheckoutRecord]:
    return checkouts(ledger, environment=spec.scope.environment, scope=spec.scope.catalog)


def ordered_line(record: CheckoutRecord) -> str:
    """When something was ordered, under which IDs, and what the service shows of it."""
    assert record.order is not None, "it is shown"
    order = record.order
    named = f"order {order.order_id}" if order.order_id else f"the order of checkout {record.checkout_id}"
    status = f", {order.status}" if order.status else ""
    return f"{named}{status}; seen first on {moment(order.since)} UTC, as part of {record.order_name!r}"
