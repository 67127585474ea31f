"""The verb `retry`: the unfinished rows of an earlier run, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.run_options import approve_option, request_command, run_options
from cli.terminal import confirmed, echo_lines
from patternmill.runs.approval import may_need_approval
from patternmill.runs.request import RetryRequest
from patternmill.runs.retry import cost
from patternmill.runs.spec import run_spec
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import counted, goods, in_columns, more, plural, shortened

if TYPE_CHECKING:
    from patternmill.engine.options import RunOptions
    from patternmill.runs.retry import RetrySelection

_MOST_ROWS = 40
_MOST_LEFT_OUT = 10


@click.command("retry", cls=request_command(RetryRequest))
@click.argument("run", metavar="[RUN]", required=False)
@run_options(RetryRequest, declared=("run",))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@approve_option
@click.option("--plan-only", is_flag=True, help="Show the rows and their cost; nothing is written or spent.")
def command(request: RetryRequest, yes: bool, approve: str | None, plan_only: bool) -> int:
    """Retry the rows of a catalog's latest run (or RUN) that failed, were stopped, or are in doubt.

    Shows the rows and their cost, asks for confirmation, and runs them. The file is not needed: the ledger has its
    content. What is paid for is never bought again, jobs under way are resumed. The results list every row of the
    file, also those that were not chosen. Rows that wait for a decision need `patternmill settle`.

    \b
    Examples:
      patternmill retry --catalog spring
      patternmill retry --status failed --code product_failed --plan-only
      patternmill retry 20260301-0930 --sku SPR-CUS-001 --yes

    Exit codes: 0 every row has its product, or there is nothing to retry; 3 completed with failures; 2 refused,
    not confirmed or approved, or only shown because there is no terminal; 1 failed; 4 another run of this catalog goes
    on; 130 interrupted.
    """
    spec = run_spec(request)
    chosen = spec.selection
    assert chosen is not None, "a retry has a selection"
    echo_lines(retry_lines(chosen, spec.options))
    if not chosen.rows:
        return EXIT_CODES[Outcome.COMPLETED]
    from cli.launcher import run_request, show_plan

    if plan_only:
        # A plan is approved by its digest.
        return show_plan(spec) if may_need_approval(spec) else EXIT_CODES[Outcome.COMPLETED]
    if not yes and not confirmed("Begin?", "Not begun"):
        return EXIT_REFUSED
    record = chosen.record
    named = {"run": record.run_id, "catalog": record.catalog, "environment": record.environment}
    return run_request(request.model_copy(update=named), spec, approve)


def retry_lines(chosen: RetrySelection, options: RunOptions) -> Iterator[str]:
    """The rows, up to a screenful, and their cost."""
    record = chosen.record
    yield f"Run {record.run_id} of catalog {record.catalog} ({record.environment}), {record.source}"
    yield from chosen.left_out_lines(_MOST_LEFT_OUT)
    if not chosen.rows:
        yield chosen.nothing_to_retry
        return
    rows = [
        ("  " + row.sku, row.status.words, row.error_code or "", shortened(row.error or "", 80))
        for row in chosen.rows[:_MOST_ROWS]
    ]
    yield from in_columns(rows)
    yield from more(len(chosen.rows), _MOST_ROWS)
    yield f"{plural(len(chosen.rows), 'row')}: {counted({s.words: n for s, n in chosen.by_status.items()})}"
    bought, spent = cost(chosen.rows, options)
    yield f"To buy: {goods(bought)}{f' for {spent}' if spent.worst else ''}."
