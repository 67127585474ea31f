"""The verbs `pause` and `unpause`: the brake on all buying."""

from __future__ import annotations

from getpass import getuser

import click

from cli.json_output import Part, show_parts, utc
from cli.run_options import verb
from cli.terminal import echo, steps
from patternmill.ledger.brake import Pause
from patternmill.runs import lease
from patternmill.settings import read_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

# The options that limit a pause, which otherwise stops everything.
_catalog = click.option("--catalog", default="", help="Only this catalog, with its orders.")
_environment = click.option(
    "--environment", default="", help="Only this environment: staging, production, ..."
)


@verb("pause")
@_catalog
@_environment
@click.option("--reason", required=True, help="Why: one line, for those whose runs meet it.")
def command(catalog: str, environment: str, reason: str) -> int:
    """Stop all buying, by any run, worker, machine or command, until `unpause`.

    Returns once every living run has obeyed: from then on no request that buys is sent, be it new or sent again. Jobs
    in flight are followed to their end, and runs end as Paused (exit code 3). If you press Ctrl-C, the pause stays.

    \b
    Examples:
      patternmill pause --reason "wrong prices in the feed"
      patternmill pause --catalog spring --reason "the supplier checks the list"

    Exit codes: 0 nothing is bought any more; 2 refused; 1 failed; 130 interrupted, and the pause stays.
    """
    asked = Pause(environment, catalog, reason.strip(), getuser())
    pauses = lease.pause(read_settings(), asked, _show_awaited)
    show_parts({"pauses": map(pause_part, dict.fromkeys(pauses))})
    return EXIT_CODES[Outcome.COMPLETED]


@verb("unpause")
@_catalog
@_environment
def unpause(catalog: str, environment: str) -> int:
    """Lift a pause, named as it was set; the next run of each catalog makes what was left.

    \b
    Examples:
      patternmill unpause
      patternmill unpause --catalog spring

    Exit codes: 0 lifted; 2 there is no such pause; 1 failed.
    """
    lifted, left = lease.unpause(read_settings(), environment, catalog, getuser())
    echo("Lifted." if lifted else "There is no such pause.", err=not lifted)
    still = [(fields, f"Still in force: {text}") for fields, text in map(pause_part, left)]
    show_parts({"lifted": [(pause_part(pause)[0], "") for pause in lifted], "left": still})
    return EXIT_CODES[Outcome.COMPLETED] if lifted else EXIT_REFUSED


def pause_part(pause: Pause) -> Part:
    """Return a pause for programs and for people."""
    return {**vars(pause), "since": utc(pause.since)}, pause.message


def _show_awaited(awaited: list[str]) -> None:
    more = f" and {len(awaited) - 1:,} more" if awaited[1:] else ""
    steps.show(f"Paused; waiting until it is obeyed by {awaited[0]}{more} …")
