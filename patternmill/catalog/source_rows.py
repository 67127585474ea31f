"""What the rows of a source say, and what answers each: a refresh follows what changed in its source.

A row is compared by the texts of its cells, column by column, before anything of the offer is looked up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from patternmill.catalog.catalog_file import CatalogFile, Record, Texts
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.normal_text import visible_text
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.rows import (
    ANY_OPTION,
    OPTION_PREFIX,
    REFINE_PREFIX,
    Content,
    header_key,
    is_blank,
    read_columns,
    sku_key,
    tidy,
)
from patternmill.catalog.selections import parts_of
from patternmill.identifiers import ItemKey, RunId

#: In place of a column: what is wrong with the row as a whole, as JSON. A results file does not show it.
SHAPE = "cells"
#: The same: the order of its refinements, which is that of the columns, where there are several.
REFINEMENT_ORDER = "refinements"
_NOT_TEXT = "not_text"


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What a catalog keeps for a sku: what its source last said, and the item that answers it."""

    sku: str
    said: Texts
    #: What a person has otherwise; empty where they emptied the cell.
    corrected: Texts
    #: None where the row was refused.
    product_key: ItemKey | None
    content: Content | None
    #: Whose input said it.
    run_id: RunId
    #: The source has it no longer.
    is_gone: bool = False

    @property
    def answered(self) -> Texts:
        """What the item answers."""
        return {name: text for name, text in {**self.said, **self.corrected}.items() if text}


def texts_of(file: CatalogFile) -> list[Texts]:
    """Of each row, in their order. What it says of its sku is not in it."""
    indexes = column_indexes(file)
    return [_texts(file, record, indexes) for record in file.records]


def keys_of(file: CatalogFile) -> list[str]:
    """What identifies each row: the key of its sku; empty where it has none of its own."""
    index = file.columns.sku
    keys = [sku_key(row.cells[index]) if index < len(row.cells) else "" for row in file.records]
    count = Counter(keys)
    return ["" if count[key] > 1 or is_blank(key) else key for key in keys]


def column_indexes(file: CatalogFile) -> dict[str, int]:
    """The contract's columns of a file but for the sku, by their names in lower case."""
    columns, header = file.columns, file.mapping.applied(file.header)
    single = {
        "prompt": columns.prompt,
        "category": columns.category,
        "selections": columns.selections,
        "reference": columns.reference,
        "model": columns.model,
    }
    several = {_name(header, file.header, index): index for index in (*columns.options, *columns.refinements)}
    return {name: index for name, index in single.items() if index is not None} | several


def _name(header: Sequence[str], written: Sequence[str], index: int) -> str:
    """A column for any option has its own name too: there may be several."""
    name = header_key(header[index])
    return name if name != ANY_OPTION else f"{name}:{header_key(written[index])}"


def difference(before: Texts, now: Texts) -> Texts:
    """What `now` has otherwise to a person, by column; empty where it has nothing there."""
    names = sorted(before.keys() | now.keys())
    pairs = ((name, before.get(name, ""), now.get(name, "")) for name in names)
    return {name: new for name, old, new in pairs if old != new and visible_text(old) != visible_text(new)}


def followed(answered: Texts, before: Texts, now: Texts) -> Texts:
    """What counts for a row that is answered as `answered`, and whose file said `before` and says `now`.

    What has changed in the file is as the file has it now; everything else stays as it is answered.
    """
    return {name: text for name, text in {**answered, **difference(before, now)}.items() if text}


def are_same(before: Texts, now: Texts) -> bool:
    return not difference(before, now)


