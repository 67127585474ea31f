"""An order: the products of the picked rows in checkouts, and what has become of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from patternmill.engine.progress import HaltReason
from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus, checkouts
from patternmill.orders.orderable_rows import OrderableRows
from patternmill.planning.items import Item, Scope, checkout_item
from patternmill.planning.proposal import Proposal, order_proposal
from patternmill.states import Outcome
from patternmill.tables.picks import Picks
from patternmill.text import moment, plural


@dataclass(frozen=True)
class Order:
    """An order as a person asked for it, with its checkouts once planned and their states once opened."""

    catalog: Scope
    picks: Picks
    name: str
    #: The most lines of one checkout.
    most_lines: int
    #: As the ledger has them.
    checkouts: tuple[CheckoutRecord, ...] = ()
    #: Why picked rows are not ordered, by sku.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: What a person should know before paying.
    notes: tuple[str, ...] = ()
    #: Why no further checkouts were opened.
    halt: HaltReason | None = None
    #: Whether payments were waited for.
    was_followed: bool = False

    @property
    def scope(self) -> Scope:
        """Return the scope of its checkouts."""
        return self.catalog.of_orders

    @property
    def lines(self) -> tuple[PickedLine, ...]:
        """Return the lines of all checkouts, by sku."""
        return tuple(line for record in self.checkouts for line in record.lines)

    @property
    def proposal(self) -> Proposal:
        """Return what a person approves: what is left to do, with its digest."""
        new, in_doubt = (
            [item_of(record) for record in self.checkouts if record.status is status]
            for status in (CheckoutStatus.NEW, CheckoutStatus.IN_DOUBT)
        )
        return order_proposal(self.scope, self.name, new, in_doubt)

    def planned(self, ledger: Ledger) -> Order:
        """Return the order with its checkouts, by the catalog as it is now.

        Raises InputRefused, which lists what is wrong with the picks, or what this order name has ordered already.
        """
        rows = OrderableRows(ledger, self.catalog)
        lines, left_out = rows.lines(self.picks)
        others = {record.key: record for record in related_checkouts(ledger, self)}
        if not self.picks.are_named:
            lines, ordered = _without_ordered(self, lines, others.values())
            left_out |= ordered
        parts = [lines[first : first + self.most_lines] for first in range(0, len(lines), self.most_lines)]
        planned = [others.pop(new.key, new) for new in (_new_checkout(self, part) for part in parts)]
        notes = [self.picks.note] if self.picks.note else []
        outdated = [line.sku for line in lines if rows.is_outdated(line)]
        notes += [
            f"{sku} has an earlier product: what was requested since has not been made." for sku in outdated
        ]
        notes += _notes(self, {line.sku: line for line in lines}, others.values())
        return replace(self, checkouts=tuple(planned), left_out=left_out, notes=tuple(notes))

    @property
    def pending(self) -> list[CheckoutRecord]:
        """Return the checkouts that are open and not paid."""
        return [record for record in self.checkouts if record.status is CheckoutStatus.OPEN]

    @property
    def failed(self) -> list[CheckoutRecord]:
        """Return the checkouts that are neither open nor ordered."""
        return [record for record in self.checkouts if record.checkout_id is None]

    @property
    def outcome(self) -> Outcome:
        """Return the outcome that the exit code stands for, once its checkouts were opened."""
        if self.failed and self.halt is not None:
            return self.halt.outcome
        if self.failed and len(self.failed) == len(self.checkouts):
            return Outcome.FAILED
        is_cancelled = any(record.status is CheckoutStatus.CANCELLED for record in self.checkouts)
        is_partial = self.failed or is_cancelled or (self.was_followed and self.pending)
        return Outcome.COMPLETED_WITH_FAILURES if is_partial else Outcome.COMPLETED

    @property
    def sentence(self) -> str:
        """Return a sentence about what has become of its checkouts."""
        counts = Counter[str](record.status for record in self.checkouts)
        counts["not opened"] = len(self.failed)
        names = ("paid", "open", *(name for name in ("cancelled", "not opened") if counts[name]))
        parts = ", ".join(f"{counts[name]} {name}" for name in names)
        text = f"{plural(len(self.checkouts), 'checkout')}: {parts}"
        return f"{text}. {self.halt.message}" if self.failed and self.halt is not None else text


def item_of(record: CheckoutRecord) -> Item:
    """Return the item of a checkout, which follows from its lines."""
    lines = ((line.product_id, line.quantity) for line in record.lines)
    return checkout_item(Scope(record.environment, record.scope), record.order_name, lines)


def related_checkouts(ledger: Ledger, order: Order) -> list[CheckoutRecord]:
    """Return the checkouts with any row of an order, whichever of its products, the oldest first."""
    records = checkouts(ledger, environment=order.scope.environment, scope=order.scope.catalog)
    return [record for record in records if any(line.sku in order.picks.skus for line in record.lines)]


def _new_checkout(order: Order, lines: tuple[PickedLine, ...]) -> CheckoutRecord:
    record = CheckoutRecord(ItemKey(""), order.scope.environment, order.scope.catalog, order.name, lines)
    return replace(record, key=item_of(record).key)


def _without_ordered(
    order: Order, lines: tuple[PickedLine, ...], records: Iterable[CheckoutRecord]
) -> tuple[tuple[PickedLine, ...], dict[str, str]]:
    """Return the lines that were not ordered under this name, and by sku when the others were.

    If all were ordered: all of them, as the same command shows their order again.
    """
    same = [record for record in records if record.is_ordered and record.order_name == order.name]
    ordered = {(line.sku, line.product_key): ordered_line(record) for record in same for line in record.lines}
    left = tuple(line for line in lines if (line.sku, line.product_key) not in ordered)
    if not left:
        return lines, {}
    return left, {line.sku: ordered[line.sku, line.product_key] for line in lines if line not in left}


def _notes(order: Order, lines: Mapping[str, PickedLine], others: Iterable[CheckoutRecord]) -> Iterator[str]:
    """Yield in which other checkouts its rows are. Raises InputRefused if this name has ordered some already."""
    twice: list[str] = []
    places = [(record, line) for record in others for line in record.lines if line.sku in lines]
    for record, line in places:
        is_same = line.product_key == lines[line.sku].product_key
        what = line.sku if is_same else f"An earlier product of {line.sku}"
        # An edited command is not meant as a second order.
        if record.is_ordered and is_same and record.order_name == order.name:
            twice.append(f"  {line.sku}: {ordered_line(record)}")
        elif record.is_ordered:
            yield f"{what} was ordered before: {ordered_line(record)}."
        elif record.status is CheckoutStatus.OPEN:
            yield f"{what} is in checkout {record.checkout_id} too, which is open: pay one of the two."
    if twice:
        raise InputRefused(
            "\n".join(("Some of this is ordered already:", *twice, "")),
            code="ordered_already",
            remedy="Leave it out; or, to order it once more, give it another name with --order. Nothing was sent.",
        )


def ordered_line(record: CheckoutRecord) -> str:
    """Return when something was ordered, under which IDs, and what the service shows of it."""
    assert record.order is not None, "it is shown"
    order = record.order
    named = f"order {order.order_id}" if order.order_id else f"the order of checkout {record.checkout_id}"
    status = f", {order.status}" if order.status else ""
    return f"{named}{status}; first seen on {moment(order.since)} UTC, under the name {record.order_name!r}"
