"""`patternmill conformance` against the embedded studio: what it has conforms, and what it lacks is said."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from patternmill.conformance.check_results import CheckOutcome, SkipReason
from patternmill.conformance.suite import CHECKS
from tests.integration.conformance.conftest import Check
from tests.integration.studio.conftest import KEY, StudioProcess
from tests.integration.studio.conftest import studio as studio

#: What each deviation of the studio may be: an operation that it does not have.
NOT_THERE = "the operation is not there"


def test_free_checks(check: Check, studio: StudioProcess) -> None:
    """Nothing is made, and no value of the service is in the report."""
    found = check(studio.base_url, KEY)
    assert [name for name in found.lines] == [one.id for one in CHECKS]
    assert {found.lines[name].detail for name in found.deviations} <= {NOT_THERE}
    assert found.code == (1 if found.deviations else 0)
    for name in ("no-key", "wrong-key", "jobs-unknown", "whole-answers", "json-answers", "no-redirects"):
        assert found.lines[name].outcome is CheckOutcome.CONFORMANT, name
    assert found.lines["categories-list"].answers[0].status == 200
    assert found.report is not None and found.report.bought_at_most == 0
    assert made(studio.home) == 0
    assert KEY not in found.report.model_dump_json() + found.printed
    assert "Cushion" not in found.report.model_dump_json()


def test_checks_that_buy(check: Check, studio: StudioProcess) -> None:
    """A pattern, a product, and one more pattern for fifty requests at once; all that is there conforms."""
    found = check(studio.base_url, KEY, "--spend", "52", "--yes")
    absent = {"orders-unknown", "feedback", "checkouts-id"}
    assert found.deviations <= absent
    for stage in ("pattern", "product"):
        for name in ("accepted", "starts-running", "transitions", "result", "repeat", "required-fields"):
            assert found.lines[f"{stage}-{name}"].outcome is CheckOutcome.CONFORMANT
    assert found.lines["pattern-fifty-at-once"].outcome is CheckOutcome.CONFORMANT
    assert found.report is not None and found.report.bought_at_most == 3
    assert made(studio.home) == 3


def test_failed_job_has_its_reason(
    check: Check, studio: StudioProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The studio fails on request; then there is no pattern for a product."""
    monkeypatch.setattr("patternmill.conformance.job_checks.PROMPT", "herons [fail]")
    found = check(studio.base_url, KEY, "--spend", "1", "--yes")
    assert found.lines["pattern-failure"].outcome is CheckOutcome.CONFORMANT
    assert found.lines["pattern-result"].reason is SkipReason.NO_OCCASION
    assert found.lines["product-accepted"].reason is SkipReason.NO_OCCASION


def test_spending_needs_a_confirmation(check: Check, studio: StudioProcess) -> None:
    found = check(studio.base_url, KEY, "--spend", "2")
    assert (found.code, found.report) == (2, None)
    assert "--yes" in found.complaint


def test_wrong_key_ends_with_code_2(check: Check, studio: StudioProcess) -> None:
    found = check(studio.base_url, "not-a-key-of-it")
    assert (found.code, found.report) == (2, None)
    assert "PATTERNMILL_API_KEY" in found.complaint


def test_installed_command(studio: StudioProcess, tmp_path: Path) -> None:
    """As the README has it: a process, and its exit code."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith("PATTERNMILL_")}
    command = [sys.executable, "-m", "cli.main", "conformance", studio.base_url, "--rate", "100"]
    ended = subprocess.run(
        command,
        env={**ours, "PATTERNMILL_HOME": str(tmp_path), "PATTERNMILL_API_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode in (0, 1), ended.stderr
    assert ended.stderr == ""
    assert f"{len(CHECKS)} checks:" in ended.stdout.splitlines()[-1]


def made(home: Path) -> int:
    """How many jobs the studio has accepted since it was last counted."""
    with sqlite3.connect(home / "studio.db") as database:
        (count,) = database.execute("select count(*) from job").fetchone()
    before = _counted.get(home, 0)
    _counted[home] = int(count)
    return int(count) - before


_counted: dict[Path, int] = {}
