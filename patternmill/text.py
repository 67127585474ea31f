"""How times, spans, money and counts are written for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime


def moment(seconds: float) -> str:
    """A time in Unix seconds, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def span(seconds: float) -> str:
    """A span in the two units that matter."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


def counted(counts: Mapping[str, int]) -> str:
    """`3 failed, 1 not started`."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"


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
