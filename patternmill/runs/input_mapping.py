"""The input of a run: read as a person chose, its columns found by the mapping that is named or remembered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.column_words import looks_like_option, name_rank, option_called
from patternmill.catalog.mapping_file import NO_MAPPING_FILE, MappingFile
from patternmill.catalog.mapping_proposal import MappingProposal, propose
from patternmill.catalog.offer import Offer
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.remote import shown_address, source_bytes, source_name
from patternmill.catalog.rows import header_key, is_catalog_column, refuse_duplicates
from patternmill.catalog.sheet_choices import SheetChoices
from patternmill.errors import InputRefused
from patternmill.ledger.ledger import ledger_if_any, open_ledger
from patternmill.ledger.records import ConfirmedMapping
from patternmill.profiles import NOT_STARTED
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.sheets.sheet_reader import read_catalog, read_source, read_table
from patternmill.sheets.tables import Table

Read = TypeVar("Read")
#: What a mapping mends.
MAPPABLE = frozenset(
    {
        FileCode.NO_KNOWN_COLUMNS,
        FileCode.MISSING_COLUMN,
        FileCode.MAPPING_CHANGED,
        FileCode.RESERVED_COLUMN,
    }
)
_PLAIN = re.compile(r"[\w./\\:@%+=,-]+")
#: A shell reads them within double quotes too.
_NOT_LITERAL = re.compile(r'["$`\\!]')
_ENCODING = frozenset({FileCode.UNREADABLE_ENCODING, FileCode.NUL_BYTES})
#: Rows, and cells, that a proposal looks at.
_MOST_ROWS, _MOST_CELLS = 5_000, 500_000


def read_input(spec: RunSpec) -> CatalogFile:
    """The input as it is now, unless it was read already. Raises InputRefused."""
    if spec.file is not None:
        return spec.file
    mapping, usual = spec.mapping, spec.usual_choices
    if not mapping.columns:
        remembered = remembered_mapping(spec.settings, spec.catalog)
        mapping, usual = remembered.mapping, usual.completed(remembered.choices)
    quoting, refresh = not spec.by_deployment, spec.refresh

    def read(choices: SheetChoices) -> CatalogFile:
        if refresh is not None:
            return read_source(refresh.address, choices=choices, mapping=mapping, empty=True, quoting=quoting)
        return read_catalog(spec.source, choices=choices, mapping=mapping, quoting=quoting)

    try:
        file = _read_as_usual(spec.choices, usual, read)
    except InputRefused as refused:
        catalog = spec.catalog if spec.catalog_named else None
        raise unmapped(refused, spec.named_source, catalog, spec.choices) from None
    if file.columns.is_results_file and spec.origin is None:
        raise refusal(
            FileCode.RESERVED_COLUMN,
            f"{file.name} has a column `run`, by which the results of a run are known: a source may not have it.",
            "Name the column otherwise (`note:run`, for instance). Results are imported, with `patternmill import`.",
        )
    return file


def _read_as_usual(choices: SheetChoices, usual: SheetChoices, read: Callable[[SheetChoices], Read]) -> Read:
    """As chosen, else as usual; the usual encoding is that of bytes alone which do not show their own.

    A sheet that is saved as UTF-8 one day would be garbled by it.
    """
    completed = choices.completed(usual)
    if completed.encoding == choices.encoding:
        return read(completed)
    try:
        return read(replace(completed, encoding=None))
    except InputRefused as refused:
        if refused.code not in _ENCODING:
            raise
    return read(completed)


def remembered_mapping(settings: Settings, catalog: str) -> MappingFile:
    """What a person confirmed of this catalog's files; without columns where nobody did."""
    with ledger_if_any(settings) as ledger:
        confirmed = ledger.confirmed_mapping(catalog) if ledger is not None else None
    if confirmed is None:
        return NO_MAPPING_FILE
    return MappingFile(ColumnMapping(confirmed.columns, is_strict=True), SheetChoices.of(confirmed.reading))


