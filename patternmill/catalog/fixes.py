"""Fixes of a sheet: one question for all rows that share a fault, and the cells that its answer changes."""

from __future__ import annotations

import difflib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.offer import offer_key, suggestion_key
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import OPTION_PREFIX, header_key, is_blank, read_columns, tidy

#: How alike two spellings of one word are: `Cusion` and `Cushion` are, `cotton` and `organic cotton` are not.
_ALIKE = 0.83
#: Each cell has a text of its own, and its own correction; they are one question.
_OF_EACH_CELL = frozenset({RowCode.UNSAFE_CHARACTERS})
#: What is replaced by another text, of those that are offered.
_OF_A_CHOICE = frozenset(
    {
        RowCode.EMPTY_CATEGORY,
        RowCode.UNKNOWN_CATEGORY,
        RowCode.AMBIGUOUS_CATEGORY,
        RowCode.UNKNOWN_VALUE,
        RowCode.UNKNOWN_MODEL,
        RowCode.MISSING_OPTION,
    }
)
#: What is wrong with the name of a column.
_OF_A_HEADER = frozenset({RowCode.OPTION_COLUMN, RowCode.UNKNOWN_OPTION})
#: What is wrong with options cannot be judged where these are wrong.
_BEFORE_OPTIONS = frozenset(
    {
        RowCode.MALFORMED_SELECTIONS,
        RowCode.EMPTY_CATEGORY,
        RowCode.UNKNOWN_CATEGORY,
        RowCode.UNLISTED_CATEGORY,
        RowCode.AMBIGUOUS_CATEGORY,
    }
)
_OF_AN_OPTION = frozenset(
    {RowCode.UNKNOWN_OPTION, RowCode.UNKNOWN_VALUE, RowCode.MISSING_OPTION, RowCode.OPTION_COLUMN}
)
#: Answers an unknown option: its cells are emptied.
NOTHING = ""

Key = tuple[RowCode, str | None, str, tuple[str, ...]]


@dataclass(frozen=True)
class Edits:
    """Changed texts of a sheet. An index from the header's length on is a new column."""

    header: Mapping[int, str] = field(default_factory=dict)
    #: By row number, as a spreadsheet shows it, and index of the cell from 0.
    cells: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.header or self.cells)

    def with_more(self, more: Edits) -> Edits:
        return Edits({**self.header, **more.header}, {**self.cells, **more.cells})

    def width(self, header: tuple[str, ...]) -> int:
        return max(len(header), *(index + 1 for index in self.header), 0)


NO_EDITS = Edits()


def column_names(file: CatalogFile) -> Edits:
    """The columns that a mapping found, under the names that need none."""
    names = enumerate(zip(file.header, file.mapping.applied(file.header), strict=True))
    return Edits({index: name for index, (cell, name) in names if header_key(cell) != header_key(name)})


