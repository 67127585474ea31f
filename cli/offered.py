"""What an environment offers a file now: asked of its service, or read from the embedded studio without starting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from patternmill.catalog.catalog_file import CatalogFile
    from patternmill.catalog.extras import Extras
    from patternmill.catalog.offer import Offer
    from patternmill.catalog.reference_files import ReferencePlace
    from patternmill.service.studio_api import StudioApi
    from patternmill.settings import Settings


def offer_and_extras(settings: Settings, catalog: CatalogFile, file: Path) -> tuple[Offer, Extras]:
    """What an import would check against now, offers in the ledger included."""
    from patternmill.runs.capabilities import reference_place

    place = reference_place(str(file), settings)
    if settings.studio_url is None:
        return embedded_offer(settings.environment), embedded_extras(catalog, place)
    from cli.available_service import ask_service
    from patternmill.planning.unstated import read_unstated
    from patternmill.runs.capabilities import extras_of
    from patternmill.runs.preview import current_offer
    from patternmill.runs.safeguards import refuse_other_service

    refuse_other_service(settings)
    unstated = read_unstated(settings.operations_file, settings.environment)

    async def ask(api: StudioApi) -> tuple[Offer, Extras]:
        _, offer = await current_offer(api, settings)
        return offer, await extras_of(api, settings, catalog, place, unstated=unstated)

    return ask_service(settings, ask)


def offer_of(settings: Settings) -> Offer:
    """The list of categories with their options, before it is known what a file needs.

    Raises ServiceStopped when the service does not answer and no offer is remembered.
    """
    if settings.studio_url is None:
        return embedded_offer(settings.environment)
    from cli.available_service import ask_service
    from patternmill.runs.preview import current_offer
    from patternmill.runs.safeguards import refuse_other_service

    refuse_other_service(settings)
    _, offer = ask_service(settings, lambda api: current_offer(api, settings))
    return offer


def embedded_offer(environment: str) -> Offer:
    """The embedded studio's offer, without starting it."""
    from patternmill.catalog import offer_shapes
    from studio.offer import categories_get, categories_list

    page = offer_shapes.read_page(categories_list(environment))
    assert page is not None, "the embedded studio's own answer can be read"
    answers = {category.id: categories_get(environment, category.id) for category in page.categories}
    return offer_shapes.offer_of(page.categories, answers)


def embedded_extras(catalog: CatalogFile, place: ReferencePlace) -> Extras:
    """The embedded studio has every operation."""
    from patternmill.catalog.extras import Extras
    from patternmill.catalog.offer import Category, Offer
    from patternmill.catalog.reference_files import read_references
    from studio.models import MODELS

    models = tuple(Category(model.model_id, model.name) for model in MODELS)
    return Extras(
        Offer(models, note=None), read_references(catalog.texts_in(catalog.columns.reference), place)
    )
