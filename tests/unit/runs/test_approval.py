"""Runs over plans that need an approval: refused without one, bound by one, whatever happens in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.catalog.row_checks import check_rows
from patternmill.engine.options import RunOptions
from patternmill.errors import ApprovalNeeded, ConfigurationError
from patternmill.ledger.records import Approval, SpendingLimits
from patternmill.planning.proposal import Proposal
from patternmill.profiles import EmbeddedProfile
from patternmill.runs import approval
from patternmill.runs.preview import preview
from patternmill.runs.run import Run
from patternmill.runs.safeguards import require_confirmation
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import Outcome, RowStatus, Verdict
from tests.integrity import problems

from .fake_studio import Crash, Create, FakeStudioApi, Service, failed
from .workshop import Ended, Workshop, drive, many, rows

FOUR = many(4)
#: A plan of more than three items waits, and costs 10 a pattern and 20 a product.
TERMS: dict[str, Any] = {"approve_above_items": 3, "pattern_price": 10, "product_price": 20}


def spec(shop: Workshop, **terms: Any) -> RunSpec:
    return shop.spec(**{**TERMS, **terms})


def proposal(shop: Workshop, catalog: str, **terms: Any) -> Proposal:
    its = spec(shop, **terms)
    checked = check_rows(shop.file(catalog), shop.service.offer, prompt_limit=100)
    return preview(its, checked).proposal


def approve(shop: Workshop, catalog: str, **terms: Any) -> Approval:
    return approval.approve(shop.settings, proposal(shop, catalog, **terms), "anna")


def run(shop: Workshop, catalog: str, **terms: Any) -> Ended:
    return shop.run(catalog, **{**TERMS, **terms})


def refused(shop: Workshop, catalog: str, **terms: Any) -> ApprovalNeeded:
    """The refusal; it is certain that nothing was requested, recorded, or left with a lease."""
    before, runs = len(shop.service.creates), known_runs(shop)
    with pytest.raises(ApprovalNeeded) as caught:
        run(shop, catalog, **terms)
    assert len(shop.service.creates) == before
    assert known_runs(shop) == runs
    return caught.value


def known_runs(shop: Workshop) -> int:
    with shop.ledger() as ledger:
        return len(ledger.runs.find())


def last_decision(shop: Workshop) -> Approval:
    """The last decision; the ledger agrees with itself."""
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []
        return [one for one in ledger.approvals.find() if one.verdict is not Verdict.WAITING][-1]


@pytest.mark.parametrize(
    ("terms", "waits"),
    [
        ({}, True),
        ({"approve_above_items": 8}, False),
        ({"approve_above_items": 7}, True),
        ({"approve_above_items": None}, False),
        # Eight items for 120, at worst 240.
        ({"approve_above_items": None, "approve_above_cost": 240}, False),
        ({"approve_above_items": None, "approve_above_cost": 239}, True),
        ({"approve_above_items": 8, "approve_above_cost": 239}, True),
    ],
)
def test_plan_above_either_limit_needs_an_approval(
    shop: Workshop, terms: dict[str, Any], waits: bool
) -> None:
    """Items by their number, money by its worst case; the preview agrees with the run."""
    found = proposal(shop, FOUR, **terms)
    if waits:
        with pytest.raises(ApprovalNeeded):
            approval.current_approval(spec(shop, **terms).settings, found)
        assert found.digest[:12] in refused(shop, FOUR, **terms).remedy
    else:
        assert approval.current_approval(spec(shop, **terms).settings, found) is None
        assert run(shop, FOUR, **terms).outcome is Outcome.COMPLETED


def test_approved_plan_is_made(shop: Workshop) -> None:
    """All of it, and the record of the run names the approver."""
    decided = approve(shop, FOUR)
    ended = run(shop, FOUR)
    assert ended.outcome is Outcome.COMPLETED
    assert ended.ending.record.options["approval"]["who"] == "anna"
    assert ended.ending.record.options["approval"]["digest"] == decided.digest
    assert (last_decision(shop).purchases, last_decision(shop).amount) == (8, 120)
    assert run(shop, FOUR).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("moment", [1, 3, 6])
def test_approval_holds_after_a_crash(shop: Workshop, service: Service, moment: int) -> None:
    """What is left is another plan under the same approval: in all no more is bought than was approved."""
    approved = approve(shop, FOUR)
    received: list[Create] = []

    def crash(create: Create) -> None:
        received.append(create)
        if len(received) == moment:
            raise Crash

    service.at_create = crash
    shop.crash(FOUR, **TERMS)
    service.at_create = lambda create: None
    assert run(shop, FOUR).outcome is Outcome.COMPLETED
    assert len(service.bought) == approved.items
    assert last_decision(shop).id == approved.id
    assert last_decision(shop).purchases == approved.items


def test_approval_in_another_currency_covers_nothing(shop: Workshop) -> None:
    """Nor does its digest, or its limit of the cost: 120 of one currency are not 120 of another one."""
    first = approve(shop, FOUR)
    euros: dict[str, Any] = {"limits": SpendingLimits(currency="EUR")}
    assert first.digest[:12] not in refused(shop, FOUR, **euros).remedy
    approve(shop, FOUR, **euros)
    assert run(shop, FOUR, **euros).outcome is Outcome.COMPLETED
    assert (last_decision(shop).currency, last_decision(shop).amount) == ("EUR", 120)


def test_limits_of_a_crashed_run_hold_for_what_is_left_of_it(shop: Workshop, service: Service) -> None:
    """Whoever resumes it has none of its own: two more rows, which its limits did not cover, wait for a person."""
    service.at_create = _crash_at_the_first
    shop.crash(many(1), **TERMS)
    service.at_create = lambda create: None
    assert approval.may_need_approval(spec(shop, **LOOSE))
    refused(shop, many(3), **LOOSE)
    assert run(shop, many(1), **LOOSE).outcome is Outcome.COMPLETED
    assert run(shop, many(3), **LOOSE).outcome is Outcome.COMPLETED


def test_retries_use_the_approval_up(shop: Workshop, service: Service) -> None:
    """Rows that fail repeatedly are bought under the same approval until it is used up."""
    service.on_follow["S-000"] = [failed()] * 40
    approve(shop, FOUR)
    run(shop, FOUR)
    for _ in range(7):
        try:
            run(shop, FOUR, retry=lambda row: True)
        except ApprovalNeeded:
            break
    else:
        pytest.fail("it was never used up")
    last = last_decision(shop)
    assert last.amount <= last.worst
    assert last.purchases <= last.most_purchases


def test_begun_items_are_resumed_without_an_approval(shop: Workshop, service: Service) -> None:
    """It is paid for."""
    received: list[Create] = []

    def crash(create: Create) -> None:
        received.append(create)
        raise Crash

    service.at_create = crash
    shop.crash(rows(("H-1", "herons")))
    service.at_create = lambda create: None
    terms = {"approve_above_items": 0}
    # The pattern is under way; its product would be bought.
    refused(shop, rows(("H-1", "herons")), **terms)
    assert run(shop, rows(("H-1", "herons"))).outcome is Outcome.COMPLETED
    assert run(shop, rows(("H-1", "herons")), **terms).outcome is Outcome.COMPLETED


LOOSE: dict[str, Any] = {"approve_above_items": None}


def reject(shop: Workshop, catalog: str) -> Approval:
    return approval.approve(shop.settings, proposal(shop, catalog), "bert", Verdict.REJECTED, "too dear")


PLANS = {
    "one": rows(("S-000", "prompt 000")),
    "four": FOUR,
    "five": many(5),
    "six": many(6),
    "new": rows(("N-1", "new"), ("N-2", "newer")),
}
#: Decisions, questions and runs of plans, in their order; the runs have no limits of their own.
SCRIPTS = {
    "an approval is of one plan": "approve four, limited five, made four",
    "a rejection binds the whole, each part, and what nobody has seen with it; other rows are free": (
        "reject four, refused four, refused one, refused five, made new"
    ),
    "it outlasts decisions on other plans, until an approval covers its items": (
        "reject four, approve new, refused four, refused one, approve four, made four"
    ),
    "the last decision counts": "approve four, reject five, refused four",
    "a question binds as a rejection does": (
        "ask four, refused four, refused one, refused five, made new, approve four, made four"
    ),
    "a question takes no approval back": "approve four, crash four, ask five, made four, refused five",
    "nor a rejection": "reject six, ask six, refused six",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_decisions(shop: Workshop, service: Service, name: str) -> None:
    for step in SCRIPTS[name].split(", "):
        verb, plan = step.split()
        match verb:
            case "approve":
                approve(shop, PLANS[plan])
            case "reject":
                reject(shop, PLANS[plan])
            case "ask":
                approval.request_approval(shop.settings, proposal(shop, PLANS[plan]), f"flow-run-{plan}")
            case "crash":
                service.at_create = _crash_at_the_first
                shop.crash(PLANS[plan], **TERMS)
                service.at_create = lambda create: None
            case "limited":
                refused(shop, PLANS[plan])
            case "refused":
                refused(shop, PLANS[plan], **LOOSE)
            case _:
                assert run(shop, PLANS[plan], **LOOSE).outcome is Outcome.COMPLETED, step


def _crash_at_the_first(create: Create) -> None:
    raise Crash


def test_catalog_with_a_decision_may_need_an_approval(shop: Workshop) -> None:
    """Whatever the limits are: whether a plan is looked at before its run begins."""
    assert approval.may_need_approval(spec(shop))
    assert not approval.may_need_approval(spec(shop, **LOOSE))
    reject(shop, FOUR)
    assert approval.may_need_approval(spec(shop, **LOOSE))


def test_rejected_run_is_on_record(shop: Workshop, service: Service) -> None:
    """Cancelled, with author and reason, every row not started; the lease is released."""
    decided = approval.approve(shop.settings, proposal(shop, FOUR), "bert", Verdict.REJECTED, "too dear.")

    async def main() -> Run:
        api = FakeStudioApi(service)
        checked = check_rows(shop.file(FOUR), service.offer, prompt_limit=100)
        begun = await Run.begin(spec(shop), checked, api, refused=decided)  # type: ignore[arg-type]
        await drive(begun)
        await begun.end()
        return begun

    ending = asyncio.run(asyncio.wait_for(main(), 30)).ending
    assert ending is not None
    assert (ending.outcome, ending.rows) == (Outcome.CANCELLED, {RowStatus.NOT_STARTED: 4})
    assert "rejected by bert: too dear. Nothing was bought." in (ending.record.reason or "")
    assert service.creates == []
    assert known_runs(shop) == 1
    approve(shop, FOUR)
    assert run(shop, FOUR).outcome is Outcome.COMPLETED


def test_large_purchase_is_confirmed_by_the_name_of_the_environment(shop: Workshop) -> None:
    """Whatever it is called; not at the embedded studio, which sells nothing, nor by another environment's name."""
    checked = check_rows(shop.file(FOUR), shop.service.offer, prompt_limit=100)
    plan, settings = preview(spec(shop), checked).plan, shop.settings.model_copy(update={"confirm_above": 1})
    for confirm in (None, "production", "duplicates"):
        with pytest.raises(ConfigurationError, match="bought in staging") as caught:
            require_confirmation(settings.model_copy(update={"confirm": confirm}), plan)
        assert "--confirm staging" in caught.value.remedy
    require_confirmation(settings.model_copy(update={"confirm": "duplicates,staging"}), plan)
    require_confirmation(settings.at(EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("k"))), plan)


