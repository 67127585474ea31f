"""The mapping of a catalog's sheets: the file `NAME.mapping.toml`, which people can read and `check` adds to."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from patternmill.addresses import file_path, is_remote
from patternmill.errors import ConfigurationError
from patternmill.planning.offer import offer_key
from patternmill.planning.refinements import REFINEMENTS
from patternmill.reading import FileCode, refusal
from patternmill.tables.columns import (
    ANY_OPTION,
    NOTE_PREFIX,
    OPTION_PREFIX,
    REFINE_PREFIX,
    RESULT_COLUMNS,
    column_place,
    header_key,
    is_catalog_column,
    is_results_header,
    missing_columns,
)
from patternmill.text import UNSAFE, plain, shown

#: The name in a run's options under which the layout of its input is on record.
READING = "reading"
#: The formats of workbooks, as the layout on record names them.
WORKBOOK_FORMATS = ("Excel workbook", "OpenDocument spreadsheet")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
#: The name in a run's options under which the mapping is on record.
MAPPING = "mapping"
#: The target of a column that a person saw and that chooses nothing: it is carried through to the results.
NOTE = "note"
#: The target of a column that chooses any option of the row's category that offers the cell's value.
OPTION = "option"
#: The choice to take numbers in the column of skus as their program shows them.
AS_SHOWN: Literal["as shown"] = "as shown"
_SINGLE = ("sku", "prompt", "category", "category_id", "selections", "model", "reference")
_TARGETS = "sku, prompt, category, option:<name>, option, selections, model, reference, refine:<step> or note"
_SUFFIX = ".mapping.toml"
_SECTIONS: Mapping[str, str] = {
    "columns": "Which column is which: inputs/README.md names them. `note`: carried through, chooses nothing.",
    "values": "Which word of the sheet means which of the offer's.",
    "reading": "How the sheet is read, where it does not show that itself.",
}


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """The way in which a file was read: enough for a person to see whether that is what is meant."""

    #: What the file is, as people call it: `CSV`, `Excel workbook`.
    format: str
    #: The digest of its bytes, in hexadecimal.
    sha256: str
    #: Set for text files only.
    encoding: str | None = None
    delimiter: str | None = None
    #: Set for workbooks only.
    worksheet: str | None = None
    header_row: int | None = None

    @property
    def text(self) -> str:
        """Return `Excel workbook, worksheet “Artikel”, header in row 3`."""
        parts = (
            self.format,
            f"worksheet “{plain(self.worksheet)}”" if self.worksheet is not None else None,
            f"columns separated by {DELIMITERS.get(self.delimiter, self.delimiter)}"
            if self.delimiter
            else None,
            self.encoding and self.encoding.removesuffix("-sig").upper(),
            f"header in row {self.header_row}" if (self.header_row or 1) > 1 else None,
        )
        return ", ".join(filter(None, parts))

    @property
    def is_usual(self) -> bool:
        """Return whether it is CSV with commas and a header in the first row, so that nothing need be said of it."""
        return self.delimiter == "," and self.header_row == 1

    def on_record(self) -> dict[str, Any]:
        """Return what is known of it, for a run's record."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class ReadingChoices(BaseModel):
    """The part of a mapping that says how a file is read; what it leaves out is found in the file itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    #: The encoding of bytes that are neither UTF-8 nor UTF-16 with a byte order mark.
    encoding: str | None = None
    delimiter: str | None = None
    #: The name of the worksheet of a workbook.
    worksheet: str | None = None
    #: The number of the row that names the columns, as a spreadsheet shows it.
    header: int | None = Field(None, ge=1)
    #: Set for a workbook whose skus are numbers.
    sku_numbers: Literal["as shown"] | None = None


_FORM = (
    f'{", ".join(f"[{section}]" for section in _SECTIONS)} with lines like "Prompt text" = "prompt"; under [reading]'
    f" {', '.join(ReadingChoices.model_fields)}"
)


class SheetMapping(BaseModel):
    """The meaning of a sheet's columns and words, as a person confirmed it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    #: The column that each header stands for, as inputs/README.md names it (`prompt`, `option:size`). Two headers may
    #: stand for one column; a file has one of them.
    columns: dict[str, str] = {}
    #: The category or value of the offer that each word of the sheet stands for.
    values: dict[str, str] = {}
    reading: ReadingChoices = ReadingChoices()

    @field_validator("columns")
    @classmethod
    def _with_targets(cls, columns: dict[str, str]) -> dict[str, str]:
        return {header: _target(header, target) for header, target in columns.items()}

    @cached_property
    def targets(self) -> Mapping[str, str]:
        """Return the columns by the keys of their headers."""
        return {header_key(header): target for header, target in self.columns.items()}

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Return the values by the keys of their words."""
        return {offer_key(word): meaning for word, meaning in self.values.items()}

    def on_record(self) -> dict[str, Any]:
        """Return what is mapped, for a run's record; empty where nothing is."""
        return self.model_dump(exclude_defaults=True)

    def with_more(self, more: SheetMapping) -> SheetMapping:
        """Return both mappings as one; where they differ, and on how the sheet is read, `more` counts."""
        columns, values = self.columns | more.columns, self.values | more.values
        return SheetMapping(columns=columns, values=values, reading=more.reading)

    def is_same(self, other: SheetMapping) -> bool:
        """Return whether two mappings mean the same, whatever the case and spaces of their headers and words."""
        return (self.targets, self.words, self.reading) == (other.targets, other.words, other.reading)

    def word(self, text: str) -> str:
        """Return what a category or a value of the sheet means."""
        return self.words.get(offer_key(text), text) if self.values else text

    def applied(self, header: Sequence[str]) -> tuple[str, ...]:
        """Return the header in a catalog's own names. The result columns of a results file stay what they are."""
        if not self.columns:
            return tuple(header)
        results = RESULT_COLUMNS if is_results_header(header) else ()
        return tuple(cell if header_key(cell) in results else self._name_of(cell) for cell in header)

    def _name_of(self, cell: str) -> str:
        target = self.targets.get(header_key(cell))
        if target is None:
            return cell
        # The prefix keeps a note that has the name of a catalog's column from being read as that column.
        return {OPTION: ANY_OPTION, NOTE: NOTE_PREFIX + cell.strip()}.get(target, target)

    def score(self, cells: Sequence[str]) -> tuple[bool, int]:
        """Return whether a row names all columns that a catalog needs, and how many it names, in either's words."""
        keys = [header_key(cell) for cell in self.applied(cells)]
        return not missing_columns(keys), sum(map(is_catalog_column, keys))

    def repeated(self, header: Sequence[str]) -> tuple[str, ...]:
        """Return the header as results have it, where a remark that has the name of a result is called a note."""
        both = zip(header, self.applied(header), strict=True)
        return tuple(name if header_key(cell) in RESULT_COLUMNS else cell for cell, name in both)

    def sentence(self, header: Sequence[str]) -> str | None:
        """Return `Columns: Prompt text -> prompt, …`; None where every column is read under its own name."""
        named = ((cell, self.targets.get(header_key(cell), NOTE)) for cell in header)
        pairs = [f"{plain(cell, 40)} -> {plain(name, 40)}" for cell, name in named if name != NOTE]
        return f"Columns: {', '.join(pairs)}." if pairs else None

    def refuse_gone(self, header: Sequence[str], name: str) -> None:
        """Raise InputRefused when a confirmed column is gone, as rows would be bought without it.

        A file that has none of the confirmed columns is read under its own names.
        """
        keys = {header_key(cell) for cell in header}
        places = {column_place(header_key(name)) for name in self.applied(header)}
        used = {key: target for key, target in self.targets.items() if target != NOTE}
        missing = {key for key in used.keys() - keys if column_place(header_key(used[key])) not in places}
        gone = [f"{shown(key)}, which was {shown(used[key])}" for key in used if key in missing]
        if gone and used.keys() & keys:
            raise refusal(
                FileCode.MAPPING_CHANGED,
                f"{name} no longer has the column {' and the column '.join(gone)}.",
                "Nothing was bought. If that is meant, delete its line under [columns] in the mapping.",
            )


