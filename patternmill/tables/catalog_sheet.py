"""A catalog's whole sheet, given back: the person's own rows and columns, with the product that each row has now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from patternmill.identifiers import ItemKey
from patternmill.planning.changes import CurrentRow
from patternmill.planning.rows import sku_key
from patternmill.states import UNFINISHED_ROWS, RowStatus
from patternmill.tables.catalog import TextTable, own_cells
from patternmill.tables.columns import DECISION_COLUMNS, RUN_COLUMN, SHEET_COLUMNS, header_key, run_cell
from patternmill.tables.results import RunResults
from patternmill.tables.written import shortened
from patternmill.text import iso_time, joined

#: What stands for a row in these tables, beside the person's own cells: none of their names begins like that.
_STATE = ("\0key", "\0product", "\0status", "\0code", "\0error", "\0run")
_KEY, _PRODUCT, _STATUS, _CODE, _ERROR, _RUN = _STATE
#: Of rows whose product may have been made since their run, by whichever run followed its job.
_MAY_BE_MADE = [*UNFINISHED_ROWS, RowStatus.HELD, RowStatus.FAILED]
_SEPARATOR = "\x1f"


def catalog_sheet(
    parts: Sequence[RunResults],
    products: pd.DataFrame,
    verdicts: Mapping[ItemKey, str],
    sequence: int,
) -> TextTable:
    """Return the rows of the first run in its order, each as the last run has it, then those that later ones added.

    `parts`: the runs, whose rows were read; `products`: what `products_frame` returns; `verdicts`: the last decision
    about what a product shows, by product item; `sequence`: the place of the last decision in the ledger.
    """
    rows, first = _part_table(parts[0]), parts[0].catalog.columns
    texts = [name for at, name in zip(first.kept, rows.columns, strict=False) if at != first.sku]
    for part in parts[1:]:
        rows = _with_later(rows, _part_table(part), texts)
    own = rows.drop(columns=list(_STATE))
    current = products.reindex(rows[_KEY]).set_axis(rows.index)
    is_made = rows[_STATUS].isin(_MAY_BE_MADE) & current["product_key"].eq(rows[_PRODUCT])
    shows = current["product_key"].fillna(rows[_PRODUCT])
    added = pd.DataFrame(
        {
            "status": rows[_STATUS].mask(is_made, RowStatus.SUCCEEDED.value),
            "product_id": current["product_id"],
            "pattern_id": current["pattern_id"],
            "picture_url": current["picture_url"],
            "error_code": rows[_CODE].mask(is_made),
            "error": rows[_ERROR].mask(is_made),
            "decided": shows.map(verdicts),
            "since": current["since"].map({at: iso_time(at) for at in current["since"].dropna().unique()}),
            **dict.fromkeys(DECISION_COLUMNS, ""),
            RUN_COLUMN: current["run_id"].fillna(rows[_RUN]).map(lambda run_id: run_cell(run_id, sequence)),
        },
        dtype=object,
    )
    names = [name.partition("\0")[0] for name in own.columns]
    # A column of that name in the input stays the input's.
    theirs = {header_key(name) for name in names} & {*SHEET_COLUMNS, *DECISION_COLUMNS}
    added = added.drop(columns=list(theirs)).fillna("").map(shortened)
    return TextTable(pd.concat([own.set_axis(names, axis=1).fillna(""), added], axis=1))


def products_frame(rows: Iterable[CurrentRow]) -> pd.DataFrame:
    """Return what a catalog has now, by the key of the sku."""
    names = ("product_key", "product_id", "pattern_id", "picture_url", "since", "run_id")
    records = {
        sku_key(row.sku): [getattr(row, name) for name in names] for row in rows if row.retired_at is None
    }
    return pd.DataFrame(list(records.values()), list(records), list(names), dtype=object)


def _part_table(part: RunResults) -> pd.DataFrame:
    """Return the own cells of a run's file with the state of each row, numbered from 0."""
    rows = part.rows
    cells = own_cells(part.catalog).loc[list(rows["line"])].set_axis(rows.index)
    # Names may repeat, and a person may have changed their case.
    keys = pd.Series([header_key(name) for name in cells.columns], dtype=object)
    numbers = keys.groupby(keys).cumcount()
    cells.columns = pd.Index(
        [f"{name}\0{number}" for name, number in zip(cells.columns, numbers, strict=True)]
    )
    state = {
        _KEY: rows["sku"].map(sku_key),
        _PRODUCT: rows["product_key"].fillna(""),
        _STATUS: rows["status"],
        _CODE: rows["error_code"].fillna(""),
        _ERROR: list(map(joined, rows["error"], rows["remedy"])),
        _RUN: part.run_id,
    }
    return pd.concat([cells, pd.DataFrame(state, rows.index, dtype=object)], axis=1)


def _with_later(rows: pd.DataFrame, later: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """Return rows with those of a later part in the places of what they correct; new ones are at the end.

    A row that differs from a refused one in its sku alone is that row with the sku that it lacked; else the sku tells.
    `texts`: the person's columns but the sku.
    """
    is_refused = rows[_STATUS].eq(RowStatus.REFUSED)
    places = _places(_one_text(rows[is_refused], texts), _one_text(later, texts))
    others = rows.index.difference(list(places.dropna()))
    is_open = places.isna() & later[_KEY].ne("")
    places = places.fillna(_places(rows.loc[others, _KEY], later.loc[is_open, _KEY]))
    is_new = places.isna()
    places = places.mask(is_new, len(rows) - 1 + is_new.cumsum()).astype("int64")
    columns = list(dict.fromkeys([*rows.columns.drop(list(_STATE)), *later.columns]))
    return later.set_axis(places).combine_first(rows)[columns]


def _places(before: pd.Series, later: pd.Series) -> pd.Series:
    """Return where texts were before, the first of equal ones first; missing where one was not."""
    numbered, wanted = (
        texts + _SEPARATOR + texts.groupby(texts).cumcount().astype(str) for texts in (before, later)
    )
    return wanted.map(dict(zip(numbered, before.index, strict=True))).astype("float64")


def _one_text(rows: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Return the cells of each row as one text."""
    cells = rows.reindex(columns=list(columns), fill_value="")
    texts = map(_SEPARATOR.join, cells.itertuples(index=False, name=None))
    return pd.Series(list(texts), rows.index, dtype=object)
