"""The verb `settle`: a person's decision about what no run may decide, on the record."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cli.terminal import echo
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome, Stage

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.reports.unsettled import Unsettled
    from patternmill.runs.settlement import Decision, SettledBatch, Settlement, SettlementFilter
    from patternmill.service.jobs import Job
    from patternmill.settings import Settings

_MOST_ITEMS = 40
_UNITS = {"m": 60, "h": 3600, "d": 86_400}


@click.command("settle")
@click.argument("request_id", metavar="[REQUEST-ID]", required=False)
@click.option(
    "--list", "listing", is_flag=True, help="Show what waits for a decision (as without REQUEST-ID)."
)
@click.option(
    "--resend", is_flag=True, help="The next run sends the same request once more, under the same ID."
)
@click.option(
    "--write-off", is_flag=True, help="Give it up; a retry then makes a new attempt, which is paid for."
)
@click.option(
    "--job",
    metavar="JOB-ID",
    help="This is the service's job for it, which is looked at; the next run follows it.",
)
@click.option("--all", "many", is_flag=True, help="All that wait for a decision and fit the options below.")
@click.option("--catalog", help="Those of this catalog.")
@click.option("--environment", help="Those of this environment: staging, production, ...")
@click.option("--stage", type=click.Choice([stage.value for stage in Stage]), help="Patterns or products.")
@click.option("--code", help="Those with this error code.")
@click.option(
    "--older-than",
    metavar="AGE",
    help="Those in this state for longer (90m, 12h, 3d), or since before a date.",
)
@click.option("--yes", is_flag=True, help="Do not ask about many. Without a terminal they need it.")
@click.option("--reason", help="Why; kept with the decision for ever.")
@click.option("--by", metavar="NAME", help="Who decides (default: the name you are logged in by).")
def command(
    request_id: str | None,
    listing: bool,
    resend: bool,
    write_off: bool,
    job: str | None,
    many: bool,
    catalog: str | None,
    environment: str | None,
    stage: str | None,
    code: str | None,
    older_than: str | None,
    yes: bool,
    reason: str | None,
    by: str | None,
) -> int:
    """Decide about an item that no run may decide about: one held, or without an answer past the age limit.

    Held: the service's answers contradict one another. Past the limit (12 h, PATTERNMILL_IN_DOUBT_LIMIT): the
    service may have forgotten the request ID, so that sending it again could buy twice. Look into the service's
    console first. A decision is refused while a run drives the catalog, and a job when the service does not know it
    or it was made for something else. With --all the same is decided about many, once they were shown.

    \b
    Examples:
      patternmill settle --list --catalog spring
      patternmill settle 6f1c…80 --resend --reason "support says it never arrived"
      patternmill settle 6f1c…80 --job job_4c1f --reason "found in the console"
      patternmill settle 6f1c…80 --write-off --reason "refunded" --by "A. Weaver"
      patternmill settle --all --code job_unknown --older-than 12h --write-off --reason "lost in their outage"

    \b
    Exit codes: 0 listed or decided; 2 there is nothing to decide so, or it was not confirmed, and nothing was
    changed; 3 some of many were left; 4 a run holds the catalog; 1 failed.
    """
    from patternmill.ledger.ledger import open_ledger
    from patternmill.runs.settlement import SettlementFilter
    from patternmill.settings import load_settings

    decisions = [
        name for name, chosen in (("resend", resend), ("write_off", write_off), ("job", bool(job))) if chosen
    ]
    filters = (catalog, environment, stage, code, older_than)
    _refuse_misused(request_id, listing, many, decisions, any(option is not None for option in filters))
    settings = load_settings()
    with open_ledger(settings, must_exist=True) as ledger:
        choice = SettlementFilter(
            catalog, environment, Stage(stage) if stage else None, code, _before(older_than, ledger.now())
        )
        if listing or not decisions:
            return _list(ledger, settings, choice)
        if not (reason or "").strip():
            raise click.UsageError("Say why with --reason; it is kept with the decision.")
        if request_id is None:
            return _settle_many(ledger, settings, choice, decisions[0], reason or "", by, yes)
        return _settle(ledger, settings, _settlement(request_id, decisions[0], job, reason or "", by))


def _refuse_misused(
    request_id: str | None, listing: bool, many: bool, decisions: Sequence[str], filtered: bool
) -> None:
    if listing or (request_id is None and not many and not decisions):
        return
    if len(decisions) != 1:
        raise click.UsageError("Decide one of --resend, --write-off and --job.")
    if (request_id is None) is not many:
        raise click.UsageError("Name one request, or those that are meant with --all and a filter.")
    if many and decisions == ["job"]:
        raise click.UsageError("A job is of one request; --all takes --resend or --write-off.")
    if filtered and not many:
        raise click.UsageError("--catalog, --environment, --stage, --code and --older-than go with --all.")


def _before(older_than: str | None, now: float) -> float | None:
    """The moment, in Unix seconds, from an age such as `12h` or a date in ISO form (UTC where it does not say)."""
    from datetime import UTC, datetime

    if older_than is None:
        return None
    age = re.fullmatch(r"(\d{1,6})\s*([mhd])(?:in)?", older_than.strip())
    if age is not None:
        return now - int(age[1]) * _UNITS[age[2]]
    try:
        moment = datetime.fromisoformat(older_than.strip())
    except ValueError:
        raise click.UsageError(
            f"--older-than {older_than!r} is neither an age (90m, 12h, 3d) nor a date (2027-01-15)."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _settlement(request_id: str, decision: str, job: str | None, reason: str, by: str | None) -> Settlement:
    from getpass import getuser

    from patternmill.identifiers import RequestId
    from patternmill.runs.settlement import Decision, Settlement

    return Settlement(RequestId(request_id.strip()), Decision(decision), reason.strip(), by or getuser(), job)


def _settle(ledger: Ledger, settings: Settings, settlement: Settlement) -> int:
    import asyncio

    from patternmill.errors import Overlap
    from patternmill.runs.settlement import settle

    async def look_up(job_id: str) -> Job | None:
        return await _look_up(_settings_of(ledger, settlement), job_id)

    try:
        attempt = asyncio.run(settle(ledger, settlement, limit=settings.in_doubt_limit, look_up=look_up))
    except Overlap as overlap:
        echo(str(overlap), err=True)
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    echo(f"Request {attempt.request_id} is {attempt.state} now; the decision is on record.")
    echo("Go on with: patternmill retry")
    return 0


def _settings_of(ledger: Ledger, settlement: Settlement) -> Settings:
    """Those of the service that a request went to. Raises ConfigurationError when it is not named here."""
    from patternmill.errors import ConfigurationError
    from patternmill.ledger.reports.unsettled import open_attempt, service_of
    from patternmill.settings import load_settings

    item = open_attempt(ledger, settlement.request_id)
    assert item is not None, "it is to be decided about"
    settings, address = load_settings(environment=item.environment), service_of(ledger, settlement.request_id)
    if address and settings.studio_url is None:
        raise ConfigurationError(
            f"The request went to {address}, and no address of the service is named here to look at the job.",
            remedy="Set PATTERNMILL_STUDIO_URL and PATTERNMILL_API_KEY. Nothing was changed.",
        )
    if (
        address
        and settings.studio_url
        and settings.service_at(address) != settings.service_at(settings.studio_url)
    ):
        raise ConfigurationError(
            f"The request went to {address}, and {settings.studio_url} is named here: another service may have a job "
            "of the same name.",
            code="other_service",
            remedy="Name the first, or both in PATTERNMILL_SAME_SERVICE if it is one that has moved. "
            "Nothing was changed.",
        )
    return settings


async def _look_up(settings: Settings, job_id: str) -> Job | None:
    from cli.launcher import service_at_hand
    from patternmill.service.studio_api import StudioApi

    with service_at_hand(settings) as settings:
        async with StudioApi.from_settings(settings) as api:
            return await api.job(job_id)


def _settle_many(
    ledger: Ledger,
    settings: Settings,
    choice: SettlementFilter,
    decision: str,
    reason: str,
    by: str | None,
    yes: bool,
) -> int:
    """Show what is meant, ask, and decide about it once."""
    import asyncio
    from getpass import getuser

    from patternmill.ledger.reports.unsettled import unsettled
    from patternmill.runs.settlement import Decision, settle_many

    limit, decided = settings.in_doubt_limit, Decision(decision)
    items = [item for item in unsettled(ledger, limit) if choice.fits(item)]
    if not items:
        echo("Nothing that fits waits for a decision.")
        return EXIT_CODES[Outcome.COMPLETED]
    for line in many_lines(items, decided, ledger.now(), settings.currency):
        echo(line)
    if not yes and not _is_meant(len(items)):
        return EXIT_REFUSED
    settled = asyncio.run(
        settle_many(ledger, items, decided, reason=reason.strip(), by=by or getuser(), limit=limit)
    )
    return _report(settled)


def many_lines(
    items: Sequence[Unsettled], decision: Decision, now: float, currency: str | None
) -> Iterator[str]:
    """What is to be decided about, as far as a screen bears it, how many, and the money in it."""
    from patternmill.runs.settlement import Decision
    from patternmill.text import duration, in_columns, money, more, plural

    rows = [
        (
            f"  {item.attempt.request_id}",
            f"{item.attempt.state} for {duration(now - item.since)}",
            f"{item.catalog} ({item.environment})",
            f"{item.stage} · {_what(item, 40)}",
            item.attempt.error_code or "",
        )
        for item in items[:_MOST_ITEMS]
    ]
    yield from in_columns(rows)
    yield from more(len(items), _MOST_ITEMS)
    amount = sum(item.price for item in items)
    requests = plural(len(items), "request")
    booked = f" for {money(amount, currency)}, which stays booked" if amount else ""
    if decision is Decision.RESEND:
        yield f"To send again, each under its own ID: {requests}{booked}."
    else:
        yield f"To write off: {requests}{booked}; a retry would buy them anew."


def _is_meant(count: int) -> bool:
    if not sys.stdin.isatty():
        echo("Not decided: there is no terminal to ask on. Add --yes to decide.", err=True)
        return False
    from patternmill.text import plural

    return click.confirm(f"Decide so about {plural(count, 'request')}?", default=False)


def _report(settled: SettledBatch) -> int:
    from patternmill.errors import Overlap

    for item, why in settled.left:
        echo(f"Left: {item.attempt.request_id}: {why}", err=True)
    echo(f"{len(settled.decided)} decided, {len(settled.left)} left; the decisions are on record.")
    if settled.decided:
        echo("Go on with: patternmill retry")
    if not settled.left:
        return EXIT_CODES[Outcome.COMPLETED]
    if not settled.decided and all(isinstance(why, Overlap) for _, why in settled.left):
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES] if settled.decided else EXIT_REFUSED


def _list(ledger: Ledger, settings: Settings, choice: SettlementFilter) -> int:
    from patternmill.ledger.reports.unsettled import unsettled
    from patternmill.runs.settlement import next_runs

    found = [item for item in unsettled(ledger, settings.in_doubt_limit) if choice.fits(item)]
    if not found:
        echo("Nothing waits for a decision.")
    _echo(ledger, found, settings.currency)
    waiting, driven = next_runs(ledger, settings.in_doubt_limit, choice)
    if waiting:
        echo(f"\nIn doubt, and sent again by the next run of their catalog ({len(waiting)}):")
        _echo(ledger, waiting, settings.currency)
    if driven:
        held = ", ".join(sorted({f"{item.catalog} ({item.environment})" for item in driven}))
        echo(f"\nWithout an answer yet, in runs that hold their catalogs ({held}): {len(driven):,}.")
    return 0


def _echo(ledger: Ledger, items: Sequence[Unsettled], currency: str | None) -> None:
    for item in items:
        for line in unsettled_lines(item, ledger.now(), currency):
            echo(line)


def unsettled_lines(item: Unsettled, now: float, currency: str | None) -> Iterator[str]:
    """What a person has to know before deciding about an item."""
    from patternmill.text import duration, money

    attempt = item.attempt
    yield f"{attempt.request_id}  {attempt.state} for {duration(now - item.since)}"
    scope = f"catalog {item.catalog} ({item.environment})"
    yield f"  {item.stage} · {_what(item, 60)}   {scope}, attempt {attempt.attempt}"
    if attempt.job_id:
        yield f"  job: {attempt.job_id}"
    if attempt.error:
        yield f"  {attempt.error_code}: {attempt.error}"
    if item.price:
        yield f"  price: {money(item.price, currency)}"


def _what(item: Unsettled, length: int) -> str:
    import json

    from patternmill.text import shortened

    return item.sku or shortened(str(json.loads(item.content).get("prompt", "")), length)
