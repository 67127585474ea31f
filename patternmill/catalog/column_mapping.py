"""Which column of a file is which column of a catalog, and which of its words mean which of the offer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from patternmill.catalog.offer import offer_key
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.refinements import REFINEMENTS
from patternmill.catalog.rows import (
    ANY_OPTION,
    NOTE_PREFIX,
    OPTION_PREFIX,
    REFINE_PREFIX,
    RESULT_COLUMNS,
    column_place,
    header_key,
    is_results_header,
)
from patternmill.errors import ConfigurationError
from patternmill.text import UNSAFE, plain, shown

#: The name in a run's options under which the mapping is on record.
MAPPING = "mapping"
#: A column that a person saw and that chooses nothing: carried through to the results.
NOTE = "note"
#: Any option of the row's category that offers the cell's value.
OPTION = "option"
_SINGLE = ("sku", "prompt", "category", "category_id", "selections", "model", "reference")
_TARGETS = "sku, prompt, category, option:<name>, option, selections, model, reference, refine:<step> or note"


@dataclass(frozen=True)
class ColumnMapping:
    #: By the key of a header: the column that it is, as inputs/README.md names it (`prompt`, `option:size`).
    columns: Mapping[str, str] = field(default_factory=dict)
    #: By the key of a word in the file: what it means.
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, str], words: Mapping[str, str] | None = None) -> Self:
        """By headers and words in whatever case and with whatever spaces."""
        return cls(
            {header_key(header): name for header, name in columns.items()},
            {offer_key(word): meaning for word, meaning in (words or {}).items()},
        )

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """From the options of a run's record."""
        kept = record.get(MAPPING) or {}
        return cls(kept.get("columns", {}), kept.get("words", {}))

    def on_record(self) -> dict[str, dict[str, str]]:
        """Empty where nothing is mapped."""
        kept = {"columns": dict(self.columns), "words": dict(self.words)}
        return {name: those for name, those in kept.items() if those}

    def with_more(self, more: ColumnMapping) -> ColumnMapping:
        return ColumnMapping({**self.columns, **more.columns}, {**self.words, **more.words})

    def word(self, text: str) -> str:
        """What a category or a value of the file means."""
        return self.words.get(offer_key(text), text) if self.words else text

    def applied(self, header: Sequence[str]) -> tuple[str, ...]:
        """The header as a catalog's own. The results in a results file stay what they are."""
        results = RESULT_COLUMNS if is_results_header(header) else ()
        return tuple(cell if header_key(cell) in results else self._name_of(cell) for cell in header)

    def _name_of(self, cell: str) -> str:
        target = self.columns.get(header_key(cell), cell)
        if target == OPTION:
            return ANY_OPTION
        # A note keeps its name; one that is a catalog's own would be read as that.
        return NOTE_PREFIX + cell.strip() if target == NOTE else target

    def repeated(self, header: Sequence[str]) -> tuple[str, ...]:
        """The header as results have it: a remark that has the name of a result there is called a note."""
        both = zip(header, self.applied(header), strict=True)
        return tuple(name if header_key(cell) in RESULT_COLUMNS else cell for cell, name in both)

    def sentence(self, header: Sequence[str]) -> str | None:
        """`Columns: Prompt text -> prompt, …`; None where every column is read under its own name."""
        named = ((cell, self.columns.get(header_key(cell), NOTE)) for cell in header)
        pairs = [f"{plain(cell, 40)} -> {plain(name, 40)}" for cell, name in named if name != NOTE]
        return f"Columns: {', '.join(pairs)}." if pairs else None

    def refuse_gone(self, header: Sequence[str], name: str) -> None:
        """Raise InputRefused when a column that was confirmed is gone: its rows would be bought without it.

        A file that has none of the confirmed columns is read under its own names.
        """
        keys = {header_key(cell) for cell in header}
        used = {key: target for key, target in self.columns.items() if target != NOTE}
        places = {column_place(header_key(name)) for name in self.applied(header)}
        gone = [
            f"{shown(key)}, which was {shown(target)}"
            for key, target in used.items()
            if key not in keys and column_place(header_key(target)) not in places
        ]
        if gone and used.keys() & keys:
            raise refusal(
                FileCode.MAPPING_CHANGED,
                f"{name} no longer has the column {' and the column '.join(gone)}.",
                "Nothing was bought. If that is meant, delete its line under [columns] in the mapping.",
            )


def checked_mapping(columns: Mapping[str, str], words: Mapping[str, str], where: str) -> ColumnMapping:
    """A mapping that a person wrote, by header and by word; two headers may be one column, of which a file has one.

    `where` is what holds it, for messages. Raises ConfigurationError.
    """
    targets = {header: _target(header, target, where) for header, target in columns.items()}
    return ColumnMapping.of(targets, words)


def _target(header: str, target: str, where: str) -> str:
    key = header_key(target)
    found: str | None = key if key in (*_SINGLE, NOTE, OPTION) else None
    if key.startswith(OPTION_PREFIX) and key != OPTION_PREFIX:
        found = OPTION_PREFIX + target.partition(":")[2].strip()
    elif key.startswith(REFINE_PREFIX) and key.removeprefix(REFINE_PREFIX) in REFINEMENTS:
        found = key
    if found is None or UNSAFE.search(found):
        raise ConfigurationError(
            f"{where}: {shown(target)}, for the column {shown(header)}, is no column of a catalog.",
            remedy=f"Write one of {_TARGETS}.",
        )
    if header_key(header) in RESULT_COLUMNS and found != NOTE:
        raise ConfigurationError(
            f"{where}: the results write a column {shown(header)}, so it can only be a note.",
            remedy="Write `note`, or rename it in the sheet.",
        )
    return found


NO_MAPPING = ColumnMapping()
