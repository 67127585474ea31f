"""What is ordered as plain lines, for the terminal; never with an address."""

from __future__ import annotations

from collections.abc import Iterator

from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.order_report import CheckoutRecord
from patternmill.orders.order_plan import OrderPlan, ordered_line, status_of
from patternmill.planning.items import catalog_of
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.text import in_columns, more, plural

_MOST_LINES = 40


def plan_lines(plan: OrderPlan) -> Iterator[str]:
    scope = f"{catalog_of(plan.scope.catalog)} ({plan.scope.environment})"
    yield f"Order {plan.name!r} from catalog {scope}: {plural(len(plan.checkouts), 'checkout')}"
    for item, known in plan.checkouts:
        named = f" ({known.checkout_id})" if known.checkout_id else ""
        yield f"{item.describe()}: {status_of(known)}{named}"
        yield from _line_texts(known.lines)
    yield from (f"Note: {note}" for note in plan.notes)
    yield "What it costs is shown on the page of each checkout, before anybody pays."
    yield f"Digest: {plan.proposal.digest[:LEAST_DIGEST]}"


def checkout_lines(record: CheckoutRecord) -> Iterator[str]:
    """A checkout and what has become of it; never its address."""
    name = f"Checkout {record.checkout_id}" if record.checkout_id else "A checkout"
    if record.is_paid:
        again = "To order the same once more: another --order. For the gallery: patternmill results RUN."
        yield f"{name} is paid: {ordered_line(record)}. {again}"
    elif record.is_cancelled:
        yield f"{name} is cancelled, and cannot be paid. To order the same again: another --order."
    elif record.is_unpaid:
        shown = f"; the service shows {ordered_line(record)}, and not that it is paid" if record.order else ""
        yield f"{name} is open{shown}:"
    else:
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
