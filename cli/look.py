"""The verb that serves the page of a catalog."""

import asyncio
import contextlib
import os
import sys
import webbrowser
from functools import partial
from pathlib import Path

import click

from cli.looking_up import rows_of
from cli.making import service, with_prefect
from patternmill.contract import read_contract
from patternmill.errors import Refusal
from patternmill.ledger.database import Database
from patternmill.ledger.reports import open_ledger
from patternmill.service.client import Client
from patternmill.settings import Settings

#: Where none of these is set, the only browsers are those that take the terminal over.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@click.command()
@click.argument("catalog")
@click.option("--environment", help="The environment. Default: that of the settings.")
def look(catalog: str, environment: str | None) -> None:
    """Show a catalog as it is now, in the browser: to look, decide, order and remake. Ctrl-C stops."""
    with service(environment), open_ledger() as (database, settings):
        rows_of(database, environment or settings.service, catalog)  # refuses a catalog that is not there
        asyncio.run(_serve(database, settings, environment or settings.service, catalog))
    click.echo("Stopped.")


async def _serve(database: Database, settings: Settings, environment: str, catalog: str) -> None:
    from patternmill.looking.deeds import Deeds
    from patternmill.looking.pictures import Pictures
    from patternmill.looking.server import Desk, Door, listening, serve
    from patternmill.looking.view import View

    async with contextlib.AsyncExitStack() as stack:
        contract, client = read_contract(settings.service_file), None
        with contextlib.suppress(Refusal):  # without a service, what is on record is shown all the same
            if environment == settings.service:
                client = await stack.enter_async_context(Client(settings))
        folder = Path("results") / catalog / "pictures"
        pictures = Pictures(folder, client, contract.picture, settings.studio_url)
        stack.push_async_callback(pictures.close)
        deeds = Deeds(database, settings, environment, catalog, partial(with_prefect, home=settings.folder))
        with listening() as bound:
            door = Door(bound.getsockname()[1])
            view = View(database, environment, catalog)
            click.echo(f"{catalog}: {door.link}\nThe link works once, on this machine. Ctrl-C stops.")
            if any(map(os.environ.get, _SCREENS)) or sys.platform == "darwin":
                await asyncio.to_thread(webbrowser.open, door.link)
            await serve(bound, Desk(view, deeds, pictures, door, contract), door, deeds)
