"""Reads what an environment offers: the list of categories, then the options of each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
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

LIST, GET = "categories/list", "categories/get"
#: Of a question that may not lead to the next page, and of a text that may be no ID.
GUESSES = 3
#: Questions for pages after the first, and written categories that are asked for as IDs.
MOST_PAGES = 500
MOST_ASKED_FOR = 100


async def read_offer(questions: Questions, written: Collection[str] = ()) -> Offer:
    """The offer, as far as it can be read. Raises ServiceStopped when the key or the address is refused.

    `written`: categories that a person named. Those that an incomplete list lacks are looked up as IDs.
    """
    answer = await questions.ask(LIST, {})
    refuse_stopping(answer)
    found = read_category_list(answer.body) if answer.usable else None
    if found is None:
        why = "Its answer names no categories." if answer.usable else sentence(answer)
        return replace(UNREADABLE_OFFER, note=f"{UNREADABLE_OFFER.note} {why}")
    found = await _with_all_pages(questions, found)
    details = await asyncio.gather(*(_detail(questions, category.id) for category in found.categories))
    offer = offer_of(found, {one.id: detail for one, detail in zip(found.categories, details, strict=True)})
    if found.complete:
        return offer
    texts = sorted(text for text in written if 0 < len(text) <= LONGEST_ID and not offer.find(text))
    asked = await asyncio.gather(*(_unlisted(questions, text) for text in texts[:MOST_ASKED_FOR]))
    return with_unlisted(offer, [category for category in asked if category is not None])


async def _detail(questions: Questions, category_id: str) -> Any:
    """The answer of `categories/get`, or None. Only a refused key stops more than this one category."""
    answer = await questions.ask(GET, {"categoryId": category_id})
    if answer.status in STOPPING:
        raise stopped(STOPPING[answer.status], answer)
    return answer.body if answer.usable else None


async def _unlisted(questions: Questions, text: str) -> Category | None:
    answer = await questions.ask(GET, {"categoryId": text}, GUESSES)
    return read_unlisted_category(answer.body, text) if answer.usable else None


async def _with_all_pages(questions: Questions, found: CategoryList) -> CategoryList:
    """Page by page, by the first question that leads on: of the kind that led to the one before, or of the others.

    The same page again leads nowhere; an empty one may end the list, when it is sure that it was the next.
    """
    tried: set[bytes] = set()
    proven: str | None = None
    while True:
        for method, question, is_stated in sorted(found.steps, key=lambda step: step[0] != proven):
            text = orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
            if text in tried or len(tried) >= MOST_PAGES:
                continue
            tried.add(text)
            answer = await questions.ask(LIST, question, TRIES if method == proven else GUESSES)
            sent = frozenset(map(str, question.values()))
            page = read_category_list(answer.body, found, sent) if answer.usable else None
            is_sure = method == proven or is_stated
            if page is not None and (
                len(page.categories) > len(found.categories) or (is_sure and page.last_page == 0)
            ):
                found, proven = page, method
                break
        else:
            return found
