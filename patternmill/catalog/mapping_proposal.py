"""What the columns of a sheet probably are, by their names, by the offered options, and by what is in them.

A proposal decides nothing: it is shown to a person, who confirms it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter

from patternmill.catalog.column_mapping import (
    CARRIED,
    NO_MAPPING,
    NOTE_PREFIX,
    ColumnMapping,
    checked_columns,
)
from patternmill.catalog.column_words import name_rank, option_called
from patternmill.catalog.offer import Category, Offer, Option, suggestion_key
from patternmill.catalog.option_columns import ANYWHERE, is_note, option_key
from patternmill.catalog.rows import (
    OPTION_PREFIX,
    RESULT_COLUMNS,
    column_letter,
    header_key,
    is_blank,
    is_catalog_column,
    is_results_header,
    missing_columns,
    sku_key,
    tidy,
)
from patternmill.text import shown

#: Different values of a column that are looked at.
_MOST_VALUES = 500
#: Of a column's values: so many may be misspelt, and it still is what most of them are.
_MOST_OF = 0.6
#: A letter and a digit, and no space: no price, date or count.
_CODE = re.compile(r"(?=\S*[^\W\d_])(?=\S*\d)\S{1,40}$")


class Certainty(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"
    #: It can be read in two ways.
    QUESTION = "question"


@dataclass(frozen=True)
class ProposedColumn:
    """One column of a sheet, what it would be, and why."""

    index: int
    header: str
    #: As inputs/README.md names it; `carried` is carried through to the results.
    target: str
    why: str
    certainty: Certainty = Certainty.CERTAIN

    @property
    def is_result(self) -> bool:
        """It is written anew, whatever is in it."""
        return header_key(self.target) in RESULT_COLUMNS

    @property
    def is_left_out(self) -> bool:
        """Carried, as nothing speaks against."""
        return self.target == CARRIED and self.certainty is Certainty.CERTAIN

    @property
    def name(self) -> str:
        """For messages: the header, or the letter that a spreadsheet shows."""
        return self.header.strip() or f"column {column_letter(self.index)}"


@dataclass(frozen=True)
class MappingProposal:
    columns: tuple[ProposedColumn, ...]

    @property
    def mapping(self) -> ColumnMapping:
        """As it would be confirmed: every column with a header. Raises ConfigurationError: two columns for one."""
        return checked_columns({one.header: one.target for one in self.named}, "The mapping")

    @property
    def named(self) -> tuple[ProposedColumn, ...]:
        """The columns that a mapping speaks of: those with a name, but for the results of an earlier run."""
        keys = [header_key(column.header) for column in self.columns]
        both = zip(keys, self.columns, strict=True)
        return tuple(column for key, column in both if key and not column.is_result)

    @property
    def missing(self) -> tuple[str, ...]:
        """What every catalog has to have, and no column is."""
        return missing_columns(column.target for column in self.columns)

    @property
    def is_needed(self) -> bool:
        """Whether a column is to be read under another name than its own, or is missing."""
        return bool(self.missing) or any(map(_is_renamed, self.columns))

    @property
    def is_found(self) -> bool:
        """Whether anything that a catalog needs was found, so that it is worth showing."""
        return len(self.missing) < len(missing_columns(()))

    @property
    def questions(self) -> tuple[ProposedColumn, ...]:
        return tuple(column for column in self.columns if column.certainty is Certainty.QUESTION)

    @property
    def is_decided(self) -> bool:
        """Whether it could be accepted as it is: nothing is missing, and no column can be read in two ways."""
        return not self.missing and not self.questions

    def with_target(self, index: int, target: str) -> MappingProposal:
        """One column as a person wants it; another column that was this one is carried then.

        Raises ConfigurationError for what is no column of a catalog.
        """
        chosen = self.columns[index]
        asked = checked_columns({chosen.header: target}, "The mapping").columns[header_key(chosen.header)]
        return MappingProposal(tuple(_with_choice(one, chosen, asked) for one in self.columns))


def _with_choice(one: ProposedColumn, chosen: ProposedColumn, target: str) -> ProposedColumn:
    if one.index == chosen.index:
        return replace(one, target=target, why="as you say", certainty=Certainty.CERTAIN)
    if header_key(one.target) == header_key(target) and target != CARRIED:
        kept = NOTE_PREFIX + one.header.strip() if is_catalog_column(header_key(one.header)) else CARRIED
        why = f"{shown(target)} is another column"
        return replace(one, target=kept, why=why, certainty=Certainty.CERTAIN)
    # A question between two columns is answered once a person says what one of them is.
    is_answered = shown(target) in one.why or shown(one.target) in chosen.why
    return replace(one, certainty=Certainty.CERTAIN) if is_answered else one


def _is_renamed(column: ProposedColumn) -> bool:
    return column.target != CARRIED and header_key(column.target) != header_key(column.header)


def propose(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    offer: Offer | None = None,
    remembered: ColumnMapping = NO_MAPPING,
) -> MappingProposal:
    """What each column would be, with every column once, in the order of the file.

    `rows`: the cells of some rows. `offer` None: names alone are gone by. `remembered`: what a person confirmed before.
    """
    return _ProposalBuilder(header, rows, offer, remembered).proposal()


#: How well a column fits (0: not at all), and why.
_Score = tuple[int, str, Certainty]
#: Whether it has the option's name, the share of its values that are offered, the option, why.
_OptionScore = tuple[bool, float, str, str, Certainty]


class _ProposalBuilder:
    """The columns of one sheet that are not decided yet, and those that are."""

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        offer: Offer | None,
        remembered: ColumnMapping,
    ) -> None:
        self._header, self._rows, self._offer = header, rows, offer
        self._remembered = remembered
        self._values = [tuple(self._distinct(index)) for index in range(len(header))]
        self._found: dict[int, ProposedColumn] = {}
        #: Keys of rows that have the name of an option.
        self._keys: set[int] = set()

    def _distinct(self, index: int) -> Iterator[str]:
        cells = (row[index] for row in self._rows if index < len(row) and not is_blank(row[index]))
        yield from Counter(map(tidy, cells))

    def proposal(self) -> MappingProposal:
        self._assign_own_names()
        for target, score in (("sku", self._score_as_sku), ("category", self._score_as_category)):
            self._choose(target, score)
        self._choose("prompt", self._score_as_prompt)
        if "selections" not in self._targets():
            self._assign_options()
        for index in self._open():
            if index in self._keys:
                # Carried alone, its cells would be asked about in each row.
                self._add(
                    index, NOTE_PREFIX + self._header[index].strip(), "a key, not the option of this name"
                )
            elif option_called(self._header[index]) is None:
                self._add(index, CARRIED, "not needed")
            else:
                self._add(index, CARRIED, "no such option is offered", Certainty.LIKELY)
        return MappingProposal(tuple(self._found[index] for index in range(len(self._header))))

    def _open(self) -> list[int]:
        return [index for index in range(len(self._header)) if index not in self._found]

    def _targets(self) -> set[str]:
        return {header_key(column.target) for column in self._found.values()}

    def _column_of(self, target: str) -> ProposedColumn | None:
        key = header_key(target)
        return next((one for one in self._found.values() if header_key(one.target) == key), None)

    def _add(self, index: int, target: str, why: str, certainty: Certainty = Certainty.CERTAIN) -> None:
        self._found[index] = ProposedColumn(index, self._header[index], target, why, certainty)

    def _assign_own_names(self) -> None:
        applied = self._remembered.applied(self._header)
        for index, cell in enumerate(self._header):
            key = header_key(cell)
            if header_key(applied[index]) != key:
                self._add(index, applied[index], "as confirmed before")
            elif key in RESULT_COLUMNS:
                is_result = is_results_header(self._header) or not self._values[index]
                target = key if is_result else NOTE_PREFIX + cell.strip()
                self._add(index, target, "results have a column of this name")
            elif is_catalog_column(key) or is_note(cell):
                self._add(index, cell.strip() if ":" in key else key, "its own name")
            elif not key:
                self._add(index, CARRIED, "it has no name")

    def _choose(self, target: str, score: Callable[[int], _Score]) -> None:
        """The best column for what every catalog has; a question where two are as good."""
        if target not in missing_columns(self._targets()):
            return
        scores = [(*found, index) for index in self._open() if (found := score(index))[0] > 0]
        if not scores:
            return
        fit = sorted(scores, key=lambda one: -one[0])
        best, why, certainty, index = fit[0]
        rivals = [other for rank, *_, other in fit[1:] if rank == best]
        for other in rivals:
            self._add(other, CARRIED, f"could be {shown(target)} too", Certainty.QUESTION)
        self._add(index, target, why, Certainty.QUESTION if rivals else certainty)

    def _score_as_sku(self, index: int) -> _Score:
        named = name_rank("sku", self._header[index])
        filled = sum(1 for row in self._rows if index < len(row) and not is_blank(row[index]))
        values = self._values[index]
        is_unique = bool(values) and len(set(map(sku_key, values))) == filled == len(self._rows)
        if named > 1:
            sure = named == 3 and (is_unique or not values)
            why = "its name" if is_unique or not values else "some are empty or repeated"
            return (named * 2 + is_unique, why, _certain_if(sure))
        if named:
            return (2 + is_unique, "a word in its name", Certainty.LIKELY)
        looks_like_codes = is_unique and len(values) > 1 and all(map(_CODE.match, values))
        return (1 if looks_like_codes else 0, "another code in each row", Certainty.QUESTION)

    def _score_as_category(self, index: int) -> _Score:
        named, values = name_rank("category", self._header[index]), self._values[index]
        offered = self._offer.categories if self._offer is not None else None
        if not offered or not values:
            return (named, "its name", _certain_if(named == 3))
        assert self._offer is not None, "it has categories"
        fitting = sum(bool(self._offer.find(value)) for value in values)
        counted = f"{fitting} of {len(values)} are categories"
        if fitting >= _MOST_OF * len(values):
            return (10 + named, counted, _certain_if(named > 1 or fitting == len(values)))
        return (named, counted, Certainty.LIKELY)

    def _score_as_prompt(self, index: int) -> _Score:
        named, values = name_rank("prompt", self._header[index]), self._values[index]
        is_text = bool(values) and sum(" " in value for value in values) * 2 >= len(values)
        if named == 3:
            return (8, "its name", Certainty.CERTAIN)
        if named:
            why = "its name" if named == 2 else "a word in its name"
            return (named * 2 + is_text, why, Certainty.LIKELY)
        is_long = is_text and sum(map(len, values)) >= 15 * len(values)
        return (1 if is_long and len(values) > 1 else 0, "it holds text", Certainty.QUESTION)

    def _assign_options(self) -> None:
        options = self._offered_options()
        scores = sorted(
            ((score, -index) for index in self._open() for score in self._option_scores(index, options)),
            reverse=True,
        )
        for (is_named, _, option, why, certainty), place in scores:
            index, target = -place, OPTION_PREFIX + option
            if index in self._found:
                continue
            rival = self._column_of(target)
            if rival is None:
                self._add(index, target, why, certainty)
                continue
            if not is_named:
                continue
            self._add(index, CARRIED, f"could be {shown(target)} too", Certainty.QUESTION)
            if not is_catalog_column(header_key(rival.header)):
                self._found[rival.index] = replace(rival, certainty=Certainty.QUESTION)

    def _offered_options(self) -> Mapping[str, _OfferedOption]:
        """By name, of the categories that the rows have, or of all."""
        found: dict[str, list[Option]] = {}
        for category in self._categories_of_rows():
            for option in category.options or ():
                found.setdefault(option.name, []).append(option)
        return {name: _OfferedOption.of(options) for name, options in found.items()}

    def _categories_of_rows(self) -> Iterable[Category]:
        if self._offer is None or self._offer.categories is None:
            return ()
        places = [one.index for one in self._found.values() if header_key(one.target) == "category"]
        found = [self._offer.find(value) for index in places for value in self._values[index]]
        # Those that are misspelt may be any.
        return (
            {one.id: one for these in found for one in these}.values()
            if all(found)
            else self._offer.categories
        )

    def _option_scores(self, index: int, options: Mapping[str, _OfferedOption]) -> Iterator[_OptionScore]:
        header, values = self._header[index], self._values[index][:_MOST_VALUES]
        key, called = option_key(header), option_called(header)
        value_keys = [suggestion_key(value) for value in values]
        for name, option in options.items():
            share = option.share(value_keys)
            if share == 0 and values and option.values and name_rank("sku", header) and key in option.names:
                # A shop's `Handle` is no `handles` of a bag.
                self._keys.add(index)
                continue
            if bool(key) and (key in option.names or (called is not None and called in option.names)):
                yield _named_score(name, option, share, len(values))
            elif called is not None and 1 > share >= _MOST_OF:
                fitting = f"{round(share * len(values))} of {len(values)} values are offered"
                yield (False, share, name, fitting, Certainty.LIKELY)
            elif share == 1 and not set(value_keys) <= ANYWHERE:
                yield (False, share, name, "its values", Certainty.QUESTION)
        if called is not None and not options:
            why = "the offered options are not known"
            yield (True, 0.0, called, why, Certainty.LIKELY)


@dataclass(frozen=True)
class _OfferedOption:
    """An option of one name, as all categories together have it."""

    names: frozenset[str]
    #: None: not all of them are known.
    values: frozenset[str] | None

    @classmethod
    def of(cls, options: Sequence[Option]) -> _OfferedOption:
        names = {option_key(name) for one in options for name in (one.name, *one.spellings)}
        if any(one.values is None for one in options):
            return cls(frozenset(names), None)
        values = [text for one in options for text in (*(one.values or ()), *map(itemgetter(0), one.labels))]
        return cls(frozenset(names), frozenset(map(suggestion_key, values)))

    def share(self, keys: Sequence[str]) -> float:
        """How many of these are values of it."""
        return sum(key in self.values for key in keys) / len(keys) if self.values and keys else 0.0


def _named_score(name: str, option: _OfferedOption, share: float, values: int) -> _OptionScore:
    if not values or share == 1 or option.values is None:
        return (True, share, name, "its name", Certainty.CERTAIN)
    fitting = f"{round(share * values)} of {values} values are offered"
    return (True, share, name, fitting, _certain_if(share >= _MOST_OF))


def _certain_if(sure: bool) -> Certainty:
    return Certainty.CERTAIN if sure else Certainty.LIKELY
