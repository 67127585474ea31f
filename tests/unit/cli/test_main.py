"""The frame of the command: fast help, and errors as messages and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli import main
from patternmill.errors import InputRefused, Overlap, PatternmillError
from tests.unit.cli.ledgers import HERON, Past

HEAVY = ("prefect", "pandas", "numpy", "httpx", "aiohttp", "fastapi", "PIL", "sqlalchemy")


@pytest.fixture
def raising(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Make the only verb raise what the test puts into the list."""
    errors: list[BaseException] = []

    @click.command("check")
    def command() -> int:
        if errors:
            raise errors[0]
        return 3

    monkeypatch.setattr(main.Verbs, "get_command", lambda self, ctx, name: command)
    return errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputRefused("It is empty.", remedy="Put rows into it."), 2),
        (PatternmillError("No."), 1),
        (Overlap("Another run goes on."), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_messages(
    raising: list[BaseException], capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    """Messages have the remedy and no traceback; 2 means that nothing was spent."""
    raising.append(error)
    assert main.run(["check"]) == code
    shown = capsys.readouterr().err
    assert getattr(error, "message", "Interrupted.") in shown and getattr(error, "remedy", "") in shown
    assert "Traceback" not in shown


def test_argument_that_is_not_in_utf8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A file's name may be in another encoding; it is refused before anything begins that could not be recorded."""
    assert main.run(["import", os.fsdecode(b"caf\xe9.csv")]) == 2
    assert "'caf\\udce9.csv' is not written in UTF-8" in capsys.readouterr().err


def test_unexpected_error_goes_to_a_file_without_secrets(
    raising: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    """The terminal gets one line, the file the traceback, and neither gets the key."""
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "canary-4711")
    raising.append(RuntimeError("sent canary-4711 as Bearer other-secret to https://me:pass@host/"))
    assert main.run(["check"]) == 1
    shown = capsys.readouterr().err
    (report,) = (home / "logs").glob("error-*.log")
    assert str(report) in shown
    assert "Traceback" in report.read_text()
    for text in (shown, report.read_text()):
        assert "RuntimeError" in text
        assert not any(secret in text for secret in ("canary-4711", "other-secret", "me:pass"))


def test_misspelt_setting_is_named(
    raising: list[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit with a misspelt name would not limit anything. Names that are read beside the settings are known."""
    monkeypatch.setenv("PATTERNMILL_DAYBUDGET", "5.00")
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", "/")
    assert main.run(["check"]) == 3
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert warnings == ["warning: PATTERNMILL_DAYBUDGET is no setting; did you mean PATTERNMILL_DAY_BUDGET?"]


def test_help_fits_a_terminal_and_has_an_example_and_the_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has at most 80 columns, on a wide one too."""
    monkeypatch.setenv("COLUMNS", "200")
    for verb in main.VERBS:
        assert main.run([verb, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"patternmill {verb}" in text.partition("Example")[2], verb
        assert "Exit codes: 0" in text, verb
        assert max(map(len, text.splitlines())) <= 80, verb


#: Prints what a process has loaded after each step: Prefect reads its server's address as it is imported, and the
#: launcher starts that server; pandas takes half a second, and `status` and `explain` read no sheet.
LOADED = f"""
import sys
from cli import main
def loaded(names):
    print([name for name in names if name in sys.modules], file=sys.stderr)
for verb in ("", *main.VERBS):
    main.run([*verb.split(), "--help"])
loaded({HEAVY!r})
print(main.run(["status"]), main.run(["explain", "H-1"]), file=sys.stderr)
import cli.launcher
loaded(["prefect", "pandas"])
"""


def test_nothing_heavy_is_loaded_for_help_status_and_explain(past: Past) -> None:
    past.begin(HERON)
    checkout = Path(__file__).resolve().parents[3]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, env=environment)
    assert done.stderr.splitlines() == ["[]", "0 0", "[]"]
