"""Texts of people and programs: compared, shortened, shown without characters that nobody sees, read as amounts."""

import difflib
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

#: Characters that no person sees, or that change how their neighbours are shown.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
_AMOUNT = re.compile(r"[^\d.,\-]{0,4}(\d+)(?:[.,](\d{1,2}|\d{4}))?[^\d.,\-]{0,4}")
_TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212", "''\"\"------")


def key(text: str) -> str:
    """Return what spellings share that differ only in case, or in spaces, `-` and `_` between letters.

    Part of the identity of products: never change it.
    """
    spaced = " ".join(unicodedata.normalize("NFC", text).split())
    return _BETWEEN_LETTERS.sub(" ", spaced).casefold()


def sku_key(sku: str) -> str:
    """Return what skus share that differ only in case or spaces. Part of the identity of products: never change it."""
    return "".join(unicodedata.normalize("NFC", sku).split()).casefold()


def normal(text: str) -> str:
    """Return the one spelling of texts that no reader tells apart. Part of patterns' identity: never change it."""
    plain = (
        unicodedata.normalize("NFC", text.translate(_TYPOGRAPHIC)).replace("\r\n", "\n").replace("\r", "\n")
    )
    return "\n".join(map(" ".join, map(str.split, UNSAFE.sub("", plain).split("\n")))).strip()


def nearest(text: str, offered: Iterable[str]) -> str | None:
    """Return the offered name that was probably meant. A number never stands for another: `12oz` is no `11oz`."""
    numbers = re.findall(r"\d+", text)
    alike = {key(name): name for name in offered if re.findall(r"\d+", name) == numbers}
    found = difflib.get_close_matches(key(text), alike, n=1, cutoff=0.6)
    return alike[found[0]] if found else None


def shown(text: object, limit: int = 60) -> str:
    """Return the text in backticks, shortened, with invisible characters as escapes."""
    cut = str(text) if len(str(text)) <= limit else f"{str(text)[: limit - 1]}…"
    return "`" + UNSAFE.sub(lambda found: rf"\u{ord(found[0]):04x}", cut).replace("\n", "⏎") + "`"


def printable(text: str) -> str:
    return UNSAFE.sub("�", text)


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def parse_amount(value: Any) -> Any:
    """Return an amount such as `€40.00` in ten-thousandths of its unit. Raises ValueError for an ambiguous one."""
    if not isinstance(value, str):
        return value
    if not (found := _AMOUNT.fullmatch(value.strip())):
        raise ValueError(f"{value!r} is not an amount; write 40.00, without a separator of thousands")
    return int(Decimal(f"{found[1]}.{found[2] or 0}") * 10_000)


def money(amount: int, currency: str) -> str:
    """Return an amount as people write it: `40.00 EUR`."""
    return f"{Decimal(amount) / 10_000:,.2f} {currency}".strip()


def plain(amount: int) -> str:
    """Return an amount as programs read it, exactly: `1240.00`, `0.0125`."""
    return f"{Decimal(amount) / 10_000:.4f}".removesuffix("00")
