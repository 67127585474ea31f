"""The verbs that make things: each plans first, without a server and without writing, asks, and then begins."""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from cli.questions import asked_about_items, checked_with_questions
from cli.studio import embedded_studio, is_meant
from patternmill.errors import Refusal
from patternmill.request import End, Request, Summary, end_of
from patternmill.settings import PREFIX, STUDIO, read_settings
from patternmill.states import EXIT_CODES, Outcome
from patternmill.text import printable

if TYPE_CHECKING:
    from cli.server import Server

_PATH = click.Path(path_type=Path)
_SHEET = (
    click.Argument(["file"]),
    click.Option(
        ["--mapping"], type=_PATH, help="What columns and words mean: NAME.mapping.toml beside FILE."
    ),
)
_CATALOG = click.Option(
    ["--catalog"], help="The catalog. Default: named after the file, or by its column `run`."
)
_ENVIRONMENT = click.Option(["--environment"], help="The environment; `studio` is a free trial.")
_YES = click.Option(
    ["--yes"], is_flag=True, help="Ask nothing: take what is certain, and any number of items."
)
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print what came of it as JSON.")
_BUYING = (
    _CATALOG,
    _ENVIRONMENT,
    click.Option(["--out"], type=_PATH, help="The folder of the results. Default: results/CATALOG/RUN."),
    click.Option(["--max-items"], type=click.IntRange(0), help="The most items that are bought."),
    click.Option(["--budget"], help="The most that is spent, such as 500.00."),
    click.Option(["--change"], type=click.IntRange(0), help="How many products may be replaced."),
    click.Option(["--retire"], type=click.IntRange(0), help="How many rows that are gone may be retired."),
    click.Option(["--rename"], type=click.IntRange(0), help="How many renamed rows are bought again."),
    click.Option(["--plan-only"], is_flag=True, help="Show what would be made, and what it costs."),
    click.Option(["--confirm"], type=click.Choice(["ledger"]), help="Go on with another ledger."),
    _YES,
    _JSON,
)
_ROWS = (
    click.Option(["--sku"], multiple=True, help="Only this sku; can be given several times."),
    click.Option(["--status"], multiple=True, help="Only rows with this status, such as failed."),
    click.Option(["--code"], multiple=True, help="Only rows with this error code."),
)
_TAKE = click.Option(["--take"], type=click.IntRange(1), help="Go to this take of the named rows' patterns.")
_is_server_lost = threading.Event()


@click.command(params=[*_SHEET, _CATALOG, _ENVIRONMENT, _JSON])
def check(as_json: bool, **options: Any) -> int:
    """Check every row of FILE, name every mistake, and ask what unknown columns mean. Spends nothing.

    Exits with 3 where rows are refused.
    """
    from patternmill.run import open_run

    async def checked() -> int:
        async with open_run(Request(**options)) as run:
            found = await checked_with_questions(run)
            from patternmill.tables.checks import report_json, report_lines

            click.echo(
                json.dumps(report_json(found), indent=2) if as_json else "\n".join(report_lines(found))
            )
            return 3 if found.refused else 0

    with service(options["environment"], silent=True):
        return asyncio.run(checked())


@click.command(params=[click.Argument(["category"], nargs=-1), _ENVIRONMENT])
def offer(category: tuple[str, ...], environment: str | None) -> int:
    """Show the categories that can be made, or those that are named, with their options. Spends nothing."""
    from patternmill.offer import offer_lines, read_offer
    from patternmill.run import open_run

    async def read() -> None:
        async with open_run(Request(environment=environment)) as run:
            found = await read_offer(run.client.read, lambda name: None, category or None)
            for name in category:
                if not found.find(name):
                    raise Refusal("unknown_category", f"No category is called {name}.")
            click.echo(printable("\n".join(offer_lines(found, category))))

    with service(environment, silent=True):
        asyncio.run(read())
    return 0


@click.command("import", params=[*_SHEET, *_BUYING])
def import_(**options: Any) -> int:
    """Turn the rows of FILE into products. Run it again, after whatever: nothing is bought twice."""
    return _buy("import", **options)


@click.command(params=[*_SHEET, *_BUYING])
@click.option("--cron", help='Do not run now but by this schedule (UTC): "0 5 * * *".')
def refresh(cron: str | None, **options: Any) -> int:
    """Make what was added to FILE, the whole catalog, or changed in it; retire what is gone from it."""
    if cron is None:
        return _buy("refresh", **options)
    return asyncio.run(_schedule(cron, **options))


@click.command(params=[click.Argument(["catalog"]), *_ROWS, *_BUYING[1:]])
def retry(**options: Any) -> int:
    """Make again what of CATALOG did not end well, with one more attempt for each row."""
    return _buy("retry", **options)


@click.command(params=[click.Argument(["catalog"]), *_ROWS, _TAKE, *_BUYING[1:]])
def remake(**options: Any) -> int:
    """Make another take of the patterns of CATALOG that are marked `again`, or of the named rows, and its products."""
    return _buy("remake", **options)


@contextlib.contextmanager
def service(environment: str | None, *, silent: bool = False) -> Iterator[bool]:
    """Have the settings name a service meanwhile: the embedded studio where it is meant. Yields whether it is."""
    settings = read_settings()
    if environment != STUDIO and not is_meant(settings):
        yield False
        return
    if not silent:
        click.echo("The embedded studio makes what is asked for: a trial, which costs nothing.", err=True)
    with embedded_studio(settings.folder):
        yield True