@dataclass(frozen=True)
class Question:
    """One fault that some rows share, and how it could be corrected in all of them."""

    file: CatalogFile = field(repr=False)
    problems: tuple[Problem, ...] = field(repr=False)

    @property
    def first(self) -> Problem:
        return self.problems[0]

    @property
    def key(self) -> Key:
        return _key(self.first)

    @property
    def code(self) -> RowCode:
        return self.first.code

    @cached_property
    def lines(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(problem.line for problem in self.problems))

    @cached_property
    def suggestion(self) -> str | None:
        """What is to be written instead: of a column, its new name; None where nothing is near."""
        if self.code is not RowCode.UNKNOWN_OPTION:
            return self.first.suggestion
        return (
            f"{OPTION_PREFIX}{self.first.suggestion}" if self.first.suggestion and self._is_free() else None
        )

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """What can be answered; empty: nothing but the suggestion."""
        if self.code is RowCode.OPTION_COLUMN:
            return tuple(filter(None, (self.suggestion, f"note:{(self.first.value or '').strip()}")))
        if self.code is RowCode.UNKNOWN_OPTION:
            return (self.suggestion, NOTHING) if self.suggestion else (NOTHING,)
        return self.first.offered

    @property
    def is_certain(self) -> bool:
        """Nothing else can be meant by what is written there."""
        if self.suggestion is None:
            return False
        if self.code in _OF_EACH_CELL or self.code is RowCode.MISSING_OPTION:
            return True
        if self.code in _OF_A_HEADER:
            named = _is_alike(_option_of(self.first.value or ""), _option_of(self.suggestion))
            return named and self._is_of_most_rows()
        alike = [one for one in self.first.offered if _is_alike(self.first.value or "", one)]
        return self.suggestion in alike and len({offer_key(one) for one in alike}) == 1

    def find_choice(self, text: str) -> str | None:
        """The choice that an answer names: by its number from 1, or by its name however it is spelled."""
        if text.isdecimal() and text not in self.choices and 1 <= int(text) <= len(self.choices):
            return self.choices[int(text) - 1]
        return next((one for one in self.choices if offer_key(one) == offer_key(text)), None)

    def edits(self, answer: str, file: CatalogFile) -> Edits:
        """What changes when `answer` is written in each of the rows; `file` has the answers before this one."""
        if self.code in _OF_A_HEADER and answer != NOTHING:
            return Edits(header={self._column(self.first): answer})
        if self.code is RowCode.MISSING_OPTION and file.columns.selections is None:
            return self._filled_in(answer, file)
        cells = _cells_of(file, self.lines)
        changed = {}
        for problem in self.problems:
            index = self._column(problem)
            text = problem.suggestion if self.code in _OF_EACH_CELL else answer
            changed[problem.line, index] = self._rewritten(
                cells[problem.line][index], index, problem, text or ""
            )
        return Edits(cells=changed)

    def _column(self, problem: Problem) -> int:
        columns = self.file.columns
        if self.code is RowCode.MISSING_OPTION and columns.selections is not None:
            return columns.selections
        assert problem.column is not None, "only a missing option has no column"
        return self.file.header.index(problem.column)

    def _rewritten(self, cell: str, index: int, problem: Problem, answer: str) -> str:
        """The cell with the answer: of selections in JSON, only what is wrong there is changed."""
        if index != self.file.columns.selections:
            return answer
        chosen: dict[str, str] = json.loads(cell) if cell.strip() else {}
        if self.code is RowCode.MISSING_OPTION:
            chosen[problem.value or ""] = answer
        elif self.code is RowCode.UNKNOWN_OPTION:
            chosen.pop(problem.value or "", None)
        else:
            wrong = tidy(problem.value or "")
            chosen = {name: answer if tidy(text) == wrong else text for name, text in chosen.items()}
        return json.dumps(chosen, ensure_ascii=False)

    def _filled_in(self, answer: str, file: CatalogFile) -> Edits:
        name = self.first.value or ""
        known = (one.index for one in file.columns.options if offer_key(one.name) == offer_key(name))
        index = next(known, len(file.header))
        new = {index: f"{OPTION_PREFIX}{name}"} if index == len(file.header) else {}
        return Edits(new, {(line, index): answer for line in self.lines})

    def _is_of_most_rows(self) -> bool:
        """Of those with a text in the column: the others would get another fault when it is renamed."""
        index = self._column(self.first)
        filled = sum(not is_blank(_cell(record, index)) for record in self.file.records)
        return 2 * len(self.lines) >= filled

    def _is_free(self) -> bool:
        """Whether the whole column can be renamed: every row with a text in it has this fault, and no other column
        is that option already.
        """
        if self.first.column is None or self.file.columns.selections is not None:
            return False
        index, lines = self._column(self.first), set(self.lines)
        wanted = header_key(f"{OPTION_PREFIX}{self.first.suggestion}")
        return wanted not in map(header_key, self.file.header) and all(
            record.line in lines for record in self.file.records if not is_blank(_cell(record, index))
        )


def questions(checked: CheckedCatalog) -> list[Question]:
    """What can be corrected, by what is wrong; the most frequent first. Options only where the category is right."""
    groups: dict[Key, list[Problem]] = defaultdict(list)
    undecided = {problem.line for problem in checked.problems if problem.code in _BEFORE_OPTIONS}
    for problem in filter(_can_be_corrected, checked.problems):
        if problem.line not in undecided or problem.code not in _OF_AN_OPTION:
            groups[_key(problem)].append(problem)
    found = [Question(checked.file, tuple(problems)) for problems in groups.values()]
    return sorted((one for one in found if one.choices or one.suggestion), key=lambda one: -len(one.lines))


