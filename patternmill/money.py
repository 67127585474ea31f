"""Money as people read and write it, and limits of what may be bought."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from patternmill.states import Stage

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d{1,24})"
#: The number of decimals of each currency that does not have two.
_DECIMALS = {
    **dict.fromkeys(re.findall(r"\w+", "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"), 0),
    **dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
    **dict.fromkeys(["CLF", "UYW"], 4),
}
_MARKS = "AUD A$ BRL R$ CAD CA$ CNY CN¥ EUR € GBP £ HKD HK$ ILS ₪ INR ₹ JPY ¥ KRW ₩ MXN MX$ NZD NZ$ PHP ₱ USD $ VND ₫"
#: The signs of currencies in English; any other currency is shown by its code.
SIGNS = dict(zip(_MARKS.split()[::2], _MARKS.split()[1::2], strict=True))


def money(amount: int, currency: str | None) -> str:
    """Return an amount in minor units as `€500.00`; without a currency ("" too) in the unit of the prices."""
    if not currency:
        return f"{amount:,} unit" if amount == 1 else f"{amount:,} units"
    decimals = _DECIMALS.get(currency, 2)
    minus = "-" if amount < 0 else ""
    return f"{minus}{SIGNS.get(currency, currency)}{Decimal(abs(amount)).scaleb(-decimals):,.{decimals}f}"


def sums(amounts: Mapping[str, int]) -> str:
    """Return amounts by their currency, which are never added up: `¥10,000 and €5.00`; empty where there are none."""
    return " and ".join(money(amount, currency) for currency, amount in amounts.items() if amount)


def read_money(text: str, currency: str | None) -> int:
    """Return the minor units of `€5`, `5.00` or `EUR 5.00`; without a currency, of a whole number in the prices' unit.

    Raises ValueError, with both readings for a bare number that may mean either unit.
    """
    text = " ".join(text.split())
    if currency is None:
        if not re.fullmatch(_WHOLE, text):
            raise ValueError(
                "is a whole number, in the unit of the prices, unless PATTERNMILL_CURRENCY is set"
            )
        return int(text.replace(",", ""))
    marks = "|".join(map(re.escape, (SIGNS.get(currency, currency), currency)))
    match = re.fullmatch(rf"(?i)({marks})? ?({_WHOLE}(?:\.\d+)?) ?({marks})?", text)
    decimals = _DECIMALS.get(currency, 2)
    if match is None or len(match[2].partition(".")[2]) > decimals:
        raise ValueError(f"is an amount in {currency}, such as {money(50_000, currency)}")
    number = Decimal(match[2].replace(",", ""))
    if number and decimals and not (match[1] or match[3] or "." in match[2]):
        both = (money(int(number.scaleb(digits)), currency) for digits in (decimals, 0))
        raise ValueError(f"may be {' or '.join(both)}: write which")
    return int(number.scaleb(decimals))


@dataclass(frozen=True, eq=False)
class Limit:
    """A limit of what may be bought: for the plan, which is cut to it, and for the transaction of each intent."""

    code: str
    name: str
    remedy: str
    left: int
    #: What a purchase of each stage takes from what is left: 1 where items are counted, else the price.
    takes: Mapping[Stage, int]
    #: Whether `left` is an amount in minor units, not a number of items.
    is_money: bool = False

    def covers(self, purchases: Mapping[Stage, int], more: int = 0) -> bool:
        """Return whether the limit covers these purchases, and `more` of its unit."""
        return amount_of(purchases, self.takes) + more <= self.left


def amount_of(counts: Mapping[Stage, int], prices: Mapping[Stage, int]) -> int:
    """Return what these counts of items cost."""
    return sum(count * prices.get(stage, 0) for stage, count in counts.items())
