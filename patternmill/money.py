"""Money as it is shown to people, and as they write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d{1,24})"


def money(amount: int, currency: str | None) -> str:
    """An amount in minor units as `€500.00`; without a currency ("" too) in the unit of the prices, as `50,000 units`.

    Signs and decimals are those of babel, which has them from the Unicode CLDR.
    """
    if not currency:
        return f"{amount:,} unit" if amount == 1 else f"{amount:,} units"
    from babel.numbers import format_currency, get_currency_precision

    units = Decimal(amount).scaleb(-get_currency_precision(currency))
    # XOF has a narrow no-break space, which a terminal would be shown as an escape.
    return format_currency(units, currency, locale="en").replace("\u202f", " ")


def sums(amounts: Mapping[str, int]) -> str:
    """Amounts by their currency, which are never added up: `¥10,000 and €5.00`; empty where there are none."""
    return " and ".join(money(amount, currency) for currency, amount in amounts.items() if amount)


def read_money(text: str, currency: str | None) -> int:
    """The minor units of `€5`, `5.00` or `EUR 5.00`; without a currency of a whole number, in the unit of the prices.

    Raises ValueError; of a bare number that may mean either unit, with both readings.
    """
    text = " ".join(text.split())
    if currency is None:
        if not re.fullmatch(_WHOLE, text):
            raise ValueError(
                "is a whole number, in the unit of the prices, unless PATTERNMILL_CURRENCY is set"
            )
        return int(text.replace(",", ""))
    from babel.numbers import get_currency_precision, get_currency_symbol

    symbol = " ".join(get_currency_symbol(currency, locale="en").split())
    marks = "|".join(map(re.escape, (symbol, currency)))
    found = re.fullmatch(rf"(?i)({marks})? ?({_WHOLE}(?:\.\d+)?) ?({marks})?", text)
    precision = get_currency_precision(currency)
    if found is None or len(found[2].partition(".")[2]) > precision:
        raise ValueError(f"is an amount in {currency}, such as {money(50_000, currency)}")
    number = Decimal(found[2].replace(",", ""))
    if number and precision and not (found[1] or found[3] or "." in found[2]):
        both = (money(int(number.scaleb(digits)), currency) for digits in (precision, 0))
        raise ValueError(f"may be {' or '.join(both)}: write which")
    return int(number.scaleb(precision))
