"""Money lint: rows that are right, and would probably be a pity to pay for. It refuses nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.check_report import line_ranges
from patternmill.catalog.option_columns import is_note
from patternmill.catalog.order_marks import unwanted
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import Row, column_letter, header_key
from patternmill.catalog.slips import has_markup, is_date, is_doubtful
from patternmill.text import money, more, plural, shown

#: The column in which `ok` leaves a row out.
SILENCED_BY = "note:lint"
_OK = re.compile(r"\bok(?:ay)?\b", re.IGNORECASE)
_MOST_SPELLINGS = 5
_MOST_FINDINGS = 10
#: More skus like dates than these, in more than half of the rows, are meant.
_FEW_DATES = 2

_PUNCTUATION = "!\"'()*,-./:;?[\\]_`{|}~"
_AS_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION + "\u00ab\u00bb\u2039\u203a\u00bf\u00a1", " "))
#: The same of ASCII, with small letters: as bytes, for a hundred thousand prompts.
_ASCII = bytes(range(256)).lower().translate(bytes.maketrans(_PUNCTUATION.encode(), b" " * len(_PUNCTUATION)))
#: They say what every prompt is for, or nothing. Without the `s` of a plural.
_FILLERS = frozenset({b"a", b"an", b"the", b"pattern", b"design", b"motif", b"print", b"muster"})


@dataclass(frozen=True)
class PatternPrice:
    """What one pattern costs, in minor units; 0 where no prices are set."""

    amount: int = 0
    currency: str | None = None

    def of(self, patterns: int) -> str:
        """`4 patterns, €1.60`."""
        cost = f", {money(patterns * self.amount, self.currency)}" if self.amount else ""
        return plural(patterns, "pattern") + cost


@dataclass(frozen=True)
class Lint:
    """One finding, for a person."""

    message: str
    #: What to do about it, and what that saves.
    advice: str
    #: As a spreadsheet numbers them.
    lines: tuple[int, ...] = ()
    #: That would not be bought.
    patterns: int = 0
    is_spelling: bool = False
    #: The sheet says that its rows are not to be ordered.
    is_mark: bool = False

    def as_json(self) -> dict[str, Any]:
        """As `check --json` has it."""
        return {
            "message": self.message,
            "advice": self.advice,
            "rows": list(self.lines),
            "patterns": self.patterns,
        }


def find_lint(
    checked: CheckedCatalog,
    price: PatternPrice,
    buys: Callable[[Row], bool] = lambda row: True,
    makes: Callable[[Row], bool] = lambda row: True,
) -> tuple[Lint, ...]:
    """Rows that are not to be ordered, then the rest; of both the dearest first.

    `buys`: whether a row's pattern would be bought; a finding that saves nothing is none. `makes`: of its product.
    """
    column = _silencing_column(checked)
    rows = (
        [row for row in checked.rows if not _is_silenced(row, column)] if column is not None else checked.rows
    )
    layout = checked.file.layout
    # In a workbook, and in JSON, a day is no text: a text like one was typed.
    is_text_file = layout is None or layout.delimiter is not None
    dates = _dates(rows, len(checked.rows), makes) if is_text_file else ()
    found = [*dates, *_markup(rows, buys), *_spellings(rows, price, buys), *_placeholders(rows, price, buys)]
    unwanted_rows = _unwanted(rows, checked, price, buys, makes)
    return (*_dearest_first(unwanted_rows), *_dearest_first(found))


def _dearest_first(found: Iterable[Lint]) -> list[Lint]:
    return sorted(found, key=lambda one: -one.patterns)


def lint_lines(found: Sequence[Lint]) -> Iterator[str]:
    """As a plan and a check list it; nothing where there is nothing."""
    if not found:
        return
    yield "Worth a look before it is paid for:"
    for one in found[:_MOST_FINDINGS]:
        yield f"  {one.message}"
        yield f"    {one.advice}"
    yield from more(len(found), _MOST_FINDINGS)
    yield f"  To silence a row: write `ok` into a column `{SILENCED_BY}`."


def lint_note(found: Sequence[Lint], price: PatternPrice) -> str | None:
    """The same in a sentence, with counts."""
    if not found:
        return None
    marked = len({line for one in found if one.is_mark for line in one.lines})
    spelled = sum(one.is_spelling for one in found)
    parts = [f"{plural(marked, 'row')} marked as not to be ordered"] if marked else []
    parts += [f"{plural(spelled, 'prompt')} in several spellings"] if spelled else []
    rest = sum(not one.is_mark and not one.is_spelling for one in found)
    parts += [f"{rest:,} other" if parts else plural(rest, "remark")] if rest else []
    saved = sum(one.patterns for one in found)
    saving = f" (up to {price.of(saved)} to save)" if saved else ""
    named = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"Worth a look: {named}{saving}; `patternmill check` lists them."


def _silencing_column(checked: CheckedCatalog) -> int | None:
    file = checked.file
    names = file.mapping.applied(file.header)
    return next((index for index in file.columns.carried if _is_silencing(names[index])), None)


def _is_silencing(header: str) -> bool:
    return [part.strip() for part in header_key(header).split(":")] == SILENCED_BY.split(":")


def _is_silenced(row: Row, column: int) -> bool:
    return _OK.search(row.cells[column]) is not None


def spelling_key(prompt: str) -> bytes:
    """What prompts share that differ in case, punctuation, plurals, articles and words like `pattern`.

    The order of words and everything else that may be drawn counts.
    """
    ascii = prompt.isascii()
    text = prompt.encode().translate(_ASCII) if ascii else prompt.casefold().translate(_AS_SPACES).encode()
    spaced = b" ".join(text.split()) + b" "
    # Of a plural its `s`, but for `grass`.
    singular = spaced.replace(b"ss ", b"\0").replace(b"s ", b" ").replace(b"\0", b"ss ").split()
    return b" ".join([word for word in singular if word not in _FILLERS] or singular)


class _Spellings:
    """The rows whose prompts are alike, found in two passes, so that a large catalog keeps no more than hashes."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._keys: dict[str, int] = {}

    def groups(self) -> Iterable[Mapping[str, list[Row]]]:
        """By prompt, where there are several."""
        several = self._several
        found: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in self._rows if several else ():
            if (group := self._group(row)) in several:
                found[group][row.prompt].append(row)
        return found.values()

    @cached_property
    def _several(self) -> set[int]:
        first: dict[int, str] = {}
        return {
            group
            for row in self._rows
            if first.setdefault(group := self._group(row), row.prompt) != row.prompt
        }

    def _group(self, row: Row) -> int:
        """A hash of all that makes a pattern, with its prompt by the key."""
        key = self._keys.get(row.prompt)
        if key is None:
            key = self._keys[row.prompt] = hash(spelling_key(row.prompt))
        return hash((key, row.model, row.reference)) if row.model or row.reference else key


