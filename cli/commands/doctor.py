"""The verb `doctor`: whether this installation is well, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cli.json_output import show
from cli.run_options import verb
from patternmill.errors import PatternmillError
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.upkeep.facts import Fact, Level, own_facts, refused


@verb("doctor")
def command() -> int:
    """Check settings, disk, ledger, limits, services with their keys, and the Prefect server.

    Buys nothing and changes nothing. A fact is ok, a warning (something waits for a person, or soon will) or a fault
    (runs are refused or fail until it is fixed), with a remedy. A worker shows the same facts as it starts.

    \b
    Examples:
      patternmill doctor
      patternmill doctor --json

    Exit codes: 0 all is well; 3 there are warnings; 2 there is a fault.
    """
    facts = []
    for fact in _facts():
        facts.append(fact)
        show(lambda: {"facts": facts}, fact.lines)
    levels = {fact.level for fact in facts}
    if Level.FAULT in levels:
        return EXIT_REFUSED
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if Level.WARNING in levels else Outcome.COMPLETED]


def _facts() -> Iterator[Fact]:
    from prefect_host.server_facts import server_facts

    try:
        settings = load_settings(unknown_too=True)
    except PatternmillError as error:
        yield refused("settings", error)
        return
    yield from own_facts(settings, Path())
    yield from server_facts(settings.home)
