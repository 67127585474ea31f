"""The verb `doctor`: whether this installation is well, and what to do where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.json_output import show
from cli.run_options import verb
from patternmill.errors import PatternmillError
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.upkeep.facts import Fact, Level, gravest, refused

if TYPE_CHECKING:
    from patternmill.settings import Settings

_CODES = {
    Level.OK: EXIT_CODES[Outcome.COMPLETED],
    Level.WARNING: EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES],
    Level.FAULT: EXIT_REFUSED,
}


@verb("doctor")
def command() -> int:
    """Check settings, disk, ledger, limits, services with their keys, and the Prefect server.

    Buys nothing and changes nothing. A fact is ok, a warning (something waits for a person, or soon will) or a fault
    (runs are refused or fail until it is mended), with a remedy. A worker shows the same facts as it starts.

    \b
    Examples:
      patternmill doctor
      patternmill doctor --json

    Exit codes: 0 all is well; 3 there are warnings; 2 there is a fault.
    """
    facts = []
    for fact in _facts():
        facts.append(fact)
        show(lambda: {"facts": facts}, fact_lines([fact]))
    return _CODES[gravest(facts)]


def _facts() -> Iterator[Fact]:
    from patternmill.settings import load_settings
    from prefect_host.server_facts import server_facts

    try:
        settings = load_settings(unknown_too=True)
    except PatternmillError as error:
        yield refused("settings", error)
        return
    yield from own_facts(settings, Path())
    yield from server_facts(settings.home)


def own_facts(settings: Settings, folder: Path) -> Iterator[Fact]:
    """Yield what this machine, the ledger and the services show, each fact once it is known."""
    from patternmill.upkeep.facts import local_facts, service_facts

    yield from local_facts(settings, folder)
    yield from asyncio.run(service_facts(settings))


def fact_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield a line for each fact, and one with its remedy."""
    for fact in facts:
        yield f"{fact.level:<8} {fact.about}: {fact.text.rstrip('.')}"
        if fact.remedy and fact.level is not Level.OK:
            yield f"{'':<8}   {fact.remedy}"
