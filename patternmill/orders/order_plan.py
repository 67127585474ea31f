"""An order: the products of picked rows, divided into checkouts, with what has become of each, and its text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from patternmill.engine.progress import HaltReason
from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import patterns_of_products
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus, checkouts
from patternmill.planning.changes import CurrentRow
from patternmill.planning.items import Item, Scope, catalog_of, checkout_item
from patternmill.planning.proposal import Proposal, order_proposal
from patternmill.planning.rows import sku_key
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.states import Decided, Outcome, RowStatus
from patternmill.tables.picks import Pick, Picks, picks_refused
from patternmill.text import in_columns, moment, more, plain, plural, shown

_MOST_LINES = 40
_WHYS = {
    RowStatus.TO_CHOOSE: "its pattern has several takes, and none is picked: pick one with `patternmill look`",
    RowStatus.DISCARDED: "every take of its pattern was rejected: undo that with `patternmill look`",
}


class OrderableRows:
    """The rows of a catalog as it is now, with the takes that their products show and the decisions about them."""

    def __init__(self, ledger: Ledger, catalog: Scope) -> None:
        self._catalog, scope = catalog.catalog, (catalog.environment, catalog.catalog)
        self._rows = {row.sku: row for row in ledger.catalogs.rows(*scope)}
        self._requested = ledger.catalogs.requested_rows(*scope)
        self._takes, self._patterns = CatalogTakes(ledger, *scope), patterns_of_products(ledger, *scope)

    def is_picked(self, sku: str) -> bool:
        """Return whether a person picked the take that counts for the pattern of the row's product."""
        pattern = self._shown(self._rows[sku])
        choice = self._takes.choice(pattern)
        return any(take.number == choice and take.verdict is Decided.PICK for take in self._takes.of(pattern))

    def lines(self, picks: Picks) -> tuple[tuple[PickedLine, ...], dict[str, str]]:
        """Return the lines, sorted by sku however a person names them, and why rows are left out, by sku.

        Raises InputRefused, which lists everything that is wrong.
        """
        lines: list[PickedLine] = []
        left_out: dict[str, str] = {}
        problems = list(picks.problems)
        for pick in sorted(picks.picks, key=lambda pick: pick.sku):
            row = self._rows.get(pick.sku)
            # A pick with a take comes from a file of decisions, and is a decision itself.
            if pick.take is None and (why := self._why_left_out(pick.sku, row)) is not None:
                left_out[pick.sku] = why
            elif row is None or (fault := self._fault(pick, row)) is not None:
                problems.append(f"{pick.place}: {fault if row is not None else self._unknown(pick.sku)}")
            else:
                lines.append(PickedLine(pick.sku, row.product_key, row.product_id, pick.quantity, pick.note))
        if not lines and not problems:
            problems = [f"{sku}: {why}" for sku, why in left_out.items()]
        if problems:
            raise picks_refused(problems, picks.file)
        return tuple(lines), left_out

    def outdated(self, lines: Iterable[PickedLine]) -> Iterator[str]:
        """Yield a note for each row of which something else was requested since its product was made."""
        for line in lines:
            request = self._requested.get(sku_key(line.sku))
            if request is not None and request.product_key != line.product_key:
                yield f"{line.sku} has an earlier product: what was requested since has not been made."

    def _why_left_out(self, sku: str, row: CurrentRow | None) -> str | None:
        """Return the decision that keeps a row from being ordered, as a sentence; None if there is none."""
        requests = (self._requested.get(sku_key(sku)), row)
        for product in [request.product_key for request in requests if request and request.product_key]:
            if isinstance(status := self._takes.choice(self._patterns[product]), RowStatus):
                return _WHYS[status]
        if row is None:
            return None
        choice, takes = self._takes.choice(self._shown(row)), self._takes.of(self._shown(row))
        if any(take.number == choice and take.item == self._shown(row) for take in takes):
            return None
        return f"its product still shows another take than {choice}: `patternmill remake` makes the new one"

    def _unknown(self, sku: str) -> str:
        """Return a message that the catalog has no product for a row, and what to do about it."""
        why = f"see `patternmill explain {shlex.quote(plain(sku))}`"
        remedy = "name several as --sku A --sku B" if "," in sku else why
        return f"the catalog {self._catalog!r} has no product for {shown(sku)}; {remedy}"

    def _fault(self, pick: Pick, row: CurrentRow) -> str | None:
        """Return why the catalog's product for a pick cannot be ordered, with what to do; None if it can."""
        sku = shown(pick.sku)
        if row.retired_at is not None:
            return f"{sku} was retired on {moment(row.retired_at)}; leave it out"
        if pick.product_id not in (None, row.product_id):
            was = plain(str(pick.product_id))
            remedy = "pick it in the latest results, or empty the cell to order what the catalog has"
            return f"{sku} is picked as product {was}, and the catalog has {row.product_id} by now; {remedy}"
        if pick.take not in (None, self._shown(row)):
            remedy = "look at it and decide again with `patternmill look`"
            return f"the pattern that is picked for {sku} is not the one that its product shows; {remedy}"
        return None

    def _shown(self, row: CurrentRow) -> ItemKey:
        """Return the take that a row's product shows, refined or not."""
        return self._takes.unrefined(self._patterns[row.product_key])