def earlier_mapping(settings: Settings, catalog: str) -> MappingFile:
    """What a person confirmed of the catalog's files; else what they did on the embedded studio.

    For another service the latter is a proposal, and no more: nothing could be bought by it there.
    """
    remembered = remembered_mapping(settings, catalog)
    if remembered.mapping.columns or settings.embedded:
        return remembered
    return remembered_mapping(settings.at(NOT_STARTED), catalog)


def remember_mapping(
    settings: Settings, catalog: str, mapping: ColumnMapping, choices: SheetChoices, by: str
) -> None:
    """In the ledger of the runs: without a service's address that is the embedded studio's, also before the first."""
    settings = settings if settings.service is not None else settings.at(NOT_STARTED)
    reading = choices.on_record()
    with open_ledger(settings) as ledger, ledger.transaction():
        ledger.confirm_mapping(catalog, ConfirmedMapping(mapping.columns, reading, by))


def unmapped(refused: InputRefused, address: str, catalog: str | None, choices: SheetChoices) -> InputRefused:
    """The refusal with the command that mends it, where a mapping does. `catalog`: where it is named."""
    if refused.code not in MAPPABLE:
        return refused
    command = map_command(address, catalog, choices)
    remedy = f"{refused.remedy} Or say once which column is which: `{command}`."
    if refused.code == FileCode.MAPPING_CHANGED:
        remedy = f"{refused.remedy} Confirm them: `{command}`."
    return InputRefused(refused.message, code=refused.code, remedy=remedy)


def has_unconfirmed_options(file: CatalogFile) -> bool:
    """Whether a column that is only carried is called like an option, and nobody has said what it is.

    In a results file its run has said that.
    """
    if file.columns.is_results_file:
        return False
    names = (file.header[index] for index in file.columns.carried)
    return any(looks_like_option(name) and header_key(name) not in file.mapping.columns for name in names)


def map_command(address: str, catalog: str | None, choices: SheetChoices) -> str:
    """What a person types to confirm the columns of a file, with what they named. `catalog`: where it is named."""
    options = {"catalog": catalog, "encoding": choices.encoding, "worksheet": choices.worksheet}
    named = "".join(f" --{name} {_word(value)}" for name, value in options.items() if value)
    return f"patternmill map {_word(shown_address(address))}{named}"


def _word(text: str) -> str:
    """One word of a command, whatever is in it; quoted as most shells understand, where that is enough."""
    if _PLAIN.fullmatch(text):
        return text
    return shlex.quote(text) if _NOT_LITERAL.search(text) else f'"{text}"'


@dataclass(frozen=True)
class UnmappedSheet:
    """A file's table, before it is known what its columns are."""

    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    def propose(self, offer: Offer | None, remembered: ColumnMapping = NO_MAPPING) -> MappingProposal:
        """Raises InputRefused when two columns have one name: no mapping can tell them apart."""
        header = self.table.header
        refuse_duplicates(header, self.name)
        rows = (cells for _, cells in self.table.records if len(cells) == len(header))
        most = min(_MOST_ROWS, _MOST_CELLS // max(len(header), 1))
        return propose(header, list(islice(rows, most)), offer, remembered)


def read_sheet(
    address: str, choices: SheetChoices, usual: SheetChoices, mapping: ColumnMapping = NO_MAPPING
) -> UnmappedSheet:
    """`usual`: how such files are read, where nothing is chosen. `mapping` may show which row names the columns.

    Raises InputRefused, and ConfigurationError for an address that cannot be read.
    """
    raw, name = source_bytes(address), source_name(address)
    table = _read_as_usual(choices, usual, lambda chosen: read_table(raw, name, chosen, mapping=mapping))
    return UnmappedSheet(
        table if choices.completed(usual).header_row else table.with_header(_header_row(table))
    )


def _header_row(table: Table) -> int:
    """Of the rows that may name the columns, the one with most names that the trade uses; the likeliest, else."""
    cells = dict(table.rows)
    return max(table.header_rows, key=lambda number: sum(map(_is_name, cells.get(number, ()))))


def _is_name(cell: str) -> bool:
    if is_catalog_column(header_key(cell)) or option_called(cell) is not None:
        return True
    return any(name_rank(column, cell) > 1 for column in ("sku", "prompt", "category"))
