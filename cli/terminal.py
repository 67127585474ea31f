"""What is written on a terminal: texts of files, people and the service as themselves, never as control characters."""

from __future__ import annotations

import click

from patternmill.catalog.problems import visible


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Write lines; each character that a terminal obeys, or that nobody sees, is written as an escape."""
    click.echo(printable(str(text)), err=err, nl=nl)


def printable(text: str) -> str:
    """The lines of a text, fit for a terminal."""
    return "\n".join(map(visible, text.split("\n")))
