"""The verb `status`: runs, money, leases, open requests, and what to do next."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import click

from cli.terminal import echo, echo_lines, login_hint
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.order_report import checkouts
from patternmill.ledger.reports.run_lookup import had_lease
from patternmill.ledger.reports.unsettled import open_items, unsettled
from patternmill.ledger.spending import day_of
from patternmill.money import money, sums
from patternmill.parameters import WAIT_TIME, wait_time
from patternmill.planning.items import catalog_of
from patternmill.planning.plan import Cost
from patternmill.processes import is_stopped, machine
from patternmill.runs.approval import APPROVAL_TIME
from patternmill.runs.lease import HEARTBEAT_INTERVAL, holder_of, is_surely_dead
from patternmill.runs.retry import has_rows_to_retry
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, AttemptState, Outcome, Stage, Verdict
from patternmill.text import counted, duration, goods, moment, plural

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import Approval, Lease, RunRecord
    from patternmill.ledger.reports.items import RecordedItem
    from patternmill.settings import Settings

    _InCatalog = RunRecord | Lease | Approval | RecordedItem

_MOST_RUNS = 10
_MOST_CHECKOUTS = 5
#: A run with one of these outcomes has tried every row.
TRIED_EVERYTHING = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_FAILURES})
STALE = EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES]
_DEAD = "dead"
_OPEN = {
    "intended": "sent or about to be, without an answer",
    "accepted": "with a job at the service",
    "held": "waiting for a person's decision",
}

T = TypeVar("T", bound="_InCatalog")


def _limit(context: click.Context, option: click.Parameter, text: str | None) -> timedelta | None:
    if text is None:
        return None
    if not re.fullmatch(WAIT_TIME, text):
        raise click.BadParameter("must be a number and its unit, as in 26h or 8d")
    return wait_time(text)


@click.command("status")
@click.option("--catalog", help="This catalog alone.")
@click.option("--environment", help="This environment alone: staging, production, ...")
@click.option("--all", "everything", is_flag=True, help=f"Every run, not only the newest {_MOST_RUNS}.")
@click.option(
    "--open", "is_open", is_flag=True, help="Then serve the Prefect UI of these runs, until Ctrl-C."
)
@click.option(
    "--older-than",
    "limit",
    metavar="TIME",
    callback=_limit,
    help="Instead, look for refreshes that did not come: 26h.",
)
def command(
    catalog: str | None, environment: str | None, everything: bool, is_open: bool, limit: timedelta | None
) -> int:
    """Show the runs, newest first, what they bought, what is open or waits for approval, and what to do next.

    Reads only the ledger, also during a run. Amounts include what is reserved for open requests, and stay in
    the currency in which they were spent; times are UTC.

    With --open the record that commands keep under PATTERNMILL_HOME (runs, task runs, logs, artifacts) is served, and
    its address shown. Runs on a Prefect server of yours (PREFECT_API_URL) are in that server's UI instead.

    With --older-than it shows one line for each catalog that was ever refreshed: when its last refresh ended with
    every row tried (Completed or CompletedWithFailures). For a monitor that notices the run that did not run.

    \b
    Examples:
      patternmill status
      patternmill status --catalog spring --all
      patternmill status --open
      patternmill status --older-than 26h --catalog spring

    Exit codes: 0 shown; 3 a refresh is older than that, or never came; 1 the Prefect server did not start or ended;
    2 there is no ledger here, or a setting is wrong.
    """
    settings = load_settings(environment, unknown_too=True)
    most = None if everything else _MOST_RUNS
    with open_ledger(settings, must_exist=True) as ledger:
        if limit is not None:
            return show_refreshes(ledger, catalog, environment, limit)
        echo_lines(status_lines(ledger, settings, catalog, environment, most))
    if is_open:
        _serve_history(settings)
    return 0


def show_refreshes(ledger: Ledger, catalog: str | None, environment: str | None, limit: timedelta) -> int:
    """Show when each catalog was last refreshed; return 3 where that is longer ago than the limit."""
    last: dict[str, RunRecord | None] = {}
    for record in ledger.runs.find(environment=environment, catalog=catalog):
        if counts_of(record) is not None:
            found = last.setdefault(_scope(record), None)
            last[_scope(record)] = found or (record if record.outcome in TRIED_EVERYTHING else None)
    ages = {scope: _age(ledger, record) for scope, record in sorted(last.items())}
    for scope, age in ages.items():
        when = "never to its end" if age is None else f"{duration(age)} ago"
        echo(
            f"{scope}: refreshed {when}{'' if _is_within(age, limit) else f', and not in {duration(limit)}'}"
        )
    if not ages:
        echo("No catalog was ever refreshed.")
    return 0 if ages and all(_is_within(age, limit) for age in ages.values()) else STALE


def _age(ledger: Ledger, record: RunRecord | None) -> timedelta | None:
    if record is None or record.ended_at is None:
        return None
    return timedelta(seconds=ledger.now() - record.ended_at.timestamp())


def _is_within(age: timedelta | None, limit: timedelta) -> bool:
    return age is not None and age <= limit


def _serve_history(settings: Settings) -> None:
    """Returns at Ctrl-C. Raises PatternmillError when the server does not start, or ends."""
    from prefect_host.own_server import OwnServer
    from prefect_host.stop_signals import until_interrupted

    with OwnServer(settings.home).for_this_process() as server:
        echo(f"The history of {settings.home}: {server.ui_url}")
        echo(f"To log in: {login_hint(server.login_url())}")
        echo("Ctrl-C stops.")
        server.wait_end(until_interrupted())


def status_lines(
    ledger: Ledger, settings: Settings, catalog: str | None, environment: str | None, most: int | None
) -> Iterator[str]:
    """`most`: how many runs, None for all."""
    now = ledger.now()
    records = ledger.runs.find(environment=environment, catalog=catalog)
    leases = _matching(catalog, environment, ledger.catalogs.held_leases())
    holders = {lease.run_id: _holder_state(ledger, lease) for lease in leases}
    running = {run_id for run_id, state in holders.items() if not state.startswith(_DEAD)}
    runs = records[:most]
    yield from (line for run in runs for line in _run_block(ledger, run, running, now))
    if len(records) != len(runs) or not runs:
        yield f"… and {plural(len(records) - len(runs), 'earlier run')} (--all)" if runs else "No runs."
    yield from _money_lines(ledger, environment, settings)
    for lease in leases:
        yield f"{_scope(lease)} is held by {lease.run_id}: {holders[lease.run_id]}."
    yield from _approval_lines(_matching(catalog, environment, ledger.approvals.find()), now)
    yield from _open_lines(_matching(catalog, environment, open_items(ledger)), now)
    yield from _order_lines(ledger, environment, catalog)
    yield from _next_lines(ledger, records, running)
    if _matching(catalog, environment, unsettled(ledger, settings.in_doubt_limit)):
        yield "To decide: patternmill settle"


def _matching(catalog: str | None, environment: str | None, found: Iterable[T]) -> list[T]:
    """Those of a catalog or of its orders, in an environment; None: in any."""
    return [
        one
        for one in found
        if environment in (None, one.environment) and catalog in (None, catalog_of(one.catalog))
    ]


def _scope(found: _InCatalog) -> str:
    return f"{found.catalog} ({found.environment})"


def _run_block(ledger: Ledger, record: RunRecord, running: Collection[str], now: float) -> Iterator[str]:
    spent = ledger.purchases.spent_by_run(record.run_id)
    is_running = record.run_id in running
    ended = record.ended_at.timestamp() if record.ended_at else now if is_running else None
    took = f"took {duration(ended - record.started_at.timestamp())}" if ended else "was ended before its end"
    yield f"{record.run_id}  {record.outcome or ('running' if is_running else 'crashed')}"
    yield f"  {_scope(record)}, {moment(record.started_at)}, {took}"
    yield f"  rows: {counted({status.words: count for status, count in ledger.runs.rows_by_status(record).items()})}"
    if record.reason:
        yield f"  {record.reason}"
    price = f", for {sums(spent.amounts)}" if spent.amounts.total() else ""
    failed = ledger.purchases.failed_attempts(record.run_id)
    yield f"  asked for: {goods(spent.items)}{f', {failed:,} failed' if failed else ''}{price}"
    if spent.items.total() and record.prefect_flow_run_id is None:
        yield "  driven without Prefect: no Prefect UI shows it"


def _money_lines(ledger: Ledger, environment: str | None, settings: Settings) -> Iterator[str]:
    for its_environment, spent in ledger.purchases.spent_on(day_of(ledger.now())).items():
        if environment in (None, its_environment):
            budget = settings.day_budget if settings.environment == its_environment else None
            most = "" if budget is None else f" of {money(budget, settings.currency)}"
            amount = f"{sums(spent.amounts) or money(0, settings.currency)}{most} spent or reserved"
            if most and set(+spent.amounts) - {settings.currency or ""}:
                amount = f"{sums(spent.amounts)} spent or reserved; the budget{most} is in another unit"
            is_counted = spent.amounts.total() or settings.has_prices
            yield (
                f"Today in {its_environment}: {goods(spent.items)}, "
                f"{amount if is_counted else 'costs not counted'}."
            )


def _holder_state(ledger: Ledger, lease: Lease) -> str:
    """Whether the lease's process lives."""
    holder = holder_of(lease)
    process = f"process {holder['pid']}"
    if is_surely_dead(holder):
        return f"{_DEAD} ({process}); the next run takes over at once"
    if holder["machine"] != machine():
        process = f"{process} on {holder['machine'].partition('/')[0]}"
        if _has_heartbeat(ledger, lease, 2.5 * HEARTBEAT_INTERVAL.total_seconds()):
            return f"alive ({process})"
        return f"without a heartbeat ({process}); the next run takes over if it stays so"
    if is_stopped(holder["pid"]):
        return f"stopped by a signal ({process}); the next run takes over"
    return f"alive ({process})"


