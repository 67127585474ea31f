"""The verb `check`: reports every fault of every row, and asks how to correct them; spends nothing."""

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
from patternmill.runs.request import ImportRequest
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from cli.mapping_prompt import CheckInput
    from patternmill.catalog.catalog_file import CatalogFile
    from patternmill.catalog.lint import Lint
    from patternmill.catalog.row_checks import CheckedCatalog
    from patternmill.runs.spec import RunSpec


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option("--catalog", help="Whose confirmed columns count. Default: named after the file.")
@named_options(ImportRequest, "encoding", "worksheet", "mapping")
@click.option("--all", "everything", is_flag=True, help="List every problem, not only the first 40.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON, for programs.")
@click.option("--fix", "fixing", is_flag=True, help="Ask how to correct what is wrong, and write a copy.")
@click.option("--yes", is_flag=True, help="With --fix: correct what is certain, without a question.")
def command(everything: bool, as_json: bool, fixing: bool, yes: bool, **asked: Any) -> int:
    """Check FILE against the contract in inputs/README.md and what the service offers. Spends nothing.

    Categories and options are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    With --fix each wrong word is asked about once, however many rows have it, and the answers are written into a copy
    next to FILE (spring.corrected.csv); FILE stays as it is. --fix --yes asks nothing, and
    corrects only what can mean nothing else.

    \b
    Examples:
      patternmill check spring.csv
      patternmill check spring.xlsx --fix
      patternmill check spring.csv --json

    Exit codes: 0 every row is valid (with --fix: in the copy); 3 some rows are refused (an import leaves them
    out); 2 the file is refused as a whole, nobody has confirmed which of its columns is which, a setting is
    wrong, or there is no terminal to ask on.
    """
    from patternmill.runs.spec import import_spec

    _refuse_contradictions(fixing, as_json, yes)
    spec = import_spec(checked_request(ImportRequest, asked))
    read = _read(spec, as_json=as_json, asking=fixing and not yes)
    checker = _FileChecker(spec, read.file)
    checked = checker.check_as_imported(read.file)
    if fixing:
        from cli.fix_questions import SheetToFix, fix

        sheet = SheetToFix(spec.source, read.file, is_unconfirmed=read.unconfirmed is not None)
        checked = fix(sheet, checked, checker, asking=not yes)
    elif as_json:
        _write_json(checked, _lint(checked, spec), read.unconfirmed)
    else:
        _show(checked, _lint(checked, spec), everything, read.unconfirmed)
    if read.unconfirmed is not None and not fixing:
        return EXIT_REFUSED
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]


class _FileChecker:
    """Checks a file as an import would, by what is offered now."""

    def __init__(self, spec: RunSpec, file: CatalogFile) -> None:
        from cli.offered import offer_and_extras
        from patternmill.runs.corrected_input import read_corrections

        self._spec = spec
        merged, _ = read_corrections(spec, file)
        self._offer, self._extras = offer_and_extras(spec.settings, merged, spec.source)

    def check(self, file: CatalogFile) -> CheckedCatalog:
        """A file whose corrections are merged."""
        from patternmill.catalog.row_checks import check_rows
        from patternmill.ledger.ledger import open_ledger
        from patternmill.runs.results_input import held_to_run

        checked = check_rows(file, self._offer, extras=self._extras)
        if self._spec.origin is None:
            return checked
        with open_ledger(self._spec.settings) as ledger:
            return held_to_run(ledger, self._spec.origin, checked)

    def check_as_imported(self, file: CatalogFile) -> CheckedCatalog:
        """A file with the corrections that are on record for its catalog."""
        from patternmill.runs.corrected_input import notes_of, read_corrections

        merged, overlay = read_corrections(self._spec, file)
        # The checksum is that of what lies there.
        checked = self.check(replace(merged, sha256=file.sha256))
        return replace(checked, notes=(*notes_of(overlay), *checked.notes))


def _read(spec: RunSpec, *, as_json: bool, asking: bool) -> CheckInput:
    """The input; the standard output is for the report alone where that is JSON."""
    from cli.mapping_prompt import CheckInput, check_input, confirmed_input

    if asking:
        return CheckInput(confirmed_input(_with_readable_encoding(spec)))
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        return check_input(spec)


def _with_readable_encoding(spec: RunSpec) -> RunSpec:
    """The same, with the encoding that a person names where the file does not show its own."""
    from patternmill.catalog.problems import FileCode
    from patternmill.errors import InputRefused
    from patternmill.runs.input_mapping import read_input

    try:
        read_input(spec)
    except InputRefused as refused:
        if refused.code == FileCode.UNREADABLE_ENCODING and spec.choices.encoding is None:
            echo(f"{refused.message}\n{refused.remedy}")
            encoding = click.prompt("Encoding (Enter stops)", default="", show_default=False).strip()
            if not encoding:
                raise
            return replace(spec, choices=replace(spec.choices, encoding=encoding))
    return spec


def _refuse_contradictions(fixing: bool, as_json: bool, yes: bool) -> None:
    if fixing and as_json:
        raise ConfigurationError(
            "--fix asks on the terminal, and --json is for programs.", remedy="Choose one."
        )
    if yes and not fixing:
        raise ConfigurationError(
            "--yes answers the questions of --fix.", remedy="Add --fix, or leave --yes out."
        )
    if fixing and not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "There is no terminal to ask on.", remedy="Add --yes: it corrects what can mean nothing else."
        )


def _lint(checked: CheckedCatalog, spec: RunSpec) -> tuple[Lint, ...]:
    from patternmill.catalog.lint import PatternPrice, find_lint

    return find_lint(checked, PatternPrice(spec.options.pattern_price, spec.options.currency))


def _show(checked: CheckedCatalog, lint: tuple[Lint, ...], everything: bool, unconfirmed: str | None) -> None:
    from patternmill.catalog.check_report import report_lines
    from patternmill.catalog.lint import lint_lines

    echo_lines(report_lines(checked, limit=None if everything else 40))
    echo_lines(("", *lint_lines(lint)) if lint else ())
    if any(problem.suggestion for problem in checked.problems):
        echo("")
        echo("`patternmill check --fix` with the same file asks about such words, and corrects a copy.")
    if unconfirmed is not None:
        echo(f"\n{unconfirmed}")


def _write_json(checked: CheckedCatalog, lint: tuple[Lint, ...], unconfirmed: str | None) -> None:
    """To the standard output, which has nothing else."""
    from patternmill.catalog.check_report import report_json

    echo_json(report_json(checked, unconfirmed) | {"lint": [one.as_json() for one in lint]})
