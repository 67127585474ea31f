"""The checks in their order, and how a service is asked all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from patternmill import __version__
from patternmill.conformance import (
    access_checks,
    category_checks,
    feedback_checks,
    job_checks,
    order_checks,
    unstated_checks,
)
from patternmill.conformance.check_results import Check, CheckResult, Needs, Skipped, SkipReason, not_run
from patternmill.conformance.conformance_report import CheckLine, ConformanceReport, line_of
from patternmill.conformance.probe import RATE, Probe
from patternmill.conformance.session import UNKNOWN_ID, Session, SpendingLimit
from patternmill.errors import ServiceStopped
from patternmill.service.client import StudioClient
from patternmill.service.outcomes import Answer, ExchangeResult
from patternmill.service.resend import REMEDIES, STOPPING, sentence
from patternmill.settings import Settings

CHECKS: tuple[Check, ...] = (
    *access_checks.CHECKS,
    *category_checks.CHECKS,
    *job_checks.CHECKS,
    *order_checks.CHECKS,
    *feedback_checks.CHECKS,
    *unstated_checks.CHECKS,
    *job_checks.PATTERN_CHECKS,
    *job_checks.PRODUCT_CHECKS,
    *order_checks.CHECKOUT_CHECKS,
    *job_checks.CONCURRENCY_CHECKS,
    *access_checks.WIRE_CHECKS,
)

#: One of them has to be answered, somehow.
_FIRST_REQUESTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("categories/list", {}),
    ("jobs/get", {"jobId": UNKNOWN_ID}),
)
Shown = Callable[[CheckLine], None]


async def check_service(
    settings: Settings,
    *,
    spend: int = 0,
    feedback: bool = False,
    rate: float = RATE,
    shown: Shown = lambda line: None,
) -> ConformanceReport:
    """Ask the service of the settings every check; `shown` gets each result as it is known.

    `spend`: the most patterns and products that may be bought, together; `rate`: requests a second. Raises
    ConfigurationError without an address and its key, ServiceStopped when it cannot be reached or refuses the key.
    """
    client = StudioClient.from_settings(settings)
    async with client:
        limit = SpendingLimit(spend)
        session = Session(Probe(client, rate=rate), client.base_url, limit, feedback, settings.job_timeout)
        return await run_suite(session, shown)


async def run_suite(session: Session, shown: Shown = lambda line: None) -> ConformanceReport:
    """Raises ServiceStopped when the service cannot be reached or refuses the key."""
    begun = datetime.now(UTC)
    await _require_reachable(session)
    lines = []
    for check in CHECKS:
        lines.append(line_of(check, await result_of(check, session)))
        shown(lines[-1])
    return ConformanceReport(
        url=session.base_url,
        checked_at=begun,
        version=__version__,
        spend=session.spending.limit,
        feedback=session.feedback,
        requests=session.probe.requests,
        bought_at_most=session.spending.used,
        lines=tuple(lines),
    )


async def _require_reachable(session: Session) -> None:
    for operation, body in _FIRST_REQUESTS:
        with suppress(Skipped):
            await session.asked(operation, body)
        answer = session.probe.exchanges[-1].answer
        if answer.status in STOPPING:
            code = STOPPING[answer.status]
            raise _stopped(answer, code, REMEDIES.get(code, ""))
        if answer.exchange is ExchangeResult.ANSWERED:
            return
    raise _stopped(answer, "unreachable", "See that the address is right and the service is up.")


def _stopped(answer: Answer, code: str, remedy: str) -> ServiceStopped:
    return ServiceStopped(sentence(answer), code=code, remedy=f"{remedy} Nothing could be checked.".strip())


async def result_of(check: Check, session: Session) -> CheckResult:
    """What the check finds, or why it was not run."""
    if check.needs is Needs.SPENDING and not session.spending.limit:
        return not_run(Skipped(SkipReason.COSTS, "could cost: allow it with --spend N"))
    if check.needs is Needs.FEEDBACK and not session.feedback:
        return not_run(
            Skipped(SkipReason.FEEDBACK, "would reach the service's operators: allow it with --feedback")
        )
    try:
        return await check.perform(session)
    except Skipped as skipped:
        return not_run(skipped)
