"""Whether a plan may be carried out without a person's word, and that word: put, heard, kept to."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import SecretStr

from patternmill.engine.halt import HaltReason
from patternmill.engine.options import RunOptions
from patternmill.errors import ApprovalNeeded
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import has_ledger, open_ledger
from patternmill.ledger.records import Approval, Ceiling
from patternmill.planning.plan import Plan
from patternmill.planning.proposal import Proposal
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome, Stage, Verdict

#: Shorter beginnings of a digest are not taken for it.
LEAST_DIGEST = 12


@dataclass(frozen=True)
class ApprovalDecision:
    """What a person says to a plan. `items`: approve the first rows as far as so many items go; None: all."""

    who: str
    approved: bool = True
    items: int | None = None
    note: str | None = None


@dataclass(frozen=True)
class Grant:
    """The approval that a run rests on, and the items that it reaches to."""

    approval: Approval
    keys: frozenset[ItemKey]


def propose(spec: RunSpec, plan: Plan) -> Proposal:
    """A plan with the prices that it would be carried out for."""
    options = spec.options
    return Proposal(plan, {stage: options.price(stage) for stage in Stage}, options.attempts, spec.edition)


def granted(ledger: Ledger, spec: RunSpec, proposal: Proposal) -> Grant | None:
    """The approval that a plan rests on; None where it needs none. Raises ApprovalNeeded.

    The last word on the catalog covers every plan that makes nothing but items of the plan it was said to: so what is
    left after a crash rests on the same approval, and is bound by the same ceiling. It binds small plans
    too: what was rejected, or lies beyond the ceiling, is not bought piece by piece.
    """
    last = ledger.last_word(spec.scope.environment, spec.scope.catalog)
    known = ledger.approval_items(last.id) if last is not None else {}
    bound = bool(proposal.to_do) and proposal.to_do <= known.keys()
    if last is not None and bound and last.verdict is Verdict.APPROVED:
        grant = Grant(last, frozenset(key for key, approved in known.items() if approved))
        if not proposal.to_buy or _has_work(grant, proposal):
            return grant
    if not proposal.to_buy or not asks(spec.options):
        return None
    if bound or _is_above(spec.options, proposal):
        raise approval_needed(proposal)
    return None


def approval_needed(proposal: Proposal) -> ApprovalNeeded:
    """The refusal of a plan that nobody has approved; it names the plan."""
    digest = proposal.digest()
    # Without prices, costs are not counted.
    money = f" for {proposal.expected}, at most {proposal.worst} (minor units)" if proposal.worst else ""
    return ApprovalNeeded(
        f"The plan would buy {proposal.items} items{money}, and waits for a person's approval. "
        f"Its digest is {digest[:LEAST_DIGEST]}.",
        remedy=f"Look at --plan-only, then add `--approve {digest[:LEAST_DIGEST]}`. Nothing was bought.",
    )


def beyond(grant: Grant, plan: Plan, bought: Plan) -> HaltReason | None:
    """Why rows are left out of a plan that an approval does not wholly cover."""
    left = len(list(plan.to_do())) - len(list(bought.to_do()))
    if not left:
        return None
    approval = grant.approval
    return HaltReason(
        Outcome.BUDGET_REACHED,
        "approval",
        f"{approval.who} approved {approval.ceiling.items} of {approval.items} items of plan {approval.short}: "
        f"{left} rows are left for another approval.",
    )


def refusal(word: Approval) -> HaltReason:
    """Why nothing of a plan is begun."""
    note = f": {word.note}" if word.note else ""
    said = f"rejected by {word.who}" if word.verdict is Verdict.REJECTED else "not approved"
    return HaltReason(
        Outcome.CANCELLED,
        "rejected",
        f"The plan {word.short} was {said}{note.rstrip('.')}. Nothing was bought.",
    )


def needs_word(spec: RunSpec, proposal: Proposal) -> bool:
    """Whether a plan has to be put before a person. Writes nothing."""
    with _opened(spec) as ledger:
        if ledger is None:
            return _is_above(spec.options, proposal)
        try:
            granted(ledger, spec, proposal)
        except ApprovalNeeded:
            return True
    return False


def rests_on(spec: RunSpec, proposal: Proposal) -> Approval | None:
    """The approval that a plan would rest on just now. Raises ApprovalNeeded. Writes nothing."""
    with _opened(spec) as ledger:
        grant = granted(ledger, spec, proposal) if ledger is not None else None
    return grant.approval if grant is not None else None


def approve(spec: RunSpec, proposal: Proposal, word: ApprovalDecision) -> Approval:
    """A word that was said at once, as on a terminal."""
    with _making(spec) as ledger, ledger.transaction():
        waiting = _put(ledger, spec, proposal)
        return _say(ledger, waiting, proposal, word)


def ask(spec: RunSpec, proposal: Proposal, flow_run_id: str, patience: timedelta) -> Approval:
    """Put a plan before a person; a flow run that waits with this plan already goes on waiting, under a new name."""
    with _making(spec) as ledger, ledger.transaction():
        before = ledger.waiting_approval(flow_run_id)
        if before is not None and before.digest == proposal.digest():
            question = f"{before.id}-{secrets.token_hex(2)}"
            ledger.ask_again(before.id, question)
            return replace(before, question=question)
        if before is not None:
            ledger.decide(before.id, Verdict.LAPSED, note="Another plan has taken its place.")
        return _put(ledger, spec, proposal, flow_run_id, patience)


def waiting(spec: RunSpec, flow_run_id: str) -> Approval | None:
    """What a flow run has asked, and does not know to be answered."""
    with _opened(spec) as ledger:
        return ledger.waiting_approval(flow_run_id) if ledger is not None else None


def answer(spec: RunSpec, question: Approval, proposal: Proposal, word: ApprovalDecision) -> Approval | None:
    """Write down what a person has said to a plan; None when the plan now makes items that they never saw."""
    with _making(spec) as ledger, ledger.transaction():
        if word.approved and not proposal.to_do <= ledger.approval_items(question.id).keys():
            ledger.decide(
                question.id, Verdict.LAPSED, who=word.who, note="The plan had changed when it was approved."
            )
            return None
        return _say(ledger, question, proposal, word)


def lapse(spec: RunSpec, question: Approval) -> Approval:
    """Nobody answered in time."""
    with _making(spec) as ledger, ledger.transaction():
        return ledger.decide(question.id, Verdict.LAPSED, note="Nobody answered in time.")


def ledger_time(spec: RunSpec) -> float:
    """Now, by the clock that dates questions: on PostgreSQL not this machine's."""
    with _making(spec) as ledger:
        return ledger.now()


