"""The verb `ledger`: checks the ledger and writes it out, and checks the files that were written from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from cli.terminal import echo, echo_lines, write_output
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.export import TABLES, csv_lines, jsonl
from patternmill.ledger.reports.integrity import CHECKS, problems
from patternmill.results import summary
from patternmill.settings import load_settings
from patternmill.text import more, plural

_MOST_PROBLEMS = 100


@click.group("ledger")
def command() -> None:
    """Check the ledger, write it out, and check results files against their manifest.

    \b
    Examples:
      patternmill ledger check
      patternmill ledger export --out ledger.jsonl
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


@command.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="csv: one table.",
)
@click.option("--table", type=click.Choice(list(TABLES)), help="Only this table; csv needs one.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write (default: the terminal).",
)
def export(form: str, table: str | None, out: Path | None) -> int:
    """Write the ledger out: requests, results, approvals, money, catalogs.

    JSONL has a line a record, with its table in `table` and exact values. CSV has one table, for spreadsheets: cells
    that would be formulas are escaped as in results.csv. Times are UTC.

    \b
    Examples:
      patternmill ledger export --out ledger.jsonl
      patternmill ledger export --format csv --table attempts --out attempts.csv

    Exit codes: 0 written; 2 there is no ledger here, or csv without a table; 1 failed.
    """
    if form == "csv" and table is None:
        raise click.UsageError(f"CSV holds one table: name it with --table ({', '.join(TABLES)}).")
    with open_ledger(load_settings(), must_exist=True) as ledger:
        tables = [table] if table else list(TABLES)
        # If writing fails, the statement must be closed before the ledger.
        with closing(csv_lines(ledger, tables[0]) if form == "csv" else jsonl(ledger, tables)) as lines:
            _write(lines, out)
    return 0


def _write(lines: Iterator[bytes], out: Path | None) -> None:
    if out is not None:
        mark = write_output(out, lines)
        echo(f"{out}: {plural(mark.bytes, 'byte')}, SHA-256 {mark.sha256}")
        return
    sys.stdout.buffer.writelines(lines)
    sys.stdout.buffer.flush()


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
