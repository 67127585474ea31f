"""Each fault of the catalogue alone, through real sockets: what it must lead to, and what it must never cost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Ended, Room, Zygote, some_rows
from tests.hostile import Hostile, Plan, Rule, Times

PATTERN, PRODUCT, POLL = "patterns/create", "products/create", "jobs/get"
ROWS = 3
MADE = ["succeeded"] * ROWS


@dataclass(frozen=True)
class Case:
    """A fault, and what becomes of three rows with a prompt each; the fault falls on one, or on all."""

    name: str
    rules: tuple[Rule, ...]
    statuses: list[str] = field(default_factory=lambda: MADE)
    code: int = 0
    #: Found in the output of the command, or in the rows' errors.
    message: str = ""
    #: Creates that the service received, where that is certain.
    creates: int | None = None
    #: Creates that it executed.
    bought: int | None = 2 * ROWS
    #: What the same command comes to once the fault is gone; None: not asked.
    then: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    inject: tuple[str, ...] = ()
    #: How long the jobs of products take, in seconds: while one runs, the service is known to answer.
    products: float = 0.05

    def __str__(self) -> str:
        return self.name


def case(name: str, *rules: Rule, **changes: Any) -> Case:
    return Case(name, rules, **changes)


def once(name: str, operation: str, fault: str, **params: Any) -> Case:
    """In doubt, or to be tried again: it falls on the first request, and everything is made all the same."""
    creates = None if operation == POLL else 2 * ROWS + 1
    return case(name, Rule(operation, fault, params, nth=(1,)), creates=creates)


def one(name: str, status: str, *rules: Rule, **changes: Any) -> Case:
    """One row of the three comes to this, the others are made."""
    return case(name, *rules, **{"statuses": sorted([status, *MADE[1:]]), "code": 3, **changes})


def stops(name: str, operation: str, fault: str, message: str, **params: Any) -> Case:
    """Halts the run: nothing new is begun, the outcome has the reason, and the next run resumes."""
    rule = Rule(operation, fault, params)
    return case(name, rule, statuses=[], code=1, message=message, bought=None, then=0)


#: A part of the prompt of the first row.
FIRST = "no. 1"
SOON = {"PATTERNMILL_CREATE_TIMEOUT": "PT1S", "PATTERNMILL_JOB_TIMEOUT": "PT1S"}
TRACED = {"requestId": "trace-4711", "selections": {"gift wrap": "none"}}
LOST = Rule(PATTERN, "answer_lost", matching=FIRST, each=1)
CASES = [
    # In doubt: the same request again.
    once("3 reset before", PATTERN, "reset_before"),
    once("5 executed, answer lost", PATTERN, "answer_lost"),
    once("5 product executed, answer lost", PRODUCT, "answer_lost"),
    once("6 late", PATTERN, "late", delay=0.9),
    once("8 cut short", PATTERN, "cut"),
    once("18 500 executed", PATTERN, "status", code=500, execute=True),
    once("23 no jobId", PATTERN, "edit", remove=["jobId"]),
    once("26 gzip bomb", PATTERN, "gzip_bomb", bytes=5 * 2**20),
    # A correct answer in a bad delivery: nothing is resent.
    case("10 stale keep-alive", Rule("*", "close_after")),
    case("connection reset as it is made", Rule("connect", "reset", nth=(2, 3))),
    # To be waited for.
    once("17 429 with seconds", PATTERN, "status", code=429, retry_after="1"),
    case("16 404 on a young job", Rule(POLL, "status", {"code": 404}, each=2), creates=2 * ROWS),
    once("17 429 on a poll", POLL, "status", code=429, retry_after="1"),
    once("5 poll without an answer", POLL, "answer_lost"),
    case("25 unknown status", Rule(POLL, "unknown_status", each=2), creates=2 * ROWS),
    case(
        "30 status runs backward",
        Rule(POLL, "edit", {"set": {"status": "succeeded", "result": None}}, each=1),
        Rule(POLL, "edit", {"set": {"status": "running", "result": None}}, each=1),
        creates=2 * ROWS,
    ),
    # Final for the item.
    one("12 422", "failed", Rule(PATTERN, "status", {"code": 422}, nth=(1,)), message="422", creates=5, bought=4),
    case(
        "27 job failed, may succeed again",
        Rule(PATTERN, "job_fails", {"message": "the loom broke"}, matching=FIRST, each=1),
        creates=2 * ROWS + 1,
        bought=2 * ROWS + 1,
    ),
    case(
        "27 every job reads failed once, and is made",
        Rule(
            POLL, "edit", {"set": {"status": "failed", "result": None, "error": {"message": "broke"}}},
            state="ended", each=1,
        ),
        creates=2 * ROWS,
    ),
    one(
        "27 job fails for ever",
        "failed",
        Rule(PATTERN, "job_fails", {"message": "the loom broke"}, matching=FIRST),
        message="the loom broke",
        creates=6,
        bought=6,
    ),
    one(
        "28 content refused",
        "failed",
        Rule(PATTERN, "job_fails", {"message": "violates the content policy"}, matching=FIRST),
        message="content policy",
        creates=5,
        bought=5,
        settings={"PATTERNMILL_FINAL_REASONS": '["content policy"]'},
    ),
    # The run stops, and the next one resumes.
    stops("13 401", PATTERN, "status", "API_KEY", code=401),
    stops("15 404", PATTERN, "status", "STUDIO_URL", code=404),
    stops("17 429 with 1e9", PATTERN, "status", "429", code=429, retry_after="1e9"),
    stops("20 301", PATTERN, "redirect", "STUDIO_URL", code=301),
    stops("13 401 on a poll", POLL, "status", "API_KEY", code=401),
    case(
        "41 a limit of the account, in words", Rule(PRODUCT, "status", {"code": 422, "body": {"error": "none left"}}),
        statuses=["failed"] * ROWS, code=1, message="run the same command again", creates=2 * ROWS, bought=ROWS, then=0,
    ),
    # The service contradicts itself.
    case(
        "24 jobId of another item", Rule(PATTERN, "other_job", first=2, times=1),
        statuses=[], code=1, message="another", bought=None,
    ),
    case(
        "24 poll answered with another job", Rule(POLL, "other_job", nth=(1,)),
        statuses=[], code=1, message="job", bought=None,
    ),
    case(
        "31 ID forgotten", Rule(PATTERN, "answer_lost", nth=(1,)), Rule(PATTERN, "forget", repeat=True),
        bought=2 * ROWS + 1,
    ),
    # Kept for a person, or for the next run.
    one(
        "16 404 on an old job", "held", Rule(POLL, "status", {"code": 404}, matching=FIRST),
        message="does not know the job", creates=5, bought=5, inject=("--young", "0.3"),
    ),
    one(
        "18 the same 500 for ever", "in_doubt", Rule(PATTERN, "status", {"code": 500}, matching=FIRST),
        bought=4, then=0, settings={"PATTERNMILL_CREATE_TIMEOUT": "PT1S"}, products=3.0,
    ),
    one(
        "29 job never ends", "waiting", Rule(PATTERN, "job_never_ends", matching=FIRST),
        creates=5, bought=5, settings=SOON,
    ),
    one(
        "22 poll that is unreadable for ever", "waiting",
        Rule(POLL, "body", {"text": "upstream is busy", "content_type": "text/plain"}, matching=FIRST),
        message="upstream is busy", creates=5, bought=5, settings=SOON,
    ),
    one(
        "25 unknown status for ever", "held", Rule(POLL, "unknown_status", matching=FIRST),
        message="finalizing", creates=5, bought=5, settings=SOON,
    ),
    one(
        "32 409 naming the job", "held", LOST,
        Rule(PATTERN, "status", {"code": 409, "body": {"jobId": "$jobId"}}, matching=FIRST, repeat=True),
        bought=5,
    ),
    # Answers that mean something else than they seem to.
    case(
        "44 another pattern named next to the product",
        Rule(POLL, "edit", {"result": {"patternId": "pattern_of_nobody"}}, matching="categoryId"),
        statuses=[], code=1, message="pattern_of_nobody", bought=None,
    ),
    case(
        "44 a failed job that names its product",
        Rule(
            POLL, "edit",
            {"set": {"status": "failed", "error": {"message": "broke"}, "result": {"productId": "product_1"}}},
            matching="categoryId", state="ended",
        ),
        statuses=["held"] * ROWS, code=3, message="names what it made: product_1", creates=2 * ROWS,
    ),
    case(
        "44 a trace number as request ID, and defaults among selections",
        *(Rule(one, "edit", {"set": TRACED}) for one in (PATTERN, PRODUCT, POLL)),
        creates=2 * ROWS,
    ),
    case(
        "44 a product's job that made a pattern",
        Rule(
            POLL, "edit", {"set": {"kind": "pattern", "result": {"patternId": "pattern_of_nobody"}}},
            matching="categoryId", state="ended",
        ),
        statuses=["held"] * ROWS, code=3, message="it made something else", creates=2 * ROWS,
    ),
    one(
        "46 404 of one item", "failed", Rule(PRODUCT, "status", {"code": 404}, matching=FIRST),
        message="404", bought=5,
    ),
    one(
        "46 302 of one item", "failed", Rule(PATTERN, "redirect", {"code": 302}, matching=FIRST),
        message="302", bought=4, then=0,
    ),
    one(
        "46 422 on a resend in doubt", "held", LOST,
        Rule(PATTERN, "status", {"code": 422}, matching=FIRST, repeat=True), message="422", bought=5,
    ),
]  # fmt: skip


def plan_of(case: Case) -> Plan:
    return Plan(rules=case.rules, patterns=Times(median=0.05), products=Times(median=case.products))


@pytest.fixture(scope="module")
def tries(
    request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[None]]]:
    """Try the cases that were asked for, a few at once, in the order in which their tests come."""
    asked = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    folder, hands = tmp_path_factory.mktemp("faults"), ThreadPoolExecutor(4)
    cases = {case.name: case for case in asked if isinstance(case, Case)}
    yield {
        name: hands.submit(tried, case, folder / str(n), zygote)
        for n, (name, case) in enumerate(cases.items())
    }
    hands.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_single_fault(case: Case, tries: dict[str, Future[None]]) -> None:
    """The outcome is that of the catalogue, and there is no purchase too many."""
    tries[case.name].result()


def tried(case: Case, folder: Path, zygote: Zygote) -> None:
    with Hostile(plan_of(case), folder) as service:
        room = Room(folder / "room", service, some_rows(ROWS, shared=0, goods=1), zygote, case.settings)
        ended = room.run(inject=(*HURRY, *case.inject))
        evidence = Evidence(room)
        check(case, ended, evidence)
        if case.then is not None:
            service.change(Plan(patterns=Times(median=0.05), products=Times(median=0.05)))
            again = room.run()
            assert again.code == case.then, again.output
            if case.then == 0:
                assert Evidence(room).faults() == []


def check(case: Case, ended: Ended, evidence: Evidence) -> None:
    assert ended.code == case.code, ended.output
    assert evidence.audit.unfired(plan_of(case)) == [], "the fault was never met"
    if case.statuses:
        assert sorted(evidence.statuses) == case.statuses
    texts = ended.output + "".join(row["error"] for row in evidence.results)
    assert case.message in texts, ended.output
    allowed = 1 if any(rule.fault == "forget" for rule in case.rules) else 0
    assert len(evidence.audit.double_purchases) <= allowed
    assert evidence.audit.strayed == 0, "a redirect was followed"
    assert evidence.audit.changed_bodies == ()
    creates = evidence.audit.count(PATTERN) + evidence.audit.count(PRODUCT)
    assert case.creates in {None, creates}
    assert case.bought in {None, len(evidence.audit.purchases)}
    if case.code == 0 and not allowed:
        assert evidence.faults() == []
