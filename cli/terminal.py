"""Writes to a terminal; control characters in texts of files, people and the service are escaped."""

from __future__ import annotations

import click

from patternmill.catalog.problems import visible


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Write lines, with control and invisible characters as escapes."""
    click.echo(printable(str(text)), err=err, nl=nl)


def printable(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))
