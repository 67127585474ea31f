"""Amounts of money, in ten-thousandths of their currency's unit."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

_AMOUNT = re.compile(r"[^\d.,\-]{0,4}(\d+)(?:[.,](\d{1,2}|\d{4}))?[^\d.,\-]{0,4}")


def parse_amount(value: Any) -> Any:
    """Return an amount such as `€40.00` in ten-thousandths of its unit. Raises ValueError for an ambiguous one."""
    if not isinstance(value, str):
        return value
    if not (found := _AMOUNT.fullmatch(value.strip())):
        raise ValueError(f"{value!r} is not an amount; write 40.00, without a separator of thousands")
    return int(Decimal(f"{found[1]}.{found[2] or 0}") * 10_000)


Amount = Annotated[int, BeforeValidator(parse_amount), Field(ge=0)]


def money(amount: int, currency: str) -> str:
    """Return an amount as people write it: `40.00 EUR`."""
    return f"{Decimal(amount) / 10_000:,.2f} {currency}".strip()


def plain(amount: int) -> str:
    """Return an amount as programs read it, exactly: `1240.00`, `0.0125`."""
    return f"{Decimal(amount) / 10_000:.4f}".removesuffix("00")
