"""Each deviation from the interface, seeded alone, is found by the check that is meant for it, and by no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from patternmill.conformance.check_results import CheckOutcome, Needs, SkipReason
from patternmill.conformance.feedback_checks import WRONG
from patternmill.conformance.session import UNKNOWN_ID, Session
from patternmill.conformance.suite import CHECKS, run_suite
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from tests.unit.conformance.whole_service import (
    Asked,
    Departure,
    WholeService,
    answered,
    checked,
    probe_of,
    refused,
)

#: Enough for every check.
ENOUGH = 52


def deviations(departure: Departure, spend: int = ENOUGH) -> set[str]:
    report = asyncio.run(checked(WholeService(departure), spend=spend, feedback=True))
    return {line.check for line in report.deviations}


def when(fits: Callable[[Asked], bool], answer: Answer) -> Departure:
    return lambda asked, normal: answer if fits(asked) else normal()


def edited(operation: str, **fields: Any) -> Departure:
    """The operation's answers with these fields; None leaves one out."""

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        answer = normal()
        if asked.operation != operation or answer.status != 200:
            return answer
        kept = {name: value for name, value in answer.body.items() if name not in fields}
        return replace(
            answer, body=kept | {name: value for name, value in fields.items() if value is not None}
        )

    return depart


def ended_poll(change: Callable[[dict[str, Any], int], dict[str, Any]], kind: str = "pattern") -> Departure:
    """Polls of jobs of one kind, changed from the n-th on (counted from 0)."""
    polls: list[int] = []

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        answer = normal()
        if asked.operation != "jobs/get" or answer.status != 200 or answer.body["kind"] != kind:
            return answer
        polls.append(1)
        return replace(answer, body=change(dict(answer.body), len(polls) - 1))

    return depart


def without_key(operation: str, key: str) -> Departure:
    """The operation does not look at the key."""
    service = WholeService()

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        is_ours = asked.operation == operation and asked.key == key
        return service.served(asked) if is_ours else normal()

    return depart


