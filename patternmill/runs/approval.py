"""A person's approval of a plan: proposed, awaited, decided, and checked in the transaction that begins the run."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from pydantic import SecretStr

from patternmill.engine.options import RunOptions
from patternmill.engine.progress import HaltReason
from patternmill.errors import ApprovalNeeded
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, ledger_if_any, open_ledger
from patternmill.ledger.records import Approval
from patternmill.planning.items import Scope
from patternmill.planning.plan import Cost, Plan
from patternmill.planning.proposal import Proposal
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import Outcome, Verdict
from patternmill.text import joined, plural

#: Shorter beginnings of a digest are not accepted in its place.
LEAST_DIGEST = 12


@dataclass(frozen=True)
class ApprovalDecision:
    """What a person decides."""

    who: str
    approved: bool = True
    note: str | None = None


class Requester(Protocol):
    """What is known of whoever asks for an approval: a run, or an order."""

    @property
    def settings(self) -> Settings: ...
    @property
    def options(self) -> RunOptions: ...
    @property
    def scope(self) -> Scope: ...


class Proposed(Protocol):
    """What is put before a person: the plan of a run, or an order."""

    @property
    def items(self) -> int: ...
    @property
    def cost(self) -> Cost: ...
    @property
    def edition(self) -> str | None: ...
    @property
    def most_purchases(self) -> int: ...
    @property
    def to_do(self) -> frozenset[ItemKey]: ...
    @property
    def to_buy(self) -> frozenset[ItemKey]: ...
    def price(self, key: ItemKey) -> int: ...
    def exceeds(self, items: int | None, cost: int | None) -> bool: ...
    def digest(self) -> str: ...


# Propose: what would be bought, and whether a person has to approve it.


def propose(spec: RunSpec, plan: Plan) -> Proposal:
    options = spec.options
    return Proposal(plan, options.prices, options.attempts, spec.edition, options.currency)


def has_threshold(options: RunOptions) -> bool:
    return options.approve_above_items is not None or options.approve_above_cost is not None


def may_need_approval(spec: Requester) -> bool:
    """Whether a plan of this catalog is worth a look before its run begins. Writes nothing."""
    if has_threshold(spec.options):
        return True
    with ledger_if_any(spec.settings) as ledger:
        return ledger is not None and _last_decision(ledger, spec) is not None


def needs_approval(spec: Requester, proposal: Proposed) -> bool:
    """Whether a person has to approve a plan first. Writes nothing."""
    try:
        current_approval(spec, proposal)
    except ApprovalNeeded:
        return True
    return False


def current_approval(spec: Requester, proposal: Proposed) -> Approval | None:
    """The approval that a plan would rest on just now. Raises ApprovalNeeded. Writes nothing."""
    with ledger_if_any(spec.settings) as ledger:
        return require_approval(ledger, spec, proposal)


# Await: the request for an approval, and the flow run that waits for it.


def request_approval(
    spec: Requester, proposal: Proposed, flow_run_id: str, time_limit: timedelta
) -> Approval:
    """Ask a person to approve a plan; where the flow run waits with this plan already, under a new question."""
    with _writing(spec) as ledger:
        before = ledger.waiting_approval(flow_run_id)
        if before is not None and before.digest == proposal.digest():
            question = f"{before.id}-{secrets.token_hex(2)}"
            ledger.rename_question(before.id, question)
            return replace(before, question=question)
        if before is not None:
            ledger.decide_approval(before.id, Verdict.LAPSED, note="Another plan has taken its place.")
        return _record_request(ledger, spec, proposal, flow_run_id, time_limit)


def pending_request(spec: Requester, flow_run_id: str) -> Approval | None:
    """The request of a flow run, as long as no decision on it is on record."""
    with ledger_if_any(spec.settings) as ledger:
        return ledger.waiting_approval(flow_run_id) if ledger is not None else None


def ledger_time(spec: Requester) -> float:
    """Now, by the clock that dates requests: on PostgreSQL not this machine's."""
    with open_ledger(spec.settings) as ledger:
        return ledger.now()


def is_approval_code(expected: SecretStr | None, typed: str) -> bool:
    """Whether that is the approvers' code, or none is set. In constant time."""
    if expected is None:
        return True
    text = expected.get_secret_value()
    known = text.removeprefix("sha256:") if text.startswith("sha256:") else _sha256(text.strip())
    return hmac.compare_digest(known, _sha256(typed.strip()))


# Decide: record a person's decision, or that none was made in time.


def approve(spec: Requester, proposal: Proposed, decision: ApprovalDecision) -> Approval:
    """Record a request and the decision on it at once, as on a terminal."""
    with _writing(spec) as ledger:
        return _decide(ledger, _record_request(ledger, spec, proposal), decision)


def record_decision(
    spec: Requester, request: Approval, proposal: Proposed, decision: ApprovalDecision
) -> Approval | None:
    """Record the decision on a request; None when the plan now makes items that the person never saw."""
    with _writing(spec) as ledger:
        if decision.approved and not proposal.to_do <= ledger.approval_items(request.id):
            note = "The plan had changed when it was approved."
            ledger.decide_approval(request.id, Verdict.LAPSED, who=decision.who, note=note)
            return None
        return _decide(ledger, request, decision)


def lapse_if_due(spec: Requester, request: Approval) -> Approval | None:
    with _writing(spec) as ledger:
        if request.lapses_at is None or ledger.now() < request.lapses_at:
            return None
        return ledger.decide_approval(request.id, Verdict.LAPSED, note="Nobody answered in time.")


