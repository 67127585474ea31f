"""Runs over plans that need an approval: refused without one, bound by one, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.errors import ApprovalNeeded, ConfigurationError, Overtaken
from patternmill.ledger.records import Approval, SpendingLimits
from patternmill.planning.proposal import Proposal
from patternmill.profiles import EmbeddedProfile
from patternmill.runs import approval
from patternmill.runs.safeguards import require_confirmation
from patternmill.states import Outcome, RowStatus, Verdict
from tests.hostile.in_process import Service, failed
from tests.integrity import problems

from .workshop import Ended, Workshop, many, rows

#: A plan of more than three items waits, and costs 10 a pattern and 20 a product.
TERMS: dict[str, Any] = {"approve_above_items": 3, "pattern_price": 10, "product_price": 20}
LOOSE: dict[str, Any] = {"approve_above_items": None}
FOUR = many(4)
PLANS = {
    **{name: many(count) for name, count in (("one", 1), ("four", 4), ("five", 5), ("six", 6))},
    "new": rows(("N-1", "new"), ("N-2", "newer")),
}


def proposal(shop: Workshop, catalog: str, **terms: Any) -> Proposal:
    return shop.previewed(catalog, **TERMS | terms).proposal


def approve(shop: Workshop, catalog: str, **terms: Any) -> Approval:
    return approval.approve(shop.settings, proposal(shop, catalog, **terms), "anna")


def ask(shop: Workshop, plan: str, flow_run: str) -> Approval:
    return approval.request_approval(shop.settings, proposal(shop, PLANS[plan]), flow_run)


def decide(shop: Workshop, question: Approval, plan: Proposal, verdict: Verdict) -> Approval | None:
    return approval.record_decision(shop.settings, question, plan, verdict, "bert", "too dear.")


def reject(shop: Workshop, plan: str) -> Approval:
    question = ask(shop, plan, "flow-run-rejected")
    decided = decide(shop, question, proposal(shop, PLANS[plan]), Verdict.REJECTED)
    assert decided is not None
    return decided


def run(shop: Workshop, catalog: str, **terms: Any) -> Ended:
    return shop.run(catalog, **TERMS | terms)


def refused(shop: Workshop, catalog: str, **terms: Any) -> ApprovalNeeded:
    """Return the refusal, having checked that nothing was requested, recorded, or left with a lease."""
    before, runs = len(shop.service.creates), known_runs(shop)
    with pytest.raises(ApprovalNeeded) as caught:
        run(shop, catalog, **terms)
    assert (len(shop.service.creates), known_runs(shop)) == (before, runs)
    return caught.value


def known_runs(shop: Workshop) -> int:
    with shop.ledger() as ledger:
        return len(ledger.runs.find())


def last_decision(shop: Workshop) -> Approval:
    """Return the last decision, having checked that the ledger agrees with itself."""
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []
        return [plan for plan in ledger.approvals.find() if plan.verdict is not Verdict.WAITING][-1]


@pytest.mark.parametrize(
    ("terms", "waits"),
    [
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
    plan, settings = proposal(shop, FOUR, **terms), shop.spec(**TERMS | terms).settings
    if not waits:
        assert approval.current_approval(settings, plan) is None
        assert run(shop, FOUR, **terms).outcome is Outcome.COMPLETED
        return
    with pytest.raises(ApprovalNeeded):
        approval.current_approval(settings, plan)
    assert plan.digest[:12] in refused(shop, FOUR, **terms).remedy


def test_approved_plan_is_made_and_the_approval_holds_after_a_crash(shop: Workshop, service: Service) -> None:
    """What is left is another plan under the same approval; the record of the run names who gave it."""
    approved = approve(shop, FOUR)
    shop.crash_at(3, FOUR, **TERMS)
    ended = run(shop, FOUR)
    assert ended.outcome is Outcome.COMPLETED
    assert ended.ending.record.options["approval"]["who"] == "anna"
    assert ended.ending.record.options["approval"]["digest"] == approved.digest
    decided = last_decision(shop)
    assert (decided.id, decided.purchases, decided.amount) == (approved.id, approved.items, 120)
    assert len(service.bought) == 8
    assert run(shop, FOUR).outcome is Outcome.COMPLETED


def test_approval_in_another_currency_covers_nothing(shop: Workshop) -> None:
    """Nor does its digest, or its limit of the cost: 120 of one currency are not 120 of another one."""
    first = approve(shop, FOUR)
    euros: dict[str, Any] = {"limits": SpendingLimits(currency="EUR")}
    assert first.digest[:12] not in refused(shop, FOUR, **euros).remedy
    approve(shop, FOUR, **euros)
    assert run(shop, FOUR, **euros).outcome is Outcome.COMPLETED
    assert (last_decision(shop).currency, last_decision(shop).amount) == ("EUR", 120)


def test_retries_use_the_approval_up(shop: Workshop, service: Service) -> None:
    """Rows that fail repeatedly are bought under the same approval until it is used up."""
    service.on_follow["S-000"] = [failed()] * 40
    approve(shop, FOUR)
    run(shop, FOUR)
    with pytest.raises(ApprovalNeeded):
        for _ in range(7):
            run(shop, FOUR, retries=True)
    last = last_decision(shop)
    assert last.amount <= last.worst
    assert last.purchases <= last.most_purchases


def test_begun_items_are_resumed_without_an_approval(shop: Workshop) -> None:
    """It is paid for; its product would be bought."""
    shop.crash_at(1, PLANS["one"])
    refused(shop, PLANS["one"], approve_above_items=0)
    for limit in (3, 0):
        assert run(shop, PLANS["one"], approve_above_items=limit).outcome is Outcome.COMPLETED


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
def test_decisions(shop: Workshop, name: str) -> None:
    for step in SCRIPTS[name].split(", "):
        verb, plan = step.split()
        match verb:
            case "approve":
                approve(shop, PLANS[plan])
            case "reject":
                reject(shop, plan)
            case "ask":
                ask(shop, plan, f"flow-run-{plan}")
            case "crash":
                shop.crash_at(1, PLANS[plan], **TERMS)
            case "limited" | "refused":
                refused(shop, PLANS[plan], **(LOOSE if verb == "refused" else {}))
            case _:
                assert run(shop, PLANS[plan], **LOOSE).outcome is Outcome.COMPLETED, step


def test_rejected_run_is_on_record(shop: Workshop, service: Service) -> None:
    """Cancelled, with author and reason, every row not started; it ends no question of a newer flow run."""
    rejected, newer = reject(shop, "four"), ask(shop, "five", "flow-run-2")

    ending = run(shop, FOUR, refused=rejected).ending
    assert (ending.outcome, ending.rows) == (Outcome.CANCELLED, {RowStatus.NOT_STARTED: 4})
    assert "rejected by bert: too dear. Nothing was bought." in (ending.record.reason or "")
    assert (service.creates, known_runs(shop)) == ([], 1)
    assert approval.pending_request(shop.settings, "flow-run-2") == newer
    approve(shop, FOUR)
    assert run(shop, FOUR).outcome is Outcome.COMPLETED


def test_large_purchase_is_confirmed_by_the_name_of_the_environment(shop: Workshop) -> None:
    """Whatever it is called; not at the embedded studio, which sells nothing, nor by another environment's name."""
    plan, settings = shop.previewed(FOUR).plan, shop.settings.model_copy(update={"confirm_above": 1})
    for confirm in (None, "production", "duplicates"):
        with pytest.raises(ConfigurationError, match="bought in staging") as caught:
            require_confirmation(settings.model_copy(update={"confirm": confirm}), plan)
        assert "--confirm staging" in caught.value.remedy
    require_confirmation(settings.model_copy(update={"confirm": "duplicates,staging"}), plan)
    require_confirmation(settings.at(EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("k"))), plan)


