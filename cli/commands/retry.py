"""The verb `retry`: takes up again what did not come to its end, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.commands.import_ import APPROVE_HELP, confirm_option
from cli.terminal import echo
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.engine.options import RunOptions
    from patternmill.ledger.ledger import Ledger
    from patternmill.runs.retry import Purchases, RetrySelection, RowFilter
    from patternmill.settings import Settings

_MOST_ROWS = 40
_MOST_LEFT_OUT = 10


@click.command("retry")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--catalog", help="The catalog whose latest run is meant; needed where there are several.")
@click.option("--environment", help="Of the catalog: staging, production, ... (default: any).")
@click.option(
    "--status", default="", metavar="A,B", help="Default: failed,cancelled,not_started,in_doubt,waiting."
)
@click.option("--code", "codes", multiple=True, help="Rows with this error code; may be given again.")
@click.option("--category", "categories", multiple=True, help="Rows of this category; may be given again.")
@click.option("--sku", "skus", multiple=True, help="This row; may be given again.")
@click.option("--yes", is_flag=True, help="Do not ask. Without a terminal nothing is done without it.")
@click.option("--approve", metavar="DIGEST", help=APPROVE_HELP)
@click.option("--plan-only", is_flag=True, help="Show the rows and their cost; nothing is written or spent.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where the results go (default: results/CATALOG/RUN)."
)
@click.option("--max-in-flight", type=click.IntRange(1, 5000), help="The most jobs in flight at once.")
@click.option("--attempts", type=click.IntRange(1, 10), help="Tries an item, when its job fails (default 2).")
@click.option("--max-failures", metavar="N|N%", help="Stops new items when more have failed.")
@click.option("--max-patterns", type=click.IntRange(0), help="The most patterns that this run may buy.")
@click.option("--max-products", type=click.IntRange(0), help="The most products that this run may buy.")
@click.option(
    "--budget",
    type=click.IntRange(0),
    help="The most that this run may spend, in minor units (50000: €500.00).",
)
@confirm_option
def command(
    run: str | None,
    catalog: str | None,
    environment: str | None,
    status: str,
    codes: tuple[str, ...],
    categories: tuple[str, ...],
    skus: tuple[str, ...],
    yes: bool,
    approve: str | None,
    plan_only: bool,
    **limits: Any,
) -> int:
    """Take up again the rows of a catalog's latest run (or RUN) that failed, were stopped, or are in doubt.

    Shows the rows and what they would cost, asks, and then runs them; the file is not needed, its bytes are in the
    ledger. What is paid for is never bought again, what is under way is gone on with. The results hold every row of
    the file: those not chosen stand as they are. Rows that wait for a decision need `patternmill settle`.

    \b
    Examples:
      patternmill retry --catalog spring
      patternmill retry --status failed --code product_failed --plan-only
      patternmill retry 20260301-0930 --sku SPR-CUS-001 --yes

    \b
    Exit codes: 0 every row has its product, or there is nothing to retry; 3 completed with failures; 2 refused,
    not confirmed or approved, or only shown for want of a terminal; 1 failed; 4 another run holds the catalog; 130
    interrupted.
    """
    from patternmill.catalog.rows import tidy
    from patternmill.engine.options import RunOptions
    from patternmill.ledger.ledger import open_ledger
    from patternmill.runs.retry import RowFilter, statuses_of
    from patternmill.settings import load_settings

    choice = RowFilter(
        statuses_of(status),
        frozenset(codes),
        frozenset(tidy(category).casefold() for category in categories),
        frozenset(tidy(sku) for sku in skus),
    )
    with open_ledger(load_settings(environment=environment), must_exist=True) as ledger:
        chosen = _choose(ledger, run, catalog, environment, choice)
        settings = load_settings(
            environment=chosen.record.environment,
            max_in_flight=limits["max_in_flight"],
            attempts=limits["attempts"],
        )
        for line in retry_lines(chosen, RunOptions.from_settings(settings), ledger.now()):
            echo(line)
        raw = ledger.input_of(chosen.record)
    if plan_only or not chosen.rows:
        return EXIT_CODES[Outcome.COMPLETED]
    if not yes and not _is_meant():
        return EXIT_REFUSED
    return _run(chosen, raw, settings, limits, approve)


def _choose(
    ledger: Ledger, run: str | None, catalog: str | None, environment: str | None, choice: RowFilter
) -> RetrySelection:
    from patternmill.ledger.reports.row_results import input_file
    from patternmill.ledger.reports.run_lookup import LATEST, find_run
    from patternmill.runs.retry import choose

    record = find_run(ledger, run or LATEST, catalog=catalog, environment=environment)
    return choose(ledger, record, input_file(ledger, record), choice)


def retry_lines(chosen: RetrySelection, options: RunOptions, now: float) -> Iterator[str]:
    """The rows, as far as a screen bears them, and what they would cost."""
    from patternmill.runs.retry import cost, has_aged
    from patternmill.text import counted, plural

    record = chosen.record
    yield f"Run {record.run_id} of catalog {record.catalog} ({record.environment}), {record.source}"
    yield from chosen.left_out_lines(_MOST_LEFT_OUT)
    if not chosen.rows:
        yield "Nothing to retry."
        return
    yield from _row_lines(chosen)
    yield f"{plural(len(chosen.rows), 'row')}: {counted({s.value: n for s, n in chosen.by_status.items()})}"
    aged = sum(has_aged(row, now, options) for row in chosen.rows)
    if aged:
        yield f"{aged} of them are in doubt for too long to be sent again: see `patternmill settle --list`."
    spent = cost(chosen.rows, options)
    yield f"To buy:  {_purchases(spent.expected, options)}"
    yield f"At most: {_purchases(spent.worst, options)}, if jobs fail again and are tried {options.attempts} times"


def _row_lines(chosen: RetrySelection) -> Iterator[str]:
    from patternmill.text import in_columns, more, readable, shortened

    rows = [
        (
            "  " + row.sku,
            readable(row.outcome.status.value),
            row.outcome.error_code or "",
            shortened(row.outcome.error or "", 80),
        )
        for row in chosen.rows[:_MOST_ROWS]
    ]
    yield from in_columns(rows)
    yield from more(len(chosen.rows), _MOST_ROWS)


def _purchases(bought: Purchases, options: RunOptions) -> str:
    from patternmill.text import goods, money

    priced = options.pattern_price or options.product_price
    amount = f" for {money(bought.amount, options.currency)}" if priced else ""
    return goods(bought.patterns, bought.products) + amount


def _is_meant() -> bool:
    if not sys.stdin.isatty():
        echo("Not begun: there is no terminal to ask on. Add --yes to run it.", err=True)
        return False
    return click.confirm("Begin?", default=False)


def _run(
    chosen: RetrySelection, raw: bytes, settings: Settings, limits: dict[str, Any], approve: str | None
) -> int:
    from cli.launcher import Request, run_import

    record = chosen.record
    with _laid_out(chosen, raw, settings.home) as (file, selection):
        return run_import(
            Request(
                file=file,
                catalog=record.catalog,
                environment=record.environment,
                encoding=record.input_encoding,
                edition=record.options.get("edition"),
                only=selection,
                **limits,
            ),
            approve,
        )


@contextmanager
def _laid_out(chosen: RetrySelection, raw: bytes, home: Path) -> Iterator[tuple[Path, Path]]:
    """The input's bytes and the selection as files, while the context lasts."""
    import shutil
    import tempfile

    from patternmill.runs.row_selection import write_selection

    place = home / "retries"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place))
    try:
        file = folder / "input" / (Path(chosen.record.source).name or "input.csv")
        file.parent.mkdir()
        file.write_bytes(raw)
        write_selection(chosen.selection(), folder / "selection.json")
        yield file, folder / "selection.json"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
