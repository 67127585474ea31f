"""Each deviation from what an import relies on, seeded alone, is found by the check that is meant for it alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from patternmill.conformance.checks import AT_ONCE, CHECKS, CheckOutcome
from patternmill.conformance.session import UNKNOWN_ID
from patternmill.errors import ServiceStopped
from patternmill.planning.unstated import UNSTATED
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from tests.unit.conformance.whole_service import Asked, Departure, WholeService, answered, checked, refused

#: Enough for every check.
ENOUGH = 4 + AT_ONCE
LOST = Answer(ExchangeResult.LOST, Trouble.TIMEOUT, "no whole answer in time")
HTML = Answer(ExchangeResult.ANSWERED, Trouble.HTML, "", 200)


def failed(departure: Departure, spend: int = ENOUGH) -> set[str]:
    lines = asyncio.run(checked(WholeService(departure), spend=spend))
    return {name for name, (outcome, _) in lines.items() if outcome is CheckOutcome.FAILED}


def when(fits: Callable[[Asked], bool], answer: Answer) -> Departure:
    return lambda asked, normal: answer if fits(asked) else normal()


def edited(operation: str, **fields: Any) -> Departure:
    """The operation's answers with these fields; None leaves one out."""

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        answer = normal()
        if asked.operation != operation or answer.status != 200:
            return answer
        kept = {name: value for name, value in answer.body.items() if name not in fields}
        new = {name: value for name, value in fields.items() if value is not None}
        return replace(answer, body=kept | new)

    return depart


def polls(first: int, made: str, *, alone: bool = False, **fields: Any) -> Departure:
    """Polls of such jobs with these fields, from this one on (counted from 0; the second says `succeeded`)."""
    seen: list[int] = []

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        answer = normal()
        if asked.operation != "jobs/get" or answer.status != 200 or answer.body["kind"] != made:
            return answer
        seen.append(1)
        number = len(seen) - 1
        is_meant = number == first or (number > first and not alone)
        return replace(answer, body={**answer.body, **fields}) if is_meant else answer

    return depart


def without_key(operation: str, key: str) -> Departure:
    """The operation does not look at the key."""
    service = WholeService()
    return lambda asked, normal: (
        service.served(asked) if (asked.operation, asked.key) == (operation, key) else normal()
    )


def another_for_each(operation: str, made: str, ending: str = "") -> Departure:
    """A new job for each such request but the first, whatever its ID."""

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        if asked.operation != operation or not asked.number or not asked.body["requestId"].endswith(ending):
            return normal()
        return answered(
            200, {"jobId": f"another-{asked.number}", "kind": made, "status": "running", "result": None}
        )

    return depart


def other_checkout(asked: Asked, normal: Callable[[], Answer]) -> Answer:
    if asked.operation == "checkouts/create" and asked.number:
        return answered(200, {"checkoutId": "another", "checkoutUrl": "https://pay.example/another"})
    return normal()


SEEDS: list[tuple[str, Departure]] = [
    ("no-key", without_key("categories/list", "none")),
    ("no-key", without_key("jobs/get", "none")),
    ("wrong-key", without_key("jobs/get", "wrong")),
    ("wrong-key", when(lambda a: a.key == "wrong", refused(500, "oops"))),
    ("categories", when(lambda a: a.operation == "categories/list" and a.key == "own", refused(503, "later"))),
    ("unknown-job", when(lambda a: a.body == {"jobId": UNKNOWN_ID} and a.key == "own", answered(200, {}))),
    ("pattern-create", when(lambda a: a.operation == "patterns/create", refused(422, "no"))),
    ("pattern-create", edited("patterns/create", kind=None)),
    ("pattern-create", edited("patterns/create", result={})),
    ("pattern-job", when(lambda a: a.body == {"jobId": "job-1"}, refused(404, "unknown job"))),
    *(
        (f"{made}-job", departure)
        for made, other in (("pattern", "image"), ("product", "pattern"))
        for departure in (
            polls(2, made, kind=None),
            polls(0, made, kind=other),
            polls(0, made, jobId="job-other"),
            polls(0, made, alone=True, status="running", result={}),
            polls(2, made, alone=True, status="running", result=None),
            polls(1, made, result={"id": "p"}),
            polls(1, made, status="failed", result=None),
        )
    ),
    ("product-create", when(lambda a: a.operation == "products/create", refused(422, "no"))),
    ("product-create", edited("products/create", status="succeeded", result={"productId": "p"})),
    ("product-repeat", another_for_each("products/create", "product")),
    ("checkout", edited("checkouts/create", checkoutId=7)),
    ("checkout", edited("checkouts/create", checkoutUrl="/pay/1")),
    ("checkout", other_checkout),
    ("pattern-at-once", another_for_each("patterns/create", "pattern", "at-once")),
    ("answers", when(lambda a: a.operation == "categories/get", LOST)),
    ("answers", when(lambda a: a.operation == "categories/get", HTML)),
    ("answers", when(lambda a: a.operation == "categories/get", answered(307, None))),
]  # fmt: skip


