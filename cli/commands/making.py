"""The verbs that make things: `import`, `refresh`, `retry` and `remake`, each as a Prefect flow."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NoReturn

import click

from cli.json_output import fields_of, show
from cli.run_options import verb
from cli.terminal import can_ask, confirmed, echo, echo_lines, said_yes, steps
from patternmill.addresses import file_path, is_remote, shown_address
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.runs.preview import make_preview
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.retry import RetrySelection
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome, RowStatus
from patternmill.text import counted, goods, in_columns, more, plural, shortened

_MOST_ROWS = 40
_MOST_LEFT_OUT = 10


@verb("import", ImportRequest, without=("check",), approves=True)
@click.argument("file")
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Ask nothing: take what is certain about columns and words. A large purchase then needs --confirm.",
)
def import_(request: ImportRequest, approve: str | None, yes: bool) -> int:
    """Turn the rows of FILE into patterns and products, and write results with their product IDs.

    FILE is a sheet: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES, for an address with a
    secret. From a decisions.csv it only records the decisions.

    On a terminal it asks what unknown columns and words mean, and again before it spends money or leaves out rows with
    mistakes. Those go into failures.csv: correct them there, and import that. To resume, run the same command again:
    nothing is bought twice.

    \b
    Examples:
      patternmill import inputs/spring_catalog.csv
      patternmill import spring.csv --plan-only
      patternmill import results/spring/latest/failures.csv
    """
    steps.show(f"Reading {shown_address(request.file)} …")
    from cli.launcher import run_request
    from cli.mapping_questions import MappingQuestions
    from patternmill.runs.decision_files import record_file

    if not is_remote(request.file):
        settings = load_settings(request.environment, unknown_too=True)
        if recorded := record_file(settings, file_path(request.file), plan_only=request.plan_only):
            echo(recorded)
            return EXIT_CODES[Outcome.COMPLETED]
    spec = run_spec(request)
    questions = MappingQuestions(takes_certain=yes)
    return run_request(request, spec, approve, asks=not yes, questions=questions)


@verb("refresh", RefreshRequest, without=("check",), approves=True)
@click.argument("source")
@click.option(
    "--cron", metavar="CRON", help='Do it on a schedule from now on; "0 5 * * *" is each day at 5:00.'
)
@click.option("--timezone", help="The time zone of --cron, as Europe/Berlin. Default: UTC.")
def refresh(request: RefreshRequest, approve: str | None, cron: str | None, timezone: str | None) -> int:
    """Update a catalog from SOURCE: make what was added or changed there, retire what is gone.

    SOURCE is the whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES, for an
    address with a secret.

    Unchanged rows cost nothing, in whatever order. A changed selection keeps the pattern; a changed prompt makes a new
    pattern and product. A changed row that fails keeps its product. Where more rows are gone than --retire-at-most
    allows, or all of them, none is retired until you say how many with --retire N.

    With --cron nothing is made now: workers refresh it on a schedule, which the Prefect server of PREFECT_API_URL
    keeps, or that of `patternmill up`. The same command again replaces the schedule.

    \b
    Examples:
      patternmill refresh spring.csv --catalog spring --plan-only
      patternmill refresh https://example.com/spring.csv --catalog spring
      patternmill refresh spring.csv --catalog spring --cron "0 5 * * *"
    """
    if timezone is not None and cron is None:
        raise click.UsageError("--timezone needs --cron.")
    if cron is not None:
        if approve or request.plan_only or request.retire is not None or request.catalog is None:
            raise click.UsageError("--cron needs --catalog, and no --approve, --plan-only or --retire.")
        return make_schedule(request, cron, timezone or "UTC")
    steps.show("Reading the source …")
    from cli.launcher import run_request

    return run_request(request, run_spec(request), approve)


@verb("remake", RemakeRequest, approves=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask on a terminal.")
def remake(request: RemakeRequest, yes: bool, approve: str | None) -> int:
    """Make another take of some rows' patterns, and everything that is built on them.

    Every row that shares such a pattern is remade too, and named before anything is bought. Without --sku and --picks
    it takes the rows for which you requested another take with `patternmill look`, and those that lack the take that
    you picked. The same command again resumes the same take. For one more, reject it, or add --again. --take goes back
    to a take that was paid for.

    \b
    Examples:
      patternmill remake
      patternmill remake --sku SPR-CUS-001 --takes 3
      patternmill remake --sku SPR-CUS-001 --take 1
    """
    from cli.launcher import run_request

    spec = run_spec(request)
    assert spec.remake is not None, "a remake has its rows"
    echo_lines(spec.remake.lines())
    named = {"catalog": spec.catalog, "environment": spec.scope.environment}
    return run_request(request.model_copy(update=named), spec, approve, asks=not yes)


@verb("retry", RetryRequest, approves=True)
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
def retry(request: RetryRequest, yes: bool, approve: str | None) -> int:
    """Retry the rows of a catalog's latest run (or RUN) that failed, were stopped, or are in doubt.

    Shows the rows and their cost, asks, and runs them. The file is not needed. What is paid for is never bought again,
    and jobs under way are resumed. The results list every row of the file. Rows that wait for a decision need
    `patternmill settle`.

    \b
    Examples:
      patternmill retry --catalog spring
      patternmill retry --status failed --code product_failed --plan-only
      patternmill retry 20260301-0930 --sku SPR-CUS-001 --yes
    """
    from cli.launcher import run_request

    spec = run_spec(request)
    selection = spec.selection
    assert selection is not None, "a retry has a selection"
    rows = [
        {"sku": sku, **fields_of(row, "status", "error_code", "error")} for sku, row in selection.rows.items()
    ]
    show(lambda: {"rows": rows, "left_out": selection.left_out}, _retry_lines(selection, spec))
    if not rows:
        return EXIT_CODES[Outcome.COMPLETED]
    if not (request.plan_only or yes or confirmed("Begin?", "Not begun")):
        return EXIT_REFUSED
    record = selection.record
    named = {"run": record.run_id, "catalog": record.catalog, "environment": record.environment}
    return run_request(request.model_copy(update=named), spec, approve)


def _retry_lines(selection: RetrySelection, spec: RunSpec) -> Iterator[str]:
    """Yield the rows of a retry, up to a screenful, and their cost."""
    record, rows = selection.record, selection.rows
    yield f"Run {record.run_id} of catalog {record.catalog} ({record.environment}), {record.source}"
    yield from selection.left_out_lines(_MOST_LEFT_OUT)
    if not rows:
        yield selection.nothing_to_retry
        return
    yield from in_columns(
        [
            ("  " + sku, row.status.words, row.error_code or "", shortened(row.error or "", 80))
            for sku, row in islice(rows.items(), _MOST_ROWS)
        ]
    )
    yield from more(len(rows), _MOST_ROWS)
    counts = Counter(row.status for row in rows.values())
    yield f"{plural(len(rows), 'row')}: {counted({s.words: counts[s] for s in RowStatus if counts[s]})}"
    planned = make_preview(spec, selection.checked)
    cost = planned.proposal.cost
    yield f"To buy: {goods(planned.plan.purchases())}{f' for {cost}' if cost and cost.worst else ''}."


def make_schedule(request: RefreshRequest, cron: str, timezone: str) -> int:
    """Make or replace a deployment by which workers refresh a catalog on a schedule; return the exit code.

    Buys nothing now. Raises ConfigurationError and InputRefused, and PatternmillError without a server.
    """
    from patternmill.runs.input import read_input
    from patternmill.runs.safeguards import refuse_secrets
    from prefect_host.client_settings import API_URL
    from prefect_host.connection import PrefectConnection

    refuse_secrets(request.source)
    spec, address = run_spec(request), os.environ.get(API_URL)
    if not address:
        # Its worker is on this machine, and reads the same file.
        read_input(spec)
    when = f"at {cron!r} ({timezone})"
    if not _may_buy_unattended(spec, when):
        echo("No schedule was made.", err=True)
        return EXIT_REFUSED
    # A confirmation counts once, so the schedule has none.
    parameters = request.model_dump(mode="json", exclude={"confirm"}, exclude_defaults=True)
    parameters |= {"catalog": spec.catalog, "environment": spec.settings.environment}
    home = spec.settings.home
    with PrefectConnection(home, _refuse) as connection:
        connection.wait()
        from tasks.deployments import schedule_refresh

        name = asyncio.run(schedule_refresh(parameters, cron, timezone))
    where = address or f"the home {home.resolve()} (`patternmill up`)"
    echo(f"The deployment catalog-refresh/{name} refreshes it {when}, where a worker serves {where}.")
    echo("To turn it off or delete it, see Deployments in its UI.")
    return EXIT_CODES[Outcome.COMPLETED]


def _refuse(why: str) -> NoReturn:
    raise PatternmillError(why, remedy="No schedule was made: try it again.")


def _may_buy_unattended(spec: RunSpec, when: str) -> bool:
    """Return whether a schedule may pay the service: confirmed as a purchase is, or agreed to on a terminal."""
    from cli.approval_prompt import is_paid_for

    environment = spec.settings.environment
    if not is_paid_for(spec.settings) or spec.settings.confirms(environment):
        return True
    if not can_ask():
        raise ConfigurationError(
            f"A schedule buys unattended in {environment}, which has to be confirmed.",
            code="unconfirmed",
            remedy=f"Look at --plan-only, then add `--confirm {environment}`. No schedule was made.",
        )
    return said_yes(f"Refresh {spec.catalog} in {environment} {when}, and buy what has changed, unattended?")
