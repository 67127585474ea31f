"""The verb `settle`: a person's decision about what no run may decide, on the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.settlements import Unsettled
    from patternmill.mill.settling import Settlement
    from patternmill.settings import Settings


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
@click.option("--job", metavar="JOB-ID", help="This is the service's job for it; the next run follows it.")
@click.option("--reason", help="Why; kept with the decision for ever.")
@click.option("--by", metavar="NAME", help="Who decides (default: the name you are logged in by).")
def command(
    request_id: str | None,
    listing: bool,
    resend: bool,
    write_off: bool,
    job: str | None,
    reason: str | None,
    by: str | None,
) -> int:
    """Decide about an item that no run may decide about: one held, or without an answer past the age limit.

    Held: the service's answers contradict one another. Past the limit (12 h, PATTERNMILL_IN_DOUBT_LIMIT): the
    service may have forgotten the request ID, so that sending it again could buy twice. Look into the service's
    console first. A decision is refused while a run drives the catalog.

    \b
    Examples:
      patternmill settle --list
      patternmill settle 6f1c…80 --resend --reason "support says it never arrived"
      patternmill settle 6f1c…80 --job job_4c1f --reason "found in the console"
      patternmill settle 6f1c…80 --write-off --reason "refunded" --by "A. Weaver"

    \b
    Exit codes: 0 listed or decided; 2 there is nothing to decide so, and nothing was changed; 4 a run holds
    the catalog; 1 failed.
    """
    from patternmill.ledger.opening import existing_ledger
    from patternmill.settings import load_settings

    decisions = [
        name for name, given in (("resend", resend), ("write_off", write_off), ("job", bool(job))) if given
    ]
    settings = load_settings()
    with existing_ledger(settings) as ledger:
        if listing or request_id is None:
            return _list(ledger, settings)
        if len(decisions) != 1:
            raise click.UsageError("Decide one of --resend, --write-off and --job.")
        if not (reason or "").strip():
            raise click.UsageError("Say why with --reason; it is kept with the decision.")
        return _settle(ledger, settings, _settlement(request_id, decisions[0], job, reason or "", by))


def _settlement(request_id: str, decision: str, job: str | None, reason: str, by: str | None) -> Settlement:
    from getpass import getuser

    from patternmill.identifiers import RequestId
    from patternmill.mill.settling import Decision, Settlement

    return Settlement(RequestId(request_id.strip()), Decision(decision), reason.strip(), by or getuser(), job)


def _settle(ledger: Ledger, settings: Settings, settlement: Settlement) -> int:
    import asyncio

    from patternmill.errors import Overlap
    from patternmill.mill.settling import settle

    try:
        attempt = asyncio.run(settle(ledger, settlement, limit=settings.in_doubt_limit))
    except Overlap as overlap:
        click.echo(str(overlap), err=True)
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    click.echo(f"Request {attempt.request_id} is {attempt.state} now; the decision is on record.")
    click.echo("Go on with: patternmill retry")
    return 0


def _list(ledger: Ledger, settings: Settings) -> int:
    from patternmill.ledger.settlements import unsettled

    found = unsettled(ledger, settings.in_doubt_limit)
    if not found:
        click.echo("Nothing waits for a decision.")
    for item in found:
        for line in unsettled_lines(item, ledger.now()):
            click.echo(line)
    return 0


def unsettled_lines(item: Unsettled, now: float) -> Iterator[str]:
    """What a person has to know before deciding about an item."""
    import json

    from cli.words import shortened, span

    attempt = item.attempt
    what = item.sku or shortened(str(json.loads(item.content).get("prompt", "")), 60)
    yield f"{attempt.request_id}  {attempt.state} for {span(now - item.since)}"
    yield f"  {item.stage} · {what}   catalog {item.catalog} ({item.environment}), attempt {attempt.attempt}"
    if attempt.job_id:
        yield f"  job: {attempt.job_id}"
    if attempt.error:
        yield f"  {attempt.error_code}: {attempt.error}"
    if item.price:
        yield f"  price: {item.price} (minor units)"