# Check: within the transaction that puts the run on record.


def require_approval(ledger: Ledger | None, spec: Requester, proposal: Proposed) -> Approval | None:
    """The approval that a plan rests on; None where it needs none. Raises ApprovalNeeded.

    The last decision on the catalog covers every plan that makes only items of the plan that was decided on: so what
    is left after a crash rests on the same approval, under the same ceiling. It binds small plans too, and processes
    without limits of their own: what exceeds the ceiling is not bought piece by piece. An item that a person rejected
    is not bought by any plan, until a plan with it is approved.
    """
    last = _last_decision(ledger, spec) if ledger is not None else None
    if last is None and not has_threshold(spec.options):
        return None
    decided = ledger.approval_items(last.id) if ledger is not None and last is not None else frozenset()
    is_decided = bool(proposal.to_do) and proposal.to_do <= decided
    if last is not None and is_decided and last.verdict is Verdict.APPROVED and _has_work(last, proposal):
        return last
    if not proposal.to_buy:
        return None
    declined = _declined(ledger, spec, proposal) if ledger is not None else None
    items, amount = _bought_by_other_editions(ledger, spec, proposal) if ledger is not None else (0, 0)
    most_items, most_cost = spec.options.approve_above_items, spec.options.approve_above_cost
    if (
        declined
        or is_decided
        or proposal.exceeds(
            None if most_items is None else most_items - items,
            None if most_cost is None else most_cost - amount,
        )
    ):
        others = f"Other editions of this catalog bought {plural(items, 'item')} today." if items else None
        raise _approval_needed(proposal, declined, others)
    return None


def _bought_by_other_editions(ledger: Ledger, spec: Requester, proposal: Proposed) -> tuple[int, int]:
    """Items and minor units that the catalog bought today, unapproved: what is split into editions is one purchase."""
    bought = [
        (items, amount)
        for record, items, amount in ledger.buyers_today(spec.scope.environment, spec.scope.catalog)
        if record.options.get("edition") != proposal.edition and "approval" not in record.options
    ]
    return sum(items for items, _ in bought), sum(amount for _, amount in bought)


def _approval_needed(proposal: Proposed, *why: str | None) -> ApprovalNeeded:
    digest = proposal.digest()
    return ApprovalNeeded(
        joined(
            f"The plan would buy {proposal}, and waits for a person's approval.",
            *why,
            f"Its digest is {digest[:LEAST_DIGEST]}.",
        ),
        remedy=f"Look at --plan-only, then add `--approve {digest[:LEAST_DIGEST]}`. Nothing was bought.",
    )


def rejection(decision: Approval) -> HaltReason:
    note = f": {decision.note}" if decision.note else ""
    what = f"rejected by {decision.who}" if decision.verdict is Verdict.REJECTED else "not approved"
    return HaltReason(
        Outcome.CANCELLED,
        "rejected",
        f"The plan {decision.short} was {what}{note.rstrip('.')}. Nothing was bought.",
    )


def _last_decision(ledger: Ledger, spec: Requester) -> Approval | None:
    return ledger.last_decision(spec.scope.environment, spec.scope.catalog)


def _declined(ledger: Ledger, spec: Requester, proposal: Proposed) -> str | None:
    """Who decided against buying how many of the plan's items; None where nobody did."""
    rejected = ledger.rejected_items(spec.scope.environment, spec.scope.catalog)
    found = proposal.to_buy & rejected.keys()
    if not found:
        return None
    people = ", ".join(sorted({rejected[key] for key in found}))
    return f"{plural(len(found), 'item')} of it: rejected by {people}."


def _has_work(approval: Approval, proposal: Proposed) -> bool:
    """Whether an approved item has an open attempt, or the rest of the ceiling covers one more purchase."""
    if proposal.to_do - proposal.to_buy:
        return True
    left = approval.worst - approval.amount
    return approval.purchases < approval.most_purchases and any(
        proposal.price(key) <= left for key in proposal.to_buy
    )


def _record_request(
    ledger: Ledger,
    spec: Requester,
    proposal: Proposed,
    flow_run_id: str | None = None,
    time_limit: timedelta | None = None,
) -> Approval:
    now, digest = ledger.now(), proposal.digest()
    name = f"approval-{digest[:LEAST_DIGEST]}-{secrets.token_hex(3)}"
    request = Approval(
        id=name,
        environment=spec.scope.environment,
        catalog=spec.scope.catalog,
        digest=digest,
        items=proposal.items,
        expected=proposal.cost.expected,
        worst=proposal.cost.worst,
        most_purchases=proposal.most_purchases,
        asked_at=now,
        lapses_at=now + time_limit.total_seconds() if time_limit else None,
        flow_run_id=flow_run_id,
        question=name if flow_run_id else None,
    )
    ledger.add_approval(request, sorted(proposal.to_do))
    return request


def _decide(ledger: Ledger, request: Approval, decision: ApprovalDecision) -> Approval:
    verdict = Verdict.APPROVED if decision.approved else Verdict.REJECTED
    return ledger.decide_approval(request.id, verdict, who=decision.who, note=decision.note)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _writing(spec: Requester) -> Iterator[Ledger]:
    """The ledger in a transaction; it is made where none exists."""
    with open_ledger(spec.settings) as ledger, ledger.transaction():
        yield ledger
