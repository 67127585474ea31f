"""Every verb's help: worth reading, at once, and with nothing heavy loaded for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli import main
from tests.unit.cli.test_main import HEAVY


def test_help_has_an_example_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in main.VERBS:
        assert main.run([verb, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"patternmill {verb}" in text.partition("Example")[2], verb
        assert "Exit codes: 0" in text, verb


def test_help_of_every_verb_loads_nothing_heavy() -> None:
    """One process prints the help of each."""
    program = (
        f"import sys; from cli import main; [main.run(f'{{verb}} --help'.split()) for verb in ['', *main.VERBS]]; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert done.stderr.strip() == "[]"
