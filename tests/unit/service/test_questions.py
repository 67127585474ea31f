"""Questions that change nothing: which answers stop a run, which are asked again, and what the offer is read from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from patternmill.errors import ServiceStopped
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
        ([lost(), answered(503), answered(429, retry_after="2"), answered(200, JOB)], "job-1", 4),
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
    """Without a clear answer it stays unknown whether there is a job."""
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


def record(category_id: str) -> Body:
    return {"categoryId": category_id, "name": f"Name of {category_id}"}


def page(*category_ids: str, cursor: str | None = None, **marks: object) -> Answer:
    return answered(200, {"categories": [*map(record, category_ids)], "nextCursor": cursor, **marks})


FIRST, LAST, EMPTY = page("c-1", "c-2", cursor="m2"), page("c-3"), page()
OPTIONS = answered(200, {"options": {"size": ["S"]}})


def offer_from(*pages: Answer, details: Sequence[Answer] = (OPTIONS,)) -> tuple[Any, list[bytes]]:
    """Return the offer, or the code with which the question stops; and what was asked for the list."""
    script = Script({"categories/list": [*pages], "categories/get": [*details]})
    return ask(script, lambda api: api.offer())[0], script.bodies("categories/list")


@pytest.mark.parametrize("pages", [(FIRST, LAST), (FIRST, page("c-2", "c-3", cursor="m4"), EMPTY)])
def test_every_page_is_read(pages: tuple[Answer, ...]) -> None:
    """Each category once, with its options; services that cannot look ahead lead to an empty last page."""
    offer, questions = offer_from(*pages)
    assert [category.id for category in offer.categories] == ["c-1", "c-2", "c-3"]
    assert offer.note is None and all(category.checkable for category in offer.categories)
    assert questions == [b"{}", b'{"cursor":"m2"}', b'{"cursor":"m4"}'][: len(pages)]


def test_list_that_does_not_lead_to_its_end_is_not_checked() -> None:
    """Checked against a part of it, rows that are right would be refused."""
    endless = [page(f"c-{number}", cursor="m") for number in range(600)]
    for pages, count in (
        ([page("c-1", hasMore=True)], 1),
        ([page("c-1", total=5)], 1),
        ([FIRST], 2),
        (endless, 500),
    ):
        offer, questions = offer_from(*pages)
        assert offer.categories is None and "more pages" in (offer.note or "")
        assert len(questions) == count


@pytest.mark.parametrize("answer", [answered(500), answered(429), lost(Trouble.TIMEOUT)])
def test_page_that_is_not_reached_stops(answer: Answer) -> None:
    """Nothing is bought for names that could be looked up a minute later."""
    assert offer_from(FIRST, answer)[0] == UNREACHABLE


@pytest.mark.parametrize("answer", [answered(302), answered(404), answered(400), answered(200, "what")])
def test_unreadable_category_does_not_affect_the_others(answer: Answer) -> None:
    offer, _ = offer_from(FIRST, LAST, details=[OPTIONS, answer, OPTIONS])
    assert [category.checkable for category in offer.categories or ()] == [True, False, True]
    assert "Name of c-2" in (offer.note or "")


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
    offer, _ = offer_from(answer)
    assert offer == result or offer.note.endswith(f"the list of them cannot be read. {result}")
