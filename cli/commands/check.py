"""The verb `check`: reports every fault of every row; spends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import echo
from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from patternmill.catalog.csv_reader import CatalogFile
    from patternmill.catalog.extras import Extras
    from patternmill.catalog.offer import Offer
    from patternmill.catalog.reference_files import ReferencePlace
    from patternmill.settings import Settings


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--environment", help="staging, production, ...; category IDs differ between them.")
@click.option("--encoding", help="The file's encoding, if neither UTF-8 nor UTF-16: cp1252, for instance.")
@click.option("--worksheet", help="Of a workbook: the worksheet's name, if several could be meant.")
@click.option("--all", "everything", is_flag=True, help="List every problem, not only the first 40.")
def command(
    file: Path, environment: str | None, encoding: str | None, worksheet: str | None, everything: bool
) -> int:
    """Check FILE against the contract in inputs/README.md and what the service offers. Spends nothing.

    Categories and options are those of the service at PATTERNMILL_STUDIO_URL, or else of the embedded studio.

    \b
    Exit codes: 0 every row is valid; 3 some rows are refused (an import leaves them out); 2 the file is
    refused as a whole, or a setting is wrong.
    """
    from patternmill.catalog.check_report import report_lines
    from patternmill.catalog.row_checks import check_rows
    from patternmill.catalog.sheet_choices import SheetChoices
    from patternmill.catalog.sheets import read_catalog
    from patternmill.runs.spec import environment_of, origin_of
    from patternmill.settings import load_settings

    settings = load_settings(environment=environment_of(origin_of(file), environment))
    catalog = read_catalog(file, choices=SheetChoices(encoding=encoding, worksheet=worksheet))
    offer, extras = _offered(settings, catalog, file)
    checked = check_rows(catalog, offer, prompt_limit=settings.prompt_limit, extras=extras)
    limit = len(checked.problems) if everything else 40
    for line in report_lines(checked, limit=limit):
        echo(line)
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if checked.refused_count else Outcome.COMPLETED]


def _offered(settings: Settings, catalog: CatalogFile, file: Path) -> tuple[Offer, Extras]:
    """What an import would check against now, offers in the ledger included."""
    from patternmill.runs.capabilities import reference_place

    place = reference_place(str(file), settings)
    if settings.studio_url is None:
        return embedded_offer(settings.environment), embedded_extras(catalog, place, model=settings.model)
    import asyncio

    from patternmill.planning.unstated import read_unstated
    from patternmill.runs.capabilities import extras_of
    from patternmill.runs.preview import current_offer
    from patternmill.runs.safeguards import refuse_known_other_service
    from patternmill.service.studio_api import StudioApi

    refuse_known_other_service(settings)

    unstated = read_unstated(settings.operations_file, settings.environment)

    async def ask() -> tuple[Offer, Extras]:
        async with StudioApi.from_settings(settings) as api:
            offer = (await current_offer(api, settings, catalog)).known
            return offer, await extras_of(
                api, settings, catalog, place, model=settings.model, unstated=unstated
            )

    return asyncio.run(ask())


def embedded_offer(environment: str) -> Offer:
    """The embedded studio's offer, without starting it."""
    from patternmill.catalog.offer_shapes import assemble_offer, read_category_list
    from studio.offer import categories_get, categories_list

    listed = categories_list(environment)
    categories = read_category_list(listed)
    assert categories is not None, "the embedded studio's own answer can be read"
    answers = {category.id: categories_get(environment, category.id) for category in categories.categories}
    return assemble_offer(listed, answers)


def embedded_extras(catalog: CatalogFile, place: ReferencePlace, *, model: str | None) -> Extras:
    """The embedded studio has every operation. `model`: of rows that name none."""
    from patternmill.catalog.extras import Extras, references_written
    from patternmill.catalog.offer_shapes import read_models
    from patternmill.catalog.reference_files import read_references
    from studio.models import MODELS

    models = read_models([{"modelId": model.model_id, "name": model.name} for model in MODELS])
    return Extras(models, model, read_references(references_written(catalog), place))
