"""What the mapping of a sheet lacks, as questions: what each column and each unknown word probably is.

A proposal decides nothing: a person confirms it, or says `--yes` to those that can mean nothing else.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from patternmill.catalog.column_mapping import NOTE, OPTION, ColumnMapping
from patternmill.catalog.offer import Category, Nearest, Offer, Option, numbers_in, offer_key, suggestion_key
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import (
    NOTE_PREFIX,
    OPTION_PREFIX,
    RESULT_COLUMNS,
    column_place,
    header_key,
    is_blank,
    is_catalog_column,
    is_results_header,
    missing_columns,
    sku_key,
    tidy,
)
from patternmill.catalog.selections import options_called, parts_of
from patternmill.catalog.trade_words import column_rank, meanings, name_key, same_word

#: How alike two spellings of one word are: `Cusion` and `Cushion` are, `cotton` and `organic cotton` are not.
_ALIKE = 0.83
#: Shorter words are alike by accident: `rot` and `rost`.
_FEWEST_LETTERS = 5
#: Of the values of a column so many have to be categories.
_MOST_OF = 0.5
_MOST_CELLS = 2_000
_SEVERAL_NAMES = re.compile(r"\s*[/&+,;|・]\s*|\s+(?:und|and|et|y|e|en|o|oder|ou|or)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """One entry that a mapping lacks."""

    #: Of the mapping file.
    section: str
    #: The column or the word as the sheet has it; with a `target`, the column that it is asked for.
    name: str
    choices: tuple[str, ...]
    suggestion: str | None = None
    #: Nothing else can be meant.
    certain: bool = False
    #: The rows that have the word, and the column it is in.
    lines: tuple[int, ...] = ()
    column: str | None = None
    #: What is in the column, or how the encodings read: by choice, or in the order of the sheet.
    examples: tuple[str, ...] = ()
    #: `prompt`: the choices are columns of the sheet.
    target: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.section, offer_key(self.target or self.name)

    def entry(self, answer: str) -> tuple[str, str, str]:
        """Of the mapping file: its section, name and meaning."""
        return (self.section, answer, self.target) if self.target else (self.section, self.name, answer)


def trade_score(mapping: ColumnMapping, offer: Offer | None) -> Callable[[Sequence[str]], tuple[bool, int]]:
    """How well a row names the columns of a catalog, in the words of the trade."""

    def score(cells: Sequence[str]) -> tuple[bool, int]:
        names = mapping.applied(cells)
        found = {
            column
            for column in missing_columns(())
            if any(column_place(header_key(name)) == column or column_rank(column, name) for name in names)
        }
        options = sum(is_catalog_column(header_key(name)) or bool(_named(name, offer)) for name in names)
        return not missing_columns(found), len(found) + options

    return score


def column_questions(
    header: Sequence[str], rows: Iterable[Sequence[str]], offer: Offer | None, mapping: ColumnMapping
) -> list[Question]:
    """What the columns are that nobody has said anything about; those that choose nothing are not asked about."""
    return (
        [] if is_results_header(header) else list(_ColumnProposals(header, rows, offer, mapping).questions())
    )


class _ColumnProposals:
    def __init__(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        offer: Offer | None,
        mapping: ColumnMapping,
    ) -> None:
        self.header, self.offer, self.mapping = header, offer, mapping
        self.rows = [row for row in rows if len(row) == len(header)][:_MOST_CELLS]
        #: By index: what a column is, or would be.
        self.known: dict[int, str] = {}
        for index, name in enumerate(map(header_key, self.mapping.applied(self.header))):
            cell = header_key(self.header[index])
            if (
                not cell
                or cell in self.mapping.columns
                or is_catalog_column(cell)
                or name.startswith(NOTE_PREFIX)
            ):
                self.known[index] = name

    def questions(self) -> Iterator[Question]:
        for index, name in self.known.items():
            if name in RESULT_COLUMNS and self._values(index):
                yield Question("columns", self.header[index], (NOTE,), NOTE, certain=True)
        missing = missing_columns(self.known.values())
        for target in ("category", "sku", "prompt"):
            if target in missing and (question := self._essential(target)):
                yield question
        if "selections" not in self.known.values():
            for index in self._open():
                yield from self._option(index)

    def _open(self) -> list[int]:
        return [index for index in range(len(self.header)) if index not in self.known]

    def _values(self, index: int) -> list[str]:
        return list(dict.fromkeys(tidy(row[index]) for row in self.rows if not is_blank(row[index])))

    def _essential(self, target: str) -> Question | None:
        options = {index for index in self._open() if target != "category" and self._is_option(index)}
        places = [index for index in self._open() if index not in options]
        fits = sorted(((self._fit(target, index), -index) for index in places), reverse=True)
        if not fits:
            return None
        (best, certain), place = fits[0]
        rivals = sum(fit[0] == best for fit, _ in fits)
        if best > 0 and rivals == 1:
            self.known[-place] = target
        choices = tuple(self.header[-index] for _, index in fits)
        suggestion = choices[0] if best > 0 and rivals == 1 else None
        examples = tuple(", ".join(self._values(-index)[:3])[:60] for _, index in fits)
        return Question(
            "columns",
            suggestion or "",
            choices,
            suggestion,
            certain and rivals == 1,
            examples=examples,
            target=target,
        )

    def _fit(self, target: str, index: int) -> tuple[float, bool]:
        """How well a column is the target, and whether its name and its cells leave no doubt."""
        rank, values = column_rank(target, self.header[index]), self._values(index)
        if target == "category":
            found = sum(self._category(value) is not None for value in values)
            is_fitting = bool(values) and found >= _MOST_OF * len(values)
            return (rank + 4 * is_fitting, is_fitting and rank > 0)
        if target == "sku":
            is_unique = len({sku_key(value) for value in values}) == len(self.rows) > 0
            is_fitting = is_unique and (rank > 0 or not any(" " in value for value in values))
            return (rank + is_fitting / 2, rank == 2 and is_unique)
        is_text = sum(" " in value for value in values) * 2 > len(values)
        return (rank + is_text / 2, rank == 2)

    def _category(self, cell: str) -> Category | None:
        word = self.mapping.word(tidy(cell))
        found = self.offer.find(word) if self.offer else ()
        if not found and self.offer is not None:
            meant, certain = meant_by(word, tuple(one.name for one in self.offer.categories or ()))
            found = self.offer.find(meant) if meant and certain else ()
        return found[0] if len(found) == 1 else None

    def _is_option(self, index: int) -> bool:
        header = self.header[index]
        return not any(column_rank(column, header) for column in ("sku", "prompt")) and bool(
            _named(header, self.offer)
        )

    def _option(self, index: int) -> Iterator[Question]:
        header = self.header[index]
        whole = self._cells_by_category(index)
        cells = [(category, part) for category, cell in whole for part in self._parts(category, cell)]
        categories = [category for category, _ in cells]
        named = _named(header, self.offer, categories)
        for part in _SEVERAL_NAMES.split(header) if not named else ():
            named |= _named(part, self.offer, categories)
        hits = [_offering(category, self.mapping.word(cell)) for category, cell in cells]
        each = bool(hits) and all(len(names) == 1 for names in hits)
        every = {name for names in hits for name in names}
        taken = {name.removeprefix(OPTION_PREFIX) for name in self.known.values()}
        if not named and (not each or every <= taken):
            return
        name = min(named or every)
        belongs = all(any(one.name == name for one in category.options or ()) for category in categories)
        is_any = (
            len(named or every) > 1
            or len(cells) > len(whole)
            or (not belongs and (each or bool(every - named)))
        )
        target = OPTION if is_any else OPTION_PREFIX + name
        if named and not every and column_rank("sku", header):
            # A shop's `Handle` is no `handles` of a bag.
            target = NOTE
        is_free = target in (OPTION, NOTE) or target not in self.known.values()
        certain = bool(named) and is_free and target != NOTE and (each if target == OPTION else belongs)
        if is_free:
            self.known[index] = target
        options = dict.fromkeys(OPTION_PREFIX + one for one in (*sorted(named), *sorted(every)))
        choices = tuple(dict.fromkeys((target, *options, *self._every_option(), OPTION, NOTE)))
        yield Question(
            "columns", header, choices, target, certain, examples=tuple(cell for _, cell in whole[:3])
        )

    def _parts(self, category: Category, cell: str) -> Sequence[str]:
        is_whole = _offering(category, self.mapping.word(cell))
        return (cell,) if is_whole else parts_of(cell)

    def _cells_by_category(self, index: int) -> list[tuple[Category, str]]:
        """The different cells of a column with the categories of their rows."""
        place = next((at for at, name in self.known.items() if column_place(name) == "category"), None)
        if place is None:
            return []
        written = dict.fromkeys(
            (row[place], tidy(row[index])) for row in self.rows if not is_blank(row[index])
        )
        categories = {word: self._category(word) for word, _ in written}
        found = ((categories[word], cell) for word, cell in written)
        return [(category, cell) for category, cell in found if category is not None and category.options]

    def _every_option(self) -> Iterator[str]:
        for category in (self.offer.categories if self.offer else None) or ():
            yield from (OPTION_PREFIX + option.name for option in category.options or ())


def word_questions(checked: CheckedCatalog) -> list[Question]:
    """The words of categories and values that nothing offers, each once however many rows have it."""
    groups: dict[str, list[Problem]] = defaultdict(list)
    meant_already = set(map(offer_key, checked.file.mapping.words.values()))
    for problem in checked.problems:
        is_of_word = problem.code in (RowCode.UNKNOWN_CATEGORY, RowCode.UNKNOWN_VALUE) and problem.offered
        if is_of_word and (key := offer_key(problem.value or "")) not in meant_already:
            groups[key].append(problem)
    found = [_word_question(problems) for problems in groups.values()]
    return sorted(found, key=lambda one: -len(one.lines))


def _word_question(problems: Sequence[Problem]) -> Question:
    word, first = problems[0].value or "", problems[0]
    choices = tuple(dict.fromkeys(value for one in problems for value in one.offered))
    meant = {meant_by(word, offered) for offered in {one.offered for one in problems}}
    suggestion, certain = meant.pop() if len(meant) == 1 else meant_by(word, choices)
    lines = tuple(dict.fromkeys(one.line for one in problems))
    return Question("values", word, choices, suggestion, certain and not meant, lines, first.column)


def meant_by(word: str, offered: Sequence[str]) -> tuple[str | None, bool]:
    """Which of the offered names a word probably means, and whether it can mean nothing else.

    A number is never taken for another: `12oz` is neither `11oz` nor `15oz`.
    """
    same = [name for name in offered if same_word(word, name)]
    if same:
        return same[0], len(set(map(offer_key, same))) == 1
    alike = [name for name in offered if _is_alike(word, name)]
    if len(set(map(offer_key, alike))) == 1:
        return alike[0], not meanings(word)
    numbered = [name for name in offered if numbers_in(name) and numbers_in(name) == numbers_in(word)]
    return (numbered[0] if len(numbered) == 1 else Nearest().find(word, tuple(offered))), False


def _is_alike(one: str, other: str) -> bool:
    """Nearly the same letters; with numbers, the same signs but for spaces and the cross between them."""
    left, right = (re.sub(r"[×*✕]", "x", suggestion_key(text)) for text in (one, other))
    left, right = (re.sub(r"[\W_]", "", text) for text in (left, right))
    if numbers_in(left) or numbers_in(right):
        return left == right
    is_long = min(len(left), len(right)) >= _FEWEST_LETTERS
    return is_long and difflib.SequenceMatcher(None, left, right).ratio() >= _ALIKE


def _named(header: str, offer: Offer | None, categories: Sequence[Category] = ()) -> set[str]:
    """The options that a header names, of these categories or of all: by the trade's words or nearly their letters."""
    every: Iterable[Category] = categories or (offer.categories if offer else None) or ()
    own = header.partition(":")[2] if header_key(header).startswith(OPTION_PREFIX) else header
    found = {option.name for one in every for option in options_called(one, own)}
    if found or len(name_key(own)) < _FEWEST_LETTERS:
        return found
    return {option.name for one in every for option in one.options or () if _is_alike(own, option.name)}


def _offering(category: Category, cell: str) -> frozenset[str]:
    """The names of the options that offer a value, or what is certainly meant by it."""

    def offers(option: Option) -> bool:
        if option.values is None:
            return False
        meant, certain = meant_by(cell, option.values)
        return option.find_value(cell) is not None or (meant is not None and certain)

    return frozenset(option.name for option in category.options or () if offers(option))
