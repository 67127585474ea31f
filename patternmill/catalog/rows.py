"""The form of a catalog: columns, read from the header in any case and with outer spaces, and the cells of its rows."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.refinements import REFINEMENTS, Refinement
from patternmill.text import UNSAFE, plural, shown

#: The columns that a run adds to the input's, in this order.
#: The last has the run's ID, and is the one that is read again: a file that has it is a results file.
RUN_COLUMN = "run"
RESULT_COLUMNS = ("status", "product_id", "pattern_id", "error_code", "error", RUN_COLUMN)
#: Empty in a results file: what a person writes there is a decision on the row's pattern.
DECISION_COLUMNS = ("decision", "note")
#: All that a results file has to the right of the input's own columns.
ADDED_COLUMNS = (*RESULT_COLUMNS[:-1], *DECISION_COLUMNS, RUN_COLUMN)
OPTION_PREFIX = "option:"
#: A column whose cells choose whatever option of the row's category offers them; there may be several.
ANY_OPTION = f"{OPTION_PREFIX}*"
REFINE_PREFIX = "refine:"
#: A remark: carried through to the results, never taken for an option.
NOTE_PREFIX = "note:"
_PREFIXES = (OPTION_PREFIX, REFINE_PREFIX)
#: Also where the colon is forgotten: a column that is only carried would leave the pattern as it is.
_NAMES_REFINEMENT = re.compile(r"refine(?![a-z])")
#: Alone they make no catalog: other tables have columns of these names too.
_OPTIONAL = ("reference", "model")
_PLAIN = ("sku", "prompt", "category", "category_id", "selections")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which cell of a record is what, by index from 0."""

    sku: int
    prompt: int
    category: int
    selections: int | None
    #: By index, the names as written: `option:<name>`.
    options: Mapping[int, str]
    #: By index, the operations, in the order in which they are applied: the file's.
    refinements: Mapping[int, str]
    reference: int | None
    model: int | None
    #: The result columns of an earlier run: not carried, since they are written anew.
    results: tuple[int, ...]
    #: Everything else, carried through untouched.
    carried: tuple[int, ...]
    #: The column of a results file that names its run; None in any other file.
    run: int | None

    @property
    def is_results_file(self) -> bool:
        """Whether its cells are restored on reading."""
        return self.run is not None

    @property
    def used(self) -> frozenset[int]:
        """What the row itself is read from."""
        single = (self.sku, self.prompt, self.category, self.selections, self.reference, self.model)
        return frozenset(index for index in (*single, *self.options, *self.refinements) if index is not None)

    @property
    def kept(self) -> tuple[int, ...]:
        """Every column but the result columns, in the file's order: what results.csv repeats."""
        return tuple(sorted({*self.used, *self.carried}))


def header_key(text: str) -> str:
    """What headers share that differ in case, in spaces, or in what nobody sees."""
    visible = UNSAFE.sub("", " ".join(unicodedata.normalize("NFC", text).split()))
    folded = " ".join(visible.split()).casefold()
    prefix, colon, name = folded.partition(":")
    return (
        f"{prefix.rstrip()}:{name.strip()}"
        if prefix.rstrip() + colon in (*_PREFIXES, NOTE_PREFIX)
        else folded
    )


def is_catalog_column(key: str) -> bool:
    """Whether a header of this key is read under its own name: as part of the row, or as a result of an earlier run."""
    return _is_known(key) or key in _OPTIONAL or key in RESULT_COLUMNS or bool(_NAMES_REFINEMENT.match(key))


def run_cell(run_id: str, sequence: int) -> str:
    """What a file has in its column `run`: RUN, or RUN@SEQUENCE as of a decision of its catalog."""
    return f"{run_id}@{sequence}" if sequence else run_id


def read_run_cell(text: str) -> tuple[str, int]:
    """The run, and the place in the ledger of the last decision before the file was written; 0: there was none."""
    run_id, _, sequence = text.strip().partition("@")
    return run_id, int(sequence) if sequence.isdecimal() and len(sequence) < 19 else 0


def is_results_header(header: Sequence[str]) -> bool:
    return any(header_key(cell) == RUN_COLUMN for cell in header)


def column_letter(index: int) -> str:
    """As in a spreadsheet: A to Z, then AA."""
    letters = ""
    while index >= 0:
        index, rest = divmod(index, 26)
        letters, index = chr(65 + rest) + letters, index - 1
    return letters