# -- requests of flow runs


def test_flow_run_requests_one_approval_and_gets_a_decision(shop: Workshop) -> None:
    """Requested again by the same run, the new request takes the place of the first."""
    first, question = ask(shop, "four", "flow-run-1"), ask(shop, "four", "flow-run-1")
    assert question.id != first.id
    plan = proposal(shop, FOUR)
    assert f"plan {plan.digest[:12]} waits for an approval" in refused(shop, FOUR, **LOOSE).message
    decided = decide(shop, question, plan, Verdict.APPROVED)
    assert decided is not None and decided.verdict is Verdict.APPROVED
    assert approval.pending_request(shop.settings, "flow-run-1") is None
    assert approval.current_approval(shop.spec(**TERMS).settings, plan) == decided


def test_decision_is_about_what_was_shown(shop: Workshop) -> None:
    """It costs no more though the prices went up while it waited; other rows need a request of their own."""
    question, five = ask(shop, "four", "flow-run-1"), proposal(shop, PLANS["five"])
    assert decide(shop, question, five, Verdict.APPROVED) is None
    with pytest.raises(ApprovalNeeded):
        approval.current_approval(shop.spec(**TERMS).settings, five)
    assert approval.pending_request(shop.settings, "flow-run-1") == question
    decided = decide(shop, question, proposal(shop, FOUR, product_price=200), Verdict.APPROVED)
    assert decided is not None and decided.worst == 240


def test_newer_run_or_question_ends_a_waiting_one(shop: Workshop) -> None:
    """Its answer no longer counts, its items still wait for an approval, the newer one is named; a decision stays."""
    decided = approve(shop, PLANS["new"])
    ask(shop, "four", "flow-run-1")
    question = ask(shop, "five", "flow-run-2")
    with pytest.raises(Overtaken, match="by flow run flow-run-2"):
        approval.pending_request(shop.settings, "flow-run-1")
    assert approval.pending_request(shop.settings, "flow-run-2") == question
    newer = run(shop, PLANS["new"], **LOOSE).ending.record.run_id
    with pytest.raises(Overtaken, match=f"was overtaken by run {newer}"):
        approval.pending_request(shop.settings, "flow-run-2")
    for verdict in (Verdict.APPROVED, Verdict.REJECTED):
        with pytest.raises(Overtaken, match=newer):
            decide(shop, question, proposal(shop, PLANS["five"]), verdict)
    assert f"was not approved before run {newer} began" in refused(shop, PLANS["five"], **LOOSE).message
    approve(shop, FOUR)
    assert run(shop, FOUR).outcome is Outcome.COMPLETED
    with shop.ledger() as ledger:
        first = ledger.approvals.get(decided.id)
    assert first is not None and first.verdict is Verdict.APPROVED
