"""The verb `ledger`: checks the ledger, and the files that were written from it."""

from __future__ import annotations

from pathlib import Path

import click

from cli.terminal import echo, echo_lines
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.integrity import CHECKS, problems
from patternmill.results import summary
from patternmill.settings import load_settings
from patternmill.text import more, plural

_MOST_PROBLEMS = 100


@click.group("ledger")
def command() -> None:
    """Check the ledger, and results files against their manifest.

    \b
    Examples:
      patternmill ledger check
      patternmill ledger verify results/spring/latest

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


@command.command("verify")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
def verify(directory: Path) -> int:
    """Check the results files in DIRECTORY against the manifest that was written with them.

    \b
    Example:
      patternmill ledger verify results/spring/latest

    Exit codes: 0 every file is as it was written; 1 one is missing or was changed, or there is no manifest.
    """
    manifest = summary.read_manifest(directory)
    found = summary.verify(directory)
    for name in found:
        echo(f"{directory / name} is not as run {manifest.run_id} wrote it.")
    if found:
        echo(f"Write them again: patternmill results {manifest.run_id} --out {directory}")
        return 1
    echo(f"{plural(len(manifest.files), 'file')}: as run {manifest.run_id} wrote them.")
    return 0
