"""Finds the columns of a catalog in a sheet, by its header."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from patternmill.planning.refinements import REFINEMENTS
from patternmill.reading import FileCode, refusal
from patternmill.text import UNSAFE, plural, shown

NEEDED = ("sku", "prompt", "category")
#: Columns that alone do not make a catalog: other tables have columns of these names too.
OPTIONAL = ("reference", "model")
#: The columns that a run adds to the input's. The last has the run's ID: a file that has it is a results file.
RUN_COLUMN = "run"
RESULT_COLUMNS = ("status", "product_id", "pattern_id", "error_code", "error", RUN_COLUMN)
#: Columns that are empty in a results file: what a person writes there is a decision on the row's pattern.
DECISION_COLUMNS = ("decision", "note")
#: Further columns of a catalog's sheet, for people to read.
SHEET_COLUMNS = ("picture_url", "decided", "since")
OPTION_PREFIX, REFINE_PREFIX = "option:", "refine:"
#: The prefix of the columns of a results file with the cells that rows had beyond their header.
SURPLUS_PREFIX = "surplus:"
#: The prefix of a remark: carried through to the results, never taken for an option.
NOTE_PREFIX = "note:"
#: A column whose cells choose whatever option of the row's category offers them; there may be several.
ANY_OPTION = f"{OPTION_PREFIX}*"
_PREFIXES = (OPTION_PREFIX, REFINE_PREFIX, NOTE_PREFIX)
#: Matches also without the colon: a column that was only carried would leave the pattern as it is.
_NAMES_REFINEMENT = re.compile(r"refine(?![a-z])")
_EXAMPLE = (
    "The first row names them: sku, prompt, category, and option:<name> for each option, or selections."
)


@dataclass(frozen=True)
class Columns:
    """The columns of a catalog by their positions in a sheet, from 0."""

    #: The header as the sheet has it.
    header: tuple[str, ...]
    #: `sku`, `prompt`, `category`; `selections`, `model` and `reference` where there are such columns.
    named: Mapping[str, int]
    #: The name of the option, as written, of each column `option:<name>`.
    options: Mapping[int, str] = field(default_factory=dict)
    #: The operation of each column `refine:<operation>`; they are applied in the order of the sheet.
    refinements: Mapping[int, str] = field(default_factory=dict)
    #: The result columns of an earlier run: not carried, since they are written anew.
    results: tuple[int, ...] = ()
    #: Everything else, carried through untouched.
    carried: tuple[int, ...] = ()
    #: The column of a results file that names its run; None in any other file.
    run: int | None = None
    #: The columns of a results file with the cells that rows had beyond their header; `results` has them too.
    surplus: tuple[int, ...] = ()

    @property
    def sku(self) -> int:
        return self.named["sku"]

    @property
    def prompt(self) -> int:
        return self.named["prompt"]

    @property
    def category(self) -> int:
        return self.named["category"]

    @property
    def choices(self) -> tuple[int, ...]:
        """Return the columns in which a row's choices are written: the one of JSON, or those of options."""
        selections = self.named.get("selections")
        return tuple(self.options) if selections is None else (selections,)

    @property
    def used(self) -> frozenset[int]:
        """Return the columns that the row itself is read from."""
        return frozenset((*self.named.values(), *self.options, *self.refinements))

    @property
    def kept(self) -> tuple[int, ...]:
        """Return every column but the result columns, in the sheet's order: what results.csv repeats."""
        return tuple(sorted((*self.used, *self.carried)))


def read_columns(header: tuple[str, ...], names: Sequence[str], sheet: str) -> Columns:
    """Return the columns; `names` is the header in the words of the mapping, `sheet` the file's name for messages.

    Raises InputRefused when a needed column is missing, and when one is double, contradictory or unreadable.
    """
    keys = [column_place(header_key(name)) for name in names]
    _refuse_duplicates(names, sheet)
    _refuse_conflicts(list(map(header_key, names)), sheet)
    if missing := missing_columns(names):
        raise refusal(
            FileCode.MISSING_COLUMN,
            f"{sheet} has no column {' or '.join(map(shown, missing))}; its first row has {plural(len(keys), 'cell')}.",
            _EXAMPLE,
        )
    options = {
        at: _option_name(names[at], at, sheet) for at, key in enumerate(keys) if key.startswith(OPTION_PREFIX)
    }
    refinements = {
        at: _operation(key, names[at], at, sheet)
        for at, key in enumerate(keys)
        if _NAMES_REFINEMENT.match(key)
    }
    named = {key: keys.index(key) for key in (*NEEDED, "selections", *OPTIONAL) if key in keys}
    results = _results(keys)
    used = {*options, *refinements, *results, *named.values()}
    return Columns(
        header,
        named,
        options,
        refinements,
        results,
        carried=tuple(at for at in range(len(keys)) if at not in used),
        run=keys.index(RUN_COLUMN) if RUN_COLUMN in keys else None,
        surplus=tuple(at for at in results if keys[at].startswith(SURPLUS_PREFIX)),
    )


