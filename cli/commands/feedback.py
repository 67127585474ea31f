"""The verb `feedback`: a report to the service's operators about something that failed there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.terminal import confirmed, echo, echo_lines
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import moment, plural, shortened

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import RunRecord
    from patternmill.runs.failure_reports import Failure
    from patternmill.service.feedback_report import Delivery, FeedbackReport
    from patternmill.settings import Settings

_MOST_CAUSES = 20


@click.command("feedback")
@click.option("--sku", help="About this row: the last request for its product, or for its pattern.")
@click.option("--request-id", metavar="ID", help="About this request.")
@click.option("--job", metavar="JOB-ID", help="About the request of this job.")
@click.option("--catalog", help="Of this catalog.")
@click.option("--environment", help="Of this environment: staging, production, ...")
@click.option("--text", help="What to write, instead of what the ledger knows. Default: its story.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
def command(text: str | None, yes: bool, **named: str | None) -> int:
    """Report a failure to the operators of the service: what was expected, what happened, what was tried.

    Without a row, request or job, the causes of the last run's failures are listed, to choose one. The report is made
    from the ledger: the request as it was sent (with its prompt or selections), the answer as far as it is kept, the
    attempts. Keys, credentials, queries of addresses and e-mail addresses are removed. It is shown, and sent only
    when that is confirmed; and once: what may have arrived is not sent again. `explain` shows what was sent.

    \b
    Examples:
      patternmill feedback
      patternmill feedback --sku SPR-CUS-001
      patternmill feedback --job job_4c1f --text "This prompt worked yesterday." --yes

    Exit codes: 0 sent, or nothing failed; 1 not delivered (feedback is unavailable, or the report was refused); 2 not
    confirmed, or nothing to report; 3 its answer was lost, so that it may have arrived.
    """
    from patternmill.ledger.ledger import open_ledger
    from patternmill.runs.failure_reports import refuse_under_way, write_feedback
    from patternmill.runs.safeguards import settings_for_request
    from patternmill.settings import load_settings

    name = _one_name(named["sku"], named["request_id"], named["job"])
    if text is not None and not text.strip():
        raise click.UsageError("The --text is empty.")
    with open_ledger(load_settings(environment=named["environment"]), must_exist=True) as ledger:
        failure = _chosen(ledger, name, named["catalog"], named["environment"])
        if failure is None:
            return EXIT_CODES[Outcome.COMPLETED]
        refuse_under_way(ledger, failure)
        settings = settings_for_request(ledger, failure.attempt.request_id)
        report = write_feedback(ledger, failure, settings.secrets(), text)
        echo_lines(_shown_lines(ledger, failure, report, settings))
        if not yes and not confirmed("Send it?", "Not sent"):
            return EXIT_REFUSED
        return _show_delivery(_sent(ledger, failure, report, settings))


def _one_name(*names: str | None) -> str | None:
    named = [name for name in names if name is not None]
    if len(named) > 1:
        raise click.UsageError("Name one of --sku, --request-id and --job.")
    return named[0].strip() if named else None


def _chosen(ledger: Ledger, name: str | None, catalog: str | None, environment: str | None) -> Failure | None:
    from patternmill.catalog.rows import tidy
    from patternmill.ledger.reports.run_lookup import latest_run
    from patternmill.ledger.reports.story import stories
    from patternmill.runs.failure_reports import failure_in

    if name is None:
        return _choose(ledger, latest_run(ledger, catalog=catalog, environment=environment))
    name = tidy(name)
    return failure_in(stories(ledger, name, catalog, environment), name)


def _choose(ledger: Ledger, record: RunRecord) -> Failure | None:
    """The cause that a person chooses, of the most frequent ones; None: nothing failed."""
    from patternmill.runs.failure_reports import failures_of_run

    failures = failures_of_run(ledger, record)[:_MOST_CAUSES]
    echo(f"Run {record.run_id} of catalog {record.catalog} ({record.environment})")
    if not failures:
        echo("Nothing failed at the service.")
        return None
    echo_lines(_cause_lines(ledger, record, failures))
    if len(failures) == 1:
        return failures[0]
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"There are {plural(len(failures), 'cause')}, and no terminal to ask on which is meant.",
            remedy="Name a row with --sku, or a request with --request-id.",
        )
    number: int = click.prompt("Which one", type=click.IntRange(1, len(failures)))
    return failures[number - 1]


def _cause_lines(ledger: Ledger, record: RunRecord, failures: Sequence[Failure]) -> Iterator[str]:
    from patternmill.ledger.feedback_log import reported_causes

    known = reported_causes(ledger, record.environment)
    for number, failure in enumerate(failures, 1):
        cause = failure.cause
        at = known.get(cause)
        before = f"  [reported {moment(at)}]" if at is not None else ""
        message = shortened(failure.attempt.error or cause.signature)
        yield f"  {number}. {failure.rows:,} × {cause.operation}, {cause.code}: {message} ({failure.sku}){before}"


def _shown_lines(
    ledger: Ledger, failure: Failure, report: FeedbackReport, settings: Settings
) -> Iterator[str]:
    """The report exactly as it is sent, and what a person should know before."""
    from patternmill.ledger.feedback_log import reported_causes
    from patternmill.ledger.reports.unsettled import run_of

    run = run_of(ledger, failure.attempt.request_id)
    at = reported_causes(ledger, run.environment).get(failure.cause) if run is not None else None
    yield f"To the operators of {settings.studio_url or 'the embedded studio'}:"
    yield json.dumps(report.on_wire(), ensure_ascii=False, indent=2)
    yield "The request has what the row asked for, as it was sent. Look for personal data in it."
    if at is not None:
        yield f"This cause was reported before, on {moment(at)} UTC."


def _sent(ledger: Ledger, failure: Failure, report: FeedbackReport, settings: Settings) -> Delivery:
    from cli.launcher import ask_service
    from patternmill.runs.failure_reports import send_feedback

    delivery = ask_service(settings, lambda api: send_feedback(ledger, api, failure, report))
    assert delivery is not None, "a person may report a cause again"
    return delivery


def _show_delivery(delivery: Delivery) -> int:
    from patternmill.service.feedback_report import DeliveryState

    codes: dict[Any, Outcome] = {
        DeliveryState.SENT: Outcome.COMPLETED,
        DeliveryState.IN_DOUBT: Outcome.COMPLETED_WITH_FAILURES,
    }
    outcome = codes.get(delivery.state, Outcome.FAILED)
    echo(delivery.message, err=outcome is not Outcome.COMPLETED)
    if outcome is Outcome.FAILED:
        echo("Nothing is lost: the same command makes the report again.", err=True)
    return EXIT_CODES[outcome]
