"""A canary: a few rows of each category are made first, and the rest of the plan waits for a person's approval."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from patternmill.engine.progress import HaltReason
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.planning.plan import TO_DO, Plan, PlannedRow, Reason, restricted
from patternmill.runs.approval import CANARY, propose, put_before_person
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome
from patternmill.text import plural


def cut_to_canary(ledger: Ledger | None, spec: RunSpec, plan: Plan) -> Plan:
    """The first rows of each category that are to do; the whole plan where a person was asked about all of it.

    What was once put off for a canary is no canary itself: it is made when it is approved.
    """
    if spec.canary is None:
        return plan
    asked = _asked(ledger, spec) if ledger is not None else frozenset()
    fresh = [row for row in plan.to_do() if asked.isdisjoint(row.keys)]
    if not fresh:
        return plan
    counts = Counter[str]()
    first: list[PlannedRow] = []
    for row in fresh:
        checked = row.entry.row
        assert checked is not None, "a row to do was accepted"
        counts[checked.category] += bool(plan.buys(row))
        if counts[checked.category] <= spec.canary:
            first.append(row)
    return restricted(plan, {key for row in first for key in row.keys})


def put_off(ledger: Ledger, spec: RunSpec, plan: Plan) -> HaltReason | None:
    """Puts the rows that a canary left out on record as a plan that waits; says so. In the run's first transaction."""
    out = {key for key, planned in plan.items.items() if planned.reason is Reason.LEFT_OUT}
    left = [row for row in plan.rows if not out.isdisjoint(row.keys)]
    if spec.canary is None or not left:
        return None
    items = {
        key: replace(planned, reason=_REST.get(planned.reason, planned.reason))
        for key, planned in plan.items.items()
    }
    rest = propose(spec, replace(plan, items=items))
    asked = _asked(ledger, spec)
    if not rest.to_do <= asked:
        put_before_person(ledger, rest, name=CANARY)
    return HaltReason(
        Outcome.BUDGET_REACHED,
        CANARY,
        f"{plural(len(left), 'row')} wait for an approval: {rest}. Look at the first ones with `patternmill look`, "
        "then run the same command again and approve the rest.",
    )


#: The plan of the rest: what the canary makes is made by then.
_REST = dict.fromkeys(TO_DO, Reason.DONE) | {Reason.LEFT_OUT: Reason.NEW}


def waits(spec: RunSpec) -> bool:
    """Whether a canary put rows off, and nobody has said so far what becomes of them."""
    with ledger_if_any(spec.settings) as ledger:
        its = ledger.approvals.find(spec.scope.environment, spec.catalog) if ledger is not None else []
        return bool(its) and its[-1].id.startswith(CANARY)


def _asked(ledger: Ledger, spec: RunSpec) -> frozenset[str]:
    """The items that earlier canaries put off, whatever was decided since."""
    scope = spec.scope
    requests = ledger.approvals.find(scope.environment, scope.catalog)
    return frozenset(
        key for one in requests if one.id.startswith(CANARY) for key in ledger.approvals.items(one.id)
    )
