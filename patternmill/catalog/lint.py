"""Money lint: rows that are right, and would probably be a pity to pay for. It refuses nothing."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternmill.catalog.check_report import line_ranges
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import Row
from patternmill.catalog.slips import stands_for_another
from patternmill.money import money
from patternmill.text import more, plural, shown

_MOST_SPELLINGS = 5
_MOST_FINDINGS = 10
#: What a program leaves of a character that it could not read.
_LOST = "\ufffd"

_AS_SPACES = str.maketrans(dict.fromkeys("!\"'()*,-./:;?[\\]_`{|}~\u00ab\u00bb\u2039\u203a\u00bf\u00a1", " "))
#: They say what every prompt is for, or nothing. Without the `s` of a plural.
_FILLERS = frozenset({"a", "an", "the", "pattern", "design", "motif", "print", "muster"})


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
) -> tuple[Lint, ...]:
    """The dearest first. `buys`: whether a row's pattern would be bought; a finding that saves nothing is none."""
    rows = checked.rows
    found = [*_spellings(rows, price, buys), *_placeholders(rows, price, buys), *_garbled(rows, buys)]
    return tuple(sorted(found, key=lambda one: -one.patterns))


def lint_lines(found: Sequence[Lint]) -> Iterator[str]:
    """As a plan and a check list it; nothing where there is nothing."""
    if not found:
        return
    yield "Worth a look before it is paid for:"
    for one in found[:_MOST_FINDINGS]:
        yield f"  {one.message}"
        yield f"    {one.advice}"
    yield from more(len(found), _MOST_FINDINGS)


def lint_note(found: Sequence[Lint], price: PatternPrice) -> str | None:
    """The same in a sentence, with counts."""
    if not found:
        return None
    saved = sum(one.patterns for one in found)
    saving = f" (up to {price.of(saved)} to save)" if saved else ""
    return f"Worth a look: {plural(len(found), 'remark')}{saving}; `patternmill check` lists them."


def spelling_key(prompt: str) -> str:
    """What prompts share that differ in case, punctuation, plurals, articles and words like `pattern`.

    The order of words and everything else that may be drawn counts.
    """
    # Of a plural its `s`, but for `grass`.
    singular = [
        word if word.endswith("ss") else word.removesuffix("s")
        for word in prompt.casefold().translate(_AS_SPACES).split()
    ]
    return " ".join([word for word in singular if word not in _FILLERS] or singular)


def _alike(rows: Sequence[Row]) -> Iterable[Mapping[str, list[Row]]]:
    """Rows whose prompts are alike, by prompt, where there are several; of a large catalog it keeps hashes alone."""
    groups = array("q", (hash((spelling_key(row.prompt), row.model, row.reference)) for row in rows))
    first: dict[int, Row] = {}
    several = {
        group
        for group, row in zip(groups, rows, strict=True)
        if first.setdefault(group, row).prompt != row.prompt
    }
    found: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for group, row in zip(groups, rows, strict=True) if several else ():
        if group in several:
            found[group][row.prompt].append(row)
    return found.values()


def _spellings(rows: Sequence[Row], price: PatternPrice, buys: Callable[[Row], bool]) -> Iterator[Lint]:
    for by_prompt in _alike(rows):
        new = sum(any(map(buys, same)) for same in by_prompt.values())
        saved = min(new, len(by_prompt) - 1)
        if not saved:
            continue
        lines = tuple(sorted(row.line for same in by_prompt.values() for row in same))
        texts = _named(by_prompt)
        what = f"{len(by_prompt):,} spellings of one prompt, in {_rows(lines)}: {texts}"
        yield Lint(what, f"Write them alike to save {price.of(saved)}.", lines, saved)


def _placeholders(rows: Sequence[Row], price: PatternPrice, buys: Callable[[Row], bool]) -> Iterator[Lint]:
    doubtful = [row for row in rows if stands_for_another(row.prompt) and buys(row)]
    if not doubtful:
        return
    prompts = dict.fromkeys(row.prompt for row in doubtful)
    lines = tuple(row.line for row in doubtful)
    what = f"A formula or the name of a file in place of a prompt, in {_rows(lines)}: {_named(prompts)}"
    which = "row" if len(lines) == 1 else "rows"
    advice = f"Describe the pattern, or delete the {which} to save {price.of(len(prompts))}."
    yield Lint(what, advice, lines, len(prompts))


def _garbled(rows: Sequence[Row], buys: Callable[[Row], bool]) -> Iterator[Lint]:
    """Prompts and skus that some program read in the wrong encoding, and saved like that."""
    unusual = [row for row in rows if not (row.prompt.isascii() and row.sku.isascii())]
    if not unusual:
        return
    # Slow to import, and few catalogs have other letters.
    from ftfy import fix_encoding

    found = {
        row.line: text
        for row in unusual
        for text in (row.sku, row.prompt)
        if (_LOST in text or fix_encoding(text) != text) and buys(row)
    }
    if found:
        texts = dict.fromkeys(found.values())
        what = f"Text that was saved in the wrong encoding, in {_rows(tuple(found))}: {_named(texts)}"
        meant = _named(fix_encoding(text) for text in texts)
        yield Lint(what, f"It may have been {meant}: write that, and save the file as UTF-8.", tuple(found))


def _rows(lines: Sequence[int]) -> str:
    return f"{'row' if len(lines) == 1 else 'rows'} {line_ranges(lines)}"


def _named(texts: Iterable[str]) -> str:
    every = list(texts)
    rest = f" and {len(every) - _MOST_SPELLINGS:,} more" if len(every) > _MOST_SPELLINGS else ""
    return ", ".join(shown(text, 40) for text in every[:_MOST_SPELLINGS]) + rest
