"""The command as people type it: exit codes, sentences in place of tracebacks, JSON, questions on a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from cli.main import run
from patternmill.ledger.database import Database
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.shelf import shelved
from tests.test_runs import row, sheet

ROOT = Path(__file__).parent.parent
VERBS = [
    "check", "offer", "import", "refresh", "retry", "status", "explain", "settle", "results", "catalog",
    "pause", "unpause", "up", "studio", "remake", "look", "order",
]  # fmt: skip


@pytest.fixture
def double(tmp_path, monkeypatch):
    double = Double(Weather(latency=0.001, pattern_time=0.1, product_time=0.1))
    with serving(double) as address:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATTERNMILL_STUDIO_URL", address)
        monkeypatch.setenv("PATTERNMILL_API_KEY", KEY)
        monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
        yield double


def test_the_verbs(capsys):
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert [verb for verb in VERBS if f"\n  {verb} " not in said] == []


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help(verb, capsys):
    assert run([verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: patternmill")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["check", "nowhere.csv"], 2, "nowhere.csv"),
        (["import", "spring.csv", "--budget", "lots"], 2, "--budget"),
        (["import", "spring.csv", "--environment", "prod"], 2, "unknown_environment"),
        (["explain", "A-9"], 2, "knows nothing of A-9"),
        (["catalog", "winter"], 2, "no catalog winter"),
        (["look", "winter"], 2, "no catalog winter"),
        (["settle", "abc", "--resend"], 2, "--reason"),
        (["offer", "Ship"], 2, "No category is called Ship"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_an_expected_refusal_is_a_sentence(double, capsys, command, code, said):
    sheet(row(1))
    assert run(command) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def here(capsys, *arguments):
    """Run a command in this process, and return its code and what it printed."""
    capsys.readouterr()
    code = run(list(arguments))
    return code, capsys.readouterr().out


def test_an_import_and_what_can_be_looked_up_after_it(double, capsys):
    sheet(row(1), row(2, size="huge"))
    done = command("import", "spring.csv", "--json")
    assert done.returncode == 3, done.stderr
    summary = json.loads(done.stdout)
    assert summary["counts"] == {"succeeded": 1, "refused": 1}
    status = json.loads(here(capsys, "status", "--json")[1])
    assert {(one["status"], one["count"]) for one in status["rows"]} == {("succeeded", 1), ("refused", 1)}
    assert status["runs"][0]["id"] == summary["run"]
    assert "product A-1, attempt 1: succeeded" in here(capsys, "explain", "A-1")[1]
    assert here(capsys, "catalog", "spring")[1].lstrip("\ufeff").startswith("sku,product_id,")
    assert here(capsys, "results", "spring", "--out", "again")[0] == 0
    mine, again = (Path(folder) / "results.csv" for folder in (summary["folder"], "again"))
    assert again.read_text().replace(" ", "") == mine.read_text().replace(" ", "")
    problems = json.loads(here(capsys, "check", "spring.csv", "--json")[1])["problems"]
    assert [(one["row"], one["code"]) for one in problems] == [(3, "unknown_value")]


def test_a_plan_buys_nothing_and_leaves_no_results(double):
    sheet(row(1))
    planned = command("import", "spring.csv", "--plan-only")
    assert planned.returncode == 0
    assert "products: 1 to make" in planned.stdout
    assert double.jobs == {}
    assert not Path("results").exists()


def test_a_ledger_that_results_know_more_than_needs_a_word(double, capsys):
    sheet(row(1))
    assert run(["import", "spring.csv"]) == 0
    for file in Path("home").glob("ledger*"):
        file.unlink()
    assert run(["import", "spring.csv"]) == 2
    assert "--confirm ledger" in capsys.readouterr().err
    assert run(["import", "spring.csv", "--confirm", "ledger"]) == 0


def asked(arguments, replies):
    """Run a command on a terminal, typing each reply once its question is there; return what it said, and its code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "cli.main", *arguments],
            {**os.environ, "PYTHONPATH": str(ROOT)},
        )
    said, until, replies = "", time.monotonic() + 60, [*replies]
    while time.monotonic() < until:
        try:
            said += os.read(terminal, 4096).decode()
        except OSError:
            break
        if replies and replies[0][0] in said:
            os.write(terminal, replies.pop(0)[1].encode())
    os.close(terminal)
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_on_a_terminal_the_plan_is_asked_about_and_a_no_buys_nothing(double):
    sheet(row(1))
    said, code = asked(["import", "spring.csv"], [("Make 2 items in production?", "n\n")])
    assert (code, double.jobs) == (130, {}), said
    said, code = asked(["import", "spring.csv"], [("Make 2 items in production?", "y\n")])
    assert code == 0, said
    assert len(double.jobs) == 2


def test_on_a_terminal_a_column_is_asked_about_once(double):
    sheet(row(1), header=("Artikelnummer", "prompt", "category", "option:size", "option:label"))
    said, code = asked(["check", "spring.csv"], [("Is that so?", "y\n")])
    assert code == 0, said
    assert "Artikelnummer" in Path("spring.mapping.toml").read_text()
    assert command("check", "spring.csv").returncode == 0


def test_look_serves_the_page_by_its_link_until_ctrl_c(double):
    Path("home").mkdir()
    database = Database("home/ledger.sqlite3")
    shelved(database, ("herons", "succeeded"), ("ferns", "held"))
    database.disconnect()
    environment = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "BROWSER")}
    looking = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "look", "spring"],
        env={**environment, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    link = looking.stdout.readline().split()[1]
    with httpx.Client() as client:
        assert client.get(link).status_code == 200
        counts = client.get(f"{link.partition('?')[0]}data").json()["counts"]
    looking.send_signal(signal.SIGINT)
    assert (looking.communicate(timeout=30)[0].splitlines()[-1], looking.returncode) == ("Stopped.", 0)
    assert counts == {"succeeded": 1, "held": 1}
