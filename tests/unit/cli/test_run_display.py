"""What is shown of a run while it goes on."""

from __future__ import annotations

import io
import re
from time import monotonic, sleep
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from cli.run_display import Display, progress_line
from patternmill.engine.progress import Halt, Progress
from patternmill.runs.run import Run


def run_with(writer: object, **counts: int) -> Run:
    return cast(Run, SimpleNamespace(progress=Progress(**counts), writer=writer, halt=Halt(), forecast=None))


def test_reason_for_waiting_is_shown() -> None:
    """At the end of the line; nothing while the run is well."""
    writer = SimpleNamespace(waiting="")
    run = run_with(writer)
    assert "waiting" not in progress_line(run)
    writer.waiting = "waiting for the ledger's PostgreSQL since 12 s"
    assert progress_line(run).endswith("; waiting for the ledger's PostgreSQL since 12 s")


def test_counts_are_formatted() -> None:
    """Singular for one, and thousands are grouped."""
    run = run_with(SimpleNamespace(waiting=""), to_do=1234, patterns=1, products=0, done_before=2)
    line = progress_line(run)
    assert line.startswith(
        "0 of 1,234 rows, 2 more needed nothing, 1 pattern, 0 products, 0 failed, 0 in flight, "
    )
    assert line.endswith("time left not known yet")


@pytest.mark.parametrize("terminal", [True, False])
def test_terminals_have_a_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redrawn with the line below it; without a terminal only plain lines, and messages stay."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=200)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    monkeypatch.setattr("cli.run_display._LINE_EVERY", 0.01)
    display = Display()
    display.watch(run_with(SimpleNamespace(waiting=""), to_do=4, ended=3, started=0))
    with display.showing():
        display.print("[b]4 rows[/b]")
        deadline = monotonic() + 10
        while "3 of 4 rows" not in screen.getvalue() and monotonic() < deadline:
            sleep(0.01)
    shown = screen.getvalue()
    assert "3 of 4 rows" in shown and "[b]4 rows[/b]" in shown
    assert bool(re.search("rows .*━", shown)) is terminal
    assert ("\x1b" in shown) is terminal


@pytest.mark.parametrize("width", [60, 80, 120])
def test_progress_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fact is torn apart; a range is what is left."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
    monkeypatch.setattr("cli.run_display.Console", lambda **kind: console)
    display = Display()
    run = run_with(
        SimpleNamespace(waiting=""), to_do=1840, ended=1000, patterns=300, products=1000, started=0
    )
    display.watch(run)
    with display.showing():
        pass
    lines = [re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", line) for line in screen.getvalue().splitlines()]
    assert all(len(line.strip("\r")) <= width for line in lines)
    shown = " ".join(lines)
    assert "rows a minute," in shown and re.search(r"\d+ to \d+ [a-z]+ left", shown)


def test_run_whose_rows_have_ended_has_no_time_left() -> None:
    line = progress_line(run_with(SimpleNamespace(waiting=""), to_do=24, ended=24))
    assert line.endswith(", ending")