NO_MAPPING = SheetMapping()


def _target(header: str, target: str) -> str:
    """Return the column as the contract spells it. Raises ValueError, which pydantic collects."""
    key = header_key(target)
    column = key if key in (*_SINGLE, NOTE, OPTION) else ""
    if key.startswith(OPTION_PREFIX) and key != OPTION_PREFIX:
        column = OPTION_PREFIX + target.partition(":")[2].strip()
    elif key.startswith(REFINE_PREFIX) and key.removeprefix(REFINE_PREFIX) in REFINEMENTS:
        column = key
    if not column or UNSAFE.search(column):
        raise ValueError(
            f"{shown(target)}, for the column {shown(header)}, is no column of a catalog. Write one of {_TARGETS}."
        )
    if header_key(header) in RESULT_COLUMNS and column != NOTE:
        raise ValueError(
            f"the results write a column {shown(header)}, so it can only be a note. Write `note`, or rename it in the"
            " sheet."
        )
    return column


@dataclass(frozen=True)
class MappingFile:
    """A mapping, and the place where it is or would be."""

    place: Path
    mapping: SheetMapping = NO_MAPPING

    def with_entry(self, section: str, name: str, meaning: str | int) -> MappingFile:
        """Return it with one more entry. Raises ConfigurationError for an entry that is not valid."""
        record = self.mapping.model_dump(exclude_none=True)
        record[section][name] = meaning
        return replace(self, mapping=_checked(record, self.place))

    def text(self, before: str) -> str:
        """Return the file with all entries: new ones at the end of their sections, the rest as a person wrote it."""
        written, lines = tomllib.loads(before), before.splitlines()
        for section, entries in self.mapping.model_dump(exclude_none=True).items():
            new = [
                mapping_line(key, value)
                for key, value in entries.items()
                if key not in written.get(section, {})
            ]
            if new:
                _add_lines(lines, section, new)
        text = "\n".join(lines) + "\n"
        try:
            tomllib.loads(text)
        except ValueError:  # a person wrote a section in another form of TOML
            return self.text("")
        return text


