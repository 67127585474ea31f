"""What is shown of a run while it goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from cli.progress_display import _facts, progress_line
from patternmill.engine.halt import Halt
from patternmill.engine.progress import Progress
from patternmill.runs.run import Run


def test_what_is_waited_for_is_shown() -> None:
    """In the line for pipes and among the facts of the live display; nothing while all goes well."""
    writer = SimpleNamespace(waiting="")
    run = cast(Run, SimpleNamespace(progress=Progress(), writer=writer, halt=Halt()))
    assert "waiting" not in progress_line(run)
    writer.waiting = "waiting for the ledger's PostgreSQL since 12 s"
    assert progress_line(run).endswith("; waiting for the ledger's PostgreSQL since 12 s")
    assert ("", writer.waiting) in list(_facts(run))
