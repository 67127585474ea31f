"""Groups that the interface names without operations or shapes: asked under plausible names, and only reported."""

from __future__ import annotations

from functools import partial
from typing import Any

from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Needs,
    Perform,
    Skipped,
    SkipReason,
    form_of,
    unspecified,
)
from patternmill.conformance.session import UNKNOWN_ID, Session
from patternmill.service.outcomes import SUCCESS

SECTION = "4 operations without a stated shape"
#: None of these makes, changes or deletes anything.
FREE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("patterns/list", {}),
    ("patterns/get", {"patternId": UNKNOWN_ID}),
    ("jobs/list", {}),
    ("references/list", {}),
    ("references/get", {"referenceId": UNKNOWN_ID}),
    ("models/list", {}),
    ("models/get", {"modelId": UNKNOWN_ID}),
    ("products/list", {}),
    ("products/get", {"productId": UNKNOWN_ID}),
    ("checkouts/list", {}),
    ("checkouts/get", {"checkoutId": UNKNOWN_ID}),
    ("orders/list", {}),
)
#: A lenient service might make a pattern.
REFINE = ("refine/edit", "refine/recolor", "refine/crop", "refine/extend")


async def _asked(operation: str, body: dict[str, Any], session: Session) -> CheckResult:
    await session.require(operation)
    answer = await session.asked(operation, body)
    request = "an unknown ID" if body else "nothing named"
    return unspecified(f"answers {answer.status}", form_of(request, answer))


async def _refined(operation: str, session: Session) -> CheckResult:
    body = {"requestId": session.request_id(operation.partition("/")[2]), "patternId": UNKNOWN_ID}
    answer = await session.try_create(operation, body)
    if await session.is_missing(operation, answer):
        raise Skipped(SkipReason.NOT_THERE, "the operation is not there")
    made = ", and accepted what names no pattern" if answer.status in SUCCESS else ""
    return unspecified(f"answers {answer.status}{made}", form_of("an unknown patternId", answer))


def _check(operation: str, perform: Perform, needs: Needs = Needs.NOTHING) -> Check:
    return Check(
        f"unstated-{operation.replace('/', '-')}", SECTION, f"{operation}: left open.", perform, needs
    )


CHECKS = (
    *(_check(operation, partial(_asked, operation, body)) for operation, body in FREE),
    *(_check(operation, partial(_refined, operation), Needs.SPENDING) for operation in REFINE),
)