def _has_heartbeat(ledger: Ledger, lease: Lease, patience: float) -> bool:
    """For a holder on another machine, whose process cannot be checked."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        now = ledger.catalogs.lease(lease.environment, lease.catalog)
        if now != lease:
            return True
        time.sleep(0.2)
    return False


def _approval_lines(approvals: list[Approval], now: float) -> Iterator[str]:
    """The plans that wait for approval."""
    waiting = [one for one in reversed(approvals) if one.verdict is Verdict.WAITING]
    yield from (_waiting_line(approval, now) for approval in waiting)


def _waiting_line(approval: Approval, now: float) -> str:
    age = now - approval.asked_at
    left = APPROVAL_TIME.total_seconds() - age
    run = f"flow run {approval.flow_run_id}"
    todo = (
        f"Answer in the Prefect UI within {duration(left)}: {run}." if left > 0 else f"Nobody answered {run}."
    )
    cost = f" for {Cost(approval.expected, approval.worst, approval.currency)}" if approval.worst else ""
    return (
        f"Waits for approval in {_scope(approval)}: plan {approval.short}, {plural(approval.items, 'item')}{cost}; "
        f"asked {duration(age)} ago. {todo}"
    )


def _open_lines(items: Iterable[RecordedItem], now: float) -> Iterator[str]:
    begun: dict[tuple[str, Stage, AttemptState], list[float]] = {}
    for item in items:
        begun.setdefault((_scope(item), item.stage, item.attempt.state), []).append(item.attempt.since)
    for (scope, stage, state), times in sorted(begun.items()):
        yield (
            f"Open in {scope}: {plural(len(times), stage)} {_OPEN[state]}, "
            f"the oldest for {duration(now - min(times))}."
        )


def _order_lines(ledger: Ledger, environment: str | None, catalog: str | None) -> Iterator[str]:
    """The checkouts that nobody has paid as far as is known."""
    found = checkouts(ledger, environment=environment)
    unpaid = [one for one in found if one.is_unpaid and catalog in (None, catalog_of(one.scope))]
    if unpaid:
        named = ", ".join(str(record.checkout_id) for record in unpaid[:_MOST_CHECKOUTS])
        yield f"Open and not paid, as far as is known: {plural(len(unpaid), 'checkout')} ({named})."
        yield "To ask what has become of them: patternmill order --refresh"


def _next_lines(ledger: Ledger, records: Iterable[RunRecord], running: Collection[str]) -> Iterator[str]:
    """For the latest run of each catalog: the command that retries it."""
    latest: dict[str, RunRecord] = {}
    for record in filter(had_lease, records):
        latest.setdefault(_scope(record), record)
    for record in latest.values():
        if record.run_id not in running and has_rows_to_retry(ledger, record):
            catalog = shlex.quote(record.catalog)
            yield f"To go on: patternmill retry --catalog {catalog} --environment {record.environment}"
