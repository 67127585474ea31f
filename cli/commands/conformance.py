"""The verb `conformance`: asks a service for everything that the interface states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import confirmed, echo, echo_lines, write_output
from patternmill.states import EXIT_CHANGED, EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.conformance.conformance_report import ConformanceReport
    from patternmill.settings import Settings


@click.command("conformance")
@click.argument("url", required=False)
@click.option("--environment", help="Whose address and key to take: staging, production, ...")
@click.option(
    "--spend",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    metavar="N",
    help="The most patterns and products to buy, together, for the checks that need some.",
)
@click.option("--feedback", is_flag=True, help="Send valid reports too, which reach the service's operators.")
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation of --spend; needed without a terminal."
)
@click.option(
    "--rate",
    type=click.FloatRange(0.1, 100),
    default=5.0,
    show_default=True,
    metavar="N",
    help="Requests a second, at most.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as JSON."
)
@click.option(
    "--watch", is_flag=True, help="Compare with the last report of this service, and keep this one."
)
def command(
    url: str | None,
    environment: str | None,
    spend: int,
    feedback: bool,
    yes: bool,
    rate: float,
    json_file: Path | None,
    watch: bool,
) -> int:
    """Check whether the service at URL does what the interface states, and how it answers where it states nothing.

    URL ends with the version, such as /v1 (default: PATTERNMILL_STUDIO_URL). The key is that of an import. Only what
    is free is asked: creates need --spend, of which more than it says is never bought, whatever the service does; 3 are
    enough for all but the check of fifty requests at once, which needs 52. Answers are reported by their keys and
    types, never by their values.

    \b
    Examples:
      patternmill conformance https://studio.example/v1
      patternmill conformance http://127.0.0.1:8321/v1 --spend 3 --yes --json conformance.json
      patternmill conformance --environment staging --watch

    Exit codes: 0 nothing deviates; 1 something deviates; 2 the service could not be asked, or the spending was not
    confirmed; 5 with --watch, something changed since the last report; 130 interrupted.
    """
    from patternmill.conformance.watch import json_of, settings_for

    settings = settings_for(url, environment)
    question = f"Buy up to {spend} patterns and products at {settings.studio_url}?"
    if spend and not yes and not confirmed(question, "Not begun"):
        return EXIT_REFUSED
    report = _checked(settings, spend, feedback, rate)
    if json_file is not None:
        write_output(json_file, [json_of(report)])
    if watch and _show_changes(settings, report):
        return EXIT_CHANGED
    return EXIT_CODES[Outcome.FAILED if report.deviations else Outcome.COMPLETED]


def _checked(settings: Settings, spend: int, feedback: bool, rate: float) -> ConformanceReport:
    import asyncio

    from patternmill.conformance.conformance_report import CheckLine, line_texts, summary_text
    from patternmill.conformance.suite import CHECKS, check_service

    width = max(len(check.id) for check in CHECKS)

    def show(line: CheckLine) -> None:
        echo_lines(line_texts(line, width))

    report = asyncio.run(check_service(settings, spend=spend, feedback=feedback, rate=rate, shown=show))
    echo(f"{report.url}: {summary_text(report)}")
    return report


def _show_changes(settings: Settings, report: ConformanceReport) -> bool:
    """Whether something changed."""
    from patternmill.conformance.watch import compare_with_last
    from patternmill.text import moment, plural

    found = compare_with_last(settings, report)
    if found.before is None:
        echo("This is the first report of this service: the next one is compared with it.")
        return False
    since = f"since {moment(found.before.checked_at)} UTC"
    echo(f"{plural(len(found.changes), 'change')} {since}{':' if found.changes else '.'}")
    for change in found.changes:
        echo(f"  {change}")
    return bool(found.changes)