def _buy(verb: Any, *, yes: bool, as_json: bool, confirm: str | None, **options: Any) -> int:
    """Plan, ask, carry out a request, and say what came of it."""
    try:
        request = Request(verb=verb, **options)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal("wrong_option", f"--{first['loc'][0]}: {first['msg']}.") from None
    with service(request.environment, silent=as_json) as is_trial:
        end = asyncio.run(_carry_out(request, yes=yes, confirm=confirm, quiet=as_json))
        if as_json:
            click.echo(end.summary.model_dump_json(indent=2))
        else:
            click.echo(end.message, err=end.outcome in (Outcome.REFUSED, Outcome.SKIPPED_OVERLAP))
            if is_trial and end.summary.run:
                click.echo(
                    f"Made by the embedded studio. For your own service set {PREFIX}STUDIO_URL and _API_KEY."
                )
    if _is_server_lost.is_set():
        sys.stdout.flush()
        os._exit(EXIT_CODES.get(end.outcome, 3))  # Prefect's client would try to reach it for minutes
    return EXIT_CODES.get(end.outcome, 3)


async def _carry_out(request: Request, *, yes: bool, confirm: str | None, quiet: bool) -> End:
    """Plan without a server; begin the flow only where the service is to be asked about something."""
    from patternmill.agreement import agree, open_questions, plan_lines, plan_run
    from patternmill.fanout import Maker
    from patternmill.halt import stops
    from patternmill.mark import write_marks
    from patternmill.pipeline import carry_out
    from patternmill.run import open_run
    from patternmill.service.sources import name_of

    stops.is_command = True
    about = {"catalog": request.catalog or ""}
    try:
        async with open_run(request) as run:
            checked = await checked_with_questions(run, yes=yes)
            plan = plan_run(run, checked)
            about |= {"catalog": run.catalog, "environment": run.settings.service}
            if not quiet:
                from patternmill.tables.checks import report_lines

                click.echo("\n".join([*report_lines(checked), *plan_lines(run, plan)]))
            if confirm:
                write_marks(run.shelves, run.database, run.settings.service)
            if request.plan_only:
                summary = Summary(outcome=Outcome.COMPLETED, **about)
                return End(Outcome.COMPLETED, "Nothing was bought: this was the plan only.", summary)
            if agreed := asked_about_items(run, plan, list(open_questions(run, plan)), yes=yes):
                run.request = request = request.model_copy(update=agreed)
            await agree(run, plan, Maker())
            home = run.settings.folder
    except Refusal as refusal:
        return end_of(refusal, **about)
    is_to_be_made = bool(plan.work)
    del run, checked, plan  # the run plans anew: two of a large sheet would take 150 MB more
    if not is_to_be_made:
        return await carry_out(request)
    known = {**about, "file": request.file and name_of(request.file)}
    request = request.model_copy(update=known)
    return await with_prefect(request, home)


async def with_prefect(request: Request, home: Path) -> End:
    """Run the flow in this process, shown by a server; without one, the same run unshown."""
    from cli.server import prefect_server
    from patternmill.pipeline import carry_out

    say = partial(click.echo, err=True)
    try:
        async with prefect_server(home, say) as server:
            if server.answers:
                say(f"In the Prefect UI: {server.ui}/runs")
                return await _shown(request, server)
            say(f"The Prefect server {server.address} does not answer: this run is not shown there.")
            return await carry_out(request)
    except Refusal as refusal:
        return end_of(refusal, catalog=request.catalog or "", environment=request.environment or "")


async def _shown(request: Request, server: "Server") -> End:
    """Return how a flow run ended; where the server was lost, as the ledger has it."""
    from flows import FLOWS

    flow: Any = FLOWS[request.verb]
    started = time.time()
    asked = request.model_dump(mode="json", exclude_none=True, include=set(flow.parameters.properties))
    try:
        state: Any = await flow(**asked, return_state=True)
        end = _end_of_state(state, await state.aresult(raise_on_failure=False))
        is_settled = await server.settled(state.state_details.flow_run_id)
    except Exception as lost:  # whatever the client raises: what the flow does ends in a state
        end, is_settled = _end_on_record(request, started, lost), False
    if not is_settled:
        _is_server_lost.set()
        click.echo(
            "The Prefect server missed part of this run. What is said here and in the results is true.",
            err=True,
        )
    return end


def _end_of_state(state: Any, result: Any) -> End:
    """Return the end that the state of a flow run tells. Raises Refusal where a fault ended the flow."""
    data = getattr(result, "summary", result)
    if not isinstance(data, Summary):
        raise Refusal("unexpected", f"The run ended {state.name}: {state.message}", "Report it.")
    return End(data.outcome, state.message or "", data)


def _end_on_record(request: Request, since: float, lost: Exception) -> End:
    """Return the end of the run that the ledger knows."""
    from patternmill.ledger.reports import last_run, open_ledger

    with open_ledger() as (database, settings):
        run = last_run(database, settings.service, request.catalog)
    if run.started_at < since or not run.outcome:
        raise Refusal("server_lost", f"The Prefect server was lost: {lost!r}.", "Run it again.")
    outcome = Outcome(run.outcome)
    about = {"run": run.id, "catalog": run.catalog, "environment": settings.service, "folder": run.folder}
    return End(outcome, run.message, Summary(outcome=outcome, **about))


async def _schedule(cron: str, file: str, catalog: str | None, environment: str | None, **_: Any) -> int:
    from cli.server import prefect_server
    from patternmill.service.sources import check_reach

    if not catalog:
        raise Refusal("no_catalog", "A schedule needs a catalog.", "Say it with --catalog.")
    settings = read_settings()
    check_reach(Request(file=file), settings)
    async with prefect_server(settings.folder, partial(click.echo, err=True)) as server:
        if not server.answers:
            raise Refusal("no_server", f"The Prefect server {server.address} is away.")
        from tasks.deployments import schedule_refresh

        click.echo(await schedule_refresh(file, catalog, environment or settings.service, cron))
    return 0
