"""What an environment offers at the moment: as read now, and as remembered where it cannot be read now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.offer import UNREADABLE_OFFER, Offer, merged
from patternmill.catalog.row_checks import categories_written
from patternmill.errors import ServiceStopped
from patternmill.ledger.ledger import has_ledger, open_ledger
from patternmill.service.offer_reader import UNREACHABLE
from patternmill.settings import Settings


class OfferApi(Protocol):
    """What is needed of a StudioApi."""

    async def offer(self, written: frozenset[str] = frozenset()) -> Offer: ...


@dataclass(frozen=True)
class CurrentOffer:
    """`read`: as read now, which is to be remembered. `known`: with what is remembered, to check rows against."""

    read: Offer
    known: Offer


async def current_offer(api: OfferApi, settings: Settings, file: CatalogFile) -> CurrentOffer:
    """Raises ServiceStopped when the key is refused, or when nobody answers and nothing is remembered."""
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
    if not has_ledger(settings):
        return None
    with open_ledger(settings) as ledger:
        return ledger.last_offer(settings.environment)
