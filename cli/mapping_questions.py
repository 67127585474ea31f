"""Asks what the columns and words of a sheet mean: on a terminal, or by the lines that its mapping lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cli.services import offer_of
from cli.terminal import can_ask, echo, echo_lines, said_yes
from patternmill.errors import InputRefused
from patternmill.runs.input import MAPPABLE, check_command, read_input, sheet_questions, with_entries
from patternmill.text import plain, shown

if TYPE_CHECKING:
    from pathlib import Path

    from patternmill.runs.spec import RunSpec
    from patternmill.tables.checks import Checked
    from patternmill.tables.proposals import Question

_KEYS = "Enter: the value in brackets, or skip. Ctrl-C: skip the rest."


class MappingQuestions:
    """The questions about a sheet: each is asked once, and its reply is written into the mapping."""

    def __init__(self, *, takes_certain: bool) -> None:
        """Ask on a terminal, or else write (`takes_certain`) what can mean nothing else, without asking."""
        self._takes_certain, self._on_terminal = takes_certain, can_ask() and not takes_certain
        self._is_first, self._is_stopped = True, False
        self._asked: set[tuple[str, str]] = set()

    def read(self, spec: RunSpec) -> RunSpec:
        """Return the spec with its input, after questions about it while it is refused. Raises InputRefused."""
        while True:
            try:
                return replace(spec, file=read_input(spec, is_asking=self._on_terminal))
            except InputRefused as refused:
                if refused.code not in MAPPABLE:
                    raise
                answered = self._answered(spec, sheet_questions(spec, offer_of(spec.settings), refused))
                if answered is None:
                    raise
                spec = answered

    def ask_about(self, spec: RunSpec, checked: Checked) -> RunSpec | None:
        """Return the spec with what was answered about checked rows; None where nothing was."""
        if not (self._on_terminal or self._takes_certain or checked.refused_count):
            return None
        from patternmill.tables.proposals import column_questions, number_questions, word_questions

        file = checked.catalog
        columns = [*number_questions(checked), *column_questions(file.sheet, checked.offer, file.mapping)]
        # What a word means is asked once it is known what its column is.
        answered = self._answered(spec, columns, word_questions(checked))
        return self.read(answered) if answered is not None else None

    def _answered(self, spec: RunSpec, *rounds: Sequence[Question]) -> RunSpec | None:
        """Ask round by round until one has replies, and write them; without any, print what is left, return None."""
        for questions in rounds:
            new = [question for question in questions if (question.section, question.name) not in self._asked]
            self._asked.update((question.section, question.name) for question in new)
            if entries := list(self._entries(new)):
                spec = with_entries(spec, entries)
                echo(f"Written: {_place(spec)}")
                return spec
        left = [question for questions in rounds for question in questions]
        if left and not self._on_terminal:
            echo_lines(_lines_to_paste(spec, left))
        return None

    def _entries(self, questions: Sequence[Question]) -> Iterator[tuple[str, str, str]]:
        certain = [question for question in questions if question.is_certain]
        is_asked = self._on_terminal and not self._is_stopped
        try:
            if certain and is_asked:
                echo_lines(["", *map(str, certain)])
            if certain and (self._takes_certain or (is_asked and said_yes("Is that right?", default=True))):
                yield from (question.entry(question.suggestion or "") for question in certain)
                questions = [question for question in questions if not question.is_certain]
            for question in questions if is_asked else ():
                if answer := self._answer(question):
                    yield question.entry(answer)
        except click.Abort:
            self._is_stopped = True
            echo("\nSkipped; what was answered is kept.")

    def _answer(self, question: Question) -> str | None:
        if self._is_first:
            echo(f"\n{_KEYS}")
        self._is_first = False
        echo(f"\n{question}")
        answer = _typed("[Y/n/other]") if question.suggestion else "?"
        if answer in ("", "y", "yes", "n", "no"):
            return question.suggestion if answer in ("", "y", "yes") else None
        choices = question.numbered | {choice.casefold(): choice for choice in question.choices}
        while answer not in choices:
            echo_lines(_choices(question))
            answer = _typed("Number or name")
            if answer in {"", "n", "no"} - choices.keys():
                return None
        return choices[answer]


def _place(spec: RunSpec) -> Path:
    assert spec.mapping_file is not None, "a sheet has a mapping"
    return spec.mapping_file.place


def _lines_to_paste(spec: RunSpec, questions: Sequence[Question]) -> Iterator[str]:
    """Yield what nobody was asked about as lines for the mapping."""
    yield f"To say what is meant, write into {_place(spec)} (# is not certain):"
    for section in sorted({question.section for question in questions}):
        yield f"[{section}]"
        for question in (each for each in questions if each.section == section):
            choices = "" if question.suggestion else f": {', '.join(question.choices)}"
            yield f"{'' if question.is_certain else '# '}{question.line}{_comment(question.about + choices)}"
    certain = sum(question.is_certain for question in questions)
    yes = f"; with --yes it writes what is certain ({certain:,})" if certain else ""
    yield f"`{check_command(spec)}` asks on a terminal{yes}."
    yield ""


def _comment(about: str) -> str:
    return f"  # {about}" if about else ""


def _typed(prompt: str) -> str:
    text: str = click.prompt(prompt, default="", show_default=False)
    return text.strip().casefold()


def _choices(question: Question) -> Iterator[str]:
    """Yield what may be answered, each with its number."""
    is_any_column = "note" in question.choices
    yield (
        f"What is in column {shown(question.name)}? (`note`: only carried along)"
        if is_any_column
        else "Use one of these:"
    )
    choices = [
        f"{at}) {plain(choice)}{_comment(question.choices[choice])}"
        for at, choice in question.numbered.items()
    ]
    if any(question.choices.values()):
        yield from (f"  {choice}" for choice in choices)
    else:
        yield click.wrap_text("   ".join(choices), initial_indent="  ", subsequent_indent="  ")
