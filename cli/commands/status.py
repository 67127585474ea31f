"""The verb `status`: runs, catalogs, money, holders of leases, what is open, and what to do next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from cli.commands.pause import pause_part
from cli.json_output import Part, fields_of, show_parts, utc
from cli.run_options import verb
from cli.terminal import echo, login_hint, open_signed_in, steps
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.ledger import Ledger, has_ledger, open_ledger
from patternmill.ledger.records import Lease, RunRecord, holder_of, is_free
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus, checkouts
from patternmill.ledger.reports.requests import RecordedItem, open_items, unsettled
from patternmill.ledger.reports.run_lookup import had_lease
from patternmill.ledger.spending import day_of
from patternmill.money import money, sums
from patternmill.parameters import WAIT_TIME, wait_time
from patternmill.planning.items import catalog_of
from patternmill.planning.plan import Cost
from patternmill.processes import is_stopped, machine
from patternmill.runs.approval import APPROVAL_TIME
from patternmill.runs.retry import has_rows_to_retry
from patternmill.settings import Settings, load_settings
from patternmill.states import EXIT_CODES, AttemptState, Outcome, RowStatus, Stage, Verdict
from patternmill.text import counted, duration, moment, plural

_MOST_RUNS = 10
#: The state of a run without an end, by whether its process is alive.
_STATES = {True: "running", False: "crashed: it was ended before its end"}
#: The outcomes of runs that tried every row.
_TRIED_EVERYTHING = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_FAILURES})
_OPEN = {
    "intended": "sent or about to be, without an answer",
    "accepted": "with a job at the service",
    "held": "waiting for a person's decision",
}


def _limit(context: click.Context, option: click.Parameter, text: str | None) -> timedelta | None:
    if text is None or re.fullmatch(WAIT_TIME, text):
        return wait_time(text) if text is not None else None
    raise click.BadParameter("must be a number and its unit, as in 26h or 8d")


@verb("status")
@click.option("--catalog", help="This catalog alone.")
@click.option("--environment", help="This environment alone: staging, production, ...")
@click.option("--all", "everything", is_flag=True, help=f"Every run, not only the newest {_MOST_RUNS}.")
@click.option("--open", "is_open", is_flag=True, help="Then open the Prefect UI of these runs, until Ctrl-C.")
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
    """Show the runs (the newest last), the catalogs, what is open or waits for approval, and what to do next.

    Reads only the ledger, also during a run. Amounts include what is reserved for open requests; times are UTC.

    --open serves the record that commands keep under PATTERNMILL_HOME, and opens it in your browser, signed in. Runs on
    a Prefect server of yours (PREFECT_API_URL) are in that server's UI.

    --older-than is for a monitor: it shows when each catalog was last refreshed with every row tried.

    \b
    Examples:
      patternmill status
      patternmill status --catalog spring --all
      patternmill status --older-than 26h --catalog spring

    Exit codes: 0 shown; 3 a refresh is older than that, or never came; 1 the Prefect server did not start or ended; 2
    there is no ledger here, or a setting is wrong.
    """
    settings = load_settings(environment, unknown_too=True)
    if is_open and not has_ledger(settings) and (settings.home / "prefect").is_dir():
        echo("Nothing was imported from here yet.")
        _open_history(settings)
        return 0
    with open_ledger(settings, must_exist=True) as ledger:
        if limit is not None:
            refreshes = list(_refreshes(ledger, catalog, environment, limit))
            show_parts({"refreshes": refreshes or [({}, "No catalog was ever refreshed.")]})
            is_late = not refreshes or any(fields["is_late"] for fields, _ in refreshes)
            return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if is_late else Outcome.COMPLETED]
        most = None if everything else _MOST_RUNS
        show_parts(Status(ledger, settings, catalog, environment).sections(most))
    if is_open:
        _open_history(settings)
    return 0


class Status:
    """The state of a catalog in an environment (None: of any), each part as fields and as text."""

    def __init__(
        self, ledger: Ledger, settings: Settings, catalog: str | None = None, environment: str | None = None
    ) -> None:
        self._ledger, self._settings = ledger, settings
        self._catalog, self._environment = catalog, environment
        self._records = ledger.runs.find(environment=environment, catalog=catalog)
        self._latest: dict[str, RunRecord] = {}
        for record in filter(had_lease, self._records):
            self._latest.setdefault(_scope(record), record)
        leases = filter(self._is_meant, ledger.catalogs.held_leases())
        self._leases = {lease.run_id: lease for lease in leases}

    def sections(self, most: int | None = None) -> Mapping[str, Iterable[Part]]:
        """Return the sections in the order of reading, what to do last; `most`: how many runs, None for all."""
        return {
            "pauses": map(pause_part, self._ledger.brake.pauses()),
            "runs": self._runs(most),
            "catalogs": map(self._products, reversed(self._latest.values())),
            "today": self._today(),
            "leases": self._holders(),
            "approvals": self._approvals(),
            "open": self._open(),
            "unpaid_checkouts": map(_unpaid_part, self._unpaid()),
            "next": self._next(),
        }

    def _is_meant(self, record: Any) -> bool:
        """Return whether a record is of the catalog or its orders, and of the environment."""
        is_here = self._environment in (None, record.environment)
        return is_here and self._catalog in (None, catalog_of(record.catalog))

    def _is_running(self, record: RunRecord) -> bool:
        return record.run_id in self._leases and not is_free(self._leases[record.run_id])

    def _runs(self, most: int | None) -> Iterator[Part]:
        runs = self._records[:most]
        if len(runs) != len(self._records):
            yield {}, f"… and {plural(len(self._records) - len(runs), 'earlier run')} (--all)"
        if not runs:
            yield {}, "No runs."
        yield from map(self._run, reversed(runs))

    def _run(self, record: RunRecord) -> Part:
        rows = self._ledger.runs.rows_by_status(record)
        spent = self._ledger.purchases.spent_by_run(record.run_id)
        state = record.outcome.words if record.outcome else _STATES[self._is_running(record)]
        took = f", took {duration(record.ended_at - record.started_at)}" if record.ended_at else ""
        parts = [f"  rows: {_counted(rows)}", sums(spent.amounts)]
        if spent.items.total() and record.prefect_flow_run_id is None:
            parts.append("driven without Prefect: no Prefect UI shows it")
        title = f"{record.run_id}  {_scope(record)}, {moment(record.started_at)}: {state}{took}"
        lines = [title, "; ".join(filter(None, parts)), *([f"  {record.reason}"] if record.reason else [])]
        fields = fields_of(record, "run_id", "catalog", "environment", "source", "started_at", "ended_at")
        more = fields_of(record, "outcome", "reason", "prefect_flow_run_id")
        return {**fields, **more, "state": state, "rows": rows, "spent": spent.amounts}, "\n".join(lines)

    def _products(self, record: RunRecord) -> Part:
        """Return how many products a catalog has, and how the rows of its latest run stand."""
        products = self._ledger.catalogs.sizes().get((record.catalog, record.environment), 0)
        rows = self._ledger.runs.rows_by_status(record)
        text = f"{_scope(record)}: {plural(products, 'product')}; latest rows: {_counted(rows)}"
        scope = fields_of(record, "catalog", "environment", "run_id")
        return {**scope, "products": products, "rows": rows}, text

    def _today(self) -> Iterator[Part]:
        unit, day = self._settings.currency, day_of(self._ledger.now())
        for environment, spent in self._ledger.purchases.spent_on(day).items():
            budget = self._settings.day_budget if environment == self._settings.environment else None
            if self._environment not in (None, environment) or not (spent.amounts.total() or budget):
                continue
            most = "" if budget is None else f" of {money(budget, unit)}"
            amount = f"{sums(spent.amounts) or money(0, unit)}{most} spent or reserved"
            if most and set(+spent.amounts) - {unit or ""}:
                amount = f"{sums(spent.amounts)} spent or reserved; the budget{most} is in another unit"
            fields = {"environment": environment, "spent": spent.amounts, "budget": budget}
            yield fields, f"Today in {environment}: {amount}."

    def _holders(self) -> Iterator[Part]:
        for lease in self._leases.values():
            state = _holder_state(lease)
            fields = fields_of(lease, "catalog", "environment", "run_id")
            yield {**fields, "holder": state}, f"{_scope(lease)} is held by {lease.run_id}: {state}."

    def _approvals(self) -> Iterator[Part]:
        for approval in filter(self._is_meant, reversed(self._ledger.approvals.find())):
            if approval.verdict is not Verdict.WAITING:
                continue
            age = self._ledger.now() - approval.asked_at
            left = APPROVAL_TIME.total_seconds() - age
            run = f"flow run {approval.flow_run_id}"
            todo = f"Answer in the Prefect UI within {duration(left)}: {run}."
            cost = Cost(approval.expected, approval.worst, approval.currency) if approval.worst else None
            what = f"plan {approval.short}, {plural(approval.items, 'item')}{f' for {cost}' if cost else ''}"
            text = f"Waits for approval in {_scope(approval)}: {what}; asked {duration(age)} ago."
            fields = fields_of(approval, "catalog", "environment", "short", "items", "flow_run_id")
            fields["asked_at"] = utc(approval.asked_at)
            yield fields, f"{text} {todo if left > 0 else f'Nobody answered {run}.'}"

    def _open(self) -> Iterator[Part]:
        """Yield the requests without an end, by catalog, stage and state."""
        groups: dict[tuple[str, Stage, AttemptState], list[RecordedItem]] = {}
        for item in filter(self._is_meant, open_items(self._ledger)):
            groups.setdefault((_scope(item), item.stage, item.attempt.state), []).append(item)
        for (scope, stage, state), items in sorted(groups.items()):
            since = min(item.attempt.since for item in items)
            what = f"{plural(len(items), stage)} {_OPEN[state]}"
            fields = fields_of(items[0], "catalog", "environment", "stage")
            fields |= {"state": state, "requests": len(items), "oldest_since": utc(since)}
            yield fields, f"Open in {scope}: {what}, the oldest for {duration(self._ledger.now() - since)}."

    def _unpaid(self) -> list[CheckoutRecord]:
        return [
            record
            for record in checkouts(self._ledger, environment=self._environment)
            if record.status is CheckoutStatus.OPEN and self._catalog in (None, catalog_of(record.scope))
        ]

    def _next(self) -> Iterator[Part]:
        if self._unpaid():
            yield _step("To ask what has become of the checkouts", "patternmill order --refresh")
        for record in self._latest.values():
            if not self._is_running(record) and has_rows_to_retry(self._ledger, record):
                scope = f"--catalog {shlex.quote(record.catalog)} --environment {record.environment}"
                yield _step("To go on", f"patternmill retry {scope}")
        if any(map(self._is_meant, unsettled(self._ledger, self._settings.in_doubt_limit))):
            yield _step("To decide", "patternmill settle")


def _unpaid_part(record: CheckoutRecord) -> Part:
    fields = fields_of(record, "checkout_id", "order_name", "environment")
    return fields, f"Open and not paid, as far as is known: checkout {record.checkout_id}"


def _step(what: str, command: str) -> Part:
    return {"command": command}, f"{what}: {command}"


def _holder_state(lease: Lease) -> str:
    """Return the state of the process that holds a lease; one on another machine cannot be seen."""
    holder = holder_of(lease)
    process = f"process {holder['pid']}"
    if is_free(lease):
        return f"dead ({process}); the next run takes over at once"
    if holder["machine"] != machine():
        return f"{process} on {holder['machine'].partition('/')[0]}; if it is gone, the next run takes over"
    if is_stopped(holder["pid"]):
        return f"stopped by a signal ({process}); the next run takes over"
    return f"alive ({process})"


def _counted(rows: Mapping[RowStatus, int]) -> str:
    return counted({status.words: count for status, count in rows.items()})


def _scope(record: Any) -> str:
    return f"{record.catalog} ({record.environment})"


def _refreshes(
    ledger: Ledger, catalog: str | None, environment: str | None, limit: timedelta
) -> Iterator[Part]:
    """Yield when each catalog was last refreshed with every row tried."""
    last: dict[str, datetime | None] = {}
    for record in ledger.runs.find(environment=environment, catalog=catalog):
        if counts_of(record) is not None and last.get(_scope(record)) is None:
            last[_scope(record)] = record.ended_at if record.outcome in _TRIED_EVERYTHING else None
    now = datetime.fromtimestamp(ledger.now(), UTC)
    for scope, at in sorted(last.items()):
        is_late = at is None or now - at > limit
        when = f"{duration(now - at)} ago" if at is not None else "never to its end"
        text = f"{scope}: refreshed {when}{f', and not in {duration(limit)}' if is_late else ''}"
        yield {"catalog": scope, "refreshed_at": at, "is_late": is_late}, text


def _open_history(settings: Settings) -> None:
    """Serve the Prefect UI of the home until Ctrl-C. Raises PatternmillError when its server does not stay up."""
    from prefect_host.own_server import OwnServer
    from prefect_host.stop_signals import until_interrupted

    steps.show("Starting the Prefect server …")
    with OwnServer(settings.home).for_this_process() as server:
        server.wait_ready()
        echo(f"The Prefect UI of {settings.home}: {login_hint(server.login_url())}")
        open_signed_in(server.login_url(), server.directory / "open.html")
        echo("It is served until Ctrl-C.")
        server.wait_end(until_interrupted())
