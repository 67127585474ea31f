"""Writes to a terminal; control characters in texts of files, people and the service are escaped."""

from __future__ import annotations

import shutil
import sys

import click

from patternmill.text import visible_lines


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Write lines, with control and invisible characters as escapes."""
    click.echo(visible_lines(str(text)), err=err, nl=nl)


def terminal_width() -> int | None:
    """In columns; None where lines go to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def confirmed(question: str, refusal: str) -> bool:
    """The answer to a question; without a terminal it prints the refusal, and is no."""
    if not sys.stdin.isatty():
        echo(f"{refusal}: there is no terminal to ask on. Add --yes.", err=True)
        return False
    return click.confirm(question, default=False)
