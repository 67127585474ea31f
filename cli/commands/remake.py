"""The verb `remake`: another take of the patterns of some rows, with everything that is built on them."""

from __future__ import annotations

import click

from cli.run_options import verb
from cli.terminal import echo_lines
from patternmill.runs.request import RemakeRequest


@verb("remake", RemakeRequest, approves=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask on a terminal.")
def command(request: RemakeRequest, yes: bool, approve: str | None) -> int:
    """Make another take of some rows' patterns, and everything that is built on them.

    Every row that shares such a pattern is remade too, and named before anything is bought. Without --sku and --picks
    these are the rows of which you asked for another take with `patternmill look`, and those that do not have the take
    that you picked. The same command again resumes the same take. For one more, reject it, or add --again. --take goes
    back to a take that was paid for.

    \b
    Examples:
      patternmill remake
      patternmill remake --sku SPR-CUS-001 --takes 3
      patternmill remake --sku SPR-CUS-001 --take 1
    """
    from patternmill.runs.spec import run_spec

    spec = run_spec(request)
    assert spec.remake is not None, "a remake has its rows"
    echo_lines(spec.remake.lines())
    from cli.launcher import run_request, show_plan

    if request.plan_only:
        return show_plan(spec)
    named = {"catalog": spec.catalog, "environment": spec.scope.environment}
    return run_request(request.model_copy(update=named), spec, approve, asks=not yes)
