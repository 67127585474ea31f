"""Questions that change nothing: which answers stop a run, which are asked again, and what the offer is read from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from patternmill.errors import ServiceStopped
from patternmill.planning.offer import Offer
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.resend import UNREACHABLE
from patternmill.service.studio_api import StudioApi
from tests.unit.service import virtual
from tests.unit.service.answers import JOB, Script, answered, lost, not_sent

Body = dict[str, Any]


def ask(script: Script, question: Callable[[StudioApi], Awaitable[Any]]) -> Any:
    """Return what a question comes to, or the code with which it stops; and when."""

    async def main() -> tuple[Any, float]:
        async with script.api() as api:
            try:
                return await question(api), virtual.clock()
            except ServiceStopped as stopped:
                return stopped.code, virtual.clock()

    return virtual.run(main())


RECOLOR = "refine/recolor"


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (
            answered(404, {"error": "not found"}),
            {RECOLOR: "the service has no refine/recolor (it answers 404)"},
        ),
        (answered(501), {RECOLOR: "the service has no refine/recolor (it answers 501)"}),
        (answered(403), {RECOLOR: "the key may not use refine/recolor (the service answers 403)"}),
        (answered(422, {"error": "invalid"}), {}),
        (answered(200, {}), {}),
        (answered(401), "unauthorized"),
        (answered(302), "redirected"),
        (answered(500), UNREACHABLE),
        (not_sent(Trouble.NAME_NOT_FOUND), "name_not_found"),
    ],
)
def test_operation_that_is_not_there_is_found_out_without_a_purchase(answer: Answer, missing: Any) -> None:
    script = Script({RECOLOR: [answer]})
    assert ask(script, lambda api: api.missing([RECOLOR]))[0] == missing
    assert set(script.bodies(RECOLOR)) == {b"{}"}


@pytest.mark.parametrize(
    ("answers", "job_id", "tries"),
    [
        ([lost(), answered(503), answered(200, JOB)], "job-1", 3),
        ([answered(404)], None, 1),
        ([answered(422)], None, 1),
        ([not_sent()], "job_not_shown", 4),
        ([answered(500)], "job_not_shown", 4),
        ([answered(200, [])], "job_not_shown", 1),
        ([answered(401)], "job_not_shown", 1),
    ],
)
def test_job_is_looked_up_with_a_few_quick_tries(
    answers: list[Answer], job_id: str | None, tries: int
) -> None:
    """Without a clear answer it stays unknown whether there is one."""
    script = Script({"jobs/get": answers})
    job, at = ask(script, lambda api: api.job("job-1"))
    assert getattr(job, "job_id", job) == job_id
    assert len(script.sent) == tries and at < 10


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (answered(200, {"categories": []}), None),
        (answered(404), "wrong_address"),
        (answered(401), "unauthorized"),
        (answered(500), UNREACHABLE),
    ],
)
def test_access_is_asked_for_once(answer: Answer, result: str | None) -> None:
    script = Script({"categories/list": [answer]})
    assert ask(script, lambda api: api.require_access())[0] == result
    assert len(script.sent) == 1


NUMBERS = count()
IDS = ("c-1", "c-2", "c-3", "c-4", "c-5")
#: The answer, by its records and what marks the next page, if there is one.
Shape = Callable[[list[Body], str | None], Body]


def record(category_id: str) -> Body:
    return {"categoryId": category_id, "name": f"Name of {category_id}"}


def by_cursor(records: list[Body], following: str | None) -> Body:
    return {"categories": records, "nextCursor": following}


class Paged(Script):
    """A service that answers with pages of two, and with 400 to any other field than `cursor`."""

    def __init__(self, shape: Shape = by_cursor) -> None:
        super().__init__({})
        self.shape = shape
        self.details: dict[str, Any] = {}
        #: In place of every page after the first.
        self.fault: Answer | None = None

    def answer(self, operation: str, question: Any) -> Answer:
        if operation == "categories/get":
            read = answered(200, {"options": {"size": ["S"]}})
            return self.details.get(question["categoryId"], read)
        if question and self.fault is not None:
            return self.fault
        if question.keys() - {"cursor"}:
            return answered(400)
        return answered(200, self.page(int(question.get("cursor", "mark=/0").removeprefix("mark=/"))))

    def page(self, start: int) -> Body:
        following = f"mark=/{start + 2}" if start + 2 < len(IDS) else None
        return self.shape([record(category_id) for category_id in IDS[start : start + 2]], following)


def offer_from(script: Script) -> Any:
    return ask(script, lambda api: api.offer())[0]


def ids(offer: Offer) -> tuple[str, ...]:
    return tuple(category.id for category in offer.categories or ())


@pytest.mark.parametrize("last", [None, "mark=/6"], ids=["nothing follows", "an empty page follows"])
def test_every_page_is_read(last: str | None) -> None:
    """Each category once, with its options."""
    script = Paged(lambda page, following: by_cursor(page, following or (last if page else None)))
    offer = offer_from(script)
    assert (ids(offer), offer.note) == (IDS, None)
    assert all(category.checkable for category in offer.categories or ())


@pytest.mark.parametrize(
    ("shape", "pages"),
    [
        (lambda page, following: {"categories": page, "hasMore": True}, 1),
        (lambda page, following: {"categories": page, "total": len(IDS)}, 1),
        (lambda page, following: by_cursor(page, "mark=/0"), 2),
        (lambda page, following: by_cursor([{"id": f"c-{next(NUMBERS)}"}], "mark=/0"), 500),
    ],
    ids=["no cursor", "a total", "a cursor for nothing", "endless"],
)
def test_list_that_does_not_lead_to_its_end_is_not_checked(shape: Shape, pages: int) -> None:
    """A part of it would refuse rows that are right."""
    script = Paged(shape)
    offer = offer_from(script)
    assert offer.categories is None and "more pages" in (offer.note or "")
    assert len(script.bodies("categories/list")) == pages


@pytest.mark.parametrize("answer", [answered(500), answered(429), lost(Trouble.TIMEOUT)])
def test_page_that_is_not_reached_stops(answer: Answer) -> None:
    """Nothing is bought for names that could be looked up a minute later."""
    script = Paged()
    script.fault = answer
    assert offer_from(script) == UNREACHABLE


@pytest.mark.parametrize(
    "answer", [answered(302), answered(404), answered(500), answered(200, "what"), not_sent()]
)
def test_unreadable_category_does_not_affect_the_others(answer: Answer) -> None:
    script = Paged()
    script.details["c-3"] = answer
    offer = offer_from(script)
    assert [category.checkable for category in offer.categories or ()] == [True, True, False, True, True]
    assert "Name of c-3" in (offer.note or "")


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (answered(404), "The service answered 404."),
        (answered(501), "The service answered 501."),
        (answered(400), "The service answered 400."),
        (answered(200, "none"), "The shape of its answer is not known."),
        (answered(401), "unauthorized"),
        (not_sent(Trouble.TLS), "tls"),
        (answered(500), UNREACHABLE),
        (lost(), UNREACHABLE),
    ],
)
def test_list_that_cannot_be_read_says_why_or_stops_before_planning(answer: Answer, result: str) -> None:
    """9, 13, 20: the key is refused, no request arrives, or there is no clear answer."""
    offer = offer_from(Script({"categories/list": [answer]}))
    assert offer == result or offer.note.endswith(f"the list of them cannot be read. {result}")


def test_offer_is_read_through_faults() -> None:
    """A lost answer, a 500 and a 429 do not hide the options."""
    listed = answered(200, {"categories": [record("c-1"), record("c-2")]})
    details = answered(200, {"options": [{"name": "size", "values": ["s", "l"]}]})
    lists = [lost(), answered(500), listed]
    script = Script({"categories/list": lists, "categories/get": [answered(429, retry_after="2"), details]})
    offer = offer_from(script)
    assert ids(offer) == ("c-1", "c-2") and all(category.checkable for category in offer.categories)
