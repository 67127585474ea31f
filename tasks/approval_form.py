"""A plan that waits for a person's approval: its flow run is suspended, without a lease, with a form in the Prefect UI.

Once the form is answered, a worker begins the flow run again from the top. That the plan waits is in the ledger, and
only a decision that is recorded there approves it: whoever begins the work otherwise, and wherever, is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal
from uuid import UUID

from prefect import get_run_logger
from prefect.flow_runs import asuspend_flow_run
from prefect.input import RunInput
from prefect.input.actions import adelete_flow_run_input, aread_flow_run_input
from prefect.runtime import deployment, flow_run
from pydantic import Field, SecretStr

from patternmill.errors import ApprovalNeeded
from patternmill.ledger.records import Approval
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.runs.approval import APPROVAL_TIME, LEAST_DIGEST, ApprovalDecision, Requester
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview
from prefect_host.internals import response_key
from tasks.markup import markdown, markdown_lines
from tasks.run_page import show_text

UNVERIFIED = "The name is not verified: this Prefect server has no users."
WRONG_CODE = "The approval code of the last answer was wrong; the plan still waits."
CHANGED = "The plan has changed since it was approved: it is another one."

#: How a person sees what is proposed: a sentence for the form, and lines for the run's artifacts.
ApprovalPage = tuple[str, Iterable[str]]


class ApprovalInput(RunInput):
    """The form in the Prefect UI."""

    decision: Literal["approve", "reject"] = Field(
        description="Rejected, nothing is bought, and the run ends as Cancelled."
    )
    name: str = Field(pattern=r"\S", title="Your name", description=f"Kept with the decision. {UNVERIFIED}")
    note: str = Field(default="", description="Why; kept with the decision.")

    def as_decision(self) -> ApprovalDecision:
        approved = self.decision == "approve"
        return ApprovalDecision(self.name.strip(), approved, self.note.strip() or None)


class ApprovalInputWithCode(ApprovalInput):
    """The form where approvers have a code."""

    code: SecretStr = Field(
        title="Approval code",
        description="Deleted from the server as soon as it is read, and stored nowhere.",
    )


async def await_approval(work: Pipeline) -> None:
    """Return if no approval is needed, or it was decided; else suspend the flow run, which ends this process."""
    if not _can_wait() or not await asyncio.to_thread(approval.may_need_approval, work.spec):
        return
    preview = await work.preview()
    proposal = work.proposal(preview.plan)
    work.refused = (
        await await_decision(work.spec, proposal, lambda: _shown(preview, work, proposal)) or work.refused
    )


async def await_decision(
    requester: Requester, proposal: Proposal, page: Callable[[], ApprovalPage]
) -> Approval | None:
    """A person's decision against what is proposed; None where it is approved, or needs no approval.

    Where it waits, the flow run is suspended, which ends this process. A flow run without a deployment cannot be begun
    again, so it never waits: what begins it raises ApprovalNeeded instead.
    """
    if not _can_wait():
        return None
    request = await asyncio.to_thread(approval.pending_request, requester, flow_run.id)
    remark = ""
    if request is not None:
        refused, remark = await _record_answer(requester, request, proposal)
        if refused is not None:
            return refused
    try:
        await asyncio.to_thread(approval.current_approval, requester, proposal)
    except ApprovalNeeded:
        await _ask(requester, proposal, page(), remark)
    return None


def _can_wait() -> bool:
    return deployment.id is not None and flow_run.parent_flow_run_id is None


async def _record_answer(
    requester: Requester, request: Approval, proposal: Proposal
) -> tuple[Approval | None, str]:
    """Record the decision since this flow run was suspended: one against it, and a remark for the next form."""
    answer, code = await _answer_to(request)
    if answer is None:
        return None, ""
    if not approval.is_approval_code(requester.settings.approval_code, code):
        get_run_logger().warning(WRONG_CODE)
        return None, WRONG_CODE
    decision = answer.as_decision()
    decided = await asyncio.to_thread(approval.record_decision, requester, request, proposal, decision)
    if decided is None:
        return None, CHANGED
    return (None if decision.approved else decided), ""


async def _answer_to(request: Approval) -> tuple[ApprovalInput | None, str]:
    """The answer and its approval code, which is deleted from the server before anything else is done."""
    key, run = response_key(request.id), UUID(flow_run.id)
    values: dict[str, Any] | None = await aread_flow_run_input(key, flow_run_id=run)
    if not values:
        return None, ""
    code = str(values.pop("code", ""))
    if code:
        await adelete_flow_run_input(key, flow_run_id=run)
    return ApprovalInput(**values), code


async def _ask(requester: Requester, proposal: Proposal, page: ApprovalPage, remark: str) -> None:
    request = await asyncio.to_thread(approval.request_approval, requester, proposal, flow_run.id)
    summary, lines = page
    await show_text(
        f"plan-{proposal.digest[:LEAST_DIGEST]}",
        "## Waiting for approval\n\n**Resume**, at the top of the run's page or in its menu, approves or rejects. "
        f"Meanwhile no lease is kept. The form asks for a name. {UNVERIFIED}\n\n{markdown_lines(lines)}",
        "Waits for a person's approval.",
    )
    with_code = requester.settings.approval_code is not None
    form: type[ApprovalInput] = ApprovalInputWithCode if with_code else ApprovalInput
    text = f"{summary} It is listed in the run's artifacts. {remark}".strip()
    await asuspend_flow_run(
        wait_for_input=form.with_initial_data(description=markdown(text)),
        timeout=round(APPROVAL_TIME.total_seconds()),
        # The name under which the server keeps the answer.
        key=request.id,
    )


def _shown(preview: Preview, work: Pipeline, proposal: Proposal) -> ApprovalPage:
    scope = proposal.scope
    summary = f"Plan {proposal.digest[:LEAST_DIGEST]} for catalog {scope.catalog} ({scope.environment}): {proposal}."
    duplicates = preview.duplicates.message if preview.duplicates else None
    said = " ".join(filter(None, (summary, duplicates, preview.plan.sent_once)))
    return said, plan_lines(preview, work.checked, proposal.digest)
