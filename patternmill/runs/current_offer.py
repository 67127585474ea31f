"""The offer of an environment: as read now, and as remembered where it cannot be read now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.offer import UNREADABLE_OFFER, Offer, merged
from patternmill.catalog.row_checks import categories_written
from patternmill.errors import ServiceStopped
from patternmill.ledger.ledger import ledger_if_any
from patternmill.service.offer_reader import UNREACHABLE
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings


@dataclass(frozen=True)
class CurrentOffer:
    """`read`: as read now, to be remembered. `known`: with what was remembered, to check rows against."""

    read: Offer
    known: Offer


async def current_offer(api: StudioApi, settings: Settings, file: CatalogFile) -> CurrentOffer:
    """Raises ServiceStopped when the key is refused, or when the service is unavailable and no offer is remembered."""
    # Off the event loop: a database may take as long as an answer may.
    before = await asyncio.to_thread(_remembered, settings)
    try:
        read = await api.offer(categories_written(file))
    except ServiceStopped as stopped:
        if stopped.code != UNREACHABLE or before is None:
            raise
        read = UNREADABLE_OFFER
    return CurrentOffer(read, merged(read, before))


def _remembered(settings: Settings) -> Offer | None:
    with ledger_if_any(settings) as ledger:
        return ledger.last_offer(settings.environment) if ledger is not None else None
