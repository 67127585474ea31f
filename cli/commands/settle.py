"""The verb `settle`: a person's decision about what no run may decide, on the record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from getpass import getuser
from typing import TYPE_CHECKING, Any

import click

from cli.available_service import available_service
from cli.run_options import filter_options, row_filter
from cli.terminal import confirmed, echo, echo_lines
from patternmill.errors import Overlap
from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.unsettled import NamedItems, in_doubt, unsettled
from patternmill.ledger.spending import prices_of
from patternmill.money import money, sums
from patternmill.runs.safeguards import settings_for_request
from patternmill.runs.settlement import Decision, Settlement, next_runs, requested, requests_meant, settle
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration, more, plural, shortened

if TYPE_CHECKING:
    from patternmill.errors import PatternmillError
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.reports.items import RecordedItem
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
        raise click.UsageError("Name one request, or choose several with --all and a filter of rows.")
    if many and decisions[0] in ("job", "made"):
        raise click.UsageError("A job belongs to one request; --all takes --resend or --write-off.")
    if filters and not many:
        raise click.UsageError("--catalog, --environment and the filter of rows go with --all.")


@click.command("settle")
@click.argument("request_id", metavar="[REQUEST-ID]", required=False)
@click.option(
    "--resend", is_flag=True, help="Send the same request again, under the same ID, with the next run."
)
@click.option(
    "--write-off", is_flag=True, help="Give the request up; a retry then makes and pays for a new attempt."
)
@click.option(
    "--job", metavar="JOB-ID", help="The service's job for it: it is checked, and followed by the next run."
)
@click.option(
    "--made", metavar="ID", help="The refined pattern, or reference, that was made for it without a job."
)
@click.option(
    "--all", "many", is_flag=True, help="Decide about all requests that wait, or those of a filter."
)
@click.option("--catalog", help="Only requests of this catalog.")
@click.option("--environment", help="Only requests of this environment: staging, production, ...")
@filter_options
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation with --all; needed without a terminal."
)
@click.option("--reason", help="Why you decide so; kept with the decision.")
@click.option("--by", metavar="NAME", help="Who decides. Default: your login name.")
def command(
    request_id: str | None,
    catalog: str | None,
    environment: str | None,
    many: bool,
    yes: bool,
    reason: str | None,
    by: str | None,
    resend: bool,
    write_off: bool,
    job: str | None,
    made: str | None,
    **chosen: Any,
) -> int:
    """List the requests that no run may decide about, or decide about one (or --all).

    Held: the service's answers contradict one another, or a refinement or reference may have been made and nothing
    promises that its request may be sent again. In doubt for longer than 12 h (PATTERNMILL_IN_DOUBT_LIMIT): the service
    may have forgotten the request ID, so that a resend could buy twice. A request whose row is gone or has other
    content by now is sent again by no run. Look into the service's console first, and
    give the reason of your decision. It is refused while a run goes on in the catalog; a job is refused when the
    service does not know it, or shows that it was made for something else.

    \b
    Examples:
      patternmill settle --catalog spring
      patternmill settle 6f1c…80 --resend --reason "support says it never arrived"
      patternmill settle 6f1c…80 --job job_4c1f --reason "found in the console"
      patternmill settle --all --code job_unknown --write-off --reason "lost in their outage" --by "A. Weaver"

    Exit codes: 0 listed or decided; 2 nothing to decide or not confirmed, and nothing was changed;
    3 some of many were left; 4 a run has the catalog's lease; 1 failed.
    """
    wanted = row_filter(chosen)
    decided = {"resend": resend, "write_off": write_off, "job": job, "made": made}
    decisions = [name for name, value in decided.items() if value]
    is_listing = request_id is None and not many and not decisions
    if not is_listing:
        is_filtered = not wanted.is_empty or catalog is not None or environment is not None
        _refuse_contradictions(decisions, request_id, many, is_filtered)
        if not (reason or "").strip():
            raise click.UsageError("Give the reason with --reason; it is kept with the decision.")
    settings = load_settings()
    with open_ledger(settings, must_exist=True) as ledger:
        meant = partial(requests_meant, ledger, wanted=wanted, environment=environment, catalog=catalog)
        items = (
            [requested(ledger, RequestId(request_id.strip()))]
            if request_id is not None
            else meant(unsettled(ledger, settings.in_doubt_limit))
        )
        if is_listing:
            return _list(ledger, settings, items, meant(in_doubt(ledger, settings.in_doubt_limit)))
        settlement = Settlement(Decision(decisions[0]), (reason or "").strip(), by or getuser(), job or made)
        if not items:
            echo("Nothing that fits waits for a decision.")
            return EXIT_CODES[Outcome.COMPLETED]
        if many and not _are_confirmed(ledger, settings, items, settlement.decision, yes=yes):
            return EXIT_REFUSED
        look_up, limit = partial(_look_up, ledger, items[0]), settings.in_doubt_limit
        left = asyncio.run(settle(ledger, items, settlement, limit=limit, look_up=look_up))
    return _report(len(items) - len(left), left)


async def _look_up(ledger: Ledger, item: RecordedItem, job_id: str) -> Job | None:
    """Asks the service that the request went to."""
    from patternmill.service.studio_api import StudioApi

    with available_service(settings_for_request(ledger, item.attempt.request_id)) as service:
        async with StudioApi.from_settings(service) as api:
            return await api.job(job_id)


def _are_confirmed(
    ledger: Ledger, settings: Settings, items: Sequence[RecordedItem], decision: Decision, *, yes: bool
) -> bool:
    """Show the requests, and ask about all of them at once."""
    _echo_items(ledger, items[:_MOST_ITEMS])
    echo_lines(more(len(items), _MOST_ITEMS))
    echo(_what_follows(items, decision))
    return yes or confirmed(f"Decide so about {plural(len(items), 'request')}?", "Not decided")


def _what_follows(items: Sequence[RecordedItem], decision: Decision) -> str:
    amount = sums(prices_of(item.attempt for item in items))
    price = f"{plural(len(items), 'request')}{f' for {amount}' if amount else ''}"
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


def _list(
    ledger: Ledger, settings: Settings, items: Sequence[RecordedItem], young: Sequence[RecordedItem]
) -> int:
    """`young`: what is in doubt, and not yet for a person."""
    if not items:
        echo("Nothing waits for a decision.")
    _echo_items(ledger, items)
    waiting, driven = next_runs(ledger, young)
    if waiting:
        echo(f"\nIn doubt, and resumed by the next run of their catalog ({len(waiting)}):")
        _echo_items(ledger, waiting)
    if driven:
        leased = ", ".join(sorted({f"{item.catalog} ({item.environment})" for item in driven}))
        echo(f"\nWithout an answer yet, in runs that go on ({leased}): {len(driven):,}.")
    return 0


def _echo_items(ledger: Ledger, items: Sequence[RecordedItem]) -> None:
    named = NamedItems(ledger)
    for item in items:
        attempt = item.attempt
        echo(f"{attempt.request_id}  {attempt.state} for {duration(ledger.now() - attempt.since)}")
        scope = f"catalog {item.catalog} ({item.environment})"
        echo(f"  {item.stage} · {_content(item)}   {scope}, attempt {attempt.attempt}")
        if attempt.job_id:
            echo(f"  job: {attempt.job_id}")
        elif item not in named:
            echo("  no row names it any more: no run sends it again")
        if attempt.error:
            echo(f"  {attempt.error_code}: {attempt.error}")
        if attempt.price:
            echo(f"  price: {money(attempt.price, attempt.currency)}")


def _content(item: RecordedItem) -> str:
    """The sku, or the start of a pattern's prompt, or what else is bought."""
    named = (item.content.get(name) for name in ("prompt", "order", "operation", "sha256"))
    return item.sku or shortened(str(next(filter(None, named), "")), 60)
