"""A column mapping in a file that a person can read and a schedule uses: TOML, with the reasons as comments."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping, checked_columns
from patternmill.catalog.mapping_proposal import ProposedColumn
from patternmill.catalog.remote import is_remote, source_stem
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices
from patternmill.errors import ConfigurationError
from patternmill.text import plain, shown

#: What follows the stem of a file whose mapping lies next to it.
SUFFIX = ".mapping.toml"
_CHOICES: Mapping[str, type] = {"encoding": str, "worksheet": str, "header_row": int, "delimiter": str}
_REMEDY = "Write it anew with `patternmill map FILE --out`, or see inputs/README.md."


@dataclass(frozen=True)
class MappingFile:
    mapping: ColumnMapping
    choices: SheetChoices


NO_MAPPING_FILE = MappingFile(NO_MAPPING, NO_CHOICES)


def mapping_file_of(source: Path) -> Path | None:
    """`spring.mapping.toml` next to `spring.csv`, or to its corrected copy, where there is one."""
    places = (source.parent / f"{stem}{SUFFIX}" for stem in (source.stem, source_stem(source)) if stem)
    return next((place for place in places if place.is_file()), None)


def named_mapping(named: Path | None, source: str) -> MappingFile:
    """The mapping in the file that is named, or in the one next to a source that is a file.

    Raises ConfigurationError.
    """
    adjacent = None if is_remote(source) else mapping_file_of(Path(source.removeprefix("file://")))
    path = named or adjacent
    return read_mapping_file(path) if path is not None else NO_MAPPING_FILE


def read_mapping_file(path: Path) -> MappingFile:
    """Raises ConfigurationError, which names the file and the entry that is wrong."""
    name = plain(str(path), 300)
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"The mapping {name} cannot be read: {reason}.", remedy="Check its name."
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"The mapping {name} is no TOML: {error}.", remedy=_REMEDY) from None
    return _read_record(record, name)


def _read_record(record: Mapping[str, Any], name: str) -> MappingFile:
    unknown = [shown(key) for key in record if key not in ("columns", "reading")]
    if unknown:
        raise ConfigurationError(
            f"The mapping {name} has {', '.join(unknown)}, which means nothing there.", remedy=_REMEDY
        )
    columns, reading = record.get("columns", {}), record.get("reading", {})
    if not isinstance(columns, dict) or not all(isinstance(target, str) for target in columns.values()):
        raise ConfigurationError(
            f"The mapping {name}: under [columns] each line has to be like"
            ' "Prompt text" = "prompt", with both in quotes.',
            remedy=_REMEDY,
        )
    mapping = checked_columns(columns, name)
    return MappingFile(replace(mapping, is_strict=True), _choices(reading, name))


def _choices(reading: Any, name: str) -> SheetChoices:
    table = reading if isinstance(reading, dict) else {"reading": reading}
    for key, value in table.items():
        wanted = _CHOICES.get(key)
        if wanted is None or type(value) is not wanted:
            kind = (
                "is not known" if wanted is None else f"has to be {'a number' if wanted is int else 'text'}"
            )
            raise ConfigurationError(
                f"The mapping {name}: {shown(str(key))} under [reading] {kind}.",
                remedy=f"Known are {', '.join(_CHOICES)}.",
            )
    return SheetChoices.of(table)


def mapping_text(name: str, columns: Iterable[ProposedColumn], choices: SheetChoices) -> str:
    """The file as it is written for a sheet called `name`."""
    return "\n".join(_lines(name, columns, choices)) + "\n"


def _lines(name: str, columns: Iterable[ProposedColumn], choices: SheetChoices) -> Iterator[str]:
    yield f"# Which column of {plain(name, 100)} is which column of the catalog, as `patternmill map` wrote it."
    yield "# Change it as you like. `carried`: not used, and carried through to the results."
    yield "# `note`: the same, and never taken for an option. inputs/README.md lists the others."
    yield ""
    yield "[columns]"
    yield from (f"{_quoted(column.header)} = {_quoted(column.target)}" for column in columns)
    chosen = [(key, getattr(choices, key)) for key in _CHOICES if getattr(choices, key) is not None]
    if chosen:
        yield from ("", "# How the file is read.", "[reading]")
        yield from (f"{key} = {value if isinstance(value, int) else _quoted(value)}" for key, value in chosen)


def _quoted(text: str) -> str:
    r"""As TOML has it, which for text in quotes is as JSON has it, but for what JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
