"""A person's approval of a plan: requested, decided, and required in the transaction that begins the run."""

from __future__ import annotations

import secrets
from datetime import timedelta

from patternmill.engine.progress import HaltReason
from patternmill.errors import ApprovalNeeded
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, ledger_if_any, open_ledger
from patternmill.ledger.records import Approval, RunRecord
from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan
from patternmill.planning.proposal import Proposal, proposal_of
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import Outcome, Verdict
from patternmill.text import joined, plural

#: Shorter beginnings of a digest are not accepted in its place.
LEAST_DIGEST = 12
#: In the options of a run's record: above how many items, and which cost in which currency, its plan was to wait for an
#: approval.
APPROVE_ABOVE = "approve_above"
#: How long a flow run waits for a person's decision.
APPROVAL_TIME = timedelta(hours=24)


def propose(spec: RunSpec, plan: Plan) -> Proposal:
    options = spec.options
    return proposal_of(plan, options.prices, options.attempts, options.currency)


def may_need_approval(spec: RunSpec) -> bool:
    """Whether a plan of this catalog is worth a look before its run begins. Writes nothing."""
    scope = spec.scope
    with ledger_if_any(spec.settings) as ledger:
        if _limits(ledger, spec.settings, scope) != (None, None):
            return True
        return ledger is not None and bool(ledger.approvals.find(scope.environment, scope.catalog))


def _limits(ledger: Ledger | None, settings: Settings, scope: Scope) -> tuple[int | None, int | None]:
    """Above how many items, and which cost, a plan waits: the lowest of its own limits and those of crashed runs.

    What is left of a crashed run is under its limits too, wherever it is resumed.
    """
    limits = [(settings.approve_above_items, settings.approve_above_cost)]
    if ledger is not None:
        crashed = ledger.runs.without_end(scope.environment, scope.catalog)
        on_record = [record.options[APPROVE_ABOVE] for record in crashed if APPROVE_ABOVE in record.options]
        # Of a limit in another currency, nothing is known to be below it.
        limits += [
            (items, cost if cost is None or currency == settings.currency else 0)
            for items, cost, currency in on_record
        ]
    items, cost = (
        min((one for one in each if one is not None), default=None) for each in zip(*limits, strict=True)
    )
    return items, cost


def current_approval(settings: Settings, proposal: Proposal) -> Approval | None:
    """The approval that a plan would rest on just now. Raises ApprovalNeeded. Writes nothing."""
    with ledger_if_any(settings) as ledger:
        return require_approval(ledger, settings, proposal)


def require_approval(ledger: Ledger | None, settings: Settings, proposal: Proposal) -> Approval | None:
    """The approval that a plan rests on; None where it needs none. Raises ApprovalNeeded.

    The last approval of the catalog covers every plan that makes only items of the plan that was approved: so what is
    left after a crash rests on the same approval, under the same ceiling. It binds small plans too, and processes
    without limits of their own: what exceeds the ceiling is not bought piece by piece. An item that a person rejected,
    or that waits for a decision, is not bought by any plan, until a plan with it is approved.
    """
    its: list[Approval] = []
    if ledger is not None:
        its = ledger.approvals.find(proposal.scope.environment, proposal.scope.catalog)
    items = {one.id: ledger.approvals.items(one.id) for one in its} if ledger is not None else {}
    last = next((one for one in reversed(its) if one.verdict is Verdict.APPROVED), None)
    withheld = _withheld(its, items, proposal)
    rejected = {key for key, one in withheld.items() if one.verdict is Verdict.REJECTED}
    is_covered = last is not None and bool(proposal.to_do) and proposal.to_do <= items[last.id]
    if last is not None and is_covered and not rejected and _has_work(last, proposal):
        return last
    if proposal.to_buy and (
        withheld or is_covered or proposal.exceeds(*_limits(ledger, settings, proposal.scope))
    ):
        raise _approval_needed(proposal, withheld)
    return None


def _withheld(
    its: list[Approval], items: dict[str, frozenset[ItemKey]], proposal: Proposal
) -> dict[ItemKey, Approval]:
    """The items to buy of which the last decision is against them, or which wait for one; `its` in their order."""
    found: dict[ItemKey, Approval] = {}
    for one in its:
        for key in items[one.id] & proposal.to_buy.keys():
            if one.verdict is Verdict.APPROVED:
                found.pop(key, None)
            elif one.verdict is Verdict.REJECTED:
                found[key] = one
            else:
                # A question takes no decision back.
                found.setdefault(key, one)
    return found


def _has_work(approval: Approval, proposal: Proposal) -> bool:
    """Whether an approved item has an open attempt, or the rest of the ceiling covers one more purchase.

    An approval of amounts in another currency covers nothing.
    """
    if proposal.cost is not None and (proposal.cost.currency or "") != approval.currency:
        return False
    if proposal.to_do - proposal.to_buy.keys():
        return True
    left = approval.worst - approval.amount
    return approval.purchases < approval.most_purchases and min(proposal.to_buy.values(), default=0) <= left


def _approval_needed(proposal: Proposal, withheld: dict[ItemKey, Approval]) -> ApprovalNeeded:
    named = proposal.digest[:LEAST_DIGEST]
    why = {
        f"rejected by {one.who}" if one.who else f"plan {one.short} waits for an approval"
        for one in withheld.values()
    }
    return ApprovalNeeded(
        joined(
            f"The plan would buy {proposal}, and waits for a person's approval.",
            f"{plural(len(withheld), 'item')} of it: {', '.join(sorted(why))}." if why else None,
            f"Its digest is {named}.",
        ),
        remedy=f"Look at --plan-only, then add `--approve {named}`. Nothing was bought.",
    )


def request_approval(settings: Settings, proposal: Proposal, flow_run_id: str) -> Approval:
    """Ask a person to approve a plan, in place of what the flow run asked before."""
    with open_ledger(settings) as ledger, ledger.transaction():
        return _put_before_person(ledger, proposal, flow_run_id)


def pending_request(settings: Settings, flow_run_id: str) -> Approval | None:
    """The request of a flow run, as long as no decision on it is on record."""
    with ledger_if_any(settings) as ledger:
        return ledger.approvals.waiting(flow_run_id) if ledger is not None else None


def approve(
    settings: Settings,
    proposal: Proposal,
    who: str,
    verdict: Verdict = Verdict.APPROVED,
    note: str | None = None,
) -> Approval:
    """Record a request and the decision on it at once, as on a terminal."""
    with open_ledger(settings) as ledger, ledger.transaction():
        request = _put_before_person(ledger, proposal)
        return ledger.approvals.decide(request.id, verdict, who=who, note=note)


def record_decision(
    settings: Settings, request: Approval, proposal: Proposal, verdict: Verdict, who: str, note: str | None
) -> Approval | None:
    """Record the decision on a request; None when the plan now makes items that the person never saw."""
    with open_ledger(settings) as ledger, ledger.transaction():
        if verdict is Verdict.APPROVED and not proposal.to_do <= ledger.approvals.items(request.id):
            return None
        return ledger.approvals.decide(request.id, verdict, who=who, note=note)


def with_decision(record: RunRecord, decision: Approval | None) -> RunRecord:
    """The record of a run, with the decision that it rests on, or was refused by."""
    if decision is None:
        return record
    said = {"digest": decision.digest, "verdict": decision.verdict.value, "who": decision.who}
    return record.with_options({"approval": said})


def rejection(decision: Approval) -> HaltReason:
    note = f": {decision.note}" if decision.note else ""
    return HaltReason(
        Outcome.CANCELLED,
        "rejected",
        f"The plan {decision.short} was rejected by {decision.who}{note.rstrip('.')}. Nothing was bought.",
    )


def _put_before_person(ledger: Ledger, proposal: Proposal, flow_run_id: str | None = None) -> Approval:
    """Put a request for a decision on record."""
    cost = proposal.cost
    request = Approval(
        id=f"approval-{proposal.digest[:LEAST_DIGEST]}-{secrets.token_hex(3)}",
        environment=proposal.scope.environment,
        catalog=proposal.scope.catalog,
        digest=proposal.digest,
        items=proposal.items,
        expected=cost.expected if cost is not None else 0,
        worst=cost.worst if cost is not None else 0,
        currency=cost.currency or "" if cost is not None else "",
        most_purchases=proposal.most_purchases,
        asked_at=ledger.now(),
        flow_run_id=flow_run_id,
    )
    ledger.approvals.request(request, sorted(proposal.to_do))
    return request