def _spellings(rows: Sequence[Row], price: PatternPrice, buys: Callable[[Row], bool]) -> Iterator[Lint]:
    for by_prompt in _Spellings(rows).groups():
        new = sum(any(map(buys, same)) for same in by_prompt.values())
        saved = min(new, len(by_prompt) - 1)
        if not saved:
            continue
        lines = tuple(sorted(row.line for same in by_prompt.values() for row in same))
        texts = _named(by_prompt)
        what = f"{len(by_prompt):,} spellings of one prompt, in {_rows(lines)}: {texts}"
        yield Lint(what, f"Write them alike to save {price.of(saved)}.", lines, saved, is_spelling=True)


def _placeholders(rows: Sequence[Row], price: PatternPrice, buys: Callable[[Row], bool]) -> Iterator[Lint]:
    doubtful = [row for row in rows if is_doubtful(row.prompt) and buys(row)]
    if not doubtful:
        return
    prompts = dict.fromkeys(row.prompt for row in doubtful)
    lines = tuple(row.line for row in doubtful)
    what = f"Text that seems to describe no pattern, in {_rows(lines)}: {_named(prompts)}"
    which = "row" if len(lines) == 1 else "rows"
    advice = f"Describe the pattern, or delete the {which} to save {price.of(len(prompts))}."
    yield Lint(what, advice, lines, len(prompts))