def read_columns(header: Sequence[str], name: str) -> Columns:
    """Raises InputRefused when a needed column is missing, double, contradictory or not to be read."""
    keys = [header_key(cell) for cell in header]
    refuse_duplicates(header, name)
    _refuse_conflicts(keys, name)
    _refuse_missing(keys, name)
    options = {
        index: _option_name(header[index], index, name)
        for index, key in enumerate(keys)
        if key.startswith(OPTION_PREFIX)
    }
    refinements = {
        index: _operation(key, header[index], index, name)
        for index, key in enumerate(keys)
        if _NAMES_REFINEMENT.match(key)
    }
    results = _results(keys)
    used = {*options, *refinements, *results}
    reference, model = (keys.index(key) if key in keys else None for key in _OPTIONAL)
    return Columns(
        sku=keys.index("sku"),
        prompt=keys.index("prompt"),
        category=keys.index("category" if "category" in keys else "category_id"),
        selections=keys.index("selections") if "selections" in keys else None,
        options=options,
        refinements=refinements,
        reference=reference,
        model=model,
        results=results,
        carried=tuple(i for i, key in enumerate(keys) if i not in used and key not in (*_PLAIN, *_OPTIONAL)),
        run=keys.index(RUN_COLUMN) if RUN_COLUMN in keys else None,
    )


def _results(keys: Sequence[str]) -> tuple[int, ...]:
    """The columns that a run adds; the two for decisions are its own to the right of its column `status`."""
    own: tuple[str, ...] = (*RESULT_COLUMNS, *DECISION_COLUMNS) if RUN_COLUMN in keys else RESULT_COLUMNS
    first = keys.index(RESULT_COLUMNS[0]) if RESULT_COLUMNS[0] in keys else len(keys)
    return tuple(i for i, key in enumerate(keys) if key in own and (key in RESULT_COLUMNS or i > first))


def refuse_reserved(
    header: Sequence[str], columns: Columns, rows: Iterable[tuple[str, ...]], name: str
) -> None:
    """Refuse a file, if it is no results file, with text in a result column: that would be lost."""
    if columns.is_results_file or not columns.results:
        return
    for cells in rows:
        index = next((i for i in columns.results if len(cells) > i and cells[i].strip()), None)
        if index is not None:
            raise refusal(
                FileCode.RESERVED_COLUMN,
                f"Column {column_letter(index)} of {name} has the name of a result: {shown(header[index])}.",
                "Rename it, or delete it; a results file is known by its column `run`, which this file lacks.",
            )


def _is_known(key: str) -> bool:
    return key in _PLAIN or key.startswith(_PREFIXES)


def refuse_duplicates(header: Sequence[str], name: str) -> None:
    seen: dict[str, int] = {}
    for index, key in enumerate(map(header_key, header)):
        if key and key in seen and key != ANY_OPTION:
            first = seen[key]
            raise refusal(
                FileCode.DUPLICATE_HEADER,
                f"{name} has the same column twice: {shown(header[first])} in column {column_letter(first)}"
                f" and {shown(header[index])} in column {column_letter(index)}.",
                "Rename or delete one of them.",
            )
        seen[key] = index


def _refuse_conflicts(keys: Sequence[str], name: str) -> None:
    options = any(key.startswith(OPTION_PREFIX) for key in keys)
    for first, second, has_second in (
        ("category", "category_id", "category_id" in keys),
        ("selections", "option:<name>", options),
    ):
        if first in keys and has_second:
            raise refusal(
                FileCode.CONFLICTING_COLUMNS,
                f"{name} has both {first} and {second}, which mean the same.",
                "Keep one of them, and rename or delete the other.",
            )


def column_place(key: str) -> str:
    """What only one column may be: a category is written by name or by ID."""
    return "category" if key == "category_id" else key


