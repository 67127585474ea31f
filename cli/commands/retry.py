"""The verb `retry`: the unfinished rows of an earlier run, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice, starmap
from typing import TYPE_CHECKING

import click

from cli.json_output import fields_of, show
from cli.run_options import verb
from cli.terminal import confirmed
from patternmill.runs.preview import preview
from patternmill.runs.request import RetryRequest
from patternmill.runs.spec import run_spec
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome, RowStatus
from patternmill.text import counted, goods, in_columns, more, plural, shortened

if TYPE_CHECKING:
    from patternmill.ledger.row_outcomes import RowOutcome
    from patternmill.runs.retry import RetrySelection
    from patternmill.runs.spec import RunSpec

_MOST_ROWS = 40
_MOST_LEFT_OUT = 10


@verb("retry", RetryRequest, declared=("run",), approves=True)
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
def command(request: RetryRequest, yes: bool, approve: str | None) -> int:
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
    spec = run_spec(request)
    chosen = spec.selection
    assert chosen is not None, "a retry has a selection"
    show(
        lambda: {"rows": list(starmap(_row_fields, chosen.rows.items())), "left_out": chosen.left_out},
        retry_lines(chosen, spec),
    )
    if not chosen.rows:
        return EXIT_CODES[Outcome.COMPLETED]
    from cli.launcher import run_request, show_plan

    if request.plan_only:
        return show_plan(spec)
    if not yes and not confirmed("Begin?", "Not begun"):
        return EXIT_REFUSED
    record = chosen.record
    named = {"run": record.run_id, "catalog": record.catalog, "environment": record.environment}
    return run_request(request.model_copy(update=named), spec, approve)


def _row_fields(sku: str, row: RowOutcome) -> dict[str, object]:
    return {"sku": sku, **fields_of(row, "status", "error_code", "error")}


def retry_lines(chosen: RetrySelection, spec: RunSpec) -> Iterator[str]:
    """Yield the rows, up to a screenful, and their cost."""
    record = chosen.record
    yield f"Run {record.run_id} of catalog {record.catalog} ({record.environment}), {record.source}"
    yield from chosen.left_out_lines(_MOST_LEFT_OUT)
    if not chosen.rows:
        yield chosen.nothing_to_retry
        return
    rows = [
        ("  " + sku, row.status.words, row.error_code or "", shortened(row.error or "", 80))
        for sku, row in islice(chosen.rows.items(), _MOST_ROWS)
    ]
    yield from in_columns(rows)
    yield from more(len(chosen.rows), _MOST_ROWS)
    counts = Counter(row.status for row in chosen.rows.values())
    yield f"{plural(len(chosen.rows), 'row')}: {counted({s.words: counts[s] for s in RowStatus if counts[s]})}"
    planned = preview(spec, chosen.checked)
    cost = planned.proposal.cost
    yield f"To buy: {goods(planned.plan.purchases())}{f' for {cost}' if cost and cost.worst else ''}."
