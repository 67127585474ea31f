"""The verb `map`: says once which column of a file is which column of the catalog; spends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.run_options import checked_request, named_options
from cli.terminal import echo, echo_lines, write_output
from patternmill.errors import ConfigurationError
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.catalog.mapping_proposal import MappingProposal
    from patternmill.catalog.sheet_choices import SheetChoices
    from patternmill.runs.input_mapping import UnmappedSheet
    from patternmill.runs.spec import RunSpec
    from patternmill.settings import Settings

_DONE = EXIT_CODES[Outcome.COMPLETED]


@click.command("map")
@click.argument("file")
@click.option("--catalog", help="The catalog that it is remembered for. Default: named after the file.")
@click.option("--environment", help="staging, production, ...: whose categories and options are compared.")
@named_options(ImportRequest, "encoding", "worksheet")
@click.option("--header-row", type=click.IntRange(1), metavar="N", help="The row that names the columns.")
@click.option(
    "--set",
    "answers",
    multiple=True,
    metavar="COLUMN=NAME",
    help='What one column is, by its name or letter: "Prompt text=prompt", "D=option:size", "E=note". Repeatable.',
)
@click.option("--yes", is_flag=True, help="Accept what is shown without a question.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the mapping to this file too, as FILE.mapping.toml, for --mapping and for people.",
)
@click.option("--show", is_flag=True, help="Only show what is remembered for the catalog.")
@click.option("--forget", is_flag=True, help="Forget what is remembered for the catalog.")
def command(
    file: str, answers: tuple[str, ...], yes: bool, out: Path | None, show: bool, forget: bool, **asked: Any
) -> int:
    """Say once which column of FILE is which column of the catalog. Spends nothing.

    A proposal is made from the columns' names, from what the service offers, and from what is in them. Once it is
    confirmed, it is remembered with the catalog: `import`, `refresh` and `check` read the catalog's files
    by it. A file spring.mapping.toml next to spring.csv, or --mapping, goes before what is remembered.

    \b
    Examples:
      patternmill map spring.csv
      patternmill map spring.csv --set "Prompt text=prompt" --set "Remark=note" --yes
      patternmill map spring.csv --yes --out spring.mapping.toml
      patternmill map spring.csv --show

    Exit codes: 0 remembered, or shown; 2 not confirmed, or the file cannot be read.
    """
    header_row = asked.pop("header_row")
    spec = _spec(file, asked)
    if show or forget:
        return _forget(spec.settings, spec.catalog) if forget else _show(spec.settings, spec.catalog)
    from dataclasses import replace

    choices = replace(spec.choices, header_row=header_row or spec.choices.header_row)
    return _map(file, replace(spec, choices=choices), answers, yes, out)


def _spec(file: str, asked: dict[str, Any]) -> RunSpec:
    """As of an import of the file, or as of a refresh from an address. Raises ConfigurationError."""
    from patternmill.catalog.remote import is_remote
    from patternmill.runs.spec import import_spec, refresh_spec

    if not is_remote(file):
        return import_spec(checked_request(ImportRequest, {"file": Path(file), **asked}))
    if asked["catalog"] is None:
        raise ConfigurationError(
            "Which catalog this address is the source of is not known.", remedy="Name it with --catalog."
        )
    return refresh_spec(checked_request(RefreshRequest, {"source": file, **asked}))


def _map(file: str, spec: RunSpec, answers: tuple[str, ...], yes: bool, out: Path | None) -> int:
    from cli.mapping_prompt import confirmed, proposed, remember, with_answer
    from patternmill.catalog.mapping_file import mapping_file_of

    found = proposed(spec)
    proposal = found.proposal
    for answer in answers:
        proposal = with_answer(proposal, answer)
    accepted = confirmed(found.sheet, proposal, yes)
    if accepted is None:
        return EXIT_REFUSED
    remember(spec.settings, spec.catalog, accepted, found.choices)
    if out is not None:
        _write(out, found.sheet, accepted, found.choices)
    elif (adjacent := mapping_file_of(Path(file))) is not None:
        echo(f"Note: {adjacent} goes before what is remembered. Write it anew with --out {adjacent}.")
    return _DONE


def _show(settings: Settings, catalog: str) -> int:
    from patternmill.ledger.ledger import ledger_if_any
    from patternmill.text import in_columns, moment, plain

    with ledger_if_any(settings) as ledger:
        known = ledger.confirmed_mapping(catalog) if ledger is not None else None
    if known is None:
        raise ConfigurationError(
            f"Nothing is remembered of the columns of catalog {catalog!r}.",
            remedy="`patternmill map FILE` proposes what they are.",
        )
    echo(f"Catalog {catalog}: confirmed by {known.confirmed_by}, {moment(known.confirmed_at)} UTC.")
    echo_lines(in_columns([(f"  {plain(header)}", target) for header, target in known.columns.items()]))
    for name, value in known.reading.items():
        echo(f"  read with {name.replace('_', ' ')} {value}")
    return _DONE


def _forget(settings: Settings, catalog: str) -> int:
    from patternmill.ledger.ledger import has_ledger, open_ledger

    forgotten = False
    if has_ledger(settings):
        with open_ledger(settings) as ledger, ledger.transaction():
            forgotten = ledger.forget_mapping(catalog)
    echo(f"Forgotten: the columns of catalog {catalog}." if forgotten else "Nothing was remembered.")
    return _DONE


def _write(out: Path, sheet: UnmappedSheet, proposal: MappingProposal, choices: SheetChoices) -> None:
    from patternmill.catalog.mapping_file import mapping_text

    write_output(out, [mapping_text(sheet.name, proposal.named, choices).encode()])
    echo(f"Written: {out}")
