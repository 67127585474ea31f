"""The rows and the settings of a rehearsal: what it copies of the person's own, and what replaces the rest."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.extras import Extras
from patternmill.catalog.offer import Category, Offer
from patternmill.catalog.problems import OF_A_WORD, RowCode
from patternmill.catalog.remote import file_path, is_remote
from patternmill.catalog.row_checks import Entry, check_rows
from patternmill.catalog.rows import header_key, tidy
from patternmill.settings import PREFIX, Settings

#: How a run is driven, and what its purchases cost. Addresses, keys, places, limits and approvals are not among them.
_COPIED_SETTINGS = (
    "environment",
    "max_in_flight",
    "create_rate",
    "poll_rate",
    "attempts",
    "final_reasons",
    "prompt_limit",
    "currency",
    "pattern_price",
    "product_price",
    "refinement_price",
    "reference_price",
    "shard_rows",
)
#: Problems of a row that another offer need not have.
_OF_THE_OFFER = OF_A_WORD | {RowCode.OPTION_COLUMN}


def rehearsed_settings(settings: Settings) -> dict[str, str]:
    """The variables of a rehearsal's imports; their service, key and home are not in it."""
    values = settings.model_dump(mode="json", include=set(_COPIED_SETTINGS), exclude_none=True)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    confirmed = {f"{PREFIX}CONFIRM": "production,duplicates"}
    return {f"{PREFIX}{name.upper()}": text for name, text in texts.items()} | confirmed


@dataclass(frozen=True)
class RehearsedRows:
    """A file to rehearse with. `lines` are where its rows are in the person's own."""

    raw: bytes
    lines: tuple[int, ...]
    #: Rows that were given another category, because the rehearsal's studio does not have theirs.
    stand_ins: int = 0


def rehearsed_rows(
    file: CatalogFile,
    offer: Offer,
    extras: Extras,
    *,
    folder: Path | None,
    most: int | None,
    seed: int,
    prompt_limit: int,
    stand_in: bool,
) -> RehearsedRows:
    """The rows of a file, or `most` of them at random, in their order; paths of references are from `folder`.

    `offer` and `extras` are the rehearsal's. With `stand_in`, rows that only they would refuse get a category that
    there is, and no model.
    """
    records = _sample(file.records, most, seed)
    table = _CatalogWriter(file, folder)
    checked = check_rows(file, offer, prompt_limit=prompt_limit, extras=extras)
    entries = dict(zip(file.records, checked.entries, strict=True)) if stand_in else {}
    category = _simplest(offer)
    replaced = 0
    for record in records:
        if category is not None and record in entries and _is_refused_by_offer(entries[record]):
            table.add_with(record, category)
            replaced += 1
        else:
            table.add(record.cells)
    return RehearsedRows(table.raw(), tuple(record.line for record in records), replaced)


def _sample(records: Sequence[Record], most: int | None, seed: int) -> Sequence[Record]:
    if most is None or most >= len(records):
        return records
    chosen = random.Random(seed).sample(range(len(records)), most)  # noqa: S311 - repeatable on purpose
    return [records[place] for place in sorted(chosen)]


def _simplest(offer: Offer) -> Category | None:
    """The category with the fewest options that have to be selected."""
    return min(offer.categories or (), key=lambda one: len(_required(one)), default=None)


def _required(category: Category) -> dict[str, str]:
    """The options that have to be selected, each with a value."""
    return {
        option.name: option.values[0]
        for option in category.options or ()
        if option.values and option.required
    }


def _is_refused_by_offer(entry: Entry) -> bool:
    codes = {problem.code for problem in entry.problems}
    return entry.row is None and bool(codes) and codes <= _OF_THE_OFFER


class _CatalogWriter:
    """A catalog being written: the person's columns, and those that stand-ins need besides."""

    def __init__(self, file: CatalogFile, folder: Path | None) -> None:
        self._columns, self._folder = file.columns, folder
        # The rehearsal's file is read without a mapping.
        self._header = list(file.mapping.applied(file.header))
        self._width = len(file.header)
        #: Cells as they are read, and those in columns that were added, by their place.
        self._rows: list[tuple[Sequence[str], dict[int, str]]] = []

    def add(self, cells: Sequence[str]) -> None:
        self._rows.append((self._placed(cells), {}))

    def add_with(self, record: Record, category: Category) -> None:
        """A row with this category in place of its own, and its required options."""
        cells = dict(enumerate(record.cells))
        cells |= {option.index: "" for option in self._columns.options}
        cells[self._columns.category] = category.id
        if self._columns.model is not None:
            cells[self._columns.model] = ""
        required = _required(category)
        if self._columns.selections is not None:
            cells[self._columns.selections] = json.dumps(required)
            required = {}
        cells |= {self._place(f"option:{name}"): value for name, value in required.items()}
        own = [cells.pop(place) for place in range(self._width)]
        self._rows.append((self._placed(own), cells))

    def raw(self) -> bytes:
        """Without the result columns of an earlier run. Rows with too many or too few cells stay so."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self._kept(self._header))
        for cells, more in self._rows:
            added = [more.get(place, "") for place in range(self._width, len(self._header))]
            whole = len(cells) >= self._width
            writer.writerow(
                self._kept([*cells[: self._width], *(added if whole else ()), *cells[self._width :]])
            )
        return text.getvalue().encode("utf-8", "surrogatepass")

    def _placed(self, cells: Sequence[str]) -> Sequence[str]:
        """A relative path of a reference as an absolute one: the rehearsal's file lies elsewhere."""
        index = self._columns.reference
        if index is None or index >= len(cells) or self._folder is None:
            return cells
        cell = tidy(cells[index])
        if not cell or is_remote(cell):
            return cells
        path = str((self._folder / file_path(cell)).absolute())
        return [*cells[:index], path, *cells[index + 1 :]]

    def _place(self, name: str) -> int:
        keys = [header_key(cell) for cell in self._header]
        if name not in keys:
            self._header.append(name)
            keys.append(name)
        return keys.index(name)

    def _kept(self, cells: Sequence[str]) -> list[str]:
        return [cell for place, cell in enumerate(cells) if place not in self._columns.results]
