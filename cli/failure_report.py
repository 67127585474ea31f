"""`explain --report`: a report to the service's operators, shown before it is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cli.terminal import confirmed, echo
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.reports.story import Story


def report_failure(ledger: Ledger, found: Sequence[Story], name: str, text: str | None, yes: bool) -> int:
    """Show the report of the failure that is meant exactly as it is sent to the service that its request went to, and
    send it when that is confirmed; the exit code.
    """
    from cli.available_service import ask_service
    from patternmill.runs.failure_reports import failure_in, failure_report, send_feedback
    from patternmill.runs.safeguards import settings_for_request
    from patternmill.service.feedback_report import DeliveryState

    if text is not None and not text.strip():
        raise click.UsageError("The --text is empty.")
    failure = failure_in(ledger, found, name)
    request_id = failure[0].request_id
    settings = settings_for_request(ledger, request_id)
    report = failure_report(ledger, failure, settings.secrets(), text)
    echo(f"To the operators of {settings.studio_url or 'the embedded studio'}:")
    echo(json.dumps(report, ensure_ascii=False, indent=2))
    echo("Look for personal data in it: the request has what the row asked for.")
    if not yes and not confirmed("Send it?", "Not sent"):
        return EXIT_REFUSED
    delivery = ask_service(settings, lambda api: send_feedback(ledger, api, request_id, report))
    if delivery is None:
        raise ConfigurationError(
            f"This failure was reported before, or may have been: see `patternmill explain {request_id}`."
        )
    codes = {DeliveryState.SENT: Outcome.COMPLETED, DeliveryState.IN_DOUBT: Outcome.COMPLETED_WITH_FAILURES}
    state, message = delivery
    outcome = codes.get(state, Outcome.FAILED)
    echo(message, err=outcome is not Outcome.COMPLETED)
    return EXIT_CODES[outcome]
