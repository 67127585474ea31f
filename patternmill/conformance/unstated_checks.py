"""Groups that the interface names without operations or shapes: asked under plausible names, and only reported."""

from __future__ import annotations

from typing import Any

from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Needs,
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
REFINE = ("edit", "recolor", "crop", "extend")


def _free_check(operation: str, body: dict[str, Any]) -> Check:
    async def asked(session: Session) -> CheckResult:
        await session.require(operation)
        answer = await session.asked(operation, body)
        request = "an unknown ID" if body else "nothing named"
        return unspecified(f"answers {answer.status}", form_of(request, answer))

    return Check(f"unstated-{operation.replace('/', '-')}", SECTION, f"{operation}: left open.", asked)


def _refine_check(name: str) -> Check:
    async def asked(session: Session) -> CheckResult:
        body = {"requestId": session.request_id(name), "patternId": UNKNOWN_ID}
        answer = await session.try_create(f"refine/{name}", body)
        if await session.is_missing(f"refine/{name}", answer):
            raise Skipped(SkipReason.NOT_THERE, "the operation is not there")
        made = ", and accepted what names no pattern" if answer.status in SUCCESS else ""
        return unspecified(f"answers {answer.status}{made}", form_of("an unknown patternId", answer))

    return Check(f"unstated-refine-{name}", SECTION, f"refine/{name}: left open.", asked, Needs.SPENDING)


CHECKS = (
    *(_free_check(operation, body) for operation, body in FREE),
    *(_refine_check(name) for name in REFINE),
)