def with_texts(file: CatalogFile, texts: Mapping[int, Texts]) -> CatalogFile:
    """The file with other cells in the contract's columns, by row number; what it lacks is added on the right."""
    if not texts:
        return file
    width, known = len(file.header), column_indexes(file)
    named = dict.fromkeys(name for row in texts.values() for name in row)
    added = [name for name in named if name not in (SHAPE, REFINEMENT_ORDER, *known) and _fits(name, known)]
    indexes = known | {name: width + number for number, name in enumerate(added)}
    header = (*file.header, *added)
    rows = (_fitted(row, width, len(added)) for row in file.records)
    records = tuple(
        _with_texts(row, texts[row.line], indexes, file.mapping, len(header)) if row.line in texts else row
        for row in rows
    )
    others = {line: faults for line, faults in file.faults.items() if line not in texts}
    faults = {line: (_NO_TEXT,) for line, row in texts.items() if _NOT_TEXT in _shape(row.get(SHAPE))}
    columns = read_columns(file.mapping.applied(header), file.name) if added else file.columns
    own = {row.line: _texts(file, row, known) for row in file.records if row.line in texts}
    return replace(
        file, header=header, columns=columns, records=records, faults=others | faults, own_texts=own
    )


_NO_TEXT = Problem(
    None,
    RowCode.NOT_TEXT,
    "a cell was a date, an error or a rounded number in the run's sheet",
    "correct its cells here, or the row in its source",
)


def _texts(file: CatalogFile, record: Record, indexes: Mapping[str, int]) -> Texts:
    cells, width = record.cells, len(file.header)
    texts = {
        name: _text(file.mapping, name, cells[index]) for name, index in indexes.items() if index < len(cells)
    }
    steps = [name for name in texts if name.startswith(REFINE_PREFIX) and texts[name]]
    texts[REFINEMENT_ORDER] = ", ".join(steps) if len(steps) > 1 else ""
    shape: dict[str, Any] = {}
    if len(cells) > width:
        shape["surplus"] = cells[width:]
    elif len(cells) < width:
        shape["missing"] = width - len(cells)
    if record.line in file.faults:
        shape[_NOT_TEXT] = True
    texts[SHAPE] = json.dumps(shape, ensure_ascii=False) if shape else ""
    return {name: text for name, text in texts.items() if text}


def _text(mapping: ColumnMapping, name: str, cell: str) -> str:
    """What a cell says, in the words of the mapping."""
    text = tidy(cell)
    if name == "selections" and mapping.words:
        return _selections(mapping, text)
    if name.startswith(ANY_OPTION) and mapping.word(text) == text:
        return " / ".join(tidy(mapping.word(part)) for part in parts_of(text))
    return tidy(mapping.word(text)) if name == "category" or name.startswith(OPTION_PREFIX) else text


def _selections(mapping: ColumnMapping, text: str) -> str:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, dict):
        return text
    words = {name: mapping.word(value) if isinstance(value, str) else value for name, value in values.items()}
    return json.dumps(words, ensure_ascii=False)


def _fits(name: str, known: Collection[str]) -> bool:
    """Whether a file may have a column besides those that it has: it chooses options in one form."""
    options = any(one.startswith(OPTION_PREFIX) for one in known)
    return not (name.startswith(OPTION_PREFIX) and "selections" in known) and not (
        name == "selections" and options
    )


def _fitted(record: Record, width: int, added: int) -> Record:
    """With empty cells for columns that are added; a row that lacks cells or has too many still does."""
    if not added or len(record.cells) < width:
        return record
    return replace(record, cells=(*record.cells, *[""] * added))


def _with_texts(
    record: Record, texts: Texts, indexes: Mapping[str, int], mapping: ColumnMapping, width: int
) -> Record:
    shape = _shape(texts.get(SHAPE))
    cells = [*record.cells[:width], *[""] * (width - len(record.cells))]
    for name, index in indexes.items():
        if _text(mapping, name, cells[index]) != texts.get(name, ""):
            cells[index] = texts.get(name, "")
    fitting = cells[: width - shape.get("missing", 0)]
    return replace(record, cells=(*fitting, *shape.get("surplus", ())))


def _shape(text: str | None) -> Mapping[str, Any]:
    shape: Mapping[str, Any] = json.loads(text) if text else {}
    return shape
