"""The verb `look`: the page of a run, served to its own person, where each decision is saved."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from cli.terminal import echo, login_hint
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.settings import load_settings

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import Approval, RunRecord


@click.command("look")
@click.argument("run", metavar="[RUN|CATALOG]", default=LATEST)
@click.option("--environment", help="The run's environment: staging, production, ... (default: any).")
def command(run: str, environment: str | None) -> int:
    """Look at what a run made, and decide: keep, reject, or ask for others.

    Serves the page of a run and shows the address that signs your browser in. Name the run by its ID or how that
    begins, or its catalog; without either it is the latest. Each decision is saved at once. Nothing is bought:
    `remake` makes the other takes that were asked for, and `order` orders samples of what was kept. Ctrl-C stops.

    \b
    Examples:
      patternmill look
      patternmill look spring

    Exit codes: 0 stopped; 1 the page cannot be served; 2 there is no such run, or a setting is wrong.
    """
    from patternmill.looking.decision_files import user
    from patternmill.looking.server import LookServer
    from patternmill.looking.viewed_run import ViewedRun
    from prefect_host.shared_process import bound_socket

    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        record = _meant(ledger, run, environment)
    viewed = ViewedRun(settings, record)
    viewed.fetch_pictures(lambda text: echo(text, err=True))

    def approve(approval: Approval) -> None:
        from patternmill.states import Verdict

        with open_ledger(settings) as ledger, ledger.transaction():
            ledger.approvals.decide(approval.id, Verdict.APPROVED, who=user(), note="while looking")

    # A new one each time: what somebody else served at the last one since, a browser still runs and keeps for it.
    bound = bound_socket()
    server, address = LookServer(viewed, bound, user(), approve).prepared()
    echo(f"Run {record.run_id} of {record.catalog} ({record.environment}): {login_hint(address, 'look')}")
    echo("Ctrl-C stops.")
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])
    return 0


def _meant(ledger: Ledger, name: str, environment: str | None) -> RunRecord:
    """A run by its ID or beginning, or the latest run of a catalog."""
    if any(run.catalog == name for run in ledger.runs.find(environment=environment, catalog=name)):
        return find_run(ledger, LATEST, catalog=name, environment=environment)
    return find_run(ledger, name, environment=environment)