def missing_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that every catalog has to have and that are not among these."""
    places = {column_place(header_key(name)) for name in names}
    return tuple(name for name in ("sku", "prompt", "category") if name not in places)


def _refuse_missing(keys: Sequence[str], name: str) -> None:
    wanted = missing_columns(keys)
    if not wanted:
        return
    raise refusal(
        FileCode.MISSING_COLUMN,
        f"{name} has no column {' or '.join(map(shown, wanted))};"
        f" its first row has {plural(len(keys), 'cell')}.",
        "The first row names them: sku, prompt, category, and option:<name> for each option, or selections.",
    )


def _option_name(cell: str, index: int, name: str) -> str:
    option = unicodedata.normalize("NFC", cell).partition(":")[2].strip()
    if option and not UNSAFE.search(option):
        return option
    fault = "holds invisible characters" if option else "names no option"
    raise refusal(
        FileCode.BAD_HEADER,
        f"The header {shown(cell)} in column {column_letter(index)} of {name} {fault}.",
        "Write it as `option:` and the option's name, for instance `option:size`.",
    )


def _operation(key: str, cell: str, index: int, name: str) -> str:
    operation = key.removeprefix(REFINE_PREFIX)
    if operation in REFINEMENTS:
        return operation
    columns = ", ".join(REFINE_PREFIX + known for known in REFINEMENTS)
    raise refusal(
        FileCode.UNKNOWN_REFINEMENT,
        f"The header {shown(cell)} in column {column_letter(index)} of {name} names no refinement.",
        f"There are {columns}.",
    )


#: Before all our CSV: without it a spreadsheet takes UTF-8 for a legacy encoding, and saves what it misread.
BYTE_ORDER_MARK = codecs.BOM_UTF8
#: Full-width signs too, and behind what a program leaves out before them.
_FORMULA = r"(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r])"
_DANGEROUS = re.compile(rf"'*{_FORMULA}")
_DEFUSED = re.compile(rf"'+{_FORMULA}")


def defuse(cell: str) -> str:
    """The cell as it goes into a CSV file, which no spreadsheet runs. `restore(defuse(cell)) == cell` for every cell.

    A cell that begins with `=`, `+`, `-`, `@` (full-width or behind spaces and lines too), a tab or a carriage return
    gets a leading `'`. So does one in which only `'` stand before that: else a cell that was `'=x` all along would read
    back as `=x`. Numbers such as `-3` and skus such as `-12` are defused alike: which text is harmless is not ours to
    guess.
    """
    return "'" + cell if _DANGEROUS.match(cell) else cell


def restore(cell: str) -> str:
    """The cell as it was before `defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell


def tidy(text: str) -> str:
    """In Unicode's composed form, lines ended by LF, without outer spaces: the text as it counts for what is bought."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() and text == text.strip() else unicodedata.normalize("NFC", text).strip()


def sku_key(sku: str) -> str:
    """What skus have in common that differ in case or spaces only."""
    if sku.isascii():
        return "".join(sku.split()).lower()
    return "".join(unicodedata.normalize("NFC", sku).split()).casefold()


def is_blank(text: str) -> bool:
    """Nothing that could be seen."""
    if not text or text.isspace():
        return True
    return not (text.isascii() and text.isprintable()) and not UNSAFE.sub("", text).strip()


@dataclass(frozen=True, slots=True)
class Content:
    """What is bought for a row, as the run that bought it resolved it."""

    prompt: str
    #: The environment's ID for it; as written where its offer is unknown.
    category: str
    #: Option name to value, sorted by name, in the offered spelling.
    selections: Mapping[str, str]
    #: As the service lists it; as written where it lists none. None: the service's own choice.
    model: str | None = None
    #: The SHA-256 of the picture that guides the pattern.
    reference: str | None = None
    #: What is done to the pattern, in this order.
    refinements: tuple[Refinement, ...] = ()
    #: Of the pattern, where one was chosen; None: the first.
    take: int | None = None

    @classmethod
    def of(cls, row: Content) -> Content:
        """Of a row alone what is bought for it."""
        return cls(*(getattr(row, name) for name in cls.__slots__))

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Content:
        named = {name: kept[name] for name in cls.__slots__ if name in kept}
        refinements = tuple(Refinement(*one) for one in kept.get("refinements", ()))
        return cls(**named | {"refinements": refinements})

    def as_json(self) -> dict[str, Any]:
        """What a row does not name is not in it."""
        named = {
            "model": self.model,
            "reference": self.reference,
            "refinements": [[one.operation, one.parameters] for one in self.refinements],
            "take": self.take,
        }
        plain = {"prompt": self.prompt, "category": self.category, "selections": self.selections}
        return plain | {name: value for name, value in named.items() if value}

    def fields(self) -> dict[str, str]:
        """`prompt`, `category`, `option:<name>` and what else the row names: each with its value."""
        options = {f"option:{name}": value for name, value in self.selections.items()}
        named = {"model": self.model, "reference": self.reference, "take": str(self.take or 1)}
        refined = {f"refine:{one.operation}": str(one) for one in self.refinements}
        if len(refined) > 1:
            named["refinements"] = ", ".join(one.operation for one in self.refinements)
        extras = {name: value for name, value in named.items() if value} | refined
        return {"prompt": self.prompt, "category": self.category, **options, **extras}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Content):
    """One line of the catalog, as `check_rows` makes it: what cannot be bought as it is never becomes a Row."""

    #: The row number that a spreadsheet shows; the header is 1.
    line: int
    sku: str
    #: The whole row as the file has it.
    cells: tuple[str, ...]