@pytest.mark.parametrize(("check", "departure"), SEEDS)
def test_deviation_is_found_by_its_check(check: str, departure: Departure) -> None:
    assert failed(departure) == {check}


def test_second_job_for_one_request_is_found() -> None:
    """Sent again, and sent ten times at once: both say so."""
    assert failed(another_for_each("patterns/create", "pattern"), 40) >= {"pattern-repeat", "pattern-at-once"}


def test_conforming_service_has_no_deviation() -> None:
    """Every check is made, in its order; each of them has a seed, but for the one that only notes."""
    service = WholeService()
    lines = asyncio.run(checked(service, spend=ENOUGH))
    assert list(lines) == list(CHECKS)
    assert {outcome for outcome, _ in lines.values()} == {CheckOutcome.OK, CheckOutcome.NOTED}
    assert service.made == {"pattern": 2, "product": 1, "refinement": 1}
    assert {check for check, _ in SEEDS} | {"pattern-repeat", "refinement-repeat"} == set(CHECKS)


def test_refinement_that_is_not_repeatable_is_noted() -> None:
    """The interface does not promise it; the operations file may, and is then wrong."""
    _, detail = asyncio.run(checked(WholeService(), spend=ENOUGH))["refinement-repeat"]
    assert detail.startswith("repeatable")
    for unstated, outcome in (
        (UNSTATED, CheckOutcome.NOTED),
        (UNSTATED.model_copy(update={"repeatable": True}), CheckOutcome.FAILED),
    ):
        other = WholeService(another_for_each("refine/recolor", "refinement"))
        found, detail = asyncio.run(checked(other, spend=ENOUGH, unstated=unstated))["refinement-repeat"]
        assert found is outcome and detail.startswith("not repeatable")


def test_repeat_that_is_refused_is_noted() -> None:
    """The interface leaves the answer open, and nothing was made twice."""
    seen: set[str] = set()

    def refuse(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        if asked.operation == "patterns/create":
            if asked.body["requestId"] in seen:
                return refused(409, "used")
            seen.add(asked.body["requestId"])
        return normal()

    lines = asyncio.run(checked(WholeService(refuse), spend=ENOUGH))
    assert lines["pattern-repeat"][0] is CheckOutcome.NOTED
    assert lines["pattern-at-once"][0] is CheckOutcome.OK


def test_nothing_that_may_cost_is_sent_without_a_limit() -> None:
    service = WholeService()
    asyncio.run(checked(service))
    assert {asked.operation for asked in service.asked} == {"categories/list", "categories/get", "jobs/get"}


@pytest.mark.parametrize("limit", [1, 9, 60])
def test_limit_holds_whatever_the_service_accepts(limit: int) -> None:
    """A service that makes something for each request, whatever its ID."""
    service = WholeService()

    def lavish(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        if asked.operation in ("patterns/create", "products/create", "refine/recolor"):
            return service.begin_job("product" if asked.operation.startswith("products") else "pattern")
        return normal()

    service.departure = lavish
    asyncio.run(checked(service, spend=limit))
    assert 0 < service.made.total() <= limit


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key_stops_the_checks(status: int) -> None:
    with pytest.raises(ServiceStopped, match=str(status)):
        failed(when(lambda asked: True, refused(status, "no")))


def test_silent_service_stops_the_checks() -> None:
    service = WholeService(when(lambda asked: True, LOST))
    with pytest.raises(ServiceStopped):
        asyncio.run(checked(service))
    assert len(service.asked) == 2


def test_service_that_falls_silent_is_not_asked_for_ever() -> None:
    """After three requests in a row without an answer."""
    service = WholeService(when(lambda asked: len(service.asked) > 5, LOST))
    asyncio.run(checked(service))
    assert len(service.asked) == 8


def test_limit_of_the_service_is_obeyed() -> None:
    """Three refusals are waited for, as long as they ask."""
    limited = answered(429, {}, "slow down", retry_after="7")
    service = WholeService(
        when(lambda asked: asked.operation == "categories/list" and asked.number < 3, limited)
    )
    lines = asyncio.run(checked(service))
    assert service.slept == [7.0, 7.0, 7.0]
    assert lines["no-key"][0] is CheckOutcome.OK
