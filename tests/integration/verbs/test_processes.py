"""Commands as processes: whose streams are closed, whose reader leaves, or that are stopped before there is a run."""

from __future__ import annotations

import csv
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROWS = "sku,prompt,category,option:size,option:finish\nA-1,red foxes,mug,11oz,matte\n"
PATTERNMILL = f"{sys.executable} -m cli.main"
CHECKOUT = Path(__file__).resolve().parents[3]


def clean_environment() -> dict[str, str]:
    """Nothing of the caller's own settings, and no Prefect server: starting one takes most of an import's time."""
    foreign = ("PATTERNMILL", "PREFECT")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {"PYTHONPATH": str(CHECKOUT), "PREFECT_API_URL": "http://127.0.0.1:9/api"}


def shell(folder: Path, command: str, streams: str) -> tuple[str, str]:
    """Return the exit code, and the command's error output if that stream is still open."""
    (folder / "rows.csv").write_text(ROWS, encoding="utf-8")
    done = subprocess.run(
        ["sh", "-c", f"{{ {PATTERNMILL} {command}; echo $? > code; }} {streams}"],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return (folder / "code").read_text().strip(), done.stderr


def test_import_ends_as_its_rows_did(tmp_path: Path) -> None:
    """Two of its streams are closed, and nobody reads the third: no message runs into one of its files."""
    code, _ = shell(tmp_path, "import rows.csv --out results", "<&- 2>&1 >&- | true")
    assert code == "0"
    with (tmp_path / "results" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["succeeded"]


@pytest.mark.parametrize(
    ("command", "streams"), [("check rows.csv", "<&- >&-"), ("--help", "| true"), ("offer", "| head -1")]
)
def test_quick_verbs_end_quietly(command: str, streams: str, tmp_path: Path) -> None:
    assert shell(tmp_path, command, streams) == ("0", "")


def test_closed_terminal_changes_no_exit_code(tmp_path: Path) -> None:
    """Also what was to be written when it was closed, and is still to be written at the end."""
    ours, theirs = pty.openpty()
    program = "import sys; from cli import terminal; terminal.prepare_streams(); sys.stdin.read(); print('x', end='')"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=theirs) as process:
        os.close(theirs)
        os.close(ours)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_stop_before_the_run_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was started for it is ended too."""
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    command = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "import", "rows.csv"],
        cwd=tmp_path,
        env=clean_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stderr is not None
    while "Finding what is to be done" not in (line := command.stderr.readline()):
        assert line, "it ended by itself"
    started = psutil.Process(command.pid).children(recursive=True)
    command.send_signal(signal.SIGTERM)
    _, rest = command.communicate(timeout=60)
    assert command.returncode == 130
    last = rest.splitlines()[-1]
    assert last.startswith("Ended at once. To go on: ") and last.endswith("patternmill import rows.csv")
    assert started
    assert not psutil.wait_procs(started, timeout=10)[1]
