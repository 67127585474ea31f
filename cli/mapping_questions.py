"""Asks what the columns and words of a sheet mean: on a terminal, or by the lines that its mapping lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cli.services import offer_of
from cli.terminal import echo, echo_lines, said_yes
from patternmill.errors import InputRefused
from patternmill.runs.input import MAPPABLE, check_command, read_input, sheet_questions, with_entries
from patternmill.text import plain, shown

if TYPE_CHECKING:
    from patternmill.runs.spec import RunSpec
    from patternmill.tables.checks import Checked
    from patternmill.tables.proposals import Question

_KEYS = "Enter: the value in brackets, or skip. Ctrl-C: skip the rest."


class MappingQuestions:
    """The questions about a sheet: each is asked once, and its answer is written into the mapping."""

    def __init__(self, *, on_terminal: bool, takes_certain: bool) -> None:
        """Ask on a terminal, or else write (`takes_certain`) what can mean nothing else, without asking."""
        self._on_terminal, self._takes_certain = on_terminal and not takes_certain, takes_certain
        self._is_first, self._is_stopped = True, False
        self._asked: set[tuple[str, str]] = set()
        self._left: list[Question] = []

    def read(self, spec: RunSpec) -> RunSpec:
        """Return the spec with its input, after questions about it while it is refused. Raises InputRefused."""
        while True:
            try:
                return replace(spec, file=read_input(spec))
            except InputRefused as refused:
                if refused.code not in MAPPABLE:
                    raise
                self._left = sheet_questions(spec, offer_of(spec.settings), refused)
                answered = self._answered(spec, self._left)
                if answered is None:
                    self._print_left(spec)
                    raise
                spec = answered

    def ask_about(self, spec: RunSpec, checked: Checked) -> RunSpec | None:
        """Return the spec with what was answered about checked rows; None where nothing was."""
        if not (self._on_terminal or self._takes_certain or checked.refused_count):
            return None
        from patternmill.tables.proposals import column_questions, number_questions, word_questions

        file, words = checked.catalog, word_questions(checked)
        columns = [*number_questions(checked), *column_questions(file.sheet, checked.offer, file.mapping)]
        self._left = [*columns, *words]
        # What a word means is asked once it is known what its column is.
        answered = self._answered(spec, columns) or self._answered(spec, words)
        if answered is None:
            self._print_left(spec)
        return self.read(answered) if answered is not None else None

    def _print_left(self, spec: RunSpec) -> None:
        """Print what nobody was asked about, as lines for the mapping."""
        if not self._left or self._on_terminal:
            return
        assert spec.mapping_file is not None, "a sheet has a mapping"
        echo(f"To say what is meant, write into {spec.mapping_file.place} (# is not certain):")
        for section in dict.fromkeys(question.section for question in self._left):
            questions = (question for question in self._left if question.section == section)
            echo_lines([f"[{section}]", *map(_to_paste, questions)])
        certain = sum(question.is_certain for question in self._left)
        yes = f"; with --yes it writes what is certain ({certain:,})" if certain else ""
        echo(f"`{check_command(spec)}` asks on a terminal{yes}.\n")

    def _answered(self, spec: RunSpec, questions: Sequence[Question]) -> RunSpec | None:
        """Ask what was not asked yet, and write the answers; None without any."""
        new = [question for question in questions if (question.section, question.name) not in self._asked]
        self._asked.update((question.section, question.name) for question in new)
        entries = list(self._entries(new))
        if not entries:
            return None
        spec = with_entries(spec, entries)
        assert spec.mapping_file is not None, "it was written"
        echo(f"Written: {spec.mapping_file.place}")
        return spec

    def _entries(self, questions: Sequence[Question]) -> Iterator[tuple[str, str, str]]:
        certain = [question for question in questions if question.is_certain]
        try:
            if certain and (self._takes_certain or self._are_right(certain)):
                yield from (question.entry(question.suggestion or "") for question in certain)
                questions = [question for question in questions if not question.is_certain]
            for question in questions if self._on_terminal and not self._is_stopped else ():
                if answer := self._answer(question):
                    yield question.entry(answer)
        except click.Abort:
            self._is_stopped = True
            echo("\nSkipped; what was answered is kept.")

    def _are_right(self, certain: Sequence[Question]) -> bool:
        if not self._on_terminal or self._is_stopped:
            return False
        echo_lines(["", *(_line(question) for question in certain)])
        return said_yes("Is that right?", default=True)

    def _answer(self, question: Question) -> str | None:
        if self._is_first:
            echo(f"\n{_KEYS}")
        self._is_first = False
        echo(f"\n{_line(question)}")
        answer = _typed("[Y/n/other]") if question.suggestion else "?"
        if answer.casefold() in ("", "y", "yes"):
            return question.suggestion
        while answer.casefold() not in ("", "n", "no"):
            named = [choice for choice in question.choices if choice.casefold() == answer.casefold()]
            if named or (answer.isdecimal() and 0 < int(answer) <= len(question.choices)):
                return named[0] if named else list(question.choices)[int(answer) - 1]
            echo_lines(_choices(question))
            answer = _typed("Number or name")
        return None


def _to_paste(question: Question) -> str:
    about = question.about if question.suggestion else f"{question.about}: {', '.join(question.choices)}"
    return f"{'' if question.is_certain else '# '}{question.line}{_comment(about)}"


def _line(question: Question) -> str:
    return f"{question.line}{_comment(question.about)}"


def _comment(about: str) -> str:
    return f"  # {about}" if about else ""


def _typed(prompt: str) -> str:
    text: str = click.prompt(prompt, default="", show_default=False)
    return text.strip()


def _choices(question: Question) -> Iterator[str]:
    """Yield what may be answered, each with its number."""
    is_any_column = "note" in question.choices
    name = shown(question.name)
    yield f"What is in column {name}? (`note`: only carried along)" if is_any_column else "Use one of these:"
    if any(question.choices.values()):
        numbered = enumerate(question.choices.items(), 1)
        yield from (f"  {at}) {plain(choice)}{_comment(example)}" for at, (choice, example) in numbered)
        return
    line = "   ".join(f"{at}) {plain(choice)}" for at, choice in enumerate(question.choices, 1))
    yield click.wrap_text(line, initial_indent="  ", subsequent_indent="  ")
