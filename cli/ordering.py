"""The verb that orders products of a catalog: it shows the lines, asks, and says where they are paid."""

import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING

import click

from cli.making import service
from cli.questions import can_ask
from patternmill.errors import Refusal

if TYPE_CHECKING:
    from patternmill.orders import Checkout


@click.command()
@click.argument("catalog")
@click.option("--name", required=True, help="The order's name. The same one again shows the same checkout.")
@click.option("--sku", multiple=True, help="This sku; can be given several times.")
@click.option("--picked", is_flag=True, help="All that is picked on the page.")
@click.option("--quantity", type=click.IntRange(1), default=1, help="How many of each.")
@click.option("--environment", help="The environment. Default: that of the settings.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the checkout as JSON.")
def order(
    catalog: str, name: str, sku: tuple[str, ...], picked: bool, quantity: int, environment: str | None,
    yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Open one checkout for products of CATALOG, and say where a person pays it.

    Later the name alone is enough: it says what order the checkout became.
    """
    from patternmill.ledger.reports import open_ledger
    from patternmill.orders import find_order, place_order, plan_order
    from patternmill.run import check_name

    if picked and sku:
        raise Refusal("no_rows", "Two things say what is ordered.", "Give either --sku or --picked.")
    with service(environment, silent=as_json) as is_trial, open_ledger() as (database, settings):
        check_name(environment, settings)
        if not picked and not sku:
            checkout = asyncio.run(find_order(database, settings, catalog, name))
            _show(checkout, as_json, is_trial)
            return
        plan = plan_order(database, settings.service, catalog, dict.fromkeys(sku, quantity) or None, quantity)
        for line in plan.left_out:
            click.echo(line, err=True)
        if not yes:
            if not can_ask():
                raise Refusal("unconfirmed", f"It would order {plan.words}.", "If that is meant: --yes.")
            click.confirm(f"Open a checkout for {plan.words}, as {name}?", abort=True, err=True)
        _show(asyncio.run(place_order(database, settings, name, plan)), as_json, is_trial)


def _show(checkout: "Checkout", as_json: bool, is_trial: bool) -> None:
    click.echo(json.dumps(dataclasses.asdict(checkout), indent=2) if as_json else checkout.words)
    if is_trial and not checkout.order:
        click.echo("That page answers while `patternmill look`, `up` or `studio` runs.", err=True)
