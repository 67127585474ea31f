"""A plan that waits for a person's approval: its flow run is suspended, without a lease, with a form in the Prefect UI.

Once the form is answered, a worker begins the flow run again from the top. That the plan waits is in the ledger, and
only a decision that is recorded there approves it: whoever begins the work otherwise, and wherever, is refused.
"""

from __future__ import annotations

import asyncio
from typing import Literal
from uuid import UUID

from prefect.events import emit_event
from prefect.exceptions import Pause
from prefect.flow_runs import asuspend_flow_run
from prefect.input import RunInput, keyset_from_paused_state
from prefect.runtime import deployment, flow_run
from prefect.states import Suspended
from pydantic import Field, ValidationError

from patternmill.errors import ApprovalNeeded
from patternmill.ledger.records import Approval
from patternmill.runs import approval
from patternmill.runs.approval import APPROVAL_TIME, LEAST_DIGEST
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.states import Verdict
from tasks.markup import line, markdown, markdown_lines
from tasks.run_page import show_text

#: Prefect's server has one credential, and no users.
WHO = "a person in the Prefect UI"
#: The event of a flow run that waits for a person's approval; automations look for it.
ASKED = "patternmill.approval-needed"
CHANGED = "The plan has changed since it was approved: it is another one."


class ApprovalInput(RunInput):
    """The form in the Prefect UI."""

    decision: Literal["approve", "reject"] = Field(
        description="Rejected, nothing is bought, and the run ends as Cancelled."
    )
    note: str = Field(default="", description="Who decides, and why; kept with the decision.")


async def approve(run: Run) -> None:
    """Return if no approval is needed, or it was decided; else suspend the flow run, which ends this process.

    A flow run without a deployment cannot be begun again, so it never waits: what begins it raises ApprovalNeeded.
    """
    spec = run.spec
    if deployment.id is None or flow_run.parent_flow_run_id is not None:
        return
    preview = await run.preview()
    request = await asyncio.to_thread(approval.pending_request, spec.settings, flow_run.id)
    remark = ""
    if request is not None and (answer := await _answer_to(request)) is not None:
        verdict = Verdict.APPROVED if answer.decision == "approve" else Verdict.REJECTED
        decision = request, preview.proposal, verdict, WHO, answer.note.strip() or None
        decided = await asyncio.to_thread(approval.record_decision, spec.settings, *decision)
        if verdict is Verdict.REJECTED:
            run.refused = decided
            return
        remark = "" if decided is not None else CHANGED
    if preview.pause is not None:
        return
    try:
        await asyncio.to_thread(approval.current_approval, spec.settings, preview.proposal)
    except ApprovalNeeded:
        await _ask(spec, preview, remark)


async def _answer_to(request: Approval) -> ApprovalInput | None:
    """Return what a person answered since this flow run was suspended."""
    keys = keyset_from_paused_state(Suspended(pause_key=request.id))
    try:
        return await ApprovalInput.aload(keys, flow_run_id=UUID(flow_run.id))
    except ValidationError:
        return None


async def _ask(spec: RunSpec, preview: Preview, remark: str) -> None:
    proposal = preview.proposal
    request = await asyncio.to_thread(approval.request_approval, spec.settings, proposal, flow_run.id)
    scope, digest = proposal.scope, proposal.digest[:LEAST_DIGEST]
    await show_text(
        f"plan-{digest}",
        "## Waiting for approval\n\n**Resume**, at the top of the run's page or in its menu, approves or rejects. "
        f"Meanwhile no lease is kept.\n\n{markdown_lines([*proposal.replaced, *plan_lines(preview)])}",
        "Waits for a person's approval.",
    )
    plan = f"Plan {digest} for catalog {scope.catalog} ({scope.environment}): {proposal}."
    parts = (
        plan,
        *proposal.replaced,
        preview.duplicates.message if preview.duplicates else None,
        preview.plan.sent_once,
        "It is listed in the run's artifacts.",
        remark,
    )
    try:
        await asuspend_flow_run(
            wait_for_input=ApprovalInput.with_initial_data(
                description=markdown(" ".join(filter(None, parts)))
            ),
            timeout=round(APPROVAL_TIME.total_seconds()),
            # The name under which the server keeps the answer.
            key=request.id,
        )
    except Pause:
        # It is suspended. A person's Suspend looks the same to an automation, and asks for nothing.
        resource = {"prefect.resource.id": f"prefect.flow-run.{flow_run.id}", "patternmill.plan": line(plan)}
        emit_event(ASKED, resource)
        raise
