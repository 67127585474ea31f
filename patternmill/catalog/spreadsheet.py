"""How our CSV is opened by a spreadsheet as it is, no cell being run as a formula, and is read back.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets a leading `'`. So does one in
which only `'` stand before such a character: else a cell that was `'=x` all along would read back as `=x`.
Numbers such as `-3` and skus such as `-12` are defused alike: which text is harmless is not ours to guess.
"""

from __future__ import annotations

import codecs
import re

#: Before all our CSV: without it a spreadsheet takes UTF-8 for a legacy encoding, and saves what it misread.
BYTE_ORDER_MARK = codecs.BOM_UTF8
_DANGEROUS = re.compile(r"'*[=+\-@\t\r]")
_DEFUSED = re.compile(r"'+[=+\-@\t\r]")


def defuse(cell: str) -> str:
    """The cell as it goes into a CSV file. `restore(defuse(cell)) == cell` for every cell."""
    return "'" + cell if _DANGEROUS.match(cell) else cell


def restore(cell: str) -> str:
    """The cell as it was before `defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell
