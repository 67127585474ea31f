"""A person's approval of a plan: its digest, its ceiling, who decided and when. Required as a run is recorded."""

from __future__ import annotations

import secrets
from datetime import timedelta

from patternmill.engine.progress import HaltReason
from patternmill.errors import ApprovalNeeded
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, ledger_to_read, open_ledger
from patternmill.ledger.records import Approval
from patternmill.ledger.spending import refuse_overtaken
from patternmill.parameters import CHANGES
from patternmill.planning.plan import Cost
from patternmill.planning.proposal import Proposal
from patternmill.settings import Settings
from patternmill.states import Outcome, Verdict
from patternmill.text import plural

#: The number of characters of a digest that are shown, and the fewest by which a person may name it.
LEAST_DIGEST = 12
#: How long a flow run waits for a person's decision.
APPROVAL_TIME = timedelta(hours=24)

Withheld = dict[ItemKey, Approval]


def current_approval(settings: Settings, proposal: Proposal) -> Approval | None:
    """Return the approval that a plan would rest on if it began now. Raises ApprovalNeeded. Writes nothing."""
    with ledger_to_read(settings) as ledger:
        return require_approval(ledger, settings, proposal)


def require_approval(ledger: Ledger, settings: Settings, proposal: Proposal) -> Approval | None:
    """Return the approval that a plan rests on; None where it needs none. Raises ApprovalNeeded.

    The last approval of the catalog covers every plan that makes only items of the approved plan, so what is left
    after a crash rests on the same approval, under the same ceiling. It binds small plans too, and processes without
    limits of their own: nobody buys piece by piece what exceeds the ceiling. An item of a plan that a person rejected,
    or did not decide on, is not bought until a plan with it is approved.
    """
    scope = proposal.scope
    decisions = ledger.approvals.find(scope.environment, scope.catalog)
    items = {plan.id: ledger.approvals.items(plan.id) for plan in decisions}
    withheld = _withheld(decisions, items, proposal)
    is_rejected = any(decision.verdict is Verdict.REJECTED for decision in withheld.values())
    last = next((plan for plan in reversed(decisions) if plan.verdict is Verdict.APPROVED), None)
    is_covered = last is not None and bool(proposal.to_do) and proposal.to_do <= items[last.id]
    if last is not None and is_covered and not is_rejected and _has_work(last, proposal):
        return last
    is_large = proposal.exceeds(settings.approve_above_items, settings.approve_above_cost)
    waits = bool(withheld) or is_covered or is_large
    replaces = bool(proposal.replaced) and not settings.confirms(CHANGES)
    if proposal.to_buy and (waits or replaces):
        raise _approval_needed(proposal, withheld, is_confirmable=not waits)
    return None


def _withheld(
    decisions: list[Approval], items: dict[str, frozenset[ItemKey]], proposal: Proposal
) -> Withheld:
    """Return the items to buy that were last rejected, or asked about without a reply; `decisions` are in order."""
    withheld: Withheld = {}
    for decision in decisions:
        for key in items[decision.id] & proposal.to_buy.keys():
            if decision.verdict is Verdict.APPROVED:
                withheld.pop(key, None)
            elif decision.verdict is Verdict.REJECTED:
                withheld[key] = decision
            else:
                # Asking again does not undo a decision.
                withheld.setdefault(key, decision)
    return withheld


def _has_work(approval: Approval, proposal: Proposal) -> bool:
    """Return whether an approved item has an open attempt, or the rest of the ceiling covers one more purchase.

    An approval of amounts in another currency covers nothing.
    """
    if proposal.cost is not None and (proposal.cost.currency or "") != approval.currency:
        return False
    if proposal.to_do - proposal.to_buy.keys():
        return True
    left = approval.worst - approval.amount
    return approval.purchases < approval.most_purchases and min(proposal.to_buy.values(), default=0) <= left


def _approval_needed(proposal: Proposal, withheld: Withheld, *, is_confirmable: bool) -> ApprovalNeeded:
    """Return the error that says why a plan waits; `is_confirmable`: only because of the products that it replaces."""
    digest = proposal.digest[:LEAST_DIGEST]
    lines = [f"The plan would buy {proposal}, and waits for a person's approval."]
    if withheld:
        why = ", ".join(sorted({_why_withheld(decision) for decision in withheld.values()}))
        lines.append(f"{plural(len(withheld), 'item')} of it: {why}.")
    lines += [*proposal.replaced, f"Its digest is {digest}."]
    confirm = f" (or `--confirm {CHANGES}`)" if is_confirmable else ""
    return ApprovalNeeded(
        lines,
        f"Look at the plan (--plan-only, or plan_only in a form), then add `--approve {digest}`{confirm}. "
        "Nothing was bought.",
    )


def _why_withheld(decision: Approval) -> str:
    if decision.verdict is Verdict.REJECTED:
        return f"rejected by {decision.who}"
    if decision.verdict is Verdict.OVERTAKEN:
        return f"plan {decision.short} was not approved before {decision.who} began"
    return f"plan {decision.short} waits for an approval"


def request_approval(settings: Settings, proposal: Proposal, flow_run_id: str) -> Approval:
    """Ask a person to approve a plan; this ends earlier requests of the flow run, and of others of the catalog."""
    with open_ledger(settings) as ledger, ledger.transaction():
        return _put_before_person(ledger, proposal, flow_run_id)


def pending_request(settings: Settings, flow_run_id: str) -> Approval | None:
    """Return the last request of a flow run while no decision on it is on record; None once there is one.

    Raises Overtaken when a newer run of the catalog ended it.
    """
    with ledger_to_read(settings) as ledger:
        last = ledger.approvals.last_of(flow_run_id)
    if last is not None:
        refuse_overtaken(last)
    return last if last is not None and last.verdict is Verdict.WAITING else None


def approve(settings: Settings, proposal: Proposal, who: str) -> Approval:
    """Record a request and its approval at once, as on a terminal."""
    with open_ledger(settings) as ledger, ledger.transaction():
        request = _put_before_person(ledger, proposal)
        return ledger.approvals.decide(request.id, Verdict.APPROVED, who=who)


def record_decision(
    settings: Settings, request: Approval, proposal: Proposal, verdict: Verdict, who: str, note: str | None
) -> Approval | None:
    """Record the decision on a request; return None when the plan now makes items that the person never saw.

    Raises Overtaken when a newer run of the catalog ended the request.
    """
    with open_ledger(settings) as ledger, ledger.transaction():
        if verdict is Verdict.APPROVED and not proposal.to_do <= ledger.approvals.items(request.id):
            return None
        return ledger.approvals.decide(request.id, verdict, who=who, note=note)


def rejection(decision: Approval) -> HaltReason:
    """Return why a run whose plan was rejected begins nothing."""
    note = f": {decision.note}" if decision.note else ""
    return HaltReason(
        Outcome.CANCELLED,
        "rejected",
        f"The plan {decision.short} was rejected by {decision.who}{note.rstrip('.')}. Nothing was bought.",
    )


def _put_before_person(ledger: Ledger, proposal: Proposal, flow_run_id: str | None = None) -> Approval:
    """Put a request for a decision on record."""
    cost = proposal.cost or Cost(0, 0)
    request = Approval(
        id=f"approval-{proposal.digest[:LEAST_DIGEST]}-{secrets.token_hex(3)}",
        environment=proposal.scope.environment,
        catalog=proposal.scope.catalog,
        digest=proposal.digest,
        items=proposal.items,
        expected=cost.expected,
        worst=cost.worst,
        currency=cost.currency or "",
        most_purchases=proposal.most_purchases,
        asked_at=ledger.now(),
        flow_run_id=flow_run_id,
    )
    ledger.approvals.request(request, sorted(proposal.to_do))
    return request
