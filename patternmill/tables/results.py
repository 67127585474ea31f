"""The rows of a run with what became of each, for tables, exact lines and the page, and a catalog's whole sheet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import orjson
import pandas as pd

from patternmill.files import json_bytes
from patternmill.identifiers import ItemKey
from patternmill.planning.changes import CurrentRow
from patternmill.planning.problems import OF_A_WORD, RowCode
from patternmill.planning.rows import RowRecord, sku_key
from patternmill.states import RETRIABLE, ROW_STAGES, UNFINISHED_ROWS, WITH_CAUSE, RowStatus, Stage
from patternmill.tables.catalog import Catalog, own_cells
from patternmill.tables.columns import (
    DECISION_COLUMNS,
    RUN_COLUMN,
    SHEET_COLUMNS,
    column_letter,
    header_key,
    run_cell,
)
from patternmill.tables.totals import Cause, RunCounts
from patternmill.tables.written import shortened
from patternmill.text import ALSO, iso_time, joined

_STATUSES = {status.value: status for status in RowStatus}
#: The number of skus that a cause names.
SKUS_SHOWN = 10
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
_NAMED = re.compile(r"\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|(?=[\w-]*\d)[\w-]{3,})")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNDECIDED = frozenset({RowStatus.TO_CHOOSE, RowStatus.DISCARDED})


class ResultLine(NamedTuple):
    """One row of a run with what became of it, as tables and pages show it."""

    #: The row number as a spreadsheet shows it; the header is 1.
    line: int
    sku: str
    status: RowStatus
    error_code: str | None
    error: str | None
    remedy: str | None
    #: The prompt that is bought; as the file has it where the row was refused.
    prompt: str
    #: The category as the file has it.
    category: str
    category_id: str
    selections: Mapping[str, str]
    #: The product that the row has, or for a row that a person is to decide about, the one that its catalog has.
    product_id: str | None
    product_picture: str | None
    #: The pattern on that product, refined or not.
    pattern_id: str | None
    #: The take that decisions about the row are about: its pattern before any refinement.
    take: ItemKey | None
    #: The row's own product, and the pattern on it, refined or not.
    product_key: ItemKey | None
    pattern_key: ItemKey | None
    picture_url: str | None
    #: When something was last requested or made for it, in Unix seconds; None if nothing was ever requested.
    changed_at: float | None
    #: When its product was ordered, and under which ID; empty where it was not.
    ordered: str


class RunResults:
    """The rows of one run, which are read once from the ledger's records, when they are asked for."""

    #: The fields of a ResultLine, by the place of the row in its file; set once all rows were read.
    rows: pd.DataFrame

    def __init__(
        self,
        run_id: str,
        catalog: Catalog,
        records: Iterable[RowRecord],
        ordered: Mapping[ItemKey, str] = MappingProxyType({}),
    ) -> None:
        """Take as `ordered` when products were ordered and under which ID, by their items."""
        self.run_id, self.catalog = run_id, catalog
        self._records, self._ordered = records, ordered
        #: The number of items of each stage that were made for the rows, and below it the number of requests.
        self.made: Counter[Stage] = Counter()
        self._attempts: Counter[Stage] = Counter()
        #: One object for equal selections, as few are different.
        self._selections: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        #: The outcomes, as JSON by row number, of the rows that another run may change.
        self.retriable: dict[int, str] = {}

    def read(self) -> Self:
        """Read the rows of a run whose exact lines nobody needs."""
        for _ in self._read():
            pass
        return self

    @property
    def lines(self) -> list[ResultLine]:
        """Return the rows as plain values."""
        columns = (self.rows[name].to_numpy() for name in ResultLine._fields)
        return list(map(ResultLine._make, zip(*columns, strict=True)))

    def exact_lines(self) -> Iterator[bytes]:
        """Yield each row, as it is read, as JSON with all that is known of it.

        Cells are exact: a missing one is absent, and surplus ones are listed.
        """
        sheet, width = self.catalog.sheet, len(self.catalog.sheet.header)
        names = _cell_names(self.catalog)
        for line, cells, outcome in self._read():
            count = sheet.short.get(line.line, width)
            items = outcome["items"]
            shown = outcome["kept"] or items
            row = {
                "run": self.run_id,
                "line": line.line,
                "sku": line.sku,
                "status": line.status.value,
                "product_id": line.product_id,
                "pattern_id": line.pattern_id,
                "error_code": line.error_code,
                "error": line.error,
                "remedy": line.remedy,
                "prompt": line.prompt,
                "category_id": line.category_id,
                "selections": dict(sorted(line.selections.items())),
                "cells": {name: cells[at] for name, at in names.items() if at < count},
                "surplus_cells": cells[width:],
                "before": [_published(item) for item in items[:-2]],
                "pattern": _published(shown[-2], with_stage=False) if shown else None,
                "product": _published(shown[-1], with_stage=False) if shown else None,
            }
            yield json_bytes(row) + b"\n"

    def _read(self) -> Iterator[tuple[ResultLine, tuple[str, ...], dict[str, Any]]]:
        """Yield each row with its cells and its outcome."""
        cells, counted, lines = dict(self.catalog.sheet.records()), set[str](), list[ResultLine]()
        for record in self._records:
            outcome = orjson.loads(record.outcome)
            line = self._line(record, cells[record.line], outcome)
            lines.append(line)
            if line.status in RETRIABLE:
                self.retriable[line.line] = record.outcome
            for item in (*outcome["items"], *outcome["kept"], *outcome["takes"]):
                # An item counts once, however many rows share it.
                if item["key"] not in counted:
                    counted.add(item["key"])
                    stage = Stage(item["stage"])
                    self._attempts[stage] += item["attempts"]
                    self.made[stage] += item["result_id"] is not None
            yield line, cells[record.line], outcome
        self.rows = pd.DataFrame(lines, columns=list(ResultLine._fields), dtype=object)

    def _line(self, record: RowRecord, cells: Sequence[str], outcome: Mapping[str, Any]) -> ResultLine:
        items, kept, status = outcome["items"], outcome["kept"], _STATUSES[outcome["status"]]
        understood, columns = orjson.loads(record.row), self.catalog.columns
        shown = kept or items
        product, pattern = (shown[-1], shown[-2]) if shown else (_NOTHING, _NOTHING)
        times = [item["since"] for item in items if item["since"] is not None]
        selections, written = understood.get("selections", {}), cells[columns.prompt].strip()
        prompt = understood.get("prompt") or written
        return ResultLine(
            record.line,
            record.sku,
            status,
            outcome["error_code"],
            outcome["error"],
            outcome["remedy"],
            # The sheet holds one of two equal texts already, which saves memory.
            written if prompt == written else prompt,
            cells[columns.category].strip(),
            intern(understood.get("category", "")),
            self._selections.setdefault(tuple(selections.items()), selections),
            product["result_id"] if kept or status not in _UNDECIDED else None,
            product["picture_url"],
            pattern["result_id"],
            next((item["key"] for item in items if item["stage"] == Stage.PATTERN), None),
            items[-1]["key"] if items else None,
            items[-2]["key"] if items else None,
            items[-2]["picture_url"] if items else None,
            max(times, default=None),
            self._ordered.get(product["key"], ""),
        )

    def only_for_sheet(self) -> Self:
        """Release what a catalog's sheet does not need, once the files of the run are written."""
        self.rows = self.rows[["line", "sku", "status", "error_code", "error", "remedy", "product_key"]]
        return self

    @property
    def counts(self) -> RunCounts:
        """Return the counts of the rows and of what was made for them."""
        statuses = Counter(self.rows["status"])
        return RunCounts(
            rows=len(self.rows),
            by_status={status: statuses[status] for status in RowStatus},
            **{f"{stage}s": self.made[stage] for stage in ROW_STAGES},
            **{f"{stage}_attempts": self._attempts[stage] for stage in ROW_STAGES},
        )

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Return what went wrong, the most frequent cause first."""
        rows = self.rows[self.rows["status"].isin(WITH_CAUSE)]
        if rows.empty:
            return ()
        code, error = rows["error_code"].fillna(rows["status"].map(str)), rows["error"].fillna("")
        # A wrong word of the file distinguishes causes; in other messages words only tell rows of one cause apart.
        alike = error.mask(~code.isin(OF_A_WORD), error.map(signature))
        rows = rows.assign(
            code=code,
            alike=alike.mask(code.eq(RowCode.DUPLICATE_SKU), ""),
            name=rows["sku"].mask(rows["sku"].eq(""), "row " + rows["line"].map(str)),
            error=error,
            # Further faults of the first row are no part of the cause.
            remedy=rows["remedy"].fillna("").str.split(ALSO, n=1).str[0].str.rstrip(),
        )
        alike_rows = rows.groupby(["code", "alike"], sort=False)
        first_rows = alike_rows.head(SKUS_SHOWN).groupby(["code", "alike"], sort=False)
        causes = first_rows.agg({"name": tuple, "error": "first", "remedy": "first"})
        causes = causes.assign(count=alike_rows.size()).reset_index()
        causes = causes.sort_values(["count", "code", "alike"], ascending=[False, True, True])
        fields = causes[["code", "count", "name", "error", "remedy"]]
        return tuple(Cause(*cause) for cause in fields.itertuples(index=False, name=None))

    def table(self, run_cell: str, wanted: pd.Series | None = None) -> pd.DataFrame:
        """Return the input's own columns with what became of all rows, or of those that are `wanted`.

        `run_cell`: the text in the column `run`.
        """
        rows = self.rows if wanted is None else self.rows[wanted]
        own = own_cells(self.catalog).loc[list(rows["line"])].set_axis(rows.index)
        messages = map(joined, rows["error"], rows["remedy"])
        added = rows[["status", "product_id", "pattern_id", "error_code"]].assign(error=list(messages))
        added = added.fillna("").map(shortened)
        # A column of that name in the input stays the input's.
        names = set(map(header_key, own.columns))
        free = [name for name in DECISION_COLUMNS if name not in names]
        added = added.assign(**dict.fromkeys(free, ""), **{RUN_COLUMN: run_cell})
        return pd.concat([own, added.astype(object)], axis=1)


@lru_cache(4096)
def signature(message: str) -> str:
    """Return the message with quoted values, identifiers and numbers, which differ from row to row, replaced."""
    text = _QUOTED.sub("…", " ".join(message.split())[:500])
    return _NUMBER.sub("#", _NAMED.sub("#", text))


_NOTHING: Mapping[str, Any] = MappingProxyType({"key": None, "result_id": None, "picture_url": None})


def _published(item: dict[str, Any], *, with_stage: bool = True) -> dict[str, Any]:
    """Return an item for programs, changed in place, and without its stage where its place tells that."""
    item["since"] = iso_time(item["since"])
    if not with_stage:
        del item["stage"]
    return item


def _cell_names(catalog: Catalog) -> dict[str, int]:
    """Return each column's position by its name; columns without a name of their own have their letter too."""
    header, names = catalog.mapping.repeated(catalog.sheet.header), dict[str, int]()
    for at in catalog.columns.kept:
        name = header[at]
        names[name if name.strip() and name not in names else f"{name}[{column_letter(at)}]"] = at
    return names