def accepted_incomplete(operation: str, field: str) -> Departure:
    other = WholeService()

    def depart(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        lacks = isinstance(asked.body, dict) and field not in asked.body
        return other.begin_job("pattern") if asked.operation == operation and lacks else normal()

    return depart


def new_job_for_each(operation: str) -> Departure:
    other = WholeService()
    return lambda asked, normal: (
        other.begin_job("pattern")
        if asked.operation == operation and normal().status == 200 and asked.number
        else normal()
    )


def other_checkout(asked: Asked, normal: Callable[[], Answer]) -> Answer:
    if asked.operation == "checkouts/create" and asked.number == 1:
        return answered(200, {"checkoutId": "another", "checkoutUrl": "https://pay.example/another"})
    return normal()


def _field(asked: Asked, name: str) -> Any:
    return asked.body.get(name) if isinstance(asked.body, dict) else None


ABSENT = refused(404, "no operation ")
LOST = Answer(ExchangeResult.LOST, Trouble.TIMEOUT, "no whole answer in time")
HTML = Answer(ExchangeResult.ANSWERED, Trouble.HTML, "", 200)

#: What a poll says of a job, from which one on (counted from 0; the second says that it succeeded).
POLLS: list[tuple[str, int, dict[str, Any]]] = [
    ("job-shape", 2, {"kind": None}),
    ("same-job", 0, {"jobId": "job-other"}),
    ("null-while-running", 0, {"status": "running", "result": {}}),
    ("transitions", 2, {"status": "running", "result": None}),
    ("result", 1, {"result": {"id": "p"}}),
    ("failure", 1, {"status": "failed", "result": None}),
]


def poll_seed(made: str, name: str, first: int, fields: dict[str, Any]) -> tuple[str, Departure]:
    """`null-while-running` and `transitions` in that one poll alone, the others from there on."""
    alone = name in {"null-while-running", "transitions"}

    def change(job: dict[str, Any], number: int) -> dict[str, Any]:
        return {**job, **fields} if number == first or (number > first and not alone) else job

    return f"{made}-{name}", ended_poll(change, made)


SEEDS: list[tuple[str, Departure]] = [
    *(poll_seed(made, *poll) for made in ("pattern", "product") for poll in POLLS),
    ("categories-list", when(lambda a: a.operation == "categories/list" and a.key == "own", refused(503, "later"))),
    ("product-accepted", when(lambda a: a.operation == "products/create", refused(422, "no"))),
    ("no-key", without_key("categories/list", "none")),
    ("no-key", without_key("jobs/get", "none")),
    ("wrong-key", without_key("orders/get", "wrong")),
    ("wrong-key", when(lambda a: a.key == "wrong" and a.operation == "categories/get", refused(500, "oops"))),
    ("no-key-create", without_key("patterns/create", "none")),
    ("no-key-feedback", without_key("feedback/create", "none")),
    ("categories-get", when(lambda a: a.operation == "categories/get", ABSENT)),
    ("jobs-unknown", when(lambda a: a.body == {"jobId": UNKNOWN_ID} and a.key == "own", answered(200, {}))),
    ("orders-unknown", when(lambda a: a.operation == "orders/get", ABSENT)),
    ("feedback", when(lambda a: a.operation == "feedback/create", ABSENT)),
    ("feedback", when(lambda a: a.operation == "feedback/create" and a.body == {}, answered(200, {}))),
    ("feedback-smallest", when(lambda a: _field(a, "requestId") == "1", refused(422, "no"))),
    ("feedback-largest", when(lambda a: _field(a, "agent") == "a" * 100, answered(200, {}))),
    ("pattern-accepted", when(lambda a: a.operation == "patterns/create" and a.key == "own", refused(402, "pay"))),
    ("pattern-accepted", edited("patterns/create", kind=None)),
    ("pattern-starts-running", edited("patterns/create", result={})),
    ("pattern-job-shape", when(lambda a: _field(a, "jobId") == "job-1", refused(404, "unknown job"))),
    ("pattern-kind", ended_poll(lambda job, n: {**job, "kind": "image"})),
    ("pattern-required-fields", accepted_incomplete("patterns/create", "prompt")),
    ("product-starts-running", edited("products/create", status="succeeded", result={"productId": "p"})),
    ("product-kind", ended_poll(lambda job, n: {**job, "kind": "pattern"}, "product")),
    ("product-repeat", new_job_for_each("products/create")),
    ("product-required-fields", accepted_incomplete("products/create", "selections")),
    ("checkouts-id", edited("checkouts/create", checkoutId=7)),
    ("checkouts-url", edited("checkouts/create", checkoutUrl="/pay/1")),
    ("checkouts-repeat", other_checkout),
    ("checkouts-required-fields", accepted_incomplete("checkouts/create", "lines")),
    ("whole-answers", when(lambda a: a.operation == "models/list", LOST)),
    ("json-answers", when(lambda a: a.operation == "models/list", HTML)),
    ("no-redirects", when(lambda a: a.operation == "models/list", answered(307, None))),
]  # fmt: skip


def test_conforming_service_has_no_deviation() -> None:
    """Every check is run once, in its order, except those that nothing on the wire can bring about."""
    service = WholeService()
    report = asyncio.run(checked(service, spend=ENOUGH, feedback=True))
    assert [line.check for line in report.lines] == [check.id for check in CHECKS]
    assert report.deviations == []
    left = {line.check: line.reason for line in report.lines if line.outcome is CheckOutcome.NOT_RUN}
    missing = {check for check, reason in left.items() if reason is SkipReason.NOT_THERE}
    assert all(name.startswith("unstated-") for name in missing)
    assert set(left) - missing == {"orders-paid", "pattern-failure", "product-failure"}
    assert service.made == {"pattern": 2, "product": 1}
    assert report.bought_at_most == 3


@pytest.mark.parametrize(("check", "departure"), SEEDS)
def test_deviation_is_found_by_its_check(check: str, departure: Departure) -> None:
    assert deviations(departure) == {check}


def test_address_without_its_version_is_found() -> None:
    session = Session(probe_of(WholeService()), "https://service.example/api")
    report = asyncio.run(run_suite(session))
    assert [line.check for line in report.deviations] == ["version"]


def test_each_check_that_can_deviate_has_a_seed() -> None:
    """But for those that only report, or that no service can be made to fail without a payment."""
    seeded = {check for check, _ in SEEDS} | {f"feedback-{name}" for name, _, _ in WRONG}
    apart = {"version", "pattern-repeat", "pattern-fifty-at-once"}
    only_report = {"errors", "categories-get-unknown", "orders-paid", "orders-unpaid"}
    named = {check.id for check in CHECKS if not check.id.startswith("unstated-")}
    assert named - only_report == seeded | apart


def test_second_job_for_one_request_is_found() -> None:
    """Sent again, and sent fifty times at once: both say so."""
    found = deviations(new_job_for_each("patterns/create"), spend=200)
    assert {"pattern-repeat", "pattern-fifty-at-once"} <= found


@pytest.mark.parametrize(("name", "changed"), [(name, changed) for name, _, changed in WRONG])
def test_each_bound_of_a_report_is_checked(name: str, changed: dict[str, Any]) -> None:
    """A service that accepts this one fault is found out by the check of this bound."""

    def is_it(asked: Asked) -> bool:
        body = asked.body if asked.operation == "feedback/create" else None
        return bool(body) and all(body.get(field) == value for field, value in changed.items())

    assert deviations(when(is_it, answered(200, {"requestId": "r"})), spend=0) == {f"feedback-{name}"}


def test_unavailable_feedback_is_conformant() -> None:
    """The bounds cannot be seen then."""
    off = when(lambda asked: asked.operation == "feedback/create", refused(503, "later"))
    report = asyncio.run(checked(WholeService(off)))
    lines = {line.check: line for line in report.lines}
    assert lines["feedback"].outcome is CheckOutcome.CONFORMANT
    assert lines["feedback-text-4001"].reason is SkipReason.NO_OCCASION
    assert report.deviations == []


def test_repeat_that_is_refused_is_unspecified() -> None:
    """The interface leaves the answer open, and nothing was made twice."""
    seen: set[str] = set()

    def refuse(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        if asked.operation == "patterns/create" and asked.key == "own":
            request_id = asked.body.get("requestId", "")
            if request_id in seen:
                return refused(409, "used")
            seen.add(request_id)
        return normal()

    report = asyncio.run(checked(WholeService(refuse), spend=ENOUGH))
    lines = {line.check: line for line in report.lines}
    assert lines["pattern-repeat"].outcome is CheckOutcome.UNSPECIFIED
    assert lines["pattern-fifty-at-once"].outcome is CheckOutcome.CONFORMANT
    assert report.deviations == []


def test_nothing_that_may_cost_is_sent_without_a_limit() -> None:
    """And no report that is within the bounds."""
    service = WholeService()
    report = asyncio.run(checked(service))
    creates = {asked.operation for asked in service.asked if asked.operation.endswith("/create")}
    assert creates == {"feedback/create"}
    assert not any(asked.operation.startswith("refine/") for asked in service.asked)
    assert not any(
        answer.status == 200 for line in report.lines if "feedback" in line.check for answer in line.answers
    )
    skipped = {line.check for line in report.lines if line.reason in (SkipReason.COSTS, SkipReason.FEEDBACK)}
    assert skipped == {check.id for check in CHECKS if check.needs is not Needs.NOTHING}


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 49, 51, 60, 110])
def test_limit_holds_whatever_the_service_accepts(limit: int) -> None:
    """A service that makes something for each request, whoever sends it and however incomplete it is."""
    service = WholeService()

    def lavish(asked: Asked, normal: Callable[[], Answer]) -> Answer:
        may_cost = asked.operation.endswith("/create") and not asked.operation.startswith(
            ("feedback", "checkouts")
        )
        if may_cost or asked.operation.startswith("refine/"):
            return service.begin_job("product" if asked.operation.startswith("products") else "pattern")
        return normal()

    service.departure = lavish
    report = asyncio.run(checked(service, spend=limit))
    assert 0 < service.made.total() <= limit
    assert report.bought_at_most == service.made.total()


@pytest.mark.parametrize("status", [401, 402, 403])
def test_refused_key_stops_the_suite(status: int) -> None:
    with pytest.raises(ServiceStopped):
        deviations(when(lambda asked: True, refused(status, "no")))


def test_silent_service_stops_the_suite() -> None:
    """Two requests that are free, each tried twice."""
    service = WholeService(when(lambda asked: True, LOST))
    with pytest.raises(ServiceStopped, match="Nothing could be checked"):
        asyncio.run(checked(service))
    assert len(service.asked) == 4


def test_service_that_falls_silent_is_not_asked_for_ever() -> None:
    """After three requests in a row without an answer, each tried twice."""
    service = WholeService(when(lambda asked: len(service.asked) > 10, LOST))
    report = asyncio.run(checked(service))
    assert len(service.asked) == 16
    assert {line.check for line in report.deviations} == {"whole-answers"}
