"""Reads what an environment offers: the list of categories, then the options of each; and the list of models."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from patternmill.catalog.offer import UNREADABLE_OFFER, Category, Offer
from patternmill.catalog.offer_shapes import offer_of, read_page
from patternmill.service.questions import Questions, refuse_unclear, stopped
from patternmill.service.resend import STOPPING, sentence

CATEGORIES, CATEGORY, MODELS = "categories/list", "categories/get", "models/list"
MOST_PAGES = 500


async def read_offer(questions: Questions) -> Offer:
    """Return the offer, as far as it can be read. Raises ServiceStopped when the service cannot be asked."""
    listed = await _list(questions, CATEGORIES)
    if isinstance(listed, str):
        return replace(UNREADABLE_OFFER, note=f"{UNREADABLE_OFFER.note} {listed}")
    details = await asyncio.gather(*(_detail(questions, category.id) for category in listed))
    return offer_of(listed, {one.id: detail for one, detail in zip(listed, details, strict=True)})


async def read_models(questions: Questions) -> Offer | None:
    """Return the models as an offer without options, or None when no list of them can be read.

    Raises ServiceStopped when the service cannot be asked.
    """
    listed = await _list(questions, MODELS)
    return Offer(listed, note=None) if listed and not isinstance(listed, str) else None


async def _detail(questions: Questions, category_id: str) -> Any:
    """Return the answer of `categories/get`, or None. Only a refused key stops more than this one category."""
    answer = await questions.ask(CATEGORY, {"categoryId": category_id})
    if answer.status in STOPPING:
        raise stopped(STOPPING[answer.status], answer)
    return answer.body if answer.usable else None


async def _list(questions: Questions, operation: str) -> tuple[Category, ...] | str:
    """Return all of a list, page by page; or why it cannot be read to its end."""
    found: dict[str, Category] = {}
    question: dict[str, object] = {}
    for _ in range(MOST_PAGES):
        answer = await questions.ask(operation, question)
        refuse_unclear(answer)
        page = read_page(answer.body) if answer.usable else None
        if page is None:
            return "The shape of its answer is not known." if answer.usable else sentence(answer)
        known = len(found)
        for category in page.categories:
            found.setdefault(category.id, category)
        if page.cursor is None and not page.has_more and page.total <= len(found):
            return tuple(found.values())
        if page.cursor is None or len(found) == known:
            break
        question = {"cursor": page.cursor}
    return "It has more pages than its answers lead to."
