"""What the cells of a row say of its pattern beside the prompt: take, model, reference, refinements, further fields."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from patternmill.contract import NO_CONTRACT, Contract
from patternmill.tables.cells import Fault
from patternmill.tables.columns import Columns
from patternmill.text import shown


@dataclass(frozen=True)
class Extras:
    """Reads such cells by what the service promises. `folder` is where paths of pictures begin."""

    contract: Contract = NO_CONTRACT
    folder: Path = Path()

    def of(self, rows: pd.DataFrame, columns: Columns) -> tuple[list[str], list[tuple[int, Fault]]]:
        """Return what each row says, as JSON or empty, and what is wrong with it. Equal cells are read once."""
        names, positions = list(columns.extras), list(columns.extras.values())
        read: dict[tuple[str, ...], tuple[str, list[Fault]]] = {}
        said, found = list[str](), list[tuple[int, Fault]]()
        for number, *cells in rows[positions].fillna("").itertuples(name=None):
            combination = tuple(map(str.strip, cells))
            if combination not in read:
                read[combination] = self._read(dict(zip(names, combination, strict=True)), columns)
            said.append(read[combination][0])
            found += [(number, fault) for fault in read[combination][1]]
        return said, found

    def _read(self, cells: dict[str, str], columns: Columns) -> tuple[str, list[Fault]]:
        faults, content = list[Fault](), dict[str, str]()
        for name, cell in cells.items():
            wrong = self.contract.fault(name, cell, self.folder) if cell else ""
            if not cell or (wrong and name == "kept_take"):
                continue
            if wrong:
                title = columns.header[columns.extras[name]]
                faults.append(
                    Fault(title, f"wrong_{name.partition(':')[0]}", f"{shown(cell)} cannot be used", wrong)
                )
            else:
                content[name] = self.contract.content_of(name, cell, self.folder)
        return json.dumps(content, ensure_ascii=False) if content else "", faults


#: Of a sheet whose service promises nothing more.
NO_EXTRAS = Extras()
