"""The verbs by which a person decides: about requests in doubt, and whether anything is bought."""

import asyncio

import click

from patternmill.errors import Refusal
from patternmill.ledger.brake import pause as set_brake
from patternmill.ledger.brake import unpause as lift_brake
from patternmill.ledger.reports import open_ledger
from patternmill.text import printable

_CATALOG = click.option("--catalog", help="This catalog only.")
_ALL = click.option("--all", "everything", is_flag=True, help="All environments of the ledger.")
_ENVIRONMENT = click.option("--environment", help="The environment. Default: that of the settings.")


@click.command()
@click.argument("request_id", required=False)
@click.option("--job", help="The service's job for it: it is checked, and followed by the next run.")
@click.option("--resend", is_flag=True, help="Send the same request again, under the same ID.")
@click.option("--write-off", is_flag=True, help="Give it up; only a retry makes another attempt.")
@click.option("--reason", default="", help="Why; kept with the decision.")
def settle(request_id: str | None, job: str | None, resend: bool, write_off: bool, reason: str) -> None:
    """List the requests that a person must decide about, or decide about one."""
    from patternmill.settlement import decide, waiting_lines

    with open_ledger() as (database, settings):
        if request_id is None:
            click.echo(printable("\n".join(waiting_lines(database, settings.service))))
            return
        given = {"job": job, "resend": resend, "write-off": write_off}
        choices = [name for name, one in given.items() if one]
        if len(choices) != 1 or not reason:
            remedy = "Give one of --job ID, --resend and --write-off, and a --reason."
            raise Refusal("no_decision", "Nothing was decided.", remedy)
        click.echo(asyncio.run(decide(database, settings, request_id, choices[0], job or "", reason)))  # type: ignore[arg-type]


@click.command()
@_CATALOG
@_ALL
@click.option("--reason", default="", help="Why; runs that meet the brake say it.")
@_ENVIRONMENT
def pause(catalog: str | None, everything: bool, reason: str, environment: str | None) -> int:
    """Stop all buying of a catalog, of the environment, or of everything. Jobs in flight are followed."""
    with open_ledger() as (database, settings):
        scope = _scope(environment or settings.service, catalog, everything)
        left = asyncio.run(set_brake(database, scope, reason))
    waits = f"; not acknowledged yet by {', '.join(left)}" if left else ""
    click.echo(f"Paused: {scope}{waits}.")
    return 3 if left else 0


@click.command()
@_CATALOG
@_ALL
@_ENVIRONMENT
def unpause(catalog: str | None, everything: bool, environment: str | None) -> None:
    """Lift a pause."""
    with open_ledger() as (database, settings):
        scope = _scope(environment or settings.service, catalog, everything)
        click.echo(f"Lifted: {scope}." if lift_brake(database, scope) else f"{scope} was not paused.")


def _scope(environment: str, catalog: str | None, everything: bool) -> str:
    return "*" if everything else f"{environment}/{catalog}" if catalog else environment
