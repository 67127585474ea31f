"""Questions on a terminal, in one form: what a column or word means, and whether the plan is meant."""

import sys
from itertools import groupby
from operator import attrgetter
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


async def checked_with_questions(run: "Run", *, yes: bool = False) -> "Checked":
    """Return the checked sheet, after questions about what it may mean. Raises InputRefused.

    On a terminal each proposal is a question; `yes` asks none, and takes those that are certain. What is answered is
    written into the sheet's mapping, and the sheet is read again: how it is read comes before what its columns are,
    and those before its words.
    """
    from patternmill.run import check_sheet

    done: set[str] = set()
    while True:
        try:
            checked, refused = await check_sheet(run), None
        except Refusal as error:
            checked, refused = None, error
        proposals = getattr(refused or checked, "proposals", ()) if run.request.file else ()
        left = [one for one in proposals if one.line not in done]
        groups = [list(those) for _, those in groupby(left, attrgetter("section"))]
        for those in groups[:1] if refused else groups:
            done.update(one.line for one in those)
            if _answered(run, those, yes=yes):
                break
        else:
            if refused is not None:
                raise refused
            assert checked
            return checked


def _answered(run: "Run", proposals: list[Any], *, yes: bool) -> bool:
    """Write what is taken of the proposals into the mapping; return whether anything was."""
    from patternmill.tables.mapping import mapping_path, read_mapping, write_mapping

    is_any = False
    for proposal in proposals if yes or can_ask() else ():
        taken = (proposal if proposal.is_certain else None) if yes else _answer(proposal)
        if taken is not None:
            path = mapping_path(run.source.path, run.request.mapping)
            write_mapping(path, read_mapping(run.source.path, run.request.mapping).plus([taken]))
            click.echo(
                f"{'Certain, and so written' if yes else 'Written'} into {path}: {taken.line}", err=True
            )
            is_any = True
    return is_any


def _answer(proposal: Any) -> Any:
    """Return which line of a proposal is so, or None. Enter takes the first one if it is certain, and else none."""
    lines = [proposal, *proposal.others]
    for number, one in enumerate(lines, 1):
        click.echo(f"{f'  {number}) ' if proposal.others else ''}{one.shown}", err=True)
    numbers = f"1 to {len(lines)}, or n" if proposal.others else "y or n"
    default = "y" if proposal.is_certain else "n"
    while True:
        said = click.prompt(f"Is that so? ({numbers})", default, err=True).strip().casefold()
        answers = dict(zip(map(str, range(1, 9)), lines, strict=False)) | {"n": None, "no": None}
        answers |= {"y": proposal, "yes": proposal} if proposal.is_certain or not proposal.others else {}
        if said in answers:
            return answers[said]


def asked_about_items(
    run: "Run", plan: "Plan", needs: list[tuple[str, str, str]], *, yes: bool
) -> dict[str, int]:
    """Return what was agreed to, as fields of the request. `yes` answers for the number of items alone."""
    items = (
        {"max_items": plan.purchases} if run.request.max_items is None and run.request.budget is None else {}
    )
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
