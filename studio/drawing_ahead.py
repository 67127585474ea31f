"""Draws what people look at first while nothing is being made, so that no page of theirs stays blank for seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from studio.pictures import PAGE_WIDTH, PictureFault, Pictures
from studio.service import Service

#: The number of pictures of each kind that are drawn ahead: as many as a page of the console shows.
COUNT = 24
#: Seconds without a new request after which pictures are drawn ahead.
REST_SECONDS = 0.5


async def draw_ahead(service: Service, pictures: Pictures) -> None:
    """Draw the newest pictures in each moment of rest, until it is cancelled."""
    before: list[str] = []
    drawn: set[str] = set()
    while True:
        await asyncio.sleep(REST_SECONDS)
        newest = service.store.jobs.newest_pictures(service.now(), COUNT)
        if newest == before:
            await _draw(service, pictures, [one for one in newest if one not in drawn])
            drawn = set(newest)
        before = newest


async def _draw(service: Service, pictures: Pictures, picture_ids: Iterable[str]) -> None:
    """Draw one after the other; what somebody waits for is drawn meanwhile, and before the next."""
    for subject in filter(None, map(service.picture, picture_ids)):
        with suppress(PictureFault):
            await pictures.path(subject, PAGE_WIDTH)
