"""The verb `check`: asks what the columns and words of a sheet mean, and reports every fault of every row."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.run_options import checked_request, named_options
from cli.terminal import echo, echo_json, echo_lines
from patternmill.errors import ConfigurationError
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from cli.mapping_questions import Answers
    from patternmill.catalog.catalog_file import CatalogFile
    from patternmill.catalog.proposals import Question
    from patternmill.catalog.row_checks import CheckedCatalog
    from patternmill.runs.spec import RunSpec


@click.command("check")
@click.argument("file")
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option("--catalog", help="The catalog whose mapping is read. Default: named after the file.")
@named_options(ImportRequest, "mapping")
@click.option("--all", "everything", is_flag=True, help="List every problem of every row, before the causes.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON, for programs.")
@click.option("--yes", is_flag=True, help="Accept what is certain about columns and words, without asking.")
def command(file: str, everything: bool, as_json: bool, yes: bool, **asked: Any) -> int:
    """Check FILE against the contract in inputs/README.md and what the service offers. Spends nothing.

    On a terminal it asks, once for each catalog, what each column is, and which word of the offer a word of the file
    means. The answers are written beside FILE, as spring.mapping.toml, where `import` and `refresh` read them. FILE
    may be an address: then they are kept in PATTERNMILL_HOME, under the name of the --catalog.

    \b
    Examples:
      patternmill check spring.csv
      patternmill check spring.xlsx --yes
      patternmill check spring.csv --json

    Exit codes: 0 every row is valid; 3 some rows are refused (an import leaves them out); 2 the file is refused as a
    whole, its columns are not confirmed, or a setting is wrong.
    """
    from cli.mapping_questions import Asker, certain_answers, no_answers

    asking = sys.stdin.isatty() and not as_json
    answers = certain_answers if yes else Asker() if asking else no_answers
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        spec = _spec(file, asked)
        checked, left = _mapped_check(spec, answers)
    if as_json:
        from patternmill.catalog.check_report import report_json

        echo_json(report_json(checked))
    else:
        from patternmill.catalog.check_report import report_lines

        # What has to be done comes last: the causes, and the command that asks.
        echo_lines(report_lines(checked, everything=everything))
        if left:
            echo(f"\n{_left_text(spec, left)}")
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]


def _spec(file: str, asked: dict[str, Any]) -> RunSpec:
    """As of an import of the file, or as of a refresh from an address. Raises ConfigurationError."""
    from patternmill.catalog.remote import is_remote
    from patternmill.runs.spec import run_spec

    if not is_remote(file):
        return run_spec(checked_request(ImportRequest, {"file": Path(file), **asked}))
    if asked["catalog"] is None:
        raise ConfigurationError(
            "Which catalog this address is the source of is not known.", remedy="Name it with --catalog."
        )
    return run_spec(checked_request(RefreshRequest, {"source": file, **asked}))


def _mapped_check(spec: RunSpec, answers: Answers) -> tuple[CheckedCatalog, list[Question]]:
    """The sheet, checked as it is read with all that was answered; and what is open still. Raises InputRefused."""
    from cli.offered import offer_of
    from patternmill.catalog.proposals import column_questions, word_questions
    from patternmill.errors import InputRefused
    from patternmill.runs.input_mapping import MAPPABLE, read_input, sheet_questions, with_entries

    seen: set[tuple[str, str]] = set()
    while True:
        refused: InputRefused | None = None
        words: list[Question] = []
        try:
            file = read_input(spec)
        except InputRefused as error:
            if error.code not in MAPPABLE:
                raise
            refused = error
            columns = sheet_questions(spec, offer_of(spec.settings), refused)
        else:
            checked = _check(spec, file)
            rows = (record.cells for record in file.records)
            columns = column_questions(file.header, rows, checked.offer, file.mapping)
            words = word_questions(checked)
        # What a word means is asked once it is known what its column is.
        entries = answers(_new(columns, seen)) or answers(_new(words, seen))
        if entries:
            spec = with_entries(spec, entries)
            assert spec.mapping_file is not None, "it was written"
            echo(f"Written: {spec.mapping_file.place}")
        elif refused is not None:
            raise refused
        else:
            return checked, [*columns, *words]


def _new(questions: list[Question], seen: set[tuple[str, str]]) -> list[Question]:
    """Each is asked once."""
    found = [question for question in questions if question.key not in seen]
    seen.update(question.key for question in found)
    return found


def _check(spec: RunSpec, file: CatalogFile) -> CheckedCatalog:
    """As an import would, by what is offered now."""
    from cli.offered import offer_and_extras
    from patternmill.catalog.row_checks import check_rows
    from patternmill.ledger.ledger import open_ledger
    from patternmill.runs.followed_source import follow
    from patternmill.runs.results_input import held_to_run

    read, notes = follow(spec, file)
    offer, extras = offer_and_extras(spec.settings, read, spec.source)
    checked = check_rows(read, offer, extras=extras)
    if spec.origin is not None:
        with open_ledger(spec.settings) as ledger:
            checked = held_to_run(ledger, spec.origin, checked)
    return replace(checked, notes=(*notes, *checked.notes))


def _left_text(spec: RunSpec, left: list[Question]) -> str:
    """The one command that asks about what is open."""
    from patternmill.runs.input_mapping import check_command
    from patternmill.text import plural

    what = f"{plural(len(left), 'name')} of columns or words"
    certain = sum(question.certain for question in left)
    takes = f"; with --yes it takes what is certain ({certain:,})" if certain else ""
    return f"`{check_command(spec)}` asks on a terminal about {what}{takes}."
