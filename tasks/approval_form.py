"""A plan that waits for a person's approval: its flow run is suspended, without a lease, with a form in the Prefect UI.

Once the form is answered, a worker begins the flow run again from the top. The ledger has the request for approval and
the key of the answer at the Prefect server; only a decision that is recorded in the ledger approves a plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from prefect import get_run_logger
from prefect.flow_runs import asuspend_flow_run
from prefect.input import RunInput
from prefect.input.actions import adelete_flow_run_input, aread_flow_run_input
from prefect.runtime import deployment, flow_run
from pydantic import Field, SecretStr, create_model

from patternmill.ledger.records import Approval
from patternmill.planning.plan import TO_DO
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.runs.approval import LEAST_DIGEST, ApprovalDecision
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.preview import Duplicates, Preview
from patternmill.text import goods, more, plural, readable
from prefect_host.internals import response_key
from tasks.markup import markdown
from tasks.run_page import show_plan

_MOST_ITEMS = 40
UNVERIFIED = "The name is not verified: this Prefect server has no users."
WRONG_CODE = "The approval code of the last answer was wrong; the plan still waits."


class ApprovalInput(RunInput):
    """The form in the Prefect UI."""

    decision: Literal["approve", "reject"] = Field(
        description="Rejected, nothing is bought, and the run ends as Cancelled."
    )
    up_to: int = Field(
        default=0,
        ge=0,
        title="Approve up to so many items",
        description="The first rows of the file; 0: all.",
    )
    name: str = Field(pattern=r"\S", title="Your name", description=f"Kept with the decision. {UNVERIFIED}")
    note: str = Field(default="", description="Why; kept with the decision.")

    def as_decision(self) -> ApprovalDecision:
        approved = self.decision == "approve"
        return ApprovalDecision(self.name.strip(), approved, self.up_to or None, self.note.strip() or None)


class ApprovalInputWithCode(ApprovalInput):
    """The form where approvers have a code."""

    code: SecretStr = Field(
        title="Approval code",
        description="Deleted from the server as soon as it is read, and stored nowhere.",
    )


async def await_approval(work: Pipeline) -> None:
    """Return if no approval is needed, or it was decided; else suspend the flow run, which ends this process.

    A flow run without a deployment cannot be begun again, so it never waits: planning raises ApprovalNeeded instead.
    """
    if deployment.id is None or flow_run.parent_flow_run_id is not None:
        return
    question = await asyncio.to_thread(approval.pending_request, work.spec, flow_run.id)
    if question is None and not await asyncio.to_thread(approval.may_need_approval, work.spec):
        return
    preview = await work.preview()
    proposal = work.proposal(preview.plan)
    remark = await _record_answer(work, question, proposal) if question is not None else ""
    if work.refused is None and await work.needs_approval(preview.plan):
        await _ask(work, preview, proposal, remark)


async def _record_answer(work: Pipeline, question: Approval, proposal: Proposal) -> str:
    """Record the decision since this flow run was suspended; returns a remark for the next form."""
    answer, code = await _answer_to(question)
    remark = ""
    if answer is not None and not approval.is_approval_code(work.spec.settings.approval_code, code):
        get_run_logger().warning(WRONG_CODE)
        answer, remark = None, WRONG_CODE
    if answer is not None:
        decision = answer.as_decision()
        refusal = await asyncio.to_thread(approval.record_decision, work.spec, question, proposal, decision)
        if refusal is not None and not decision.approved:
            work.refused = refusal
    else:
        work.refused = await asyncio.to_thread(approval.lapse_if_due, work.spec, question)
    return remark


async def _answer_to(question: Approval) -> tuple[ApprovalInput | None, str]:
    """The answer and its approval code, which is deleted from the server before anything else is done."""
    key, run = response_key(question.question), UUID(flow_run.id)
    values: dict[str, Any] | None = await aread_flow_run_input(key, flow_run_id=run)
    if not values:
        return None, ""
    code = str(values.pop("code", ""))
    if code:
        await adelete_flow_run_input(key, flow_run_id=run)
    return ApprovalInput(**values), code


async def _ask(work: Pipeline, preview: Preview, proposal: Proposal, remark: str) -> None:
    patience = work.spec.settings.approval_timeout
    question = await asyncio.to_thread(approval.request_approval, work.spec, proposal, flow_run.id, patience)
    await show_plan(proposal.digest()[:LEAST_DIGEST], "\n".join(_plan_lines(preview, proposal)))
    now = await asyncio.to_thread(approval.ledger_time, work.spec)
    left = patience if question.lapses_at is None else timedelta(seconds=question.lapses_at - now)
    await asuspend_flow_run(
        wait_for_input=_form(
            proposal, preview.duplicates, remark, with_code=work.spec.settings.approval_code is not None
        ),
        timeout=max(10, round(left.total_seconds())),
        key=question.question,
    )


def _form(
    proposal: Proposal, duplicates: Duplicates | None, remark: str, *, with_code: bool
) -> type[ApprovalInput]:
    up_to = Field(
        default=proposal.items,
        ge=1,
        le=proposal.items,
        title=f"Approve up to so many items (all: {proposal.items})",
        description="The first rows of the file, up to this number of items; the rest waits for another approval.",
    )
    base: type[ApprovalInput] = ApprovalInputWithCode if with_code else ApprovalInput
    form: type[ApprovalInput] = create_model("Answer", __base__=base, up_to=(int, up_to))
    summary = [_summary(proposal), *([duplicates.sentence()] if duplicates else []), *filter(None, [remark])]
    return form.with_initial_data(description=markdown(" ".join(summary)))


def _summary(proposal: Proposal) -> str:
    cost = f" for {proposal.cost}" if proposal.cost.worst else ""
    scope = proposal.plan.scope
    return (
        f"Plan {proposal.digest()[:LEAST_DIGEST]} for catalog {scope.catalog} ({scope.environment}) buys "
        f"{goods(*proposal.plan.purchases())}{cost}. It is listed in the run's artifacts."
    )


def _plan_lines(preview: Preview, proposal: Proposal) -> Iterator[str]:
    plan = proposal.plan
    yield f"## Waiting for approval: {plural(proposal.items, 'item')}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| catalog | {markdown(plan.scope.catalog)} ({plan.scope.environment}) |"
    yield f"| to buy | {goods(*plan.purchases())} |"
    yield f"| cost | {markdown(str(proposal.cost)) if proposal.cost.worst else 'not counted, as no prices are set'} |"
    if preview.limited:
        yield f"| limit | {markdown(str(preview.limited))} |"
    if preview.forecast:
        yield f"| forecast | {markdown(str(preview.forecast))} |"
    yield f"| rows | {len(plan.rows):,}, of them {plan.refused():,} refused |"
    yield f"| digest | `{proposal.digest()}` |"
    yield ""
    if preview.duplicates is not None:
        yield f"> {markdown(preview.duplicates.sentence())}"
        yield ""
    yield "**Resume**, at the top of the run's page or in its menu, approves or rejects. Meanwhile no lease is kept."
    yield f"The form asks for a name. {UNVERIFIED}"
    yield ""
    items = [(p.reason.value, p.item.describe()) for p in plan.patterns.values() if p.reason in TO_DO]
    items += [(p.reason.value, p.item.describe()) for p in plan.products.values() if p.reason in TO_DO]
    yield "| why | what |"
    yield "|---|---|"
    for reason, what in items[:_MOST_ITEMS]:
        yield f"| {readable(reason)} | {markdown(what)} |"
    yield ""
    yield from more(len(items), _MOST_ITEMS, indent="")