def has_lapsed(question: Approval, now: float) -> bool:
    return question.lapses_at is not None and question.lapses_at <= now


def is_code(expected: SecretStr | None, typed: str) -> bool:
    """Whether that is the approvers' code, or none is asked for. Takes the same time whatever was typed."""
    if expected is None:
        return True
    text = expected.get_secret_value()
    known = text.removeprefix("sha256:") if text.startswith("sha256:") else _sha256(text.strip())
    return hmac.compare_digest(known, _sha256(typed.strip()))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def asks(options: RunOptions) -> bool:
    """Whether any plan needs a person's word."""
    return options.approve_above_items is not None or options.approve_above_cost is not None


def _is_above(options: RunOptions, proposal: Proposal) -> bool:
    items, cost = options.approve_above_items, options.approve_above_cost
    return (items is not None and proposal.items > items) or (cost is not None and proposal.worst > cost)


def _has_work(grant: Grant, proposal: Proposal) -> bool:
    """Whether an approved item is under way, or one more purchase fits under what is left of the ceiling."""
    if (proposal.to_do - proposal.to_buy) & grant.keys:
        return True
    approval = grant.approval
    left = approval.ceiling.amount - approval.amount
    return approval.purchases < approval.ceiling.purchases and any(
        proposal.price(key) <= left for key in proposal.to_buy & grant.keys
    )


def _put(
    ledger: Ledger,
    spec: RunSpec,
    proposal: Proposal,
    flow_run_id: str | None = None,
    patience: timedelta | None = None,
) -> Approval:
    now, digest = ledger.now(), proposal.digest()
    name = f"approval-{digest[:LEAST_DIGEST]}-{secrets.token_hex(3)}"
    waiting = Approval(
        id=name,
        environment=spec.scope.environment,
        catalog=spec.scope.catalog,
        digest=digest,
        items=proposal.items,
        expected=proposal.expected,
        worst=proposal.worst,
        asked_at=now,
        lapses_at=now + patience.total_seconds() if patience else None,
        flow_run_id=flow_run_id,
        question=name if flow_run_id else None,
    )
    ledger.ask(waiting, sorted(proposal.to_do))
    return waiting


def _say(ledger: Ledger, waiting: Approval, proposal: Proposal, word: ApprovalDecision) -> Approval:
    if not word.approved:
        return ledger.decide(waiting.id, Verdict.REJECTED, who=word.who, note=word.note)
    reach = proposal.reach(word.items)
    # A plan may have become smaller since it was asked about, and dearer: what the person saw is the most.
    same = waiting.digest == proposal.digest()
    amount = reach.amount if same else min(reach.amount, waiting.worst)
    return ledger.decide(
        waiting.id,
        Verdict.APPROVED,
        who=word.who,
        note=word.note,
        ceiling=Ceiling(reach.items, reach.purchases, amount),
        approved=reach.keys,
    )


@contextmanager
def _making(spec: RunSpec) -> Iterator[Ledger]:
    """A ledger, made where there is none."""
    ledger = open_ledger(spec.settings)
    try:
        yield ledger
    finally:
        ledger.database.close()


@contextmanager
def _opened(spec: RunSpec) -> Iterator[Ledger | None]:
    """The ledger where there is one: who only looks makes none."""
    if not has_ledger(spec.settings):
        yield None
        return
    with _making(spec) as ledger:
        yield ledger
