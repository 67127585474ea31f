"""Questions on a terminal, in one form: what a column or word means, and whether the plan is meant."""

import sys
from typing import TYPE_CHECKING, Any

import click

from patternmill.errors import Refusal
from patternmill.settings import STUDIO

if TYPE_CHECKING:
    from patternmill.plan import Plan
    from patternmill.run import Run
    from patternmill.tables.checks import Checked


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def checked_with_questions(run: "Run") -> "Checked":
    """Return the checked sheet, after questions on a terminal about what of it is not known. Raises InputRefused."""
    from patternmill.run import check_sheet

    asked: set[Any] = set()
    while True:
        try:
            checked, refused = await check_sheet(run), None
            proposals = checked.proposals
        except Refusal as error:
            checked, refused, proposals = None, error, getattr(error, "proposals", ())
        new = [one for one in proposals if one not in asked] if can_ask() and run.request.file else []
        asked.update(new)
        if confirmed := list(filter(_is_meant, new)):
            _write(run, confirmed)
        elif refused is not None:
            raise refused
        elif checked is not None:
            return checked


def _is_meant(proposal: Any) -> bool:
    return click.confirm(f"{proposal.line}  Is that so?", default=False, err=True)


def _write(run: "Run", confirmed: list[Any]) -> None:
    from patternmill.tables.mapping import mapping_path, read_mapping, write_mapping

    path = mapping_path(run.source.path, run.request.mapping)
    write_mapping(path, read_mapping(run.source.path, run.request.mapping).plus(confirmed))
    click.echo(f"Written: {path}", err=True)


def asked_about_items(
    run: "Run", plan: "Plan", needs: list[tuple[str, str, str]], *, yes: bool
) -> dict[str, int]:
    """Return what was agreed to, as fields of the request. `yes` answers for the number of items alone."""
    is_open = run.request.max_items is None and run.request.budget is None
    items = {"max_items": plan.purchases} if is_open else {}
    if yes:
        return items if any(code == "unconfirmed" for code, _, _ in needs) else {}
    is_free = run.settings.service == STUDIO and not needs
    if not can_ask() or is_free or not (plan.purchases or needs):
        return {}
    for _, message, _ in needs:
        click.echo(message, err=True)
    click.confirm(f"Make {plan.purchases:,} items in {run.settings.service}?", abort=True, err=True)
    replaced = (
        {"change": len(plan.changes.replaced)} if any(code != "unconfirmed" for code, _, _ in needs) else {}
    )
    return items | replaced