@dataclass(frozen=True)
class _Marked:
    """Rows that are not to be ordered, by what a person sees in the sheet and nobody reads."""

    rows: Sequence[Row]
    message: str
    reason: str
    #: What is quoted of a row.
    text: Callable[[Row], str]


def _marked(rows: Sequence[Row], file: CatalogFile) -> Iterator[_Marked]:
    if file.struck:
        struck = [row for row in rows if row.line in file.struck]
        yield _Marked(
            struck, "Struck through in the worksheet", "Formatting is not read", lambda row: row.sku
        )
    # The results of an earlier run are none of the carried columns.
    for index in file.columns.carried:
        header = file.header[index]
        # A shop's `Status` is read as `note:Status`.
        name = header.partition(":")[2].strip() if is_note(header) else header.strip()
        marks = unwanted(name, Counter(row.cells[index] for row in rows))
        if marks:
            marked = [row for row in rows if row.cells[index] in marks]
            column = shown(name) if name else column_letter(index)
            message = f"Marked as not to be ordered by the column {column}"
            yield _Marked(marked, message, "The column is not read", partial(_cell, index))


def _cell(index: int, row: Row) -> str:
    return row.cells[index]


def _unwanted(
    rows: Sequence[Row],
    checked: CheckedCatalog,
    price: PatternPrice,
    buys: Callable[[Row], bool],
    makes: Callable[[Row], bool],
) -> Iterator[Lint]:
    for marked in _marked(rows, checked.file):
        new = [row for row in marked.rows if buys(row) or makes(row)]
        if not new:
            continue
        lines = tuple(row.line for row in new)
        left_out = set(lines)
        others = {_pattern(row) for row in checked.rows if row.line not in left_out}
        saved = len({_pattern(row) for row in new if buys(row)} - others)
        what = f"{marked.message}, in {_rows(lines)}: {_named(dict.fromkeys(map(marked.text, new)))}"
        saving = f" to save {price.of(saved)}" if saved else ""
        which = "row" if len(lines) == 1 else "rows"
        advice = f"{marked.reason}, and the {which} would be bought. Delete the {which}{saving}."
        yield Lint(what, advice, lines, saved, is_mark=True)


def _pattern(row: Row) -> tuple[str, str | None, str | None]:
    return row.prompt, row.model, row.reference


def _dates(rows: Sequence[Row], count: int, makes: Callable[[Row], bool]) -> Iterator[Lint]:
    """A program that takes `MAY-26` for a day changes a few skus; where most look so, the catalog's do."""
    dates = [row for row in rows if is_date(row.sku)]
    new = [row for row in dates if makes(row)]
    if not new or (len(dates) > _FEW_DATES and 2 * len(dates) > count):
        return
    lines = tuple(row.line for row in new)
    what = f"{'Sku' if len(new) == 1 else 'Skus'} like a date, in {_rows(lines)}: {_named(row.sku for row in new)}"
    advice = (
        "A spreadsheet may have made a day of it: type it again in a column formatted as Text. Once products are "
        "made, another sku is another product."
    )
    yield Lint(what, advice, lines)


def _markup(rows: Sequence[Row], buys: Callable[[Row], bool]) -> Iterator[Lint]:
    found = [row for row in rows if has_markup(row.prompt) and buys(row)]
    if found:
        lines = tuple(row.line for row in found)
        what = f"HTML in the prompt, in {_rows(lines)}: {_named(dict.fromkeys(row.prompt for row in found))}"
        yield Lint(what, "It is sent as it is: write the text alone.", lines)


def _rows(lines: Sequence[int]) -> str:
    return f"{'row' if len(lines) == 1 else 'rows'} {line_ranges(lines)}"


def _named(texts: Iterable[str]) -> str:
    every = list(texts)
    rest = f" and {len(every) - _MOST_SPELLINGS:,} more" if len(every) > _MOST_SPELLINGS else ""
    return ", ".join(shown(text, 40) for text in every[:_MOST_SPELLINGS]) + rest
