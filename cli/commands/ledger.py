"""The verb `ledger`: checks the ledger."""

from __future__ import annotations

import click

from cli.terminal import echo, echo_lines
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.integrity import CHECKS, problems
from patternmill.settings import load_settings
from patternmill.text import more

_MOST_PROBLEMS = 100


@click.group("ledger")
def command() -> None:
    """Check the ledger.

    \b
    Example:
      patternmill ledger check

    Exit codes: 0 all is well; 1 something is wrong, a line each; 2 there is no ledger, or a setting is wrong.
    """


@command.command("check")
def check() -> int:
    """Check that the database is whole and that the ledger agrees with itself. Changes nothing.

    Best used while no run is active: what a run writes meanwhile can look like a contradiction.

    \b
    Example:
      patternmill ledger check && echo ok

    Exit codes: 0 all is well; 1 something is wrong, a line each; 2 there is no ledger here.
    """
    with open_ledger(load_settings(), must_exist=True) as ledger:
        found = list(problems(ledger))
    echo_lines(found[:_MOST_PROBLEMS])
    echo_lines(more(len(found), _MOST_PROBLEMS, indent=""))
    if not found:
        echo(f"The ledger is whole: {'; '.join(CHECKS)}.")
    return 1 if found else 0
