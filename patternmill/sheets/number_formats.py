"""Number formats: a number as Excel displays it, where that shows the number itself and nothing less."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from patternmill.sheets.tables import Unfit
from patternmill.text import shown

GENERAL = "General"
#: Those of ECMA-376, 18.8.30, that are no dates; calamine knows dates by itself.
BUILT_IN = {
    0: GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?",
    13: "# ??/??", 37: "#,##0 ;(#,##0)", 38: "#,##0 ;[Red](#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;[Red](#,##0.00)", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
_PLAIN = frozenset({"general", "standard", "@"})
_SIMPLE = re.compile(r'(?:"([^"]*)")?(#,##)?(0+)(?:\.(0+))?(?:"([^"]*)")?')
_PERCENT = re.compile(r"0(?:\.(0+))?( ?)%")
#: Characters that `General` shows; what is longer is rounded or shown as a power of ten.
_GENERAL_LENGTH = 11
#: For a whole column at once, which typing it again is not.
_ALL_DIGITS = (
    "give the column the format `0`, which shows all digits; or format the cell as Text and type it again"
)
#: Excel has no more digits than these.
_DIGITS = 15

Value = str | bool | float | date | time | timedelta


def cell_text(value: Value, code: str) -> tuple[str, Unfit | None]:
    """The cell as it is displayed; where that is not what it holds, the best text for it, and why it does not do."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, bool):
        return str(value).upper(), None
    if isinstance(value, (int, float)):
        text = displayed(value, code)
        if text is not None:
            return text, None
        return _percentage(value, code) or in_full(value), _unfit_number(value, code)
    text = _moment(value)
    return text, Unfit(f"{'the time' if isinstance(value, time) else _noun(value)} {text}, not text")


def displayed(number: float, code: str) -> str | None:
    """None where the format does not show the number in full, or shows it as something else."""
    if code.casefold() in _PLAIN:
        text = in_full(number)
        return text if len(text.lstrip("-")) <= _GENERAL_LENGTH and "e" not in text else None
    simple = _SIMPLE.fullmatch(code)
    if simple is None or abs(number) >= 10**_DIGITS:
        return None
    before, grouped, zeros, decimals, after = simple.groups(default="")
    text = f"{abs(number):{',' if grouped else ''}.{len(decimals)}f}"
    if float(text.replace(",", "")) != abs(number):
        return None
    width = len(zeros) + (len(decimals) + 1 if decimals else 0)
    return f"{'-' if number < 0 else ''}{before}{text.zfill(width)}{after}"


def _percentage(number: float, code: str) -> str | None:
    """As it is displayed, and as OpenDocument has it; None of other formats."""
    found = _PERCENT.fullmatch(code)
    if found is None:
        return None
    hundredths = Decimal(repr(number)) * 100
    rounded = hundredths.quantize(Decimal(1).scaleb(-len(found[1] or "")), ROUND_HALF_UP)
    return f"{rounded:f}{found[2]}%"


def in_full(number: float) -> str:
    """Every digit that a spreadsheet has of it; whole numbers without a point."""
    if abs(number) < 10**_DIGITS and number == int(number):
        return str(int(number))
    return f"{number:.{_DIGITS}g}"


def _unfit_number(number: float, code: str) -> Unfit:
    what = f"the number {in_full(number)}"
    if code.casefold() in _PLAIN:
        large = abs(number) >= 10**_GENERAL_LENGTH
        shown_as = f"{what}, which is displayed {f'as {number:.5E}' if large else 'rounded'}"
        whole = large and abs(number) < 10**_DIGITS and number == int(number)
        return Unfit(shown_as, _ALL_DIGITS) if whole else Unfit(shown_as)
    return Unfit(f"{what} in the format {shown(code)}, not text")


def _noun(value: date | timedelta) -> str:
    return "the duration" if isinstance(value, timedelta) else "the date"


def _moment(value: date | time | timedelta) -> str:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return str(value) if isinstance(value, timedelta) else value.isoformat()
