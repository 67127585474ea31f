"""The verb `corrections`: what was corrected in results files is listed, undone, or written into a copy of a sheet."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import echo, echo_json, echo_lines
from patternmill.text import more, plural

if TYPE_CHECKING:
    from patternmill.catalog.catalog_file import CatalogFile
    from patternmill.catalog.fixes import Edits
    from patternmill.catalog.row_corrections import Correction
    from patternmill.ledger.ledger import Ledger
    from patternmill.settings import Settings

_MOST = 100


@click.command("corrections")
@click.argument("catalog", metavar="CATALOG")
@click.option(
    "--environment", help="staging, production, ... (default: PATTERNMILL_ENVIRONMENT, or staging)."
)
@click.option("--undo", metavar="SKU", multiple=True, help="Undo every correction of this row. Repeatable.")
@click.option(
    "--write",
    "sheet",
    type=click.Path(path_type=Path),
    metavar="SHEET",
    help="Write the corrections into a copy of this source, next to it.",
)
@click.option("--all", "everything", is_flag=True, help="List those that have ended too.")
@click.option("--json", "as_json", is_flag=True, help="List them as JSON, for programs.")
def command(
    catalog: str,
    environment: str | None,
    undo: tuple[str, ...],
    sheet: Path | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Show what was corrected in the results files of CATALOG, and is applied to its source at each refresh.

    A cell that is changed in failures.csv or results.csv, which is then imported, becomes a correction. It is
    applied as long as the source has the old text in that cell; once the source has the new text, or another, it
    has ended. Undone, the source's own text counts again.

    \b
    Examples:
      patternmill corrections spring
      patternmill corrections spring --undo SPR-CUS-004
      patternmill corrections spring --write spring.xlsx

    Exit codes: 0 shown, undone or written; 2 there is no such correction or catalog here, or a setting is wrong.
    """
    from patternmill.ledger.ledger import open_ledger
    from patternmill.settings import load_settings

    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        scope = (settings.environment, catalog)
        _refuse_unknown(ledger, *scope)
        if undo:
            _undo(ledger, *scope, undo)
        elif sheet is not None:
            _write(sheet, catalog, settings, ledger.corrections(*scope))
        else:
            found = ledger.corrections(*scope, ended=everything)
            if as_json:
                echo_json([asdict(one) for one in found])
            else:
                echo_lines(_lines(found, catalog, settings.environment))
    return 0


def _refuse_unknown(ledger: Ledger, environment: str, catalog: str) -> None:
    from patternmill.errors import ConfigurationError

    if not ledger.runs(environment=environment, catalog=catalog):
        known = sorted({f"{run.catalog} ({run.environment})" for run in ledger.runs()})[:5]
        raise ConfigurationError(
            f"The catalog {catalog!r} ({environment}) has no runs in this ledger.",
            remedy=f"Known: {', '.join(known)}." if known else "Import something first.",
        )


def _lines(found: Sequence[Correction], catalog: str, environment: str) -> Iterator[str]:
    from cli.commands.explain import correction_text

    active = sum(one.end is None for one in found)
    yield f"{catalog} ({environment}): {plural(active, 'correction')} applied to the source at each refresh."
    for one in found[:_MOST]:
        yield f"  {one.sku or '(no sku)'}  {correction_text(one)}"
    yield from more(len(found), _MOST)
    if active:
        yield f"To undo those of a row: patternmill corrections {shlex.quote(catalog)} --undo SKU"


def _undo(ledger: Ledger, environment: str, catalog: str, skus: Sequence[str]) -> None:
    from patternmill.catalog.row_corrections import CorrectionEnd
    from patternmill.catalog.rows import sku_key
    from patternmill.errors import ConfigurationError

    with ledger.transaction():
        active = ledger.corrections(environment, catalog)
        for sku in skus:
            found = [one for one in active if sku_key(one.sku) == sku_key(sku)]
            if not found:
                raise ConfigurationError(
                    f"Nothing was corrected in a row {sku!r} of catalog {catalog!r} ({environment}), or it has ended.",
                    remedy=f"See `patternmill corrections {shlex.quote(catalog)} --all`. Nothing was undone.",
                )
            ledger.end_corrections(environment, catalog, [(one, CorrectionEnd.UNDONE) for one in found])
            for one in found:
                echo(f"Undone: {one}")
    echo("The next refresh takes these cells from the source as they are.")


def _write(sheet: Path, catalog: str, settings: Settings, corrections: Sequence[Correction]) -> None:
    """A copy of the source with the corrections that hold for it; the source itself is left as it is."""
    from patternmill.catalog.row_corrections import SHAPE
    from patternmill.runs.input_mapping import remembered_mapping
    from patternmill.sheets.corrected_copy import write_corrected
    from patternmill.sheets.merged_rows import merge
    from patternmill.sheets.sheet_reader import read_catalog

    mapping = remembered_mapping(settings, catalog)
    file = read_catalog(sheet, choices=mapping.choices, mapping=mapping.mapping)
    misshapen = {one.source_row for one in corrections if one.column == SHAPE}
    merged, overlay = merge(file, [one for one in corrections if one.source_row not in misshapen])
    if not overlay.merged:
        echo(f"{sheet.name} has none of the texts that were corrected: no copy was written.")
    else:
        place, _ = write_corrected(sheet, file, _edits(file, merged))
        echo(f"{place}: {sheet.name} with {plural(len(overlay.merged), 'correction')}.")
    if overlay.ended:
        echo(f"  {plural(len(overlay.ended), 'cell')} there already, or changed to something else.")
    if misshapen:
        echo(f"  {plural(len(misshapen), 'row')} with too many or too few cells: to be corrected by hand.")


def _edits(before: CatalogFile, after: CatalogFile) -> Edits:
    """The cells in which two files with the same rows differ."""
    from patternmill.catalog.fixes import Edits

    width = len(before.header)
    return Edits(
        dict(enumerate(after.header[width:], width)),
        {
            (new.line, index): text
            for old, new in zip(before.records, after.records, strict=True)
            for index, text in enumerate(new.cells)
            if text != (old.cells[index] if index < len(old.cells) else "")
        },
    )
