"""The mapping of a catalog's files: `NAME.mapping.toml`, which a person can read, and which `check` adds to."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patternmill.catalog.catalog_file import SheetChoices
from patternmill.catalog.column_mapping import ColumnMapping, checked_mapping
from patternmill.catalog.remote import file_path, is_remote
from patternmill.errors import ConfigurationError
from patternmill.text import plain, shown

_SUFFIX = ".mapping.toml"
_SECTIONS: Mapping[str, str] = {
    "columns": "Which column is which: inputs/README.md names them. `note`: carried through, chooses nothing.",
    "values": "Which word of the sheet means which of the offer's.",
    "reading": "How the sheet is read, where it does not show that itself.",
}
_READING: Mapping[str, type] = {"encoding": str, "worksheet": str, "header": int, "delimiter": str}


@dataclass(frozen=True)
class MappingFile:
    #: Where it lies, or would lie.
    place: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    reading: SheetChoices = field(default_factory=SheetChoices)

    @property
    def mapping(self) -> ColumnMapping:
        return checked_mapping(self.columns, self.values, plain(str(self.place), 300))

    def with_entry(self, section: str, name: str, meaning: str | int) -> MappingFile:
        """Raises ConfigurationError for what cannot be."""
        sections: dict[str, Any] = {one: dict(getattr(self, one)) for one in _SECTIONS}
        sections[section][name] = meaning
        changed = MappingFile(self.place, **sections)
        assert changed.mapping is not None, "its parts fit together"
        return changed


def find_mapping(named: Path | None, source: str, home: Path, catalog: str, *, own_name: bool) -> MappingFile:
    """The first of the named file, the one beside the sheet, and the one in the home under the catalog's name.

    Empty where there is none: with its place, which is beside the sheet where the catalog is named after it
    (`own_name`). Raises ConfigurationError, also when two of them differ.
    """
    at_home = home / f"{catalog}{_SUFFIX}"
    path = None if is_remote(source) else file_path(source)
    beside = path.with_name(f"{path.stem}{_SUFFIX}") if path is not None and path.stem else None
    places = [place for place in (beside, at_home) if place is not None and place.is_file()]
    found = [read_mapping_file(place) for place in ([named] if named else []) + places]
    for other in found[1:]:
        if (other.mapping, other.reading) != (found[0].mapping, found[0].reading):
            raise ConfigurationError(
                f"{plain(str(found[0].place), 300)} and {plain(str(other.place), 300)} differ.",
                remedy="A catalog has one mapping: delete one of them, or make them equal.",
            )
    return found[0] if found else MappingFile(beside if beside is not None and own_name else at_home)


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
        raise ConfigurationError(
            f"The mapping {name} is no TOML: {error}.", remedy="See inputs/README.md."
        ) from None
    if unknown := [shown(key) for key in record if key not in _SECTIONS]:
        raise ConfigurationError(
            f"The mapping {name} has {', '.join(unknown)}, which means nothing there.",
            remedy=f"It may have {', '.join(f'[{section}]' for section in _SECTIONS)}.",
        )
    sections: dict[str, Any] = {
        section: _section(record.get(section, {}), section, name) for section in _SECTIONS
    }
    found = MappingFile(path, **sections)
    assert found.mapping is not None, "it was checked"
    return found


def _section(entries: Any, section: str, name: str) -> dict[str, Any]:
    for key, value in entries.items() if isinstance(entries, dict) else [(section, entries)]:
        wanted = _READING.get(key) if section == "reading" else str
        if type(value) is not wanted:
            known = f"; known are {', '.join(_READING)}" if section == "reading" else ""
            raise ConfigurationError(
                f"The mapping {name}: {shown(str(key))} under [{section}] cannot be {shown(str(value))}.",
                remedy=f'Write each line like "Prompt text" = "prompt"{known}.',
            )
    return dict(entries)


def mapping_text(before: str, mapping: MappingFile) -> str:
    """The file with all entries of the mapping: new ones at the end of their section, the rest as a person wrote it."""
    known = tomllib.loads(before)
    lines = before.splitlines()
    for section, about in _SECTIONS.items():
        entries = getattr(mapping, section)
        new = [_line(key, value) for key, value in entries.items() if key not in known.get(section, {})]
        if new and f"[{section}]" not in lines:
            lines += [*([""] if lines else []), f"# {about}", f"[{section}]"]
        start = lines.index(f"[{section}]") + 1 if new else 0
        ends = (number for number, line in enumerate(lines[start:], start) if line.startswith("["))
        end = next(ends, len(lines))
        while end > start and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1
        lines[end:end] = new
    text = "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except ValueError:  # a person wrote a section in another form of TOML
        return mapping_text("", mapping)
    return text


def _line(key: str, value: str | int) -> str:
    name = key if key in _READING else _quoted(key)
    return f"{name} = {value if isinstance(value, int) else _quoted(value)}"


def _quoted(text: str) -> str:
    r"""As TOML has it, which for text in quotes is as JSON has it, but for what JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
