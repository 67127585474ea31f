"""The verb `remake`: another take of the patterns of some rows, with everything that is built on them."""

from __future__ import annotations

import click

from cli.run_options import approve_option, request_command, run_options
from cli.terminal import echo_lines
from patternmill.runs.request import RemakeRequest


@click.command("remake", cls=request_command(RemakeRequest))
@run_options(RemakeRequest, declared=())
@click.option("--yes", "-y", is_flag=True, help="Do not ask on a terminal.")
@approve_option
@click.option("--plan-only", is_flag=True, help="Show the takes and their cost; nothing is bought.")
def command(request: RemakeRequest, yes: bool, approve: str | None, plan_only: bool) -> int:
    """Make another take of the patterns of some rows, and everything that is built on them.

    A take is of the pattern: every row that shares it is remade too, and named before anything is bought.

    Without --sku and --picks: the rows whose pattern was rejected or is wanted again, by what you decided with
    `patternmill look`, and those whose take is not the one that you picked. The same command again resumes the same
    take; one more needs a decision against it, or --again. --take goes back to a take that was paid for.

    \b
    Examples:
      patternmill remake
      patternmill remake --sku SPR-CUS-001 --takes 3
      patternmill remake --sku SPR-CUS-001 --take 1
      patternmill remake --picks decisions.csv --plan-only

    Exit codes: 0 every row has its product; 3 completed with failures; 2 refused before anything was spent, or not
    approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted.
    """
    from patternmill.runs.spec import run_spec

    spec = run_spec(request)
    assert spec.remake is not None, "a remake has its rows"
    echo_lines(spec.remake.lines())
    from cli.launcher import run_request, show_plan

    if plan_only:
        return show_plan(spec)
    named = {"catalog": spec.catalog, "environment": spec.scope.environment}
    return run_request(request.model_copy(update=named), spec, approve, asks=not yes)
