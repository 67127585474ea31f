"""The questions of `check`: what each column and each unknown word of a sheet means, asked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from cli.terminal import echo, said_yes
from patternmill.catalog.column_mapping import NOTE
from patternmill.catalog.problems import rows_named
from patternmill.catalog.proposals import Question
from patternmill.text import plain, shown

Entry = tuple[str, str, str]
#: What is to be written into the mapping, of what is asked.
Answers = Callable[[Sequence[Question]], list[Entry]]

_WIDTH = 78
_KEYS = (
    "Enter takes what is in brackets, or leaves it open; a number or a name answers; Ctrl-C leaves the rest."
)


def no_answers(questions: Sequence[Question]) -> list[Entry]:
    return []


def certain_answers(questions: Sequence[Question]) -> list[Entry]:
    """What can mean nothing else, said; the rest stays open."""
    certain = [question for question in questions if question.certain]
    _list("Certain:", certain)
    if len(certain) < len(questions):
        echo("\nNot certain, and left open:")
    for question in (one for one in questions if not one.certain):
        probably = f" Perhaps {shown(question.suggestion)}." if question.suggestion else ""
        echo(f"  {_asked(question)}{probably}")
    return _suggested(certain)


class Asker:
    """Asks on the terminal: what is certain in one question, the rest one by one."""

    def __init__(self) -> None:
        self._is_first, self._has_stopped = True, False

    def __call__(self, questions: Sequence[Question]) -> list[Entry]:
        certain = [question for question in questions if question.certain]
        left = [question for question in questions if not question.certain]
        entries: list[Entry] = []
        try:
            if certain and not self._has_stopped:
                _list("It seems that:", certain)
                if said_yes("Is that right?", default=True):
                    entries += _suggested(certain)
                else:
                    left = [*certain, *left]
            for question in left if not self._has_stopped else ():
                answer = self._answer(question)
                if answer is not None:
                    entries.append(question.entry(answer))
        except click.Abort:
            self._has_stopped = True
            echo("\nStopped: what was answered is kept.")
        return entries

    def _answer(self, question: Question) -> str | None:
        if self._is_first:
            self._is_first = False
            echo(_KEYS)
        echo(f"\n{_asked(question)}")
        echo(_numbered(question))
        while True:
            default = str(question.choices.index(question.suggestion) + 1) if question.suggestion else ""
            text = click.prompt("Number or name", default=default, show_default=bool(default)).strip()
            if not text:
                return None
            if text.isdecimal() and text not in question.choices and 1 <= int(text) <= len(question.choices):
                return question.choices[int(text) - 1]
            named = [choice for choice in question.choices if choice.casefold() == text.casefold()]
            if named:
                return named[0]
            echo(f"{shown(text)} is not among them.")


def _suggested(questions: Iterable[Question]) -> list[Entry]:
    return [question.entry(question.suggestion) for question in questions if question.suggestion]


def _list(title: str, questions: Sequence[Question]) -> None:
    if questions:
        echo(f"\n{title}")
    for _, name, meaning in _suggested(questions):
        what = "is not used, and carried through" if meaning == NOTE else f"-> {plain(meaning)}"
        echo(f"  {plain(name)} {what}")


def _asked(question: Question) -> str:
    if question.target:
        return f"Which column is the {question.target}?"
    if question.section == "columns":
        cells = f" ({', '.join(map(plain, question.examples))}, …)" if question.examples else ""
        return f"What is the column {shown(question.name)}{cells}? `{NOTE}`: it chooses nothing."
    if question.section == "reading":
        return "How was it saved?" if question.name == "encoding" else f"Which {question.name} is meant?"
    place = f"{shown(question.column or '')} of {rows_named(question.lines, 3)}"
    return f"What does {shown(question.name)} mean in {place}?"


def _numbered(question: Question) -> str:
    if question.examples and (question.target or question.section == "reading"):
        both = zip(question.choices, question.examples, strict=True)
        return "\n".join(f"  {at}) {plain(name)}   {plain(one)}" for at, (name, one) in enumerate(both, 1))
    named = "   ".join(f"{at}) {plain(name)}" for at, name in enumerate(question.choices, 1))
    return click.wrap_text(named, width=_WIDTH, initial_indent="  ", subsequent_indent="  ")
