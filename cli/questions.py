"""Questions on a terminal, in one form: what a column or word means, and whether the plan is meant."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from patternmill.errors import Refusal
from patternmill.settings import STUDIO

if TYPE_CHECKING:
    from patternmill.plan import Plan
    from patternmill.run import Run
    from patternmill.tables.checks import Checked
    from patternmill.tables.mapping import Proposal


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def checked_with_questions(run: "Run", *, yes: bool = False) -> "Checked":
    """Return the checked sheet, after questions about what it may mean. Raises InputRefused.

    `yes` asks none, and takes what is certain. What is taken is written into the sheet's mapping, and the sheet is read
    again: how it is read comes before what its columns are, and those before its words.
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
        while left:
            those = [one for one in left if one.section == left[0].section]
            done.update(one.line for one in those)
            if taken := _taken(those, yes=yes):
                _write(run, taken)
                break
            left = [] if refused else [one for one in left if one not in those]
        else:
            if proposals and (yes or not can_ask()):
                click.echo("".join(f"{line}\n" for line in _to_paste(run, proposals)), nl=False, err=True)
            if refused is not None:
                raise refused
            assert checked
            return checked


def _taken(proposals: list["Proposal"], *, yes: bool) -> list["Proposal"]:
    """Return the lines that are so: those that are certain, or that a person confirms."""
    taken: list[Proposal] = []
    for proposal in proposals if yes or can_ask() else ():
        answer = (proposal if proposal.is_certain else None) if yes else _answer(proposal)
        taken += [answer] if answer else []
    return taken


def _answer(proposal: "Proposal") -> "Proposal | None":
    """Return which line of a proposal is so, or None. Enter takes the first one if it is certain, and else none."""
    lines = [proposal, *proposal.others]
    for number, one in enumerate(lines, 1):
        click.echo(f"{f'  {number}) ' if proposal.others else ''}{one.shown}", err=True)
    default = "y" if proposal.is_certain else "n"
    answers = {"n": None, "no": None} | dict(zip(map(str, range(1, 9)), lines, strict=False))
    if proposal.is_certain or not proposal.others:
        answers |= {"y": proposal, "yes": proposal}
    numbers = f"1 to {len(lines)}, or n" if proposal.others else "y or n"
    while (
        said := click.prompt(f"Is that so? ({numbers})", default, err=True).strip().casefold()
    ) not in answers:
        pass
    return answers[said]


def _write(run: "Run", taken: list["Proposal"]) -> None:
    from patternmill.tables.mapping import mapping_path, read_mapping, write_mapping

    path = mapping_path(run.source.path, run.request.mapping)
    write_mapping(path, read_mapping(run.source.path, run.request.mapping).plus(taken))
    click.echo("".join(f"Written into {path}: {one.line}\n" for one in taken), nl=False, err=True)


def _to_paste(run: "Run", proposals: Iterable["Proposal"]) -> Iterator[str]:
    """Yield the lines of a mapping that would say what is meant; of several that may be, the others as remarks."""
    from patternmill.tables.mapping import mapping_path

    yield f"To confirm what is meant, add to the sections of {mapping_path(run.source.path, run.request.mapping)}:"
    for section in dict.fromkeys(one.section for one in proposals):
        yield f"[{section}]"
        for one in (one for one in proposals if one.section == section):
            yield one.shown
            yield from (f"# {other.shown}" for other in one.others)


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
