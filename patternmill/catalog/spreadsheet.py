"""How a cell is kept from being run as a formula by the spreadsheet that opens our CSV, and is read back.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets a leading `'`. So does one in
which only `'` stand before such a character: else a cell that was `'=x` all along would read back as `=x`.
Numbers such as `-3` and skus such as `-12` are defused alike: which text is harmless is not ours to guess.
"""

from __future__ import annotations

import re

_DANGEROUS = re.compile(r"'*[=+\-@\t\r]")
_DEFUSED = re.compile(r"'+[=+\-@\t\r]")


def defuse(cell: str) -> str:
    """The cell as it goes into a CSV file. `restore(defuse(cell)) == cell` for every cell."""
    return "'" + cell if _DANGEROUS.match(cell) else cell


def restore(cell: str) -> str:
    """The cell as it was before `defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell
