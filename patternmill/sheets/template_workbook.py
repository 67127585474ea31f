"""The workbook to fill in: the columns of a catalog for some categories, with drop-downs of what is offered."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from patternmill.catalog.offer import Category, offer_key
from patternmill.catalog.rows import OPTION_PREFIX

SHEET = "Catalog"
_LISTS = "lists"
_FIRST = ("sku", "prompt", "category")
_REMARK = "note:remark"
#: Below the header.
_ROWS = 500
#: In the hidden worksheet: what it is, whether it has to be chosen, then its values.
_FIRST_VALUE = 3
_TEXT = "@"


def columns_for(categories: Sequence[Category]) -> tuple[str, ...]:
    """The header of a catalog that can hold rows of these categories."""
    names = {offer_key(option.name): option.name for one in categories for option in one.options or ()}
    return (*_FIRST, *(f"{OPTION_PREFIX}{name}" for name in names.values()), _REMARK)


def template_workbook(categories: Sequence[Category]) -> bytes:
    """All cells are texts, so that 007 stays 007; options are chosen from those of the row's own category."""
    from openpyxl import Workbook
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    sheet = book.active
    assert sheet is not None, "a new workbook has a worksheet"
    sheet.title = SHEET
    header = columns_for(categories)
    sheet.append(header)
    sheet.freeze_panes = "B2"
    for index, name in enumerate(header, 1):
        letter = get_column_letter(index)
        sheet.cell(1, index).font = Font(bold=True)
        sheet.column_dimensions[letter].number_format = _TEXT
        sheet.column_dimensions[letter].width = 60 if name == "prompt" else 18
        if formula := _choices(name, len(categories)):
            # A value that the service names no list for may be any text.
            chosen = DataValidation("list", formula1=formula, allow_blank=True, showErrorMessage=True)
            chosen.errorStyle = "stop" if name == "category" else "warning"
            chosen.error = "This is not offered here: choose from the list."
            sheet.add_data_validation(chosen)
            chosen.add(f"{letter}2:{letter}{_ROWS + 1}")
    lists = book.create_sheet(_LISTS)
    lists.sheet_state = "hidden"
    for column, cells in enumerate(_lists(categories), 1):
        for row, text in enumerate(cells, 1):
            cell = lists.cell(row, column, text)
            cell.number_format, cell.data_type = _TEXT, "s"
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def _lists(categories: Sequence[Category]) -> Iterator[tuple[str, ...]]:
    """One column a list: the categories first, then each category's options, named as `_choices` finds them."""
    yield ("category", "required", *(one.name for one in categories))
    for category in categories:
        for option in category.options or ():
            needed = "required" if option.required else "optional"
            yield (f"{category.name}|{offer_key(option.name)}", needed, *(option.values or ()))


def _choices(column: str, categories: int) -> str | None:
    """The formula of a column's list: of an option, the values that the row's own category has."""
    if column == "category":
        return f"{_LISTS}!$A${_FIRST_VALUE}:$A${categories + _FIRST_VALUE - 1}"
    if not column.startswith(OPTION_PREFIX):
        return None
    name = offer_key(column.partition(":")[2]).replace('"', '""')
    place = f'MATCH($C2&"|{name}",{_LISTS}!$1:$1,0)-1'
    return f"OFFSET({_LISTS}!$A${_FIRST_VALUE},0,{place},COUNTA(OFFSET({_LISTS}!$A$1:$A$1000,0,{place}))-2,1)"
