"""The verb `settle`: a person's decision about what no run may decide, on the record."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from getpass import getuser
from typing import TYPE_CHECKING, Any

import click

from cli.available_service import available_service
from cli.terminal import confirmed, echo, echo_lines
from patternmill.errors import Overlap
from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.unsettled import unsettled
from patternmill.money import money
from patternmill.parameters import wait_time
from patternmill.runs.safeguards import settings_for_request
from patternmill.runs.settlement import Decision, Settlement, SettlementFilter, next_runs, settle, settle_many
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome, Stage
from patternmill.text import duration, more, plural, shortened

if TYPE_CHECKING:
    from patternmill.errors import PatternmillError
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.reports.unsettled import Unsettled
    from patternmill.service.jobs import Job
    from patternmill.settings import Settings

_MOST_ITEMS = 40


def _refuse_contradictions(
    decisions: Sequence[str], request_id: str | None, many: bool, filters: bool
) -> None:
    """Raises UsageError."""
    if len(decisions) != 1:
        raise click.UsageError("Decide one of --resend, --write-off, --job and --made.")
    if (request_id is None) is not many:
        raise click.UsageError("Name one request, or choose several with --all and a filter.")
    if many and decisions[0] in ("job", "made"):
        raise click.UsageError("A job belongs to one request; --all takes --resend or --write-off.")
    if filters and not many:
        raise click.UsageError("--catalog, --environment, --stage, --code and --older-than go with --all.")


@click.command("settle")
@click.argument("request_id", metavar="[REQUEST-ID]", required=False)
@click.option(
    "--list", "listing", is_flag=True, help="List what waits for a decision (the default without REQUEST-ID)."
)
@click.option(
    "--resend",
    is_flag=True,
    help="Send the same request again, under the same ID, with the next run; of a refinement or a reference: it was "
    "not made.",
)
@click.option(
    "--write-off",
    is_flag=True,
    help="Give the request up; a retry then makes a new attempt, which is paid for.",
)
@click.option(
    "--job",
    metavar="JOB-ID",
    help="The service's job for this request; it is checked, and the next run follows it.",
)
@click.option(
    "--made",
    metavar="ID",
    help="What was made: the ID of the refined pattern, or of the reference, where no job names it.",
)
@click.option(
    "--all", "many", is_flag=True, help="Decide about all requests that wait and match the filters."
)
@click.option("--catalog", help="Filter: this catalog.")
@click.option("--environment", help="Filter: this environment (staging, production, ...).")
@click.option(
    "--stage", type=click.Choice([stage.value for stage in Stage]), help="Filter: patterns or products."
)
@click.option("--code", help="Filter: this error code.")
@click.option(
    "--older-than",
    metavar="AGE",
    help="Filter: longer in this state than an age (90m, 12h, 3d).",
)
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation with --all; needed without a terminal."
)
@click.option("--reason", help="Why you decide so; kept with the decision.")
@click.option("--by", metavar="NAME", help="Who decides (default: your login name).")
def command(
    request_id: str | None,
    listing: bool,
    catalog: str | None,
    environment: str | None,
    stage: str | None,
    code: str | None,
    older_than: str | None,
    many: bool,
    yes: bool,
    reason: str | None,
    by: str | None,
    **decided: Any,
) -> int:
    """Decide about a request that no run may decide about: one held, or one in doubt for too long.

    Held: the service's answers contradict one another, or a refinement or reference may have been made and nothing
    promises that its request may be sent again. In doubt for longer than 12 h (PATTERNMILL_IN_DOUBT_LIMIT):
    the service may have forgotten the request ID, so that a resend could buy twice. Look into the service's console
    first. A decision is refused while a run has the catalog's lease. A job is refused when the service does not
    know it, or shows that it was made for something else; where the service does not show what a job was asked for,
    only you can compare. With --all, all requests that match are shown and decided alike.

    \b
    Examples:
      patternmill settle --list --catalog spring
      patternmill settle 6f1c…80 --resend --reason "support says it never arrived"
      patternmill settle 6f1c…80 --job job_4c1f --reason "found in the console"
      patternmill settle 6f1c…80 --made pat_77 --reason "found in the console"
      patternmill settle 6f1c…80 --write-off --reason "refunded" --by "A. Weaver"
      patternmill settle --all --code job_unknown --older-than 12h --write-off --reason "lost in their outage"

    Exit codes: 0 listed or decided; 2 nothing to decide or not confirmed, and nothing was changed;
    3 some of many were left; 4 a run has the catalog's lease; 1 failed.
    """
    decisions = [name for name, value in decided.items() if value]
    filters = (catalog, environment, stage, code, older_than)
    listing = listing or (request_id is None and not many and not decisions)
    if not listing:
        _refuse_contradictions(decisions, request_id, many, any(one is not None for one in filters))
        if not (reason or "").strip():
            raise click.UsageError("Give the reason with --reason; it is kept with the decision.")
    settings = load_settings()
    with open_ledger(settings, must_exist=True) as ledger:
        before = None if older_than is None else ledger.now() - _age(older_than)
        choice = SettlementFilter(catalog, environment, Stage(stage) if stage else None, code, before)
        if listing:
            return _list(ledger, settings, choice)
        decision, why, who = Decision(decisions[0]), (reason or "").strip(), by or getuser()
        if request_id is None:
            return _settle_many(ledger, settings, choice, decision, why, who, yes=yes)
        request = RequestId(request_id.strip())
        settlement = Settlement(request, decision, why, who, decided["job"] or decided["made"])
        return _settle(ledger, settings, settlement)


def _age(older_than: str) -> float:
    """In seconds."""
    if not re.fullmatch(r"\d{1,6}[mhd]", older_than):
        raise click.UsageError(f"--older-than {older_than!r} is no age, such as 90m, 12h or 3d.")
    return wait_time(older_than).total_seconds()


def _settle(ledger: Ledger, settings: Settings, settlement: Settlement) -> int:
    async def look_up(job_id: str) -> Job | None:
        from patternmill.service.studio_api import StudioApi

        with available_service(settings_for_request(ledger, settlement.request_id)) as service:
            async with StudioApi.from_settings(service) as api:
                return await api.job(job_id)

    try:
        attempt = asyncio.run(settle(ledger, settlement, limit=settings.in_doubt_limit, look_up=look_up))
    except Overlap as overlap:
        echo(str(overlap), err=True)
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    echo(f"Request {attempt.request_id} is {attempt.state} now; the decision is on record.")
    echo("To resume: patternmill retry")
    return 0


def _settle_many(
    ledger: Ledger,
    settings: Settings,
    choice: SettlementFilter,
    decision: Decision,
    reason: str,
    by: str,
    *,
    yes: bool,
) -> int:
    """Show the requests, ask, and decide about all of them at once."""
    limit = settings.in_doubt_limit
    items = [item for item in unsettled(ledger, limit) if choice.fits(item)]
    if not items:
        echo("Nothing that fits waits for a decision.")
        return EXIT_CODES[Outcome.COMPLETED]
    _echo_items(ledger, items[:_MOST_ITEMS], settings.currency)
    echo_lines(more(len(items), _MOST_ITEMS))
    echo(_what_follows(items, settings.currency, decision))
    question = f"Decide so about {plural(len(items), 'request')}?"
    if not yes and not confirmed(question, "Not decided"):
        return EXIT_REFUSED
    left = asyncio.run(settle_many(ledger, items, decision, reason=reason, by=by, limit=limit))
    return _report(len(items) - len(left), left)


def _what_follows(items: Sequence[Unsettled], currency: str | None, decision: Decision) -> str:
    amount = sum(item.price for item in items)
    price = f"{plural(len(items), 'request')}{f' for {money(amount, currency)}' if amount else ''}"
    if decision is Decision.RESEND:
        booked = ", which is booked on today then, whatever is left of the day's budget" if amount else ""
        return f"To send again, each under its own ID: {price}{booked}."
    booked = ", which stays booked" if amount else ""
    return f"To write off: {price}{booked}; a retry would buy them anew."


def _report(decided: int, left: Mapping[RequestId, PatternmillError]) -> int:
    for request_id, why in left.items():
        echo(f"Left: {request_id}: {why}", err=True)
    echo(f"{decided} decided, {len(left)} left; the decisions are on record.")
    if decided:
        echo("To resume: patternmill retry")
    if not left:
        return EXIT_CODES[Outcome.COMPLETED]
    if not decided and all(isinstance(why, Overlap) for why in left.values()):
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES] if decided else EXIT_REFUSED


def _list(ledger: Ledger, settings: Settings, choice: SettlementFilter) -> int:
    found = [item for item in unsettled(ledger, settings.in_doubt_limit) if choice.fits(item)]
    if not found:
        echo("Nothing waits for a decision.")
    _echo_items(ledger, found, settings.currency)
    waiting, driven = next_runs(ledger, settings.in_doubt_limit, choice)
    if waiting:
        echo(f"\nIn doubt, and resumed by the next run of their catalog ({len(waiting)}):")
        _echo_items(ledger, waiting, settings.currency)
    if driven:
        leased = ", ".join(sorted({f"{item.catalog} ({item.environment})" for item in driven}))
        echo(f"\nWithout an answer yet, in runs that go on ({leased}): {len(driven):,}.")
    return 0


def _echo_items(ledger: Ledger, items: Sequence[Unsettled], currency: str | None) -> None:
    for item in items:
        attempt = item.attempt
        echo(f"{attempt.request_id}  {attempt.state} for {duration(ledger.now() - item.since)}")
        scope = f"catalog {item.catalog} ({item.environment})"
        echo(f"  {item.stage} · {_content(item)}   {scope}, attempt {attempt.attempt}")
        if attempt.job_id:
            echo(f"  job: {attempt.job_id}")
        if attempt.error:
            echo(f"  {attempt.error_code}: {attempt.error}")
        if item.price:
            echo(f"  price: {money(item.price, currency)}")


def _content(item: Unsettled) -> str:
    """The sku, or the start of a pattern's prompt, or what else is bought."""
    content = json.loads(item.content)
    named = (content.get(name) for name in ("prompt", "order", "operation", "sha256"))
    return item.sku or shortened(str(next(filter(None, named), "")), 60)