def _add_lines(lines: list[str], section: str, new: Sequence[str]) -> None:
    if f"[{section}]" not in lines:
        lines += [*([""] if lines else []), f"# {_SECTIONS[section]}", f"[{section}]"]
    start = lines.index(f"[{section}]") + 1
    ends = (number for number, line in enumerate(lines[start:], start) if line.startswith("["))
    end = next(ends, len(lines))
    while end > start and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    lines[end:end] = new


def find_mapping(named: Path | None, source: str, home: Path, catalog: str, *, own_name: bool) -> MappingFile:
    """Return the first of the named file, the one beside the sheet, and the one in the home under the catalog's name.

    Where there is none, it is empty, and its place is beside the sheet if the catalog is named after that
    (`own_name`). Raises ConfigurationError, also when two of them differ.
    """
    at_home = home / f"{catalog}{_SUFFIX}"
    path = None if is_remote(source) else file_path(source)
    beside = path.with_name(f"{path.stem}{_SUFFIX}") if path is not None and path.stem else None
    places = [place for place in (beside, at_home) if place is not None and place.is_file()]
    files = [read_mapping(place) for place in ([named] if named else []) + places]
    for other in files[1:]:
        if not other.mapping.is_same(files[0].mapping):
            raise ConfigurationError(
                f"{plain(str(files[0].place), 300)} and {plain(str(other.place), 300)} differ.",
                remedy="A catalog has one mapping: delete one of them, or make them equal.",
            )
    return files[0] if files else MappingFile(beside if beside is not None and own_name else at_home)


def read_mapping(path: Path) -> MappingFile:
    """Return the mapping in a file. Raises ConfigurationError, which names the file and the entry that is wrong."""
    name = plain(str(path), 300)
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"The mapping {name} cannot be read: {reason}.", remedy="Check its name."
        ) from None
    except ValueError as error:
        raise ConfigurationError(
            f"The mapping {name} is no TOML: {error}.", remedy="See inputs/README.md."
        ) from None
    return MappingFile(path, _checked(record, path))


def _checked(record: Any, place: Path) -> SheetMapping:
    try:
        return SheetMapping.model_validate(record)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = " ".join(shown(str(part)) for part in reversed(wrong["loc"][:2]))
        reason, _, remedy = wrong["msg"].removeprefix("Value error, ").partition(". ")
        raise ConfigurationError(
            f"The mapping {plain(str(place), 300)}, entry {where}: {reason}.",
            remedy=remedy or f"It may have {_FORM}.",
        ) from None


def mapping_line(key: str, value: str | int) -> str:
    """Return a line of a mapping file."""
    name = key if key in ReadingChoices.model_fields else _quoted(key)
    return f"{name} = {value if isinstance(value, int) else _quoted(value)}"


def _quoted(text: str) -> str:
    r"""Return the text quoted for TOML, which is as JSON quotes it except for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
