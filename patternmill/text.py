"""How counts, durations, moments and money are written for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,234 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def goods(patterns: int, products: int) -> str:
    """`1 pattern and 20 products`."""
    return f"{plural(patterns, 'pattern')} and {plural(products, 'product')}"


def counted(counts: Mapping[str, int]) -> str:
    """`3 failed, 1 not started`."""
    return ", ".join(f"{count:,} {readable(name)}" for name, count in counts.items() if count) or "none"


def more(total: int, shown: int, indent: str = "  ") -> Iterator[str]:
    """The line that ends a list of which only the first are shown."""
    if total > shown:
        yield f"{indent}… and {total - shown:,} more"


def readable(name: str) -> str:
    """A name of the code (`not_started`) as it reads in a sentence."""
    return name.replace("_", " ")


def moment(at: float | datetime) -> str:
    """A time in UTC; a number is in Unix seconds."""
    at = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def duration(time: float | timedelta) -> str:
    """A duration in the two units that matter (`2 h 10 min`); a number is in seconds."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


def money(amount: int, currency: str | None) -> str:
    """An amount in minor units as `€500.00`; as `50,000 minor units` where no currency is set.

    Signs and decimals are those of babel, which has them from the Unicode CLDR.
    """
    if currency is None:
        return plural(amount, "minor unit")
    from babel.numbers import format_currency, get_currency_precision

    units = Decimal(amount).scaleb(-get_currency_precision(currency))
    # XOF has a narrow no-break space, which a terminal would be shown as an escape.
    return format_currency(units, currency, locale="en").replace("\u202f", " ")


def shortened(text: str, length: int = 100) -> str:
    """One line of at most `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines; the last column keeps its length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
