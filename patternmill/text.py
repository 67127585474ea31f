"""Texts for people: counts, durations, and what others wrote, made visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import ceil, floor
from typing import Any

from patternmill.states import Stage


def plural(count: int, noun: str) -> str:
    """Return `1 row`, or `1,234 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def goods(counts: Mapping[Stage, int]) -> str:
    """Return `1 pattern and 20 products`; other stages are named where there are any."""
    named = [plural(count, stage) for stage, count in worth_naming(counts)]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def worth_naming(counts: Mapping[Stage, int]) -> Iterator[tuple[Stage, int]]:
    """Yield stages with their counts, in the order of purchase: patterns and products always, others unless 0."""
    for stage in Stage:
        count = counts.get(stage, 0)
        if count or stage in (Stage.PATTERN, Stage.PRODUCT):
            yield stage, count


def counted(counts: Mapping[str, int]) -> str:
    """Return `3 failed, 1 not started`; `none` where every count is 0."""
    return ", ".join(f"{count:,} {readable(name)}" for name, count in counts.items() if count) or "none"


#: Begins each fault of a row after the first.
ALSO = "Also: "


def joined(*parts: str | None) -> str:
    """Join sentences and fragments: a fragment is set off with a semicolon, or ended before a sentence begins."""
    text = ""
    for part in filter(None, parts):
        if text:
            end = "" if text.endswith((".", "!", "?")) else "." if part[0].isupper() else ";"
            text += f"{end} "
        text += part
    return text


def more(total: int, shown: int, indent: str = "  ") -> Iterator[str]:
    """Yield the line that ends a list of which only the first are shown."""
    if total > shown:
        yield f"{indent}… and {total - shown:,} more"


def readable(name: str) -> str:
    """Return a name of the code (`not_started`) as words for a sentence."""
    return name.replace("_", " ")


def moment(at: float | datetime) -> str:
    """Return a time in UTC; a number is in Unix seconds."""
    at = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def iso_time(moment: float | datetime | None) -> str | None:
    """Return a time as 2026-03-01T09:30:00.250Z: UTC with milliseconds (ISO 8601); a number is in Unix seconds."""
    if moment is None:
        return None
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_iso_second(whole)}.{milliseconds:03d}Z"


@lru_cache(4096)
def _iso_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:-6]


def duration(time: float | timedelta) -> str:
    """Return a duration in the two units that matter (`2 h 10 min`); a number is in seconds."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


#: The units of a range of time: the seconds from which each is used, its length in seconds, and its name.
_RANGE_UNITS = ((2 * 86_400, 86_400, "d"), (100 * 60, 3600, "h"), (90, 60, "min"), (0, 1, "s"))


def duration_range(low: float, high: float) -> str:
    """Return a range of seconds in whole units: `2 to 4 min`, `about 5 min`, `up to 2 h`."""
    unit, name = next((unit, name) for begin, unit, name in _RANGE_UNITS if high >= begin)
    fewest, most = floor(low / unit), max(1, ceil(high / unit))
    if fewest == most:
        return f"about {most} {name}"
    return f"{fewest} to {most} {name}" if fewest else f"up to {most} {name}"


def shortened(text: str, length: int = 100) -> str:
    """Shorten a text to one line of at most `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells as lines; the last column keeps its length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


#: Invisible characters, and those that make a terminal or a page show something other than the text.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)

#: The unsafe characters, and those that have no width or look like a plain space.
_HIDDEN = re.compile(UNSAFE.pattern[:-1] + "\u00a0\u034f\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def shown(text: str, limit: int = 60) -> str:
    """Return the text in backticks, fit for a terminal."""
    return f"`{plain(text, limit)}`"


def plain(text: str, limit: int = 60) -> str:
    """Return the text fit for a terminal: shortened, with invisible characters as escapes."""
    return visible(text if len(text) <= limit else text[: limit - 1] + "…")


def visible(text: str) -> str:
    r"""Return the text with invisible characters, and those that look like a space, as escapes (`\u00a0`, `\n`)."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Return the text with the invisible characters of each line as escapes; its line breaks stay."""
    return "\n".join(map(visible, text.split("\n")))


def contrasted(old: str, new: str, limit: int = 60) -> tuple[str, str]:
    """Return two texts that differ, each in backticks, from shortly before the first difference."""
    pairs = enumerate(zip(old, new, strict=False))
    same = next((index for index, (left, right) in pairs if left != right), min(len(old), len(new)))
    begin = max(same - limit // 3, 0)
    return _excerpt(old, begin, limit), _excerpt(new, begin, limit)


def _excerpt(text: str, begin: int, limit: int) -> str:
    rest = "…" if len(text) > begin + limit else ""
    return f"`{'…' if begin else ''}{visible(text[begin : begin + limit])}{rest}`"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _NAMED.get(match.group()) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


#: The text that stands for a value that is left out.
REMOVED = "[removed]"


def each_text(value: Any, change: Callable[[str], str], removed: re.Pattern[str] | None = None) -> Any:
    """Return a JSON value with each string changed, names of fields too; the values of `removed` fields are left out.

    None if it is nested too deeply for that.
    """

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [changed(part) for part in value]
        if isinstance(value, dict):
            return {
                change(name): REMOVED if part and removed and removed.search(name) else changed(part)
                for name, part in value.items()
            }
        return value

    try:
        return changed(value)
    except RecursionError:
        return None
