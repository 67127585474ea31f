"""The workbook to fill in: the columns of a catalog for some categories, with drop-downs of what is offered."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from patternmill.catalog.offer import Category, offer_key
from patternmill.catalog.rows import BYTE_ORDER_MARK, OPTION_PREFIX

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

SHEET = "Catalog"
_HELP, _LISTS = "Help", "lists"
_FIRST = ("sku", "prompt", "category")
_REMARK = "note:remark"
_WIDTHS = {"sku": 16, "prompt": 60, "category": 18, _REMARK: 30}
_OPTION_WIDTH = 18
#: In the hidden worksheet: what it is, whether it has to be chosen, then its values.
_FIRST_VALUE = 3
_TEXT = "@"
_GREY, _AMBER, _HEADER = "FFE7E6E6", "FFFFF2CC", "FF1F3A5F"
_EXPLAINED = (
    ("sku", "Your own name for the product: each row another one."),
    (
        "prompt",
        "What the pattern shows. Rows with the same prompt share one pattern, which is paid for once.",
    ),
    ("category", "Chosen from the list; it decides what can be chosen further to the right."),
    (
        "option:…",
        "Chosen from the list, where the row's category has that option. Grey: it has not; leave it empty.",
    ),
    ("", "Yellow: it has to be chosen."),
    (_REMARK, "Anything; it is carried through to the results."),
    ("", ""),
    ("Then", "Save the workbook as it is, and run `patternmill check` with it: that spends nothing."),
    ("", "All cells are formatted as Text, so that 007 stays 007 and 1-2 no date. Paste values only."),
)


def columns_for(categories: Sequence[Category]) -> tuple[str, ...]:
    """The header of a catalog that can hold rows of these categories."""
    names = {offer_key(option.name): option.name for one in categories for option in one.options or ()}
    return (*_FIRST, *(f"{OPTION_PREFIX}{name}" for name in names.values()), _REMARK)


def template_csv(categories: Sequence[Category]) -> bytes:
    """The header alone, in UTF-8 with its mark."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(columns_for(categories))
    return BYTE_ORDER_MARK + text.getvalue().encode()


def template_workbook(categories: Sequence[Category], environment: str, rows: int = 500) -> bytes:
    """Drop-downs are in the first `rows` rows below the header."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None, "a new workbook has a worksheet"
    sheet.title = SHEET
    header = columns_for(categories)
    _write_header(sheet, header)
    _write_help(book, environment, categories)
    _write_lists(book, categories)
    _add_list(
        sheet, _letter("category", header), rows, f"{_LISTS}!$A${_FIRST_VALUE}:$A${len(categories) + 2}"
    )
    for column in header[len(_FIRST) : -1]:
        _add_options(sheet, column, header, rows)
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def _write_header(sheet: Worksheet, header: Sequence[str]) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill

    sheet.append(list(header))
    for name in header:
        letter = _letter(name, header)
        cell = sheet[f"{letter}1"]
        cell.font, cell.fill = Font(bold=True, color="FFFFFFFF"), PatternFill("solid", fgColor=_HEADER)
        cell.number_format = _TEXT
        column = sheet.column_dimensions[letter]
        column.width, column.number_format = _WIDTHS.get(name, _OPTION_WIDTH), _TEXT
        column.alignment = Alignment(wrap_text=name == "prompt", vertical="top")
    sheet.freeze_panes = "B2"


def _write_help(book: Workbook, environment: str, categories: Sequence[Category]) -> None:
    sheet = book.create_sheet(_HELP)
    sheet.append([f"A catalog of {environment}: {', '.join(one.name for one in categories)}"])
    sheet.append([])
    for line in _EXPLAINED:
        sheet.append(line)
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 16, 110


def _write_lists(book: Workbook, categories: Sequence[Category]) -> None:
    """One column a list: the categories first, then each category's options, named as `_key` finds them."""
    sheet = book.create_sheet(_LISTS)
    sheet.sheet_state = "hidden"
    for column, cells in enumerate(_lists(categories), 1):
        for row, text in enumerate(cells, 1):
            cell = sheet.cell(row, column, text)
            cell.number_format, cell.data_type = _TEXT, "s"


def _lists(categories: Sequence[Category]) -> Iterator[tuple[str, ...]]:
    yield ("category", "required", *(one.name for one in categories))
    for category in categories:
        for option in category.options or ():
            needed = "required" if option.required else "optional"
            yield (f"{category.name}|{offer_key(option.name)}", needed, *(option.values or ()))


def _add_options(sheet: Worksheet, column: str, header: Sequence[str], rows: int) -> None:
    """The values that the row's own category has; grey where it has none, yellow where one has to be chosen."""
    from openpyxl.formatting.rule import Rule
    from openpyxl.styles import PatternFill
    from openpyxl.styles.differential import DifferentialStyle

    letter, category = _letter(column, header), f"${_letter('category', header)}2"
    name = offer_key(column.partition(":")[2]).replace('"', '""')
    key = f'{category}&"|{name}"'
    place = f"MATCH({key},{_LISTS}!$1:$1,0)"
    values = f"OFFSET({_LISTS}!$A${_FIRST_VALUE},0,{place}-1,COUNTA(OFFSET({_LISTS}!$A$1:$A$1000,0,{place}-1))-2,1)"
    # A value that the service names no list for may be any text.
    _add_list(sheet, letter, rows, values, style="warning")
    cells = f"{letter}2:{letter}{rows + 1}"
    missing = f'AND({category}<>"",ISNA({place}))'
    needed = f'AND({category}<>"",{letter}2="",INDEX({_LISTS}!$2:$2,{place})="required")'
    for formula, colour in ((missing, _GREY), (needed, _AMBER)):
        style = DifferentialStyle(fill=PatternFill("solid", bgColor=colour, fgColor=colour))
        sheet.conditional_formatting.add(cells, Rule("expression", formula=[formula], dxf=style))


def _add_list(
    sheet: Worksheet, letter: str, rows: int, formula: str, style: Literal["stop", "warning"] = "stop"
) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    chosen = DataValidation(
        "list", formula1=formula, allow_blank=True, showErrorMessage=True, errorStyle=style
    )
    chosen.error, chosen.errorTitle = "This is not offered here: choose from the list.", "Not offered"
    sheet.add_data_validation(chosen)
    chosen.add(f"{letter}2:{letter}{rows + 1}")


def _letter(column: str, header: Sequence[str]) -> str:
    from openpyxl.utils import get_column_letter

    return get_column_letter(header.index(column) + 1)
