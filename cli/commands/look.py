"""The verb `look`: the page of a run, served to the person who runs it, where each decision is saved."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from cli.run_options import verb
from cli.services import available_service
from cli.terminal import echo, login_hint
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.settings import Settings, load_settings

if TYPE_CHECKING:
    from patternmill.looking.actions import Action


@verb("look", has_json=False)
@click.argument("run", metavar="[RUN|CATALOG]", default=LATEST)
@click.option("--environment", help="The run's environment: staging, production, ... (default: any).")
@click.option("--host", metavar="ADDRESS", help="Show it at this IP address of the machine too: for a phone.")
def command(run: str, environment: str | None, host: str | None) -> int:
    """Look at what a run made, and decide: keep, reject, or ask for others.

    Serves the page of the latest run, of RUN (its ID, or the beginning of it) or of a CATALOG, and shows the link that
    signs your browser in. Each decision is saved at once, and buys nothing. The page's buttons remake and order: they
    show what that buys, and ask once. At a --host address, which is not encrypted, there are none. Ctrl-C stops.

    \b
    Examples:
      patternmill look
      patternmill look spring
      patternmill look --host 192.168.1.5

    Exit codes: 0 stopped; 1 the page cannot be served; 2 there is no such run, or a setting is wrong.
    """
    from patternmill.looking.actions import Actions
    from patternmill.looking.pictures import source_of
    from patternmill.looking.server import Door, LookServer, network_door
    from patternmill.looking.viewed_run import ViewedRun
    from patternmill.runs.decision_files import user
    from prefect_host.shared_process import bound_socket

    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        record = _meant(ledger, run, environment)
    # The port is new each time: a page that somebody else has since served at an earlier one may still be open.
    doors = [Door(bound_socket()), *([network_door(host)] if host else [])]
    with available_service(settings) as available:
        viewed = ViewedRun(settings, record, source_of(available))
        actions = Actions(_actions(available, record))
        server = LookServer(viewed, user(), doors, actions, partial(_pause, settings, record)).prepared()
        address = login_hint(doors[0].address, "look")
        echo(f"Run {record.run_id} of {record.catalog} ({record.environment}): {address}")
        for door in doors[1:]:
            echo(
                f"On the phone: {door.address}, with the code {door.code[:4]}-{door.code[4:]} (once, for 5 minutes)"
            )
        echo("Ctrl-C stops.")
        viewed.fill()
        with suppress(KeyboardInterrupt):
            server.run(sockets=[door.socket for door in doors])
        actions.stop(lambda name: echo(f"Stopping `{name}`; a second Ctrl-C ends it at once.", err=True))
    return 0


def _actions(settings: Settings, record: RunRecord) -> dict[str, Action]:
    """Return the commands of this program that a person may start from the page."""
    from patternmill.looking.actions import Action
    from patternmill.orders.picked_rows import plan_picked
    from patternmill.runs.plan_text import plan_remake

    scope = record.catalog, record.environment
    command = [sys.executable, "-P", "-m", "cli.main"]
    named = ["--catalog", record.catalog, "--environment", record.environment]
    return {
        "remake": Action(partial(plan_remake, settings, *scope), [*command, "remake", "--yes", *named]),
        "order": Action(partial(plan_picked, settings, *scope), [*command, "order", "--wait", "1h", *named]),
    }


def _pause(settings: Settings, record: RunRecord, reason: str) -> str:
    """Pause the catalog, and return what a person is told once no more of its requests are sent."""
    from patternmill.runs.decision_files import user
    from patternmill.runs.lease import pause

    pauses = pause(settings, Pause(record.environment, record.catalog, reason, user()))
    return " ".join(dict.fromkeys(pause.message for pause in pauses))


def _meant(ledger: Ledger, name: str, environment: str | None) -> RunRecord:
    """Return the run of an ID, or of the beginning of one; for a catalog, the run that read its whole sheet."""
    is_catalog = bool(ledger.runs.find(environment=environment, catalog=name))
    if name != LATEST and not is_catalog:
        return find_run(ledger, name, environment=environment)
    record = find_run(ledger, LATEST, catalog=name if is_catalog else None, environment=environment)
    sheets = map(ledger.runs.get, ledger.catalogs.sheet_runs(record.environment, record.catalog))
    return next(filter(None, sheets), record)
