"""Reads what an environment offers: the list of categories, then the options of each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import orjson

from patternmill.catalog.offer import UNREADABLE_OFFER, Category, Offer, with_unlisted
from patternmill.catalog.offer_shapes import (
    CategoryList,
    offer_of,
    read_category_list,
    read_unlisted_category,
)
from patternmill.service.jobs import LONGEST_ID
from patternmill.service.questions import TRIES, Questions, refuse_stopping, stopped
from patternmill.service.resend import STOPPING, sentence

#: Of a question that may not lead to the next page, and of a text that may be no ID.
GUESSES = 3
#: Questions for pages after the first, and written categories that are asked for as IDs.
MOST_PAGES = 500
MOST_ASKED_FOR = 100


async def read_offer(questions: Questions, written: Collection[str] = ()) -> Offer:
    """The offer, as far as it can be read. Raises ServiceStopped when the key or the address is refused.

    `written`: categories that a person named. Those that an incomplete list lacks are looked up as IDs.
    """
    reader = _Reader(questions)
    found = await reader.categories()
    if found is None:
        return replace(UNREADABLE_OFFER, note=f"{UNREADABLE_OFFER.note} {reader.why_unread}")
    details = await asyncio.gather(*(reader.detail(category.id) for category in found.categories))
    offer = offer_of(found, {one.id: detail for one, detail in zip(found.categories, details, strict=True)})
    return offer if found.complete else with_unlisted(offer, await reader.asked(_unlisted(offer, written)))


def _unlisted(offer: Offer, written: Collection[str]) -> list[str]:
    texts = sorted(text for text in written if 0 < len(text) <= LONGEST_ID and not offer.find(text))
    return texts[:MOST_ASKED_FOR]


class _Reader:
    def __init__(self, questions: Questions) -> None:
        self._ask = questions.ask
        #: The requests for a next page that were sent, and the kind of request that led to one.
        self._tried: set[bytes] = set()
        self._proven: str | None = None
        #: For people, where there is no list.
        self.why_unread = ""

    async def categories(self) -> CategoryList | None:
        """The list, over all its pages as far as they can be found. None when it cannot be read."""
        found = read_category_list(await self._listing())
        while found is not None and found.steps:
            page = await self._next_page(found)
            if page is None:
                break
            found = page
        return found

    async def detail(self, category_id: str) -> Any:
        """The answer of `categories/get`, or None. Only a refused key stops more than this one category."""
        answer = await self._ask("categories/get", {"categoryId": category_id})
        if answer.status in STOPPING:
            raise stopped(STOPPING[answer.status], answer)
        return answer.body if answer.usable else None

    async def asked(self, texts: Sequence[str]) -> list[Category]:
        found = await asyncio.gather(*map(self._asked, texts))
        return [category for category in found if category is not None]

    async def _asked(self, text: str) -> Category | None:
        answer = await self._ask("categories/get", {"categoryId": text}, GUESSES)
        return read_unlisted_category(answer.body, text) if answer.usable else None

    async def _listing(self) -> Any:
        answer = await self._ask("categories/list", {})
        refuse_stopping(answer)
        self.why_unread = "Its answer names no categories." if answer.usable else sentence(answer)
        return answer.body if answer.usable else None

    async def _next_page(self, found: CategoryList) -> CategoryList | None:
        """The list with one more page, by the first question that leads on: the kind that led here, then the others."""
        for method, question, is_stated in sorted(found.steps, key=lambda step: step[0] != self._proven):
            text = orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
            if text in self._tried or len(self._tried) >= MOST_PAGES:
                continue
            self._tried.add(text)
            proven = method == self._proven
            answer = await self._ask("categories/list", question, TRIES if proven else GUESSES)
            sent = frozenset(map(str, question.values()))
            page = read_category_list(answer.body, found, sent) if answer.usable else None
            if page is not None and _leads_on(page, found, known=proven or is_stated):
                self._proven = method
                return page
        return None


def _leads_on(page: CategoryList, found: CategoryList, *, known: bool) -> bool:
    """The same page again leads nowhere; an empty one may end the list, when it is sure that it was the next."""
    return len(page.categories) > len(found.categories) or (known and page.last_page == 0)
