"""The questions of `check --fix`: each wrong text once, however many rows have it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import click

from cli.terminal import echo, echo_lines
from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.check_report import line_ranges, report_lines, summary
from patternmill.catalog.fixes import NO_EDITS, NOTHING, Edits, Question, column_names, fixed
from patternmill.catalog.problems import RowCode
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.errors import ConfigurationError
from patternmill.sheets.corrected_copy import NO_TEXT, write_corrected
from patternmill.text import contrasted, plural, shown

_WIDTH = 78
_LEFT = ("", "n", "no")
_SKIPPED = ("s", "skip")
_KEYS = "Enter takes the capital letter; `skip` or Ctrl-C leaves the rest as it is."


@dataclass(frozen=True)
class SheetToFix:
    """The file that is corrected, as it lies there."""

    source: Path
    file: CatalogFile
    #: Nobody has confirmed what its columns are: they get the names that a catalog has.
    is_unconfirmed: bool = False


class Checks(Protocol):
    def check(self, file: CatalogFile) -> CheckedCatalog: ...

    #: With what is on record as corrected in results files.
    def check_as_imported(self, file: CatalogFile) -> CheckedCatalog: ...


def fix(sheet: SheetToFix, checked: CheckedCatalog, checks: Checks, *, asking: bool) -> CheckedCatalog:
    """Correct a copy of the sheet, and say what is wrong in it still; the catalog as it is in the copy.

    `checked`: the sheet as it would be imported. Raises ConfigurationError when the copy cannot be written.
    """
    echo(summary(checked))
    begun = column_names(checked.file) if sheet.is_unconfirmed else NO_EDITS
    for index, name in begun.header.items():
        echo(f"  column {shown(checked.file.header[index])} -> {shown(name)}")
    edits, _ = fixed(checked, checks.check, Asker() if asking else certain_answer, begun)
    if not edits:
        echo("\nNothing was corrected, and no copy was written. `patternmill check` lists what is wrong.")
        return checked
    place, copy = _written(sheet, _with_columns(edits, checked.file, sheet.file))
    echo(f"\n{_counted(edits)} in a copy, {place}")
    if place.suffix != sheet.source.suffix and sheet.file.faults:
        echo(
            f"A cell that is no text (a date, an error, a rounded number) is {NO_TEXT} in it, to be typed there."
        )
    result = checks.check_as_imported(copy)
    echo_lines(report_lines(result))
    echo("")
    again = "check" if result.refused_count else "import"
    first = "correct these rows there by hand, then: " if result.refused_count else ""
    echo(f"Next: {first}patternmill {again} {shlex.quote(str(place))}")
    return result


def _with_columns(edits: Edits, checked: CatalogFile, file: CatalogFile) -> Edits:
    """Columns that corrections on record add come before those that the answers add."""
    width = len(file.header)
    if max((index for _, index in edits.cells), default=0) < width and edits.width(file.header) == width:
        return edits
    return Edits(dict(enumerate(checked.header[width:], width))).with_more(edits)


def _written(sheet: SheetToFix, edits: Edits) -> tuple[Path, CatalogFile]:
    try:
        return write_corrected(sheet.source, sheet.file, edits)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"The copy cannot be written next to {sheet.source}: {reason}.",
            remedy="Copy the file elsewhere first.",
        ) from None


def _counted(edits: Edits) -> str:
    """`4 cells in 3 rows and 1 column name corrected`."""
    lines = [line for line, _ in edits.cells]
    parts = [f"{plural(len(lines), 'cell')} in {plural(len(set(lines)), 'row')}"] if lines else []
    parts += [plural(len(edits.header), "column name")] if edits.header else []
    return f"{' and '.join(parts)} corrected"


def certain_answer(question: Question) -> str | None:
    """The suggestion, where nothing else can be meant."""
    if not question.is_certain:
        return None
    echo(f"  {_where(question)}: {_change(question)}")
    return question.suggestion


class Asker:
    """Asks on the terminal until the person has had enough."""

    def __init__(self) -> None:
        self._is_first, self._skips, self._has_answers = True, False, False

    def __call__(self, question: Question) -> str | None:
        """The answer; None: the rows stay as they are."""
        if self._skips:
            return None
        if self._is_first:
            self._is_first = False
            echo(_KEYS)
        echo("")
        try:
            answer = self._suggested(question) if question.suggestion else self._chosen(question)
        except click.Abort:
            # Nothing is overwritten by them, and the person may have meant to copy a text.
            if not self._has_answers:
                raise
            self._skips = True
            echo("\nStopped: what was answered is kept.")
            return None
        self._has_answers = self._has_answers or answer is not None
        return answer

    def _suggested(self, question: Question) -> str | None:
        default = "y" if question.is_certain else ""
        more = "/other" if len(question.choices) > 1 else ""
        keys = f"[{'Y' if default else 'y'}/n{more}/skip]"
        text = _answered(f"{_where(question)}: {_change(question)}? {keys}", default)
        if text.casefold() in ("y", "yes"):
            return question.suggestion
        if text.casefold() in ("o", "other"):
            return self._chosen(question)
        if text.casefold() not in (*_LEFT, *_SKIPPED) and question.find_choice(text) is None:
            echo(f"{shown(text)} is not among them.")
            return self._chosen(question)
        return self._other(question, text)

    def _chosen(self, question: Question) -> str | None:
        if question.choices == (NOTHING,):
            return self._emptied(question)
        echo(f"{_where(question)}: {_fault(question)}. Instead:")
        echo(_numbered(question.choices))
        return self._other(question, _answered("A name or number; Enter leaves it as it is", ""))

    def _emptied(self, question: Question) -> str | None:
        """Yes or no; no is what Enter says."""
        prompt = f"{_where(question)}: {_fault(question)}. Empty {_cells(question)}? [y/N/skip]"
        while True:
            text = _answered(prompt, "n").casefold()
            if text in ("y", "yes"):
                return NOTHING
            if text in (*_LEFT, *_SKIPPED):
                self._skips = text in _SKIPPED
                return None
            prompt = f"{shown(text)} was not understood: y, n or skip?"

    def _other(self, question: Question, text: str) -> str | None:
        """The choice that was typed, asked again until it is one."""
        while text.casefold() not in _LEFT:
            if text.casefold() in _SKIPPED:
                self._skips = True
                return None
            if (found := question.find_choice(text)) is not None:
                return found
            text = _answered(f"{shown(text)} is not among them. A name or number; Enter leaves it", "")
        return None


def _answered(prompt: str, default: str) -> str:
    text: str = click.prompt(prompt, default=default, show_default=False, prompt_suffix=" ")
    return text.strip()


def _where(question: Question) -> str:
    return f"{plural(len(question.lines), 'row')} ({line_ranges(question.lines, 3)})"


def _change(question: Question) -> str:
    value, suggestion = question.first.value or "", question.suggestion or ""
    if question.code is RowCode.MISSING_OPTION:
        return f"{shown(value)} is missing, and only {shown(suggestion)} is offered: fill it in"
    if question.code in (RowCode.OPTION_COLUMN, RowCode.UNKNOWN_OPTION):
        return f"column {shown(question.first.column or value)} -> {shown(suggestion)}"
    if question.code is RowCode.UNSAFE_CHARACTERS:
        was, meant = contrasted(value, suggestion, 30)
        return f"invisible characters, {was} -> {meant}" + (
            " and the like" if len(question.problems) > 1 else ""
        )
    return f"{shown(question.first.column or '')} {shown(value)} -> {shown(suggestion)}"


def _fault(question: Question) -> str:
    value = question.first.value or ""
    if question.code is RowCode.MISSING_OPTION:
        return f"{shown(value)} has to be chosen"
    if question.code is RowCode.EMPTY_CATEGORY:
        return "the category is empty"
    if question.code is RowCode.UNKNOWN_OPTION:
        return question.first.message.partition(";")[0]
    return f"{shown(question.first.column or '')} {shown(value)} is not offered"


def _cells(question: Question) -> str:
    return "its cell" if len(question.lines) == 1 else "its cells"


def _numbered(choices: tuple[str, ...]) -> str:
    named = "   ".join(f"{number}) {name or '(empty)'}" for number, name in enumerate(choices, 1))
    return click.wrap_text(named, width=_WIDTH, initial_indent="  ", subsequent_indent="  ")
