"""A list of categories in pages is read to its end by `nextCursor`, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from patternmill.catalog.offer import Offer
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from patternmill.service.questions import UNREACHABLE
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from tests.unit.service import virtual

IDS = ("c-1", "c-2", "c-3", "c-4", "c-5")
PAGE = 2
Body = dict[str, Any]
#: The answer, by its records and the start of the next page, if there is one.
Shape = Callable[[list[Body], int | None], Body]


def says(status: int, body: Any = None) -> Answer:
    return Answer(ExchangeResult.ANSWERED, status=status, body=body)


def record(category_id: str) -> Body:
    return {"categoryId": category_id, "name": f"Name of {category_id}"}


def marked(following: int | None) -> str | None:
    return None if following is None else f"mark=/{following}"


class Paged:
    """A service that answers with pages of this shape, and 400 to any other field than `cursor`."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.asked: list[Body] = []
        self.known_by_id: dict[str, Any] = {one: record(one) for one in IDS}
        #: In place of every page after the first.
        self.fault: Answer | None = None

    async def post(self, operation: str, body: bytes) -> Answer:
        await asyncio.sleep(0.01)
        question = json.loads(body)
        if operation == "categories/get":
            found = self.known_by_id[question["categoryId"]]
            return found if isinstance(found, Answer) else says(200, {**found, "options": {"size": ["S"]}})
        self.asked.append(question)
        if question and self.fault is not None:
            return self.fault
        if question.keys() - {"cursor"}:
            return says(400)
        return says(200, self.page(int(question.get("cursor", "mark=/0").removeprefix("mark=/"))))

    def page(self, start: int) -> Body:
        following = start + PAGE if start + PAGE < len(IDS) else None
        return self.shape([record(one) for one in IDS[start : start + PAGE]], following)

    async def close(self) -> None:
        pass


def offer_from(service: Paged) -> Offer:
    async def main() -> Offer:
        async with StudioApi(service, policy=ResendPolicy(jitter=lambda: 0.5), clock=virtual.clock) as api:
            return await api.offer()

    return virtual.run(main())


def ids(offer: Offer) -> tuple[str, ...]:
    return tuple(category.id for category in offer.categories or ())


def by_cursor(records: list[Body], following: int | None) -> Body:
    return {"categories": records, "nextCursor": marked(following)}


SHAPES: dict[str, Shape] = {
    "nextCursor": by_cursor,
    "without one at the end": lambda page, n: {
        "categories": page,
        **({"nextCursor": marked(n)} if n else {}),
    },
    "empty at the end": lambda page, n: {"categories": page, "next_cursor": marked(n) or ""},
    "told by hasMore": lambda page, n: {
        "items": page,
        "nextCursor": marked(n or 9),
        "hasMore": n is not None,
    },
    "with a total": lambda page, n: {"items": page, "nextCursor": marked(n), "total": len(IDS)},
    "wrapped": lambda page, n: {"data": {"items": page, "nextCursor": marked(n)}},
    "beside the records": lambda page, n: {"data": page, "pagination": {"nextCursor": marked(n)}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_page_is_read(shape: str) -> None:
    """Each category once, with its options, by three questions."""
    service = Paged(SHAPES[shape])
    offer = offer_from(service)
    assert (ids(offer), offer.note) == (IDS, None)
    assert all(category.checkable for category in offer.categories or ())
    assert len(service.asked) == 3


NO_WAY: dict[str, Shape] = {
    "more, and no cursor": lambda page, n: {"categories": page, "hasMore": True},
    "another kind of cursor": lambda page, n: {"categories": page, "nextPageToken": marked(n)},
    "an address": lambda page, n: {"categories": page, "links": {"next": f"https://x.example/?offset={n}"}},
    "a total": lambda page, n: {"categories": page, "total": len(IDS)},
    "a cursor for nothing": lambda page, n: {"categories": page, "nextCursor": "mark=/0"},
}


@pytest.mark.parametrize("shape", NO_WAY)
def test_list_that_does_not_lead_to_its_end_is_not_checked(shape: str) -> None:
    """A part of it would refuse rows that are right."""
    service = Paged(NO_WAY[shape])
    offer = offer_from(service)
    assert offer.categories is None
    assert "not checked" in (offer.note or "") and "more pages" in (offer.note or "")
    assert len(service.asked) <= 2


def test_endless_list_is_cut() -> None:
    """New cursors for ever, and new categories with each."""

    class Endless(Paged):
        def page(self, start: int) -> Any:
            return {"categories": [record(f"c-{start}")], "nextCursor": f"mark=/{start + 1}"}

    service = Endless(by_cursor)
    assert offer_from(service).categories is None
    assert len(service.asked) == 500


def test_empty_last_page_ends_the_list() -> None:
    """Services that cannot look ahead answer with a cursor that leads to nothing more."""

    class Blind(Paged):
        def page(self, start: int) -> Any:
            return {"categories": [], "nextCursor": None} if start == 6 else super().page(start)

    offer = offer_from(Blind(lambda page, n: {"categories": page, "nextCursor": marked(n or 6)}))
    assert (ids(offer), offer.note) == (IDS, None)


@pytest.mark.parametrize("answer", [says(500), says(429), Answer(ExchangeResult.LOST, Trouble.TIMEOUT)])
def test_page_that_is_not_reached_stops(answer: Answer) -> None:
    """Nothing is bought for names that could be looked up a minute later."""
    service = Paged(by_cursor)
    service.fault = answer
    with pytest.raises(ServiceStopped) as stopped:
        offer_from(service)
    assert stopped.value.code == UNREACHABLE


def test_page_that_is_refused_is_not_checked() -> None:
    """The service has no way to more that this client knows."""
    service = Paged(by_cursor)
    service.fault = says(400)
    offer = offer_from(service)
    assert offer.categories is None
    assert "400" in (offer.note or "")


@pytest.mark.parametrize(
    "answer",
    [says(302), says(404), says(500), says(200, "what"), Answer(ExchangeResult.NOT_SENT, Trouble.CONNECT)],
    ids=["redirect", "not found", "error", "unreadable", "not sent"],
)
def test_unreadable_category_does_not_affect_the_others(answer: Answer) -> None:
    """They keep their options, and it is named."""
    service = Paged(by_cursor)
    service.known_by_id["c-3"] = answer
    offer = offer_from(service)
    assert [category.checkable for category in offer.categories or ()] == [True, True, False, True, True]
    assert "Name of c-3" in (offer.note or "")