def fixed(
    checked: CheckedCatalog,
    check: Callable[[CatalogFile], CheckedCatalog],
    answer: Callable[[Question], str | None],
    begun: Edits = NO_EDITS,
) -> tuple[Edits, CheckedCatalog]:
    """The edits of a person who is asked until there is nothing new to ask, and what is found with them.

    `answer` gives None for what is to stay as it is. A question is asked once. `begun`: what is corrected already.
    """
    answers: dict[Key, str | None] = {}
    seen: set[tuple[Key, int]] = set()
    edits, found = begun, check(with_edits(checked.file, begun)) if begun else checked
    while new := list(_unseen(found, seen)):
        file = found.file
        for question in new:
            # The same word in rows that another mistake hid until now is not asked about again.
            if question.key not in answers:
                answers[question.key] = answer(question)
            text = answers[question.key]
            if text is not None:
                more = question.edits(text, file)
                edits, file = edits.with_more(more), with_edits(file, more)
        if file is not found.file:
            found = check(file)
    return edits, found


def _unseen(checked: CheckedCatalog, seen: set[tuple[Key, int]]) -> Iterator[Question]:
    """The questions with the rows in which they are new, which are seen from then on."""
    for question in questions(checked):
        problems = tuple(one for one in question.problems if (question.key, one.line) not in seen)
        seen.update((question.key, problem.line) for problem in problems)
        if problems:
            yield replace(question, problems=problems)


def with_edits(file: CatalogFile, edits: Edits) -> CatalogFile:
    """The file as it will be read when the edits are written. Raises InputRefused when its header is no good then."""
    width = edits.width(file.header)
    header = tuple(edits.header.get(index, _at(file.header, index)) for index in range(width))
    by_line: dict[int, dict[int, str]] = defaultdict(dict)
    for (line, index), text in edits.cells.items():
        by_line[line][index] = text
    more = ("",) * (width - len(file.header))
    records = tuple(_edited(one, by_line.get(one.line, {}), len(file.header), more) for one in file.records)
    columns = read_columns(file.mapping.applied(header), file.name)
    return replace(file, header=header, columns=columns, records=records)


def _edited(record: Record, texts: Mapping[int, str], width: int, more: tuple[str, ...]) -> Record:
    """A row that does not fit the header still does not fit it."""
    cells = record.cells + more if len(record.cells) >= width else record.cells
    if not texts:
        return record if cells == record.cells else Record(record.line, cells)
    return Record(record.line, tuple(texts.get(index, cell) for index, cell in enumerate(cells)))


def _cells_of(file: CatalogFile, lines: Collection[int]) -> Mapping[int, tuple[str, ...]]:
    wanted = set(lines)
    return {record.line: record.cells for record in file.records if record.line in wanted}


def _can_be_corrected(problem: Problem) -> bool:
    if problem.code is RowCode.OPTION_COLUMN and is_blank(problem.column or ""):
        return False
    if problem.code in _OF_EACH_CELL:
        return problem.suggestion is not None and not _names_option(problem)
    return problem.code in _OF_A_CHOICE | _OF_A_HEADER


def _names_option(problem: Problem) -> bool:
    """The characters are those of an option's name, not of a cell."""
    return bool(problem.column and problem.value and problem.value in problem.column)


def _key(problem: Problem) -> Key:
    if problem.code in _OF_EACH_CELL:
        return problem.code, None, "", ()
    return problem.code, problem.column, problem.value or "", problem.offered


def _is_alike(one: str, other: str) -> bool:
    """Nearly the same letters, and the same digits: `45x45` is not `40x40`."""
    left, right = (re.sub(r"[\W_]", "", suggestion_key(text)) for text in (one, other))
    if [c for c in left if c.isdigit()] != [c for c in right if c.isdigit()]:
        return False
    return left == right or difflib.SequenceMatcher(None, left, right).ratio() >= _ALIKE


def _option_of(header: str) -> str:
    return header.partition(":")[2] if header_key(header).startswith(OPTION_PREFIX) else header


def _cell(record: Record, index: int) -> str:
    return record.cells[index] if index < len(record.cells) else ""


def _at(header: tuple[str, ...], index: int) -> str:
    return header[index] if index < len(header) else ""