def header_key(text: str) -> str:
    """Return the key shared by headers that differ only in case, in spaces, or in what nobody sees."""
    visible = UNSAFE.sub("", " ".join(unicodedata.normalize("NFC", text).split()))
    folded = " ".join(visible.split()).casefold()
    prefix, colon, name = folded.partition(":")
    prefix = prefix.rstrip() + colon
    return prefix + name.strip() if prefix in _PREFIXES else folded


def column_place(key: str) -> str:
    """Return the place that only one column may take: a category is written by name or by ID."""
    return "category" if key == "category_id" else key


def missing_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that every catalog must have and that are not among these names."""
    places = {column_place(header_key(name)) for name in names}
    return tuple(name for name in NEEDED if name not in places)


def is_catalog_column(key: str) -> bool:
    """Return whether a header of this key is read under its own name: as part of the row, or as an earlier result."""
    names = (*NEEDED, "category_id", "selections", *OPTIONAL, *RESULT_COLUMNS)
    return (
        key in names or key.startswith((OPTION_PREFIX, REFINE_PREFIX)) or bool(_NAMES_REFINEMENT.match(key))
    )


def is_results_header(header: Iterable[str]) -> bool:
    """Return whether a file with this header has the results of a run."""
    return any(header_key(cell) == RUN_COLUMN for cell in header)


def run_cell(run_id: str, sequence: int) -> str:
    """Return what a file has in its column `run`: RUN, or RUN@SEQUENCE where its catalog had a decision before."""
    return f"{run_id}@{sequence}" if sequence else run_id


def read_run_cell(text: str) -> tuple[str, int]:
    """Return the run, and the place in the ledger of the last decision before the file was written; 0 for none."""
    run_id, _, sequence = text.strip().partition("@")
    return run_id, int(sequence) if sequence.isdecimal() and len(sequence) < 19 else 0


def column_letter(position: int) -> str:
    """Return the letter that a spreadsheet shows above a column: A to Z, then AA."""
    letters = ""
    while position >= 0:
        position, rest = divmod(position, 26)
        letters, position = chr(65 + rest) + letters, position - 1
    return letters


def _results(keys: Sequence[str]) -> tuple[int, ...]:
    """Return the columns that a run adds. Names that a sheet may have itself count only right of its `status`."""
    own: tuple[str, ...] = RESULT_COLUMNS
    if RUN_COLUMN in keys:
        own = (*RESULT_COLUMNS, *DECISION_COLUMNS, *SHEET_COLUMNS)
    first = keys.index(RESULT_COLUMNS[0]) if RESULT_COLUMNS[0] in keys else len(keys)
    return tuple(
        at
        for at, key in enumerate(keys)
        if (key in own and (key in RESULT_COLUMNS or at > first))
        or (key.startswith(SURPLUS_PREFIX) and RUN_COLUMN in keys)
    )


def _refuse_duplicates(names: Sequence[str], sheet: str) -> None:
    seen: dict[str, int] = {}
    for at, key in enumerate(map(header_key, names)):
        if key and key in seen and key != ANY_OPTION:
            first = seen[key]
            raise refusal(
                FileCode.DUPLICATE_HEADER,
                f"{sheet} has the same column twice: {shown(names[first])} in column {column_letter(first)}"
                f" and {shown(names[at])} in column {column_letter(at)}.",
                "Rename or delete one of them.",
            )
        seen[key] = at


def _refuse_conflicts(keys: Sequence[str], sheet: str) -> None:
    has_options = any(key.startswith(OPTION_PREFIX) for key in keys)
    for first, second, has_second in (
        ("category", "category_id", "category_id" in keys),
        ("selections", "option:<name>", has_options),
    ):
        if first in keys and has_second:
            raise refusal(
                FileCode.CONFLICTING_COLUMNS,
                f"{sheet} has both {first} and {second}, which mean the same.",
                "Keep one of them, and rename or delete the other.",
            )


def _option_name(cell: str, position: int, sheet: str) -> str:
    option = unicodedata.normalize("NFC", cell).partition(":")[2].strip()
    if option and not UNSAFE.search(option):
        return option
    fault = "holds invisible characters" if option else "names no option"
    raise refusal(
        FileCode.BAD_HEADER,
        f"The header {shown(cell)} in column {column_letter(position)} of {sheet} {fault}.",
        "Write it as `option:` and the option's name, for instance `option:size`.",
    )


def _operation(key: str, cell: str, position: int, sheet: str) -> str:
    operation = key.removeprefix(REFINE_PREFIX)
    if operation in REFINEMENTS:
        return operation
    columns = ", ".join(REFINE_PREFIX + name for name in REFINEMENTS)
    raise refusal(
        FileCode.UNKNOWN_REFINEMENT,
        f"The header {shown(cell)} in column {column_letter(position)} of {sheet} names no refinement.",
        f"There are {columns}.",
    )
