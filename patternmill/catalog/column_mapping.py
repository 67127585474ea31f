"""Which column of a file is which column of a catalog, where the two have different names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from patternmill.catalog.column_words import looks_like_option
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.refinements import REFINEMENTS
from patternmill.catalog.rows import (
    OPTION_PREFIX,
    REFINE_PREFIX,
    RESULT_COLUMNS,
    column_letter,
    column_place,
    header_key,
    is_catalog_column,
    is_results_header,
)
from patternmill.errors import ConfigurationError
from patternmill.text import UNSAFE, plain, shown

#: The name in a run's options under which the mapping is on record.
MAPPING = "mapping"
#: What a column is that a person saw and left as it is: carried through to the results.
CARRIED = "carried"
NOTE_PREFIX = "note:"
_SINGLE = ("sku", "prompt", "category", "category_id", "selections", "model", "reference")
_TARGETS = (
    "sku, prompt, category, option:<name>, selections, model, reference, refine:<step>, note or carried"
)


@dataclass(frozen=True)
class ColumnMapping:
    """By the key of a file's header: the column that it is, as inputs/README.md names it (`prompt`, `option:size`)."""

    columns: Mapping[str, str] = field(default_factory=dict)
    #: A header that is another than the one that was confirmed is refused.
    is_strict: bool = False

    @classmethod
    def of(cls, columns: Mapping[str, str]) -> Self:
        """`columns`: by header, in whatever case and with whatever spaces."""
        return cls({header_key(header): name for header, name in columns.items()})

    def applied(self, header: Sequence[str]) -> tuple[str, ...]:
        """The header as a catalog's own. A column that has the name already keeps it, and the mapped one its own.

        The results in a results file stay what they are.
        """
        results = RESULT_COLUMNS if is_results_header(header) else ()
        own = {column_place(header_key(cell)) for cell in header if header_key(cell) not in self.columns}
        return tuple(cell if header_key(cell) in results else self._name_of(cell, own) for cell in header)

    def repeated(self, header: Sequence[str]) -> tuple[str, ...]:
        """The header as results have it: a remark that has the name of a result there is called a note."""
        both = zip(header, self.applied(header), strict=True)
        return tuple(name if header_key(cell) in RESULT_COLUMNS else cell for cell, name in both)

    def _name_of(self, cell: str, own: set[str]) -> str:
        target = self.columns.get(header_key(cell), CARRIED)
        return cell if target == CARRIED or column_place(header_key(target)) in own else target

    def renamed(self, header: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The columns of this header that have another name in the catalog, with that name."""
        both = zip(header, self.applied(header), strict=True)
        return tuple((cell, name) for cell, name in both if header_key(cell) != header_key(name))

    def sentence(self, header: Sequence[str]) -> str | None:
        """`Columns: Prompt text -> prompt, …`; None where every column is read under its own name."""
        pairs = [f"{plain(cell, 40)} -> {plain(name, 40)}" for cell, name in self.renamed(header)]
        return f"Columns: {', '.join(pairs)}." if pairs else None

    def refuse_changes(self, header: Sequence[str], name: str, *, quoting: bool = True) -> None:
        """Raise InputRefused when a mapping that must hold as confirmed does not fit this header any more.

        `quoting`: the refusal may quote the header. The mapping does not concern a file that has none of its columns:
        that one is read under its own names.
        """
        if not self.is_strict or not self.renamed(header):
            return
        changes = [*self._gone(header), *self._displaced(header), *self._new(header, quoting)]
        if changes:
            raise refusal(
                FileCode.MAPPING_CHANGED,
                f"The columns of {name} are not those that were confirmed: {'; '.join(changes)}.",
                "Nothing was bought.",
            )

    def _used(self) -> Iterator[tuple[str, str]]:
        for key, target in self.columns.items():
            if target != CARRIED and not target.startswith(NOTE_PREFIX):
                yield key, target

    def _gone(self, header: Sequence[str]) -> Iterator[str]:
        keys = {header_key(cell) for cell in header}
        own = set(map(column_place, keys))
        for key, target in self._used():
            if key not in keys and column_place(header_key(target)) not in own:
                yield f"{shown(key)}, which was {shown(target)}, is gone"

    def _displaced(self, header: Sequence[str]) -> Iterator[str]:
        keys = {header_key(cell) for cell in header}
        own = {column_place(key): key for key in keys - self.columns.keys()}
        for key, target in self._used():
            if key in keys and (new := own.get(column_place(header_key(target)))):
                yield f"{shown(key)}, which was {shown(target)}, has a new column {shown(new)} next to it"

    def _new(self, header: Sequence[str], quoting: bool) -> Iterator[str]:
        for index, cell in enumerate(header):
            key = header_key(cell)
            if key and key not in self.columns and not is_catalog_column(key) and looks_like_option(cell):
                yield f"{shown(cell) if quoting else f'column {column_letter(index)}'} is new and looks like an option"


def checked_columns(columns: Mapping[str, str], where: str) -> ColumnMapping:
    """A mapping that a person wrote, by header; `note` alone is a remark under the header's name.

    `where` is what holds it, for messages. Raises ConfigurationError.
    """
    targets = {header: _target(header, target, where) for header, target in columns.items()}
    _refuse_two_for_one(targets, where)
    return ColumnMapping.of(targets)


def _target(header: str, target: str, where: str) -> str:
    key = header_key(target)
    if key in _SINGLE:
        found: str | None = key
    elif key in ("note", CARRIED, "-", ""):
        # A column with a catalog's own name would be read as that, were it only carried.
        as_note = key == "note" or is_catalog_column(header_key(header))
        found = NOTE_PREFIX + header.strip() if as_note else CARRIED
    elif key.startswith((OPTION_PREFIX, NOTE_PREFIX)):
        prefix, _, name = target.partition(":")
        found = f"{prefix.strip().lower()}:{name.strip()}" if name.strip() else None
    else:
        found = key if key.removeprefix(REFINE_PREFIX) in REFINEMENTS and REFINE_PREFIX in key else None
    if found is None or UNSAFE.search(found):
        raise ConfigurationError(
            f"{where}: {shown(target)}, for the column {shown(header)}, is no column of a catalog.",
            remedy=f"Write one of {_TARGETS}.",
        )
    if header_key(header) in RESULT_COLUMNS and not found.startswith(NOTE_PREFIX):
        raise ConfigurationError(
            f"{where}: the results write a column {shown(header)}, so it can only be a note.",
            remedy="Write `note`, or rename it in the sheet.",
        )
    return found


def _refuse_two_for_one(targets: Mapping[str, str], where: str) -> None:
    seen: dict[str, str] = {}
    for header, target in targets.items():
        place = column_place(header_key(target))
        if place in seen and place != CARRIED:
            raise ConfigurationError(
                f"{where}: {shown(seen[place])} and {shown(header)} are both to be {shown(target)}.",
                remedy="Name one of them; the other can be `note`.",
            )
        seen[place] = header


NO_MAPPING = ColumnMapping()
