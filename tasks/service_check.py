"""The steps of the check of the service, and its page in the Prefect UI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefect import State
from prefect.artifacts import acreate_markdown_artifact

from patternmill.conformance.check_results import CheckOutcome
from patternmill.conformance.conformance_report import CheckLine, ConformanceReport, summary_text
from patternmill.conformance.suite import check_service
from patternmill.conformance.watch import Comparison, compare_with_last, settings_for
from patternmill.states import Outcome
from patternmill.text import moment, plural
from prefect_host.service_blocks import addressed_settings
from tasks.markup import markdown
from tasks.prefect_states import state_of


async def watched_service(environment: str) -> tuple[ConformanceReport, Comparison]:
    """Check the environment's service with free operations, and compare with the last report in the worker's home.

    Raises ConfigurationError and ServiceStopped when it cannot be asked.
    """
    settings = settings_for(None, environment)
    if not settings.is_addressed:
        settings = await addressed_settings(settings)
    report = await check_service(settings)
    return report, compare_with_last(settings, report)


async def show_report(environment: str, report: ConformanceReport, comparison: Comparison) -> None:
    """Put the report on the flow run's page."""
    await acreate_markdown_artifact(
        key=f"service-check-{environment.replace('_', '-')}",
        markdown="\n".join(_page_lines(report, comparison)),
        description=markdown(service_message(report, comparison)),
    )


def service_state(report: ConformanceReport, comparison: Comparison) -> State[Any]:
    """Failed when something changed, so that the automations send a message."""
    outcome = Outcome.COMPLETED_WITH_FAILURES if report.deviations else Outcome.COMPLETED
    return state_of(Outcome.FAILED if comparison.changes else outcome, service_message(report, comparison))


def service_message(report: ConformanceReport, comparison: Comparison) -> str:
    if comparison.before is None or not comparison.changes:
        return summary_text(report)
    since = moment(comparison.before.checked_at)
    changes = "; ".join(comparison.changes)
    return f"{plural(len(comparison.changes), 'change')} since {since} UTC: {changes}"


def _page_lines(report: ConformanceReport, comparison: Comparison) -> Iterator[str]:
    yield f"## {markdown(report.url)}\n"
    yield markdown(summary_text(report))
    if comparison.changes:
        yield "\n### What changed\n"
        yield from (f"- {markdown(change)}" for change in comparison.changes)
    yield from _table("What deviates", report, CheckOutcome.DEVIATES)
    yield from _table("How it answers what is left open", report, CheckOutcome.UNSPECIFIED)


def _table(title: str, report: ConformanceReport, outcome: CheckOutcome) -> Iterator[str]:
    lines = [line for line in report.lines if line.outcome is outcome]
    if lines:
        yield f"\n### {title}\n\n| check | interface | answer |\n|---|---|---|"
        yield from (
            f"| {line.check} | {markdown(line.statement)} | {markdown(_answer(line))} |" for line in lines
        )


def _answer(line: CheckLine) -> str:
    answers = (f"{answer.request}: {answer.status} {answer.text}" for answer in line.answers if answer.status)
    return "; ".join((line.detail, *answers))
