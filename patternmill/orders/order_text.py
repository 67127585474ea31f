"""An order as plain lines for the terminal, never with the address of a checkout."""

from __future__ import annotations

from collections.abc import Iterator

from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus
from patternmill.orders.order_plan import Order, item_of, ordered_line
from patternmill.planning.items import catalog_of
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.text import in_columns, more, plural

_MOST_LINES = 40


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
            yield f"{name} was not opened: {_why(record)}"
    yield from _line_texts(record.lines)


def _why(record: CheckoutRecord) -> str:
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
    rows = [(f"  {line.sku}", f"× {line.quantity}", line.note or "") for line in lines[:_MOST_LINES]]
    yield from in_columns(rows)
    yield from more(len(lines), _MOST_LINES)
