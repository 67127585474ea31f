"""How counts, durations, and texts that others wrote are shown to people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor

from patternmill.states import Stage


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,234 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def goods(counts: Mapping[Stage, int]) -> str:
    """`1 pattern and 20 products`; of other stages only what there is: `24 patterns, 8 refinements and 24 products`."""
    named = [plural(count, stage) for stage, count in worth_naming(counts)]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def worth_naming(counts: Mapping[Stage, int]) -> Iterator[tuple[Stage, int]]:
    """Each stage with its count, in the order of purchase: patterns and products always, others where there are any."""
    for stage in Stage:
        count = counts.get(stage, 0)
        if count or stage in (Stage.PATTERN, Stage.PRODUCT):
            yield stage, count


def counted(counts: Mapping[str, int]) -> str:
    """`3 failed, 1 not started`."""
    return ", ".join(f"{count:,} {readable(name)}" for name, count in counts.items() if count) or "none"


def joined(*parts: str | None) -> str:
    """Sentences and fragments as one text: a space after what ends a sentence, else a semicolon."""
    text = ""
    for part in filter(None, parts):
        text += (" " if text.endswith((".", "!", "?")) else "; ") + part if text else part
    return text


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


#: What a range of time is said in, from how many seconds on: seconds a unit, and its name.
_RANGE_UNITS = ((2 * 86_400, 86_400, "d"), (100 * 60, 3600, "h"), (90, 60, "min"), (0, 1, "s"))


def duration_range(low: float, high: float) -> str:
    """A range of seconds in whole units: `2 to 4 min`, `about 5 min`, `up to 2 h`."""
    unit, name = next((unit, name) for begin, unit, name in _RANGE_UNITS if high >= begin)
    fewest, most = floor(low / unit), max(1, ceil(high / unit))
    if fewest == most:
        return f"about {most} {name}"
    return f"{fewest} to {most} {name}" if fewest else f"up to {most} {name}"


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


#: Invisible characters, and those that make a terminal or a page show something else than the text.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)

#: The same, and characters without a width or that look like a plain space.
_HIDDEN = re.compile(UNSAFE.pattern[:-1] + "\u00a0\u034f\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_VARIANTS = re.compile("[\ufe00-\ufe0f]")
#: Letters and signs that look alike in Cyrillic, Greek or typeset text, and those of ASCII.
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425"
    "\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u2018\u2019\u02bc\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212",
    "aeopcyxiABEKMHOPCTX" "oABEZHIKMNOPTYX" "'''\"\"------",
)  # fmt: skip


def shown(text: str, limit: int = 60) -> str:
    """The text in backticks, fit for a terminal."""
    return f"`{plain(text, limit)}`"


def plain(text: str, limit: int = 60) -> str:
    """The text fit for a terminal: shortened, with invisible characters as escapes."""
    return visible(text if len(text) <= limit else text[: limit - 1] + "…")


def visible(text: str) -> str:
    r"""The text with invisible characters, and those that look like a space, as escapes (`\u00a0`, `\n`)."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same, with its line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def contrasted(old: str, new: str, limit: int = 60) -> tuple[str, str]:
    """Two texts that differ, each in backticks, from shortly before the first difference.

    Where they look alike to a person all the same, every character outside of ASCII is an escape, and each space that
    follows a space.
    """
    begin = max(_first_difference(old, new) - limit // 3, 0)
    escape = _escape_all if _look_key(old) == _look_key(new) else visible
    return _excerpt(old, begin, limit, escape), _excerpt(new, begin, limit, escape)


def _excerpt(text: str, begin: int, limit: int, escape: Callable[[str], str]) -> str:
    rest = "…" if len(text) > begin + limit else ""
    return f"`{'…' if begin else ''}{escape(text[begin : begin + limit])}{rest}`"


def _first_difference(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(old), len(new)))


def _look_key(text: str) -> str:
    look = unicodedata.normalize("NFKC", _VARIANTS.sub("", visible(text))).translate(_LOOKALIKES)
    return " ".join(look.split())


def _escape_all(text: str) -> str:
    return re.sub(r"(?<= ) |^ | $|[^ -~]", _escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _NAMED.get(match.group()) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
