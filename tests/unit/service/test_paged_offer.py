"""A list of categories in pages, whatever the service calls its cursor; and what is done where none leads on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from patternmill.catalog.offer import Offer
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from tests.unit.service import virtual

IDS = ("c-1", "c-2", "c-3", "c-4", "c-5")
PAGE = 2
Body = dict[str, Any]
#: The start of the page that is asked for; None: the question is not understood.
Find = Callable[[Body], int | None]
#: The answer's fields next to its records, by the start of the next page, if there is one.
Tell = Callable[[int | None], Body]


def says(status: int, body: Any = None) -> Answer:
    return Answer(ExchangeResult.ANSWERED, status=status, body=body)


def record(category_id: str) -> Body:
    return {"categoryId": category_id, "name": f"Name of {category_id}"}


class Paged:
    """A service with its own idea of pages. `strict`: it answers 400 to a field that it does not know."""

    def __init__(self, find: Find, tell: Tell, *, strict: bool = False, wrapped: bool = False) -> None:
        self.find, self.tell, self.strict, self.wrapped = find, tell, strict, wrapped
        self.asked: list[Body] = []
        self.known_by_id: dict[str, Any] = {one: record(one) for one in IDS}
        self.faults: list[Answer] = []

    async def post(self, operation: str, body: bytes) -> Answer:
        await asyncio.sleep(0.01)
        question = json.loads(body)
        if operation == "categories/get":
            found = self.known_by_id.get(question["categoryId"])
            if isinstance(found, Answer):
                return found
            return says(200, {**found, "options": {"size": ["S"]}}) if found else says(404)
        self.asked.append(question)
        if question and self.faults:
            return self.faults.pop(0)
        start = self.find(question) if question else 0
        if start is None and self.strict:
            return says(400)
        return says(200, self.page(start or 0))

    def page(self, start: int) -> Any:
        records = [record(one) for one in IDS[start : start + PAGE]]
        following = start + PAGE if start + PAGE < len(IDS) else None
        if self.wrapped:
            return {"data": {"items": records, **self.tell(following)}}
        return {"categories": records, **self.tell(following)}

    async def close(self) -> None:
        pass


def offer_from(service: Paged, *written: str) -> Offer:
    async def main() -> Offer:
        async with StudioApi(service, policy=ResendPolicy(jitter=lambda: 0.5), clock=virtual.clock) as api:
            return await api.offer(written)

    return virtual.run(main())


def ids(offer: Offer) -> tuple[str, ...]:
    return tuple(category.id for category in offer.categories or ())


def by_mark(field: str) -> Find:
    """An opaque cursor in one field of the question."""
    return lambda body: (
        int(body[field].removeprefix("mark=/"))
        if set(body) == {field} and isinstance(body[field], str)
        else None
    )


def by_number(field: str, *, first: int, each: int = PAGE) -> Find:
    """A number in one field of the question, as a number."""
    return lambda body: (
        (body[field] - first) * each if set(body) == {field} and type(body[field]) is int else None
    )


def marked(following: int | None) -> str | None:
    return None if following is None else f"mark=/{following}"


def numbered(following: int | None) -> int | None:
    return None if following is None else following // PAGE + 1


FLAVOURS: dict[str, tuple[Find, Tell]] = {
    "nextCursor to cursor": (
        by_mark("cursor"),
        lambda n: {"nextCursor": marked(n), "hasMore": n is not None},
    ),
    "next_cursor to after": (by_mark("after"), lambda n: {"next_cursor": marked(n) or ""}),
    "nextPageToken": (by_mark("pageToken"), lambda n: {"nextPageToken": marked(n)} if n else {}),
    "next_page_token": (by_mark("page_token"), lambda n: {"next_page_token": marked(n) or ""}),
    "nextPage": (by_number("page", first=1), lambda n: {"pagination": {"nextPage": numbered(n)}}),
    "continuationToken": (by_mark("continuationToken"), lambda n: {"continuationToken": marked(n)}),
    "own name": (by_mark("next"), lambda n: {"next": marked(n)}),
    "next as address": (
        by_mark("cursor"),
        lambda n: {"next": f"https://elsewhere.example/v1/categories/list?cursor=mark%3D/{n}" if n else None},
    ),
    "next as address with a number": (
        by_number("page", first=1),
        lambda n: {"links": {"next": f"/v1/categories/list?page={numbered(n)}" if n else None}},
    ),
    "next as link": (
        by_number("offset", first=0, each=1),
        lambda n: {"_links": {"self": {"href": "?"}, **({"next": {"href": f"?offset={n}"}} if n else {})}},
    ),
    "endCursor in pageInfo": (
        by_mark("after"),
        lambda n: {"pageInfo": {"endCursor": marked(n or 9), "hasNextPage": n is not None}},
    ),
    "hasMore, pages from 0": (by_number("page", first=0), lambda n: {"hasMore": n is not None}),
    "hasMore, pages from 1": (by_number("page", first=1), lambda n: {"hasMore": n is not None}),
    "total and offset": (by_number("offset", first=0, each=1), lambda n: {"total": len(IDS)}),
    "total pages": (by_number("page", first=1), lambda n: {"meta": {"totalPages": 3}}),
    "hasMore, after the last": (
        lambda body: IDS.index(body["startingAfter"]) + 1 if set(body) == {"startingAfter"} else None,
        lambda n: {"has_more": n is not None},
    ),
}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_page_is_read(flavour: str) -> None:
    """Each category once, with its options; a cursor that does not lead on is tried once."""
    for strict, wrapped in product((False, True), repeat=2):
        service = Paged(*FLAVOURS[flavour], strict=strict, wrapped=wrapped)
        offer = offer_from(service)
        assert (ids(offer), offer.complete, offer.note) == (IDS, True, None), (strict, wrapped)
        assert all(category.checkable for category in offer.categories or ())
        questions = [json.dumps(body) for body in service.asked]
        assert len(questions) == len(set(questions)) <= 20


NO_WAY: dict[str, tuple[Find, Tell]] = {
    "more, and no cursor": (lambda body: None, lambda n: {"hasMore": True}),
    "a cursor for nothing": (lambda body: None, lambda n: {"nextCursor": "abc"}),
    "a total": (lambda body: None, lambda n: {"total": 50}),
    "a loop": (lambda body: 0, lambda n: {"nextCursor": "abc", "hasMore": True}),
    "an address without a query": (lambda body: None, lambda n: {"next": "https://x.example/v1/page-2"}),
}


@pytest.mark.parametrize("kind", NO_WAY)
def test_list_without_a_usable_cursor_is_reported(kind: str) -> None:
    """The part that was read is used; requests are bounded."""
    for strict in (False, True):
        service = Paged(*NO_WAY[kind], strict=strict)
        offer = offer_from(service)
        assert (ids(offer), offer.complete) == (IDS[:PAGE], False)
        assert "in part only" in (offer.note or "")
        assert len(service.asked) < 30


def test_endless_list_is_cut() -> None:
    """New cursors for ever, and new categories with each."""

    class Endless(Paged):
        def page(self, start: int) -> Any:
            return {"categories": [record(f"c-{start}")], "nextCursor": f"mark=/{start + 1}"}

    offer = offer_from(Endless(*FLAVOURS["nextCursor to cursor"]))
    assert not offer.complete
    assert 100 < len(ids(offer)) < 2000


def test_empty_last_page_ends_the_list() -> None:
    """Services that cannot look ahead answer with a cursor that leads to nothing more."""

    def tell(following: int | None) -> Body:
        return {"nextCursor": f"mark=/{following or 6}"}

    class Blind(Paged):
        def page(self, start: int) -> Any:
            return {"categories": [], "nextCursor": None} if start == 6 else super().page(start)

    offer = offer_from(Blind(by_mark("cursor"), tell))
    assert (ids(offer), offer.complete) == (IDS, True)


def test_id_missing_in_a_partial_list_is_looked_up() -> None:
    """What the service knows is offered, though its list does not show it."""
    service = Paged(*NO_WAY["more, and no cursor"])
    offer = offer_from(service, "c-4", "Name of c-5", "C-3", "Name of c-1", "nonsense")
    assert ids(offer) == ("c-1", "c-2", "c-4")
    assert [category.id for category in offer.find("Name of c-4")] == ["c-4"]
    assert all(category.checkable for category in offer.categories or ())


@pytest.mark.parametrize(
    "answer",
    [says(302), says(404), says(500), says(200, "what"), Answer(ExchangeResult.NOT_SENT, Trouble.CONNECT)],
    ids=["redirect", "not found", "error", "unreadable", "not sent"],
)
def test_unreadable_category_does_not_affect_the_others(answer: Answer) -> None:
    """They keep their options, and it is named."""
    service = Paged(*FLAVOURS["nextCursor to cursor"])
    service.known_by_id["c-3"] = answer
    offer = offer_from(service)
    assert [category.checkable for category in offer.categories or ()] == [True, True, False, True, True]
    assert "Name of c-3" in (offer.note or "")
