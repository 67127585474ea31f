"""The verb `status`: runs, money, who holds a catalog, what is open, and how to go on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cli.terminal import echo
from patternmill.states import Verdict

if TYPE_CHECKING:
    from patternmill.ledger.ledger import Ledger
    from patternmill.ledger.records import Approval, HeldLease, RunRecord
    from patternmill.ledger.reports.overview import OpenAttempts, RunInNumbers, Spent
    from patternmill.settings import Settings

_MOST_RUNS = 10


@click.command("status")
@click.option("--catalog", help="This catalog alone.")
@click.option("--environment", help="This environment alone: staging, production, ...")
@click.option("--all", "everything", is_flag=True, help=f"Every run, not only the newest {_MOST_RUNS}.")
def command(catalog: str | None, environment: str | None, everything: bool) -> int:
    """Show the runs, the newest first, what they bought, what is open or waits for approval, and how to go on.

    Reads the ledger alone; it can be asked while a run goes on. Money is in minor units (cents), and counts
    what is reserved with requests; times are UTC.

    \b
    Examples:
      patternmill status
      patternmill status --catalog spring --all

    \b
    Exit codes: 0 shown; 2 there is no ledger here, or a setting is wrong.
    """
    from patternmill.ledger.ledger import open_ledger
    from patternmill.settings import load_settings

    settings = load_settings(environment=environment)
    with open_ledger(settings, must_exist=True) as ledger:
        for line in status_lines(ledger, settings, catalog, environment, None if everything else _MOST_RUNS):
            echo(line)
    return 0


def status_lines(
    ledger: Ledger, settings: Settings, catalog: str | None, environment: str | None, most: int | None
) -> Iterator[str]:
    """Everything that the verb shows."""
    from patternmill.ledger.reports import overview

    def asked(its_environment: str, its_catalog: str) -> bool:
        return environment in (None, its_environment) and catalog in (None, its_catalog)

    records = ledger.runs(environment=environment, catalog=catalog)
    held = [lease for lease in ledger.held_leases() if asked(lease.environment, lease.catalog)]
    holders: dict[str, str] = {lease.run_id: _life(ledger, lease) for lease in held}
    living = {run_id: told for run_id, told in holders.items() if not told.startswith("dead")}
    shown = list(overview.in_numbers(ledger, records[:most]))
    yield from _run_lines(shown, living, len(records), ledger.now())
    yield from _money_lines(overview.spent_on(ledger, _today(ledger)), environment, settings)
    yield from _holder_lines(held, holders)
    words = [approval for approval in ledger.approvals() if asked(approval.environment, approval.catalog)]
    yield from _approval_lines(words, ledger.now())
    opened = [found for found in overview.open_attempts(ledger) if asked(found.environment, found.catalog)]
    yield from _open_lines(opened, ledger.now())
    yield from _next_lines(ledger, records, opened, living)


def _today(ledger: Ledger) -> str:
    return datetime.fromtimestamp(ledger.now(), UTC).date().isoformat()


def _run_lines(runs: list[RunInNumbers], living: Mapping[str, str], known: int, now: float) -> Iterator[str]:
    from patternmill.text import in_columns

    if not runs:
        yield "No runs."
        return
    head = (
        "run",
        "catalog",
        "environment",
        "started",
        "took",
        "outcome",
        "patterns",
        "products",
        "spent",
        "rows",
    )
    yield from in_columns([head, *(_run_cells(run, living, now) for run in runs)])
    if known > len(runs):
        yield f"… and {known - len(runs)} earlier ones (--all)"


def _run_cells(run: RunInNumbers, living: Mapping[str, str], now: float) -> tuple[str, ...]:
    from patternmill.text import counted

    record = run.record
    return (
        record.run_id,
        record.catalog,
        record.environment,
        f"{record.started_at:%Y-%m-%d %H:%M}",
        _took(record, living, now),
        _outcome(record, living),
        str(run.spent.patterns),
        str(run.spent.products),
        str(run.spent.amount),
        counted({status.value: count for status, count in run.rows.items()}),
    )


def _took(record: RunRecord, living: Mapping[str, str], now: float) -> str:
    from patternmill.text import span

    if record.ended_at is None and record.run_id not in living:
        return "?"
    ended = record.ended_at.timestamp() if record.ended_at else now
    return span(ended - record.started_at.timestamp())


def _outcome(record: RunRecord, living: Mapping[str, str]) -> str:
    if record.outcome is not None:
        return record.outcome.value
    return "running" if record.run_id in living else "crashed"


def _money_lines(today: Mapping[str, Spent], environment: str | None, settings: Settings) -> Iterator[str]:
    for its_environment, spent in today.items():
        if environment in (None, its_environment):
            budget = settings.day_budget if settings.environment == its_environment else None
            most = "" if budget is None else f" of {budget}"
            yield (
                f"Today in {its_environment}: {spent.patterns} patterns and {spent.products} products, "
                f"{spent.amount}{most} spent or reserved."
            )


def _life(ledger: Ledger, lease: HeldLease) -> str:
    """Whether the holder of a catalog lives, in words."""

    from patternmill.runs.lease import HEARTBEAT_INTERVAL, LeaseHolder

    holder = LeaseHolder.of(lease)
    if holder.is_surely_dead():
        return f"dead (process {holder.pid}); the next run takes over at once"
    if holder.machine == LeaseHolder.this_process().machine:
        if holder.is_stopped():
            locks = ledger.database.locked_by() == holder.pid
            return (
                f"standing still (process {holder.pid}, stopped by a signal)"
                f"{', and keeps others from writing' if locks else ''}; the next run takes over"
            )
        return f"alive (process {holder.pid})"
    machine = holder.machine.partition("/")[0]
    if _beats(ledger, lease, 2.5 * HEARTBEAT_INTERVAL.total_seconds()):
        return f"alive (process {holder.pid} on {machine})"
    return f"silent (process {holder.pid} on {machine}); the next run takes over if it stays so"


def _beats(ledger: Ledger, lease: HeldLease, patience: float) -> bool:
    """A holder on another machine is known by its beats alone."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        now = ledger.lease(lease.environment, lease.catalog)
        if now != lease:
            return True
        time.sleep(0.2)
    return False