# --- a catalog's whole sheet

#: The columns that tables have for the state of a row beside the person's own, whose names never begin with NUL.
_STATE = ("\0key", "\0product", "\0status", "\0code", "\0error", "\0run")
_KEY, _PRODUCT, _STATUS, _CODE, _ERROR, _RUN = _STATE
#: The statuses of rows whose product may have been made since their run, by whichever run followed its job.
_MAY_BE_MADE = [*UNFINISHED_ROWS, RowStatus.HELD, RowStatus.FAILED]
_SEPARATOR = "\x1f"


def catalog_sheet(
    parts: Sequence[RunResults],
    products: pd.DataFrame,
    verdicts: Mapping[ItemKey, str],
    sequence: int,
) -> pd.DataFrame:
    """Return the rows of the first run in its order, each as its last run has it, then those that later runs added.

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
    return pd.concat([own.set_axis(names, axis=1).fillna(""), added], axis=1)


def products_frame(rows: Iterable[CurrentRow]) -> pd.DataFrame:
    """Return what a catalog has now, by sku key."""
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
    """Return rows with those of a later part in place of the rows that they correct, and new ones at the end.

    A row that differs from a refused one only in its sku is that row with the sku that it lacked; others are matched by
    sku. `texts`: the person's columns except the sku.
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
    """Return the place that each text had before, equal ones in their order; missing where a text is new."""
    numbered, wanted = (
        texts + _SEPARATOR + texts.groupby(texts).cumcount().astype(str) for texts in (before, later)
    )
    return wanted.map(dict(zip(numbered, before.index, strict=True))).astype("float64")


def _one_text(rows: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Return the cells of each row as one text."""
    cells = rows.reindex(columns=list(columns), fill_value="")
    texts = map(_SEPARATOR.join, cells.itertuples(index=False, name=None))
    return pd.Series(list(texts), rows.index, dtype=object)