# -- requests of flow runs


def test_flow_run_requests_one_approval_and_gets_a_decision(shop: Workshop) -> None:
    """Requested again by the same run, the new request takes the place of the first."""
    its, found = spec(shop), proposal(shop, FOUR)
    first = approval.request_approval(its.settings, found, "flow-run-1")
    again = approval.request_approval(its.settings, found, "flow-run-1")
    assert again.id != first.id
    assert approval.pending_request(its.settings, "flow-run-1") == again
    decided = approval.record_decision(its.settings, again, found, Verdict.APPROVED, "anna", None)
    assert decided is not None and decided.verdict is Verdict.APPROVED
    assert approval.pending_request(its.settings, "flow-run-1") is None
    assert approval.current_approval(its.settings, found) == decided


def test_waiting_plan_is_named(shop: Workshop) -> None:
    approval.request_approval(shop.settings, proposal(shop, FOUR), "flow-run-1")
    assert approval.may_need_approval(spec(shop, **LOOSE))
    said = refused(shop, FOUR, **LOOSE).message
    assert f"8 items of it: plan {proposal(shop, FOUR).digest[:12]} waits for an approval." in said


def test_decision_never_costs_more_than_was_shown(shop: Workshop) -> None:
    """The prices went up while it waited."""
    question = approval.request_approval(shop.settings, proposal(shop, FOUR), "flow-run-1")
    dearer = {"product_price": 200}
    decided = approval.record_decision(
        shop.settings, question, proposal(shop, FOUR, **dearer), Verdict.APPROVED, "anna", None
    )
    assert decided is not None and decided.worst == 240


def test_decision_on_another_plan_does_not_count(shop: Workshop) -> None:
    """Rows that the person never saw need a request of their own."""
    question = approval.request_approval(shop.settings, proposal(shop, FOUR), "flow-run-1")
    five = proposal(shop, many(5))
    assert approval.record_decision(shop.settings, question, five, Verdict.APPROVED, "anna", None) is None
    with pytest.raises(ApprovalNeeded):
        approval.current_approval(spec(shop).settings, five)
    assert approval.pending_request(shop.settings, "flow-run-1") == question


def test_approval_limit_of_money_needs_prices() -> None:
    """Without them it would never be reached."""
    settings = Settings(approve_above_cost=100)
    with pytest.raises(ConfigurationError, match="no prices"):
        RunOptions.from_settings(settings)
