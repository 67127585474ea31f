"""The verb `settle`: a person's decision about what no run may decide, on the record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from getpass import getuser
from typing import Any

import click

from cli.json_output import Part, fields_of, show, show_parts, utc
from cli.run_options import verb
from cli.services import available_service
from cli.terminal import confirmed, echo
from patternmill.errors import Overlap, PatternmillError
from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.reports.requests import (
    NamedItems,
    RecordedItem,
    find_request,
    in_doubt,
    unsettled,
)
from patternmill.ledger.spending import prices_of
from patternmill.money import money, sums
from patternmill.runs.safeguards import settings_for_request
from patternmill.runs.settlement import Resolution, Settlement, next_runs, requests_meant, settle
from patternmill.service.jobs import Job
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.tables.row_filter import RowFilter
from patternmill.text import duration, more, plural, shortened

_MOST_ITEMS = 40
#: The decisions that name what belongs to one request.
_OF_ONE_REQUEST = (Resolution.JOB, Resolution.MADE)


@verb("settle", RowFilter)
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
    "--all", "many", is_flag=True, help="Decide about all requests that wait, or those that fit the filter."
)
@click.option("--catalog", help="Only requests of this catalog.")
@click.option("--environment", help="Only requests of this environment: staging, production, ...")
@click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation with --all; needed without a terminal."
)
@click.option("--reason", help="Why you decide this; kept with the decision.")
@click.option("--by", metavar="NAME", help="Who decides. Default: your login name.")
def command(
    request: RowFilter,
    request_id: str | None,
    many: bool,
    yes: bool,
    reason: str | None,
    by: str | None,
    **options: Any,
) -> int:
    """List the requests that no run may decide about, or decide about one (or --all).

    They are held, because the service's answers contradict one another or nothing promises that the request may be
    sent again; or they have been in doubt for longer than PATTERNMILL_IN_DOUBT_LIMIT (12 h), so that sending them again
    could buy twice; or no row names them any more. Look in the service's console first. A decision is refused while a
    run of the catalog goes on, and a job if the service shows that it was made for something else.

    \b
    Examples:
      patternmill settle --catalog spring
      patternmill settle 6f1c…80 --resend --reason "support: never arrived"
      patternmill settle 6f1c…80 --job job_4c1f --reason "found in the console"
      patternmill settle --all --code job_unknown --write-off --reason "outage"

    Exit codes: 0 listed or decided; 3 some of many were left; 2 nothing to decide or not confirmed, and nothing was
    changed; 4 a run has the catalog's lease; 1 failed.
    """
    scope = {name: options[name] for name in ("catalog", "environment")}
    decisions = [decision for decision in Resolution if options[decision]]
    is_listing = request_id is None and not many and not decisions
    if not is_listing:
        is_filtered = not request.is_empty or any(scope.values())
        _refuse_contradictions(decisions, request_id, many=many, is_filtered=is_filtered)
        if not (reason or "").strip():
            raise click.UsageError("Give the reason with --reason; it is kept with the decision.")
    settings = load_settings()
    limit = settings.in_doubt_limit
    with open_ledger(settings, must_exist=True) as ledger:

        def meant(items: Iterable[RecordedItem]) -> list[RecordedItem]:
            return requests_meant(ledger, items, request, **scope)

        if is_listing:
            show_parts(
                waiting_sections(ledger, meant(unsettled(ledger, limit)), meant(in_doubt(ledger, limit)))
            )
            return EXIT_CODES[Outcome.COMPLETED]
        named = RequestId(str(request_id).strip())
        items = meant(unsettled(ledger, limit)) if many else [find_request(ledger, named)]
        if not items:
            show_parts({"requests": [({}, "Nothing that fits waits for a decision.")]})
            return EXIT_CODES[Outcome.COMPLETED]
        (decision,) = decisions
        result = options[decision] if decision in _OF_ONE_REQUEST else ""
        settlement = Settlement(decision, (reason or "").strip(), by or getuser(), result)
        if many and not _are_confirmed(ledger, items, decision, yes=yes):
            return EXIT_REFUSED
        look_up = partial(_look_up, ledger, items[0])
        left = asyncio.run(settle(ledger, items, settlement, limit=limit, look_up=look_up))
    return _report(len(items) - len(left), left)


def _refuse_contradictions(
    decisions: Sequence[Resolution], request_id: str | None, *, many: bool, is_filtered: bool
) -> None:
    """Raise UsageError for options that contradict one another."""
    if len(decisions) != 1:
        raise click.UsageError("Decide one of --resend, --write-off, --job and --made.")
    if (request_id is None) is not many:
        raise click.UsageError("Name one request, or choose several with --all and a filter of rows.")
    if many and decisions[0] in _OF_ONE_REQUEST:
        raise click.UsageError("A job belongs to one request; --all takes --resend or --write-off.")
    if is_filtered and not many:
        raise click.UsageError("--catalog, --environment and the filter of rows go with --all.")


async def _look_up(ledger: Ledger, item: RecordedItem, job_id: str) -> Job | None:
    """Return the job as the service that the request went to shows it."""
    from patternmill.service.studio_api import StudioApi

    with available_service(settings_for_request(ledger, item.attempt.request_id)) as service:
        async with StudioApi.from_settings(service) as api:
            return await api.job(job_id)


def _are_confirmed(ledger: Ledger, items: Sequence[RecordedItem], decision: Resolution, *, yes: bool) -> bool:
    """Show the requests, and ask about all of them at once."""
    amount = sums(prices_of(item.attempt for item in items))
    requests = plural(len(items), "request")
    if decision is Resolution.RESEND:
        follows = f"To send again, each under its own ID: {requests}"
        booked, end = ", booked on today, whatever is left of the day's budget", "."
    else:
        follows = f"To write off: {requests}"
        booked, end = ", which stays booked", "; a retry would buy them anew."
    follows += f"{f' for {amount}{booked}' if amount else ''}{end}"
    rest = "\n".join(more(len(items), _MOST_ITEMS))
    show_parts({"requests": [*_requests(ledger, items[:_MOST_ITEMS]), ({}, rest), ({}, follows)]})
    return yes or confirmed(f"Decide this for {requests}?", "Not decided")


def _report(decided: int, left: Mapping[RequestId, PatternmillError]) -> int:
    for request_id, why in left.items():
        echo(f"Left: {request_id}: {why}", err=True)
    lines = [f"{decided} decided, {len(left)} left; the decisions are on record."]
    lines += ["To resume: patternmill retry"] if decided else []
    show(lambda: {"decided": decided, "left": {key: why.message for key, why in left.items()}}, lines)
    if not left:
        return EXIT_CODES[Outcome.COMPLETED]
    if not decided and all(isinstance(why, Overlap) for why in left.values()):
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES] if decided else EXIT_REFUSED


def waiting_sections(
    ledger: Ledger, items: Sequence[RecordedItem], young: Sequence[RecordedItem]
) -> dict[str, Iterable[Part]]:
    """Return what waits for a decision; `young` are those in doubt that are not for a person yet."""
    waiting, driven = next_runs(ledger, young)
    resumed = f"In doubt, and resumed by the next run of their catalog ({len(waiting)}):"
    leased = ", ".join(sorted({f"{item.catalog} ({item.environment})" for item in driven}))
    going_on = f"Without an answer yet, in runs that go on ({leased}): {len(driven):,}."
    return {
        "requests": _requests(ledger, items) if items else [({}, "Nothing waits for a decision.")],
        "resumed": [({}, resumed), *_requests(ledger, waiting)] if waiting else (),
        "in_runs": [({"requests": len(driven)}, going_on)] if driven else (),
    }


def _requests(ledger: Ledger, items: Iterable[RecordedItem]) -> Iterator[Part]:
    named = NamedItems(ledger)
    for item in items:
        attempt = item.attempt
        lines = [
            f"{attempt.request_id}  {attempt.state} for {duration(ledger.now() - attempt.since)}",
            f"  {item.stage} · {_content(item)}   catalog {item.catalog} ({item.environment}), "
            f"attempt {attempt.attempt}",
            f"  job: {attempt.job_id}" if attempt.job_id else "",
            "" if attempt.job_id or item in named else "  no row names it any more: no run sends it again",
            f"  {attempt.error_code}: {attempt.error}" if attempt.error else "",
            f"  price: {money(attempt.price, attempt.currency)}" if attempt.price else "",
        ]
        names = ("request_id", "attempt", "state", "job_id", "error_code", "error", "price", "currency")
        fields = fields_of(item, "catalog", "environment", "stage", "sku", "content")
        fields |= fields_of(attempt, *names) | {"since": utc(attempt.since)}
        yield fields, "\n".join(filter(None, lines))


def _content(item: RecordedItem) -> str:
    """Return the sku, or the start of a pattern's prompt, or what else is bought."""
    named = (item.content.get(name) for name in ("prompt", "order", "operation", "sha256"))
    return item.sku or shortened(str(next(filter(None, named), "")), 60)