def _holder_lines(held: Iterable[HeldLease], holders: Mapping[str, str]) -> Iterator[str]:
    for lease in held:
        yield f"{lease.catalog} ({lease.environment}) is held by {lease.run_id}: {holders[lease.run_id]}."


def _approval_lines(approvals: Iterable[Approval], now: float) -> Iterator[str]:
    """What waits for a person's word, and the last word on each catalog."""
    told: set[tuple[str, str]] = set()
    for approval in approvals:
        if approval.verdict is Verdict.WAITING:
            yield _waiting_line(approval, now)
    for approval in sorted(approvals, key=lambda said: said.decided_at or 0, reverse=True):
        scope = (approval.environment, approval.catalog)
        if approval.verdict in (Verdict.APPROVED, Verdict.REJECTED) and scope not in told:
            told.add(scope)
            yield _word_line(approval)


def _waiting_line(approval: Approval, now: float) -> str:
    from patternmill.text import span

    left = (approval.lapses_at or now) - now
    until = f"lapses in {span(left)}" if left > 0 else "lapsed"
    return (
        f"Waits for approval in {approval.catalog} ({approval.environment}): plan {approval.short}, "
        f"{approval.items} items for {approval.expected}, at most {approval.worst}; "
        f"asked {span(now - approval.asked_at)} ago, {until}. "
        f"Answer in the Prefect UI: flow run {approval.flow_run_id}."
    )


def _word_line(approval: Approval) -> str:
    from patternmill.text import moment

    said = (
        f"{approval.verdict.value} by {approval.who} (name not verified), {moment(approval.decided_at or 0)}"
    )
    note = f" ({approval.note})" if approval.note else ""
    line = f"Last word on {approval.catalog} ({approval.environment}): plan {approval.short} {said}{note}"
    if approval.verdict is Verdict.REJECTED:
        return f"{line}."
    ceiling = approval.ceiling
    return (
        f"{line}: {ceiling.items} of {approval.items} items, {approval.amount} of at most {ceiling.amount} "
        f"spent or reserved under it in {approval.purchases} requests."
    )


_OWED = {
    "intended": "sent or about to be, without an answer",
    "accepted": "with a job at the service",
    "held": "waiting for a person's decision",
}


def _open_lines(opened: Iterable[OpenAttempts], now: float) -> Iterator[str]:
    from patternmill.text import span

    for found in opened:
        yield (
            f"Open in {found.catalog} ({found.environment}): {found.count} {found.stage}s "
            f"{_OWED[found.state]}, the oldest for {span(now - found.oldest)}."
        )


def _next_lines(
    ledger: Ledger, records: list[RunRecord], opened: list[OpenAttempts], living: Mapping[str, str]
) -> Iterator[str]:
    """For the latest run of each catalog: the command that goes on with it."""
    from patternmill.ledger.reports.overview import rows_by_status
    from patternmill.ledger.reports.run_lookup import had_lease
    from patternmill.runs.retry import RETRIABLE

    latest: dict[tuple[str, str], RunRecord] = {}
    for record in filter(had_lease, records):
        latest.setdefault((record.environment, record.catalog), record)
    for (environment, catalog), record in latest.items():
        rows = rows_by_status(ledger, record)
        if any(rows.get(status) for status in RETRIABLE) and record.run_id not in living:
            yield f"To go on: patternmill retry --catalog {catalog!r} --environment {environment}"
    if any(found.state == "held" for found in opened):
        yield "To decide: patternmill settle --list"
