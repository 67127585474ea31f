"""`explain --report`: a report to the service's operators, shown before it is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.terminal import confirmed, echo
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.reports.story import Story
    from patternmill.service.feedback_report import Delivery, FeedbackReport
    from patternmill.service.studio_api import StudioApi
    from patternmill.settings import Settings

    Send = Callable[[StudioApi], Coroutine[Any, Any, Delivery | None]]

#: Of the interface; a name that begins with one of them and a slash is that of an operation.
_GROUPS = frozenset(
    [
        "patterns",
        "refine",
        "jobs",
        "references",
        "models",
        "categories",
        "products",
        "checkouts",
        "orders",
        "feedback",
    ]
)


def report_failure(ledger: Ledger, found: Sequence[Story], name: str, text: str | None, yes: bool) -> int:
    """Report the failure that is meant to the service that its request went to; the exit code."""
    from patternmill.runs.failure_reports import failure_in, failure_report, send_feedback
    from patternmill.runs.safeguards import settings_for_request

    _refuse_empty(text)
    failure = failure_in(ledger, found, name)
    request_id = failure[0].request_id
    settings = settings_for_request(ledger, request_id)
    report = failure_report(ledger, failure, settings.secrets(), text)

    async def send(api: StudioApi) -> Delivery | None:
        return await send_feedback(ledger, api, request_id, report)

    return _reported(settings, report, send, yes)


def is_operation(name: str) -> bool:
    """Whether a name is that of an operation, such as `jobs/get`."""
    group, slash, _ = name.partition("/")
    return bool(slash) and group in _GROUPS


def report_operation(settings: Settings, operation: str, text: str | None, yes: bool) -> int:
    """Report something about an operation as such; the exit code."""
    from patternmill.runs.failure_reports import operation_report
    from patternmill.runs.safeguards import refuse_known_other_service

    _refuse_empty(text)
    if text is None:
        raise click.UsageError(f"Say with --text what is wrong with {operation}.")
    if not settings.embedded:
        refuse_known_other_service(settings)
    report = operation_report(operation, text, settings.secrets(), time.time())
    return _reported(settings, report, lambda api: api.send_feedback(report), yes)


def _refuse_empty(text: str | None) -> None:
    if text is not None and not text.strip():
        raise click.UsageError("The --text is empty.")


def _reported(settings: Settings, report: FeedbackReport, send: Send, yes: bool) -> int:
    """Show the report exactly as it is sent, and send it when that is confirmed."""
    from cli.available_service import ask_service
    from patternmill.service.feedback_report import DeliveryState

    echo(f"To the operators of {settings.studio_url or 'the embedded studio'}:")
    echo(json.dumps(report, ensure_ascii=False, indent=2))
    echo("Look for personal data in it: the request has what the row asked for.")
    if not yes and not confirmed("Send it?", "Not sent"):
        return EXIT_REFUSED
    delivery = ask_service(settings, send)
    if delivery is None:
        raise ConfigurationError(
            "This failure was reported before, or may have been: see `patternmill explain`."
        )
    codes = {DeliveryState.SENT: Outcome.COMPLETED, DeliveryState.IN_DOUBT: Outcome.COMPLETED_WITH_FAILURES}
    state, message = delivery
    outcome = codes.get(state, Outcome.FAILED)
    echo(message, err=outcome is not Outcome.COMPLETED)
    return EXIT_CODES[outcome]
