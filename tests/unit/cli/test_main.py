"""The frame of the command: help at once, and errors as messages and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli import main
from patternmill.errors import InputRefused, PatternmillError, ServiceStopped

HEAVY = ("prefect", "pandas", "numpy", "httpx", "aiohttp", "fastapi", "PIL", "sqlalchemy", "babel")


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[BaseException]:
    """Make the only verb raise what the test puts into the list; the home is a temporary one."""
    errors: list[BaseException] = []

    @click.command("check")
    def command() -> int:
        if errors:
            raise errors[0]
        return 3

    monkeypatch.setattr(main.Verbs, "get_command", lambda self, ctx, name: command)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path))
    monkeypatch.delenv("PATTERNMILL_DEBUG", raising=False)
    return errors


def test_verbs_result_is_the_exit_code(raising: list[BaseException]) -> None:
    assert main.run(["check"]) == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputRefused("The file is empty.", remedy="Put rows into it."), 2),
        (ServiceStopped("The key is wrong.", remedy="Make a new one."), 2),
        (PatternmillError("Something.", remedy="See."), 1),
    ],
)
def test_own_errors_become_messages(
    raising: list[BaseException], capsys: pytest.CaptureFixture[str], error: PatternmillError, code: int
) -> None:
    """With the remedy and without a traceback; 2 means that nothing was spent."""
    raising.append(error)
    assert main.run(["check"]) == code
    shown = capsys.readouterr().err
    assert error.message in shown
    assert error.remedy in shown
    assert "Traceback" not in shown


def test_interruption_exits_with_130(raising: list[BaseException]) -> None:
    raising.append(KeyboardInterrupt())
    assert main.run(["check"]) == 130


def test_unexpected_error_goes_to_a_file_without_secrets(
    raising: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The terminal gets one line, the file the traceback, and neither gets the key."""
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "canary-4711")
    raising.append(RuntimeError("sent canary-4711 as Bearer other-secret to https://me:pass@host/"))
    assert main.run(["check"]) == 1
    shown = capsys.readouterr().err
    (report,) = (tmp_path / "logs").glob("error-*.log")
    assert str(report) in shown
    assert "Traceback" in report.read_text()
    for text in (shown, report.read_text()):
        assert "RuntimeError" in text
        assert not any(secret in text for secret in ("canary-4711", "other-secret", "me:pass"))


def test_unknown_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["chek"]) == 2
    assert "There is no verb 'chek'; did you mean check?" in capsys.readouterr().err


def test_help_is_one_screen_with_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.startswith("  ")} >= set(main.VERBS)
    assert [line for line in lines if line.rstrip(":") in main.HEADINGS.values()] == [
        "Make products:",
        "See and decide:",
        "Operate:",
    ]


def test_misspelt_setting_is_named(
    raising: list[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be no limit. Names that are read beside the settings are known."""
    monkeypatch.setenv("PATTERNMILL_DAYBUDGET", "5.00")
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", "/")
    assert main.run(["check"]) == 3
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert warnings == ["warning: PATTERNMILL_DAYBUDGET is no setting; did you mean PATTERNMILL_DAY_BUDGET?"]


@pytest.mark.slow
def test_launcher_loads_no_prefect() -> None:
    """Prefect reads its server's address as it is imported, and that server is started by the launcher."""
    script = (
        "import sys, cli.launcher; print([name for name in ('prefect', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