@dataclass(frozen=True)
class Order:
    """An order as a person asked for it, with its checkouts once planned and their states once opened."""

    catalog: Scope
    picks: Picks
    name: str
    #: The most lines of one checkout.
    most_lines: int
    #: The checkouts as the ledger has them.
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
        """Return what is left to do, with its digest, for a person to approve."""
        new = [item_of(record) for record in self._with(CheckoutStatus.NEW)]
        in_doubt = [item_of(record) for record in self._with(CheckoutStatus.IN_DOUBT)]
        return order_proposal(self.scope, self.name, new, in_doubt)

    def _with(self, status: CheckoutStatus) -> list[CheckoutRecord]:
        return [record for record in self.checkouts if record.status is status]

    def planned(self, ledger: Ledger) -> Order:
        """Return the order with the checkouts that follow from the catalog as it is now.

        Raises InputRefused, which lists what is wrong with the picks, or what was ordered under this name already.
        """
        rows = OrderableRows(ledger, self.catalog)
        lines, left_out = rows.lines(self.picks)
        others = {record.key: record for record in related_checkouts(ledger, self)}
        if not self.picks.are_named:
            lines, ordered = _without_ordered(self, lines, others.values())
            left_out |= ordered
        parts = [lines[first : first + self.most_lines] for first in range(0, len(lines), self.most_lines)]
        planned = [others.pop(new.key, new) for new in (_new_checkout(self, part) for part in parts)]
        notes = (
            *filter(None, [self.picks.note]),
            *rows.outdated(lines),
            *_notes(self, {line.sku: line for line in lines}, others.values()),
        )
        return replace(self, checkouts=tuple(planned), left_out=left_out, notes=notes)

    @property
    def pending(self) -> list[CheckoutRecord]:
        """Return the checkouts that are open and not paid."""
        return self._with(CheckoutStatus.OPEN)

    @property
    def failed(self) -> list[CheckoutRecord]:
        """Return the checkouts that are neither open nor ordered."""
        return [record for record in self.checkouts if record.checkout_id is None]

    @property
    def outcome(self) -> Outcome:
        """Return the outcome that decides the exit code, once the checkouts were opened."""
        if self.failed and self.halt is not None:
            return self.halt.outcome
        if self.failed and len(self.failed) == len(self.checkouts):
            return Outcome.FAILED
        cancelled = self._with(CheckoutStatus.CANCELLED)
        is_partial = self.failed or cancelled or (self.was_followed and self.pending)
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
    """Return the checkouts with any row of an order, even with an earlier product of it, the oldest first."""
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
    """Yield notes on rows that are in other checkouts. Raises InputRefused if some were ordered under this name."""
    twice: list[str] = []
    places = [(record, line) for record in others for line in record.lines if line.sku in lines]
    for record, line in places:
        is_same = line.product_key == lines[line.sku].product_key
        what = line.sku if is_same else f"An earlier product of {line.sku}"
        # A person who edits a command does not mean a second order.
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


# -- as plain lines for the terminal, never with the address of a checkout


def plan_lines(order: Order) -> Iterator[str]:
    """Yield a plan with its checkouts, what is left out, and its digest."""
    scope = f"{catalog_of(order.scope.catalog)} ({order.scope.environment})"
    yield f"Order {order.name!r} from catalog {scope}: {plural(len(order.checkouts), 'checkout')}"
    for record in order.checkouts:
        named = f" ({record.checkout_id})" if record.checkout_id else ""
        yield f"{item_of(record).describe()}: {record.status}{named}"
        yield from _line_texts(record.lines)
    yield from note_lines(order)
    yield "What it costs is shown on the page of each checkout, before anybody pays."
    yield f"Digest: {order.proposal.digest[:LEAST_DIGEST]}"


def note_lines(order: Order) -> Iterator[str]:
    """Yield what a plan leaves out, and what a person should know about the rest."""
    left_out = list(order.left_out.items())
    yield from (f"Left out: {sku}: {why}." for sku, why in left_out[:_MOST_LINES])
    yield from more(len(left_out), _MOST_LINES)
    yield from (f"Note: {note}" for note in order.notes)


def checkout_lines(record: CheckoutRecord) -> Iterator[str]:
    """Yield a checkout and what has become of it."""
    name = f"Checkout {record.checkout_id}" if record.checkout_id else "A checkout"
    match record.status:
        case CheckoutStatus.PAID:
            again = "To order the same again: another --order. To show it in the gallery: patternmill results RUN."
            yield f"{name} is paid: {ordered_line(record)}. {again}"
        case CheckoutStatus.CANCELLED:
            yield f"{name} is cancelled, and cannot be paid. To order the same again: another --order."
        case CheckoutStatus.OPEN:
            order = (
                f"; the service shows {ordered_line(record)}, and not that it is paid" if record.order else ""
            )
            yield f"{name} is open{order}:"
        case _:
            yield f"{name} was not opened: {_why_not_opened(record)}"
    yield from _line_texts(record.lines)


def ordered_line(record: CheckoutRecord) -> str:
    """Return when something was ordered, under which IDs, and what the service shows of it."""
    assert record.order is not None, "it is shown"
    order = record.order
    named = f"order {order.order_id}" if order.order_id else f"the order of checkout {record.checkout_id}"
    status = f", {order.status}" if order.status else ""
    return f"{named}{status}; first seen on {moment(order.since)} UTC, under the name {record.order_name!r}"


def _why_not_opened(record: CheckoutRecord) -> str:
    attempt = record.attempt
    if attempt is None:
        return "it was not asked for."
    if not attempt.error:
        return (
            "whether the service has it is not known. The same command sends its request again, and past "
            "PATTERNMILL_IN_DOUBT_LIMIT a person decides (patternmill settle)."
        )
    return f"{attempt.error} ({attempt.error_code}, request {attempt.request_id})"


def _line_texts(lines: tuple[PickedLine, ...]) -> Iterator[str]:
    yield from in_columns(
        [(f"  {line.sku}", f"× {line.quantity}", line.note or "") for line in lines[:_MOST_LINES]]
    )
    yield from more(len(lines), _MOST_LINES)
