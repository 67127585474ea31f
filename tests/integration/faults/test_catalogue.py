"""Each fault of the catalogue alone, through real sockets: what it must lead to, and what it must never cost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Ended, Room, ServiceInThread, Zygote, some_rows
from tests.hostile import Plan, Rule, Times

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
    options: tuple[str, ...] = ()
    first_pause: str = "0.05"
    inject: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def once(operation: str, fault: str, name: str = "", /, **params: Any) -> Case:
    """In doubt, or to be tried again: it falls on the first of the creates, and everything is made all the same."""
    rule = Rule(operation, fault, params, nth=(1,))
    creates = 2 * ROWS + (operation != POLL)
    return Case(name or f"{operation} {fault}", (rule,), creates=creates)


def stops(operation: str, fault: str, message: str, /, *, code: int = 1, **changes: Any) -> Case:
    """Halts the run: nothing new is begun, the outcome has the reason, and the next run resumes."""
    params = changes.pop("params", {})
    return Case(
        f"{operation} {fault} {params}",
        (Rule(operation, fault, params),),
        message=message,
        code=code,
        **{"statuses": [], "bought": None, "then": 0, **changes},
    )


DOUBT = [
    *(
        once(create, fault, f"{create} {name}", **params)
        for name, fault, params in (
            ("3 reset before", "reset_before", {}),
            ("4 reset after", "answer_lost", {"execute": False}),
            ("5 executed, answer lost", "answer_lost", {}),
            ("6 silence", "silence", {}),
            ("6 late", "late", {"delay": 0.9}),
            ("7 drip", "drip", {"interval": 0.1}),
            ("8 cut short", "cut", {}),
            ("11 proxy page", "proxy_page", {}),
            ("18 500 executed", "status", {"code": 500, "execute": True}),
            ("19 504", "status", {"code": 504, "execute": True}),
            ("21 204", "no_content", {}),
            ("22 html", "html", {}),
            ("22 half a JSON", "half_json", {}),
            ("23 no jobId", "edit", {"remove": ["jobId"]}),
            ("23 list", "body", {"json": [1, 2]}),
            ("26 huge", "huge", {"bytes": 8 * 2**20}),
            ("26 gzip bomb", "gzip_bomb", {"bytes": 5 * 2**20}),
            ("26 deep", "deep", {}),
        )
        # A product is sent as a pattern is: the kinds of doubt are enough.
        for create in (
            (PATTERN, PRODUCT)
            if name in ("3 reset before", "5 executed, answer lost", "22 html")
            else (PATTERN,)
        )
    ),
]

#: A correct answer in a bad delivery or an odd form: nothing is resent.
HARMLESS = [
    Case("10 stale keep-alive", (Rule("*", "close_after"),)),
    Case("connection reset as it is made", (Rule("connect", "reset", nth=(2, 3)),), creates=None),
    Case("connection taken up slowly", (Rule("connect", "slow", {"delay": 0.3}, nth=(2, 3)),)),
]

WAITS = [
    *(
        Case(
            f"17 429 {form}",
            (Rule(PATTERN, "status", {"code": 429, "retry_after": form}, nth=(1,)),),
            creates=2 * ROWS + 1,
        )
        for form in ("1", None, "soon")
    ),
    Case("16 404 on a young job", (Rule(POLL, "status", {"code": 404}, each=2),), creates=2 * ROWS),
    Case(
        "17 429 on a poll",
        (Rule(POLL, "status", {"code": 429, "retry_after": "1"}, nth=(1,)),),
        creates=2 * ROWS,
    ),
    *(
        Case(f"poll {fault} {params}", (Rule(POLL, fault, params, nth=(1, 3, 5)),), creates=2 * ROWS)
        for fault, params in (
            ("answer_lost", {}),
            ("status", {"code": 500}),
            ("html", {}),
            ("silence", {}),
            ("edit", {"set": {"result": None}}),
            ("huge", {"bytes": 8 * 2**20}),
        )
    ),
    Case(
        "25 unknown status",
        (Rule(POLL, "unknown_status", {"word": "finalizing"}, each=2),),
        creates=2 * ROWS,
    ),
    Case(
        "30 status runs backward",
        (
            Rule(POLL, "edit", {"set": {"status": "succeeded", "result": None}}, each=1),
            Rule(POLL, "edit", {"set": {"status": "running", "result": None}}, each=1),
        ),
        creates=2 * ROWS,
    ),
]

FINAL = [
    *(
        Case(
            f"12 422 on {create}",
            (Rule(create, "status", {"code": 422, "body": {"error": {"message": "too ugly"}}}, nth=(1,)),),
            sorted(["failed", "succeeded", "succeeded"]),
            3,
            "too ugly",
            creates=creates,
            bought=bought,
        )
        for create, creates, bought in ((PATTERN, 5, 4), (PRODUCT, 6, 5))
    ),
    Case(
        "27 job failed, may succeed again",
        (Rule(PATTERN, "job_fails", {"message": "the loom broke"}, matching="no. 1", each=1),),
        creates=2 * ROWS + 1,
        bought=2 * ROWS + 1,
    ),
    Case(
        "27 job fails for ever",
        (Rule(PATTERN, "job_fails", {"message": "the loom broke"}, matching="no. 1"),),
        sorted(["failed", "succeeded", "succeeded"]),
        3,
        "the loom broke",
        creates=6,
        bought=6,
    ),
    Case(
        "28 content refused",
        (Rule(PATTERN, "job_fails", {"message": "violates the content policy"}, matching="no. 1"),),
        sorted(["failed", "succeeded", "succeeded"]),
        3,
        "content policy",
        creates=5,
        bought=5,
        settings={"PATTERNMILL_FINAL_REASONS": '["content policy"]'},
    ),
]

PAUSES = [
    stops(PATTERN, "status", "API_KEY", params={"code": 401}),
    stops(PATTERN, "status", "402", params={"code": 402}),
    stops(PATTERN, "status", "STUDIO_URL", params={"code": 404}),
    stops(PATTERN, "status", "429", params={"code": 429, "retry_after": "1e9"}),
    stops(PRODUCT, "status", "API_KEY", params={"code": 401}),
    stops(POLL, "status", "API_KEY", params={"code": 401}),
    stops(PATTERN, "redirect", "STUDIO_URL", params={"code": 301}),
    stops(POLL, "redirect", "STUDIO_URL", params={"code": 307}),
]

CONFLICTS = [
    Case(
        "24 jobId of another item",
        (Rule(PATTERN, "other_job", first=2, times=1),),
        [],
        1,
        "another",
        bought=None,
    ),
    Case(
        "31 ID forgotten",
        (Rule(PATTERN, "answer_lost", nth=(1,)), Rule(PATTERN, "forget", repeat=True)),
        MADE,
        0,
        bought=2 * ROWS + 1,
    ),
    Case("poll answered with another job", (Rule(POLL, "other_job", nth=(1,)),), [], 1, "job", bought=None),
]

KEPT = [
    Case(
        "16 404 on an old job",
        (Rule(POLL, "status", {"code": 404}, matching="no. 1"),),
        sorted(["held", "succeeded", "succeeded"]),
        3,
        "does not know the job",
        creates=5,
        bought=5,
        inject=("--young", "0.3"),
    ),
    Case(
        "18 the same 500 for ever",
        (Rule(PATTERN, "status", {"code": 500}, matching="no. 1"),),
        sorted(["in_doubt", "succeeded", "succeeded"]),
        3,
        bought=4,
        then=0,
        settings={"PATTERNMILL_CREATE_TIMEOUT": "PT1S"},
    ),
    Case(
        "23 never a jobId",
        (Rule(PATTERN, "edit", {"remove": ["jobId"]}, matching="no. 1"),),
        sorted(["in_doubt", "succeeded", "succeeded"]),
        3,
        bought=5,
        then=0,
        settings={"PATTERNMILL_CREATE_TIMEOUT": "PT1S"},
    ),
    Case(
        "29 job never ends",
        (Rule(PATTERN, "job_never_ends", matching="no. 1"),),
        sorted(["succeeded", "succeeded", "waiting"]),
        3,
        creates=5,
        bought=5,
        settings={"PATTERNMILL_JOB_TIMEOUT": "PT1S"},
    ),
    Case(
        "25 unknown status for ever",
        (Rule(POLL, "unknown_status", {"word": "finalizing"}, matching="no. 1"),),
        ["held", "succeeded", "succeeded"],
        3,
        "finalizing",
        creates=5,
        bought=5,
        settings={"PATTERNMILL_JOB_TIMEOUT": "PT1S"},
    ),
    Case(
        "32 repeated ID answered 409",
        (
            Rule(PATTERN, "answer_lost", matching="no. 1", each=1),
            Rule(PATTERN, "status", {"code": 409}, matching="no. 1", repeat=True),
        ),
        sorted(["held", "succeeded", "succeeded"]),
        3,
        bought=5,
    ),
    Case(
        "32 409 naming the job",
        (
            Rule(PATTERN, "answer_lost", matching="no. 1", each=1),
            Rule(
                PATTERN, "status", {"code": 409, "body": {"jobId": "$jobId"}}, matching="no. 1", repeat=True
            ),
        ),
        sorted(["held", "succeeded", "succeeded"]),
        3,
        bought=5,
    ),
]

ONE_FAILED = sorted(["failed", "succeeded", "succeeded"])
ONE_HELD = sorted(["held", "succeeded", "succeeded"])

#: Answers that mean something else than they seem to.
MEANING = [
    Case(
        "44 a pattern named next to the product",
        (Rule(POLL, "edit", {"result": {"patternId": "pattern_of_nobody"}}, matching="categoryId"),),
        creates=2 * ROWS,
    ),
    Case(
        "44 a product's job that made a pattern",
        (
            Rule(
                POLL,
                "edit",
                {"set": {"kind": "pattern", "result": {"patternId": "pattern_of_nobody"}}},
                matching="categoryId",
                state="ended",
            ),
        ),
        ["held"] * ROWS,
        3,
        "made something else",
        creates=2 * ROWS,
    ),
    *(
        Case(
            f"46 {operation} {fault} {code} of one item",
            (Rule(operation, fault, {"code": code}, matching="no. 1"),),
            ONE_FAILED,
            3,
            str(code),
            bought=bought,
            then=then,
        )
        for operation, bought in ((PATTERN, 4), (PRODUCT, 5))
        for fault, code, then in (("status", 404, None), ("status", 410, None), ("redirect", 302, 0))
    ),
    *(
        Case(
            f"46 {operation} {fault} {code} on a resend in doubt",
            (
                Rule(operation, "answer_lost", matching="no. 1", each=1),
                Rule(operation, fault, {"code": code}, matching="no. 1", repeat=True),
            ),
            ONE_HELD,
            3,
            str(code),
            bought=bought,
        )
        for operation, bought, fault, code in (
            (PATTERN, 5, "status", 422),
            (PATTERN, 5, "redirect", 302),
            (PRODUCT, 6, "status", 404),
        )
    ),
]

CASES = [*DOUBT, *HARMLESS, *WAITS, *FINAL, *PAUSES, *CONFLICTS, *KEPT, *MEANING]


def room_for(folder: Path, service: ServiceInThread, zygote: Zygote, case: Case) -> Room:
    return Room(folder / "room", service, some_rows(ROWS, shared=0, goods=1), zygote, case.settings)


def plan_of(case: Case) -> Plan:
    return Plan(rules=case.rules, patterns=Times(median=0.05), products=Times(median=0.05))


class Ahead:
    """Tries the cases that were asked for, a few at once, in the order in which their tests come."""

    def __init__(self, folder: Path, zygote: Zygote, cases: list[Case]) -> None:
        self._hands = ThreadPoolExecutor(4)
        self._tried = {
            case.name: self._hands.submit(tried, case, folder / str(number), zygote)
            for number, case in enumerate(cases)
        }

    def result(self, case: Case) -> None:
        """Raises what the try raised."""
        self._tried[case.name].result()

    def close(self) -> None:
        self._hands.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def ahead(
    request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ahead]:
    asked = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    cases = [case for case in asked if isinstance(case, Case)]
    ahead = Ahead(tmp_path_factory.mktemp("faults"), zygote, cases)
    yield ahead
    ahead.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_single_fault(case: Case, ahead: Ahead) -> None:
    """The outcome is that of the catalogue, and there is no purchase too many."""
    ahead.result(case)


def test_case_names_are_unique() -> None:
    """A second case of the same name would not be run."""
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


def tried(case: Case, folder: Path, zygote: Zygote) -> None:
    with ServiceInThread(plan_of(case), folder) as service:
        room = room_for(folder, service, zygote, case)
        ended = room.run(inject=("--first-pause", case.first_pause, *case.inject))
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
