"""What programs read: a line for each transition, exit codes, the manifest, JSON, and the event at a run's end."""

import asyncio
import json
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from cli.main import run
from patternmill import logs
from patternmill.ledger.brake import pause
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.states import EXIT_CODES
from tests.double import Weather
from tests.double.server import KEY
from tests.double.weather import Spell
from tests.shelf import shelved
from tests.spine import RUN, play
from tests.test_cli import command, double  # noqa: F401
from tests.test_flows import double as shown  # noqa: F401
from tests.test_runs import row, sheet


def test_each_transition_is_a_line_of_json_once_it_is_durable(double, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PATTERNMILL_LOG_FORMAT", "json")
    monkeypatch.setenv("PATTERNMILL_PRICE_PATTERN", "0.0125")
    sheet(row(1, "hérons"), row(2, "herons [unsafe]"), row(3, size="huge"))
    done = command("import", "spring.csv", "--max-items", "9")
    assert done.returncode == 3
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    begun, *attempts, ended = lines
    assert (begun["event"], begun["catalog"], begun["verb"]) == ("run_begun", "spring", "import")
    assert {one["event"] for one in attempts} == {"attempt"}
    of_row = [(one["stage"], one["state"]) for one in attempts if one["label"] in ("hérons", "A-1")]
    states = ("intended", "accepted", "succeeded")
    assert of_row == [(stage, state) for stage in ("pattern", "product") for state in states]
    (failed,) = [one for one in attempts if one["state"] == "failed"]
    assert (failed["code"], failed["amount"]) == ("content_refused", "0.0125")
    assert (ended["event"], ended["outcome"]) == ("run_ended", "CompletedWithFailures")
    assert failed["run_id"] == ended["run_id"] == begun["run_id"]
    assert (ended["counts"], ended["spent"]) == ({"succeeded": 1, "failed": 1, "refused": 1}, "0.0250")
    assert all(one["at"].endswith("Z") for one in lines)
    assert KEY not in done.stderr
    assert "{" not in command("import", "spring.csv").stdout


def test_what_was_rolled_back_is_not_told(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("patternmill.ledger.database.tell", told.extend)
    database = Database(str(tmp_path / "ledger.sqlite3"))

    def fails(connection):
        connection.facts.append({"event": "attempt"})
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        database.change(fails)
    database.change(lambda connection: connection.facts.append({"event": "other"}))
    assert told == [{"event": "other"}]
    database.disconnect()


def test_a_program_that_writes_lines_of_its_own_gets_ours(caplog):
    with caplog.at_level("INFO", "patternmill.transitions"):
        logs.tell([{"event": "attempt", "at": 1.5, "code": "", "job_id": None}])
    assert json.loads(caplog.messages[0]) == {"event": "attempt", "at": "1970-01-01T00:00:01.500Z"}


def at_once(double, monkeypatch):  # noqa: F811
    sheet(row(1))


def with_failures(double, monkeypatch):  # noqa: F811
    sheet(row(1), row(2, "herons [unsafe]"))


def paused(double, monkeypatch):  # noqa: F811
    sheet(row(1))
    Path("home").mkdir()
    database = Database("home/ledger.sqlite3")
    play(pause(database, "production", ""))
    database.disconnect()


def overlapping(double, monkeypatch):  # noqa: F811
    sheet(row(1))
    Path("home").mkdir()
    database = Database("home/ledger.sqlite3")
    play(Lease(database, "production", "spring").take(RUN, lambda connection: None))
    monkeypatch.setattr("patternmill.ledger.leases.is_gone", lambda holder: False)
    seen = iter(range(1000))
    beat = lambda: database.change(lambda one: one.execute("UPDATE leases SET beats = beats + 1"))  # noqa: E731
    monkeypatch.setattr(
        asyncio, "sleep", (lambda sleep: lambda s: (next(seen), beat(), sleep(s))[2])(asyncio.sleep)
    )


def interrupted(double, monkeypatch):  # noqa: F811
    double.weather = Weather(latency=0.001, pattern_time=900.0)
    monkeypatch.setattr("patternmill.halt.DRAIN", 0.2)
    monkeypatch.setattr("patternmill.halt.stops.is_stopped", False)
    sheet(row(1))

    def stop():
        until = time.monotonic() + 30
        while not double.jobs and time.monotonic() < until:
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=stop).start()


def refused_alike(double, monkeypatch):  # noqa: F811
    sheet(*map(row, range(5)))
    double.weather = Weather(latency=0.001, spells=(Spell("no_more", 0.0, 1e12),))


@pytest.mark.parametrize(
    ("situation", "options", "outcome"),
    [
        (at_once, [], "Completed"), (with_failures, [], "CompletedWithFailures"),
        (with_failures, ["--max-items", "2"], "BudgetReached"), (at_once, ["--budget", "lots"], "Refused"),
        (paused, [], "Paused"), (overlapping, [], "SkippedOverlap"), (refused_alike, [], "Failed"),
        (interrupted, [], "Cancelled"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_the_exit_code_says_how_a_run_ended(double, monkeypatch, capsys, situation, options, outcome):  # noqa: F811
    situation(double, monkeypatch)
    code = run(["import", "spring.csv", "--json", *options])
    said = capsys.readouterr().out
    assert code == EXIT_CODES.get(outcome, 3)
    assert outcome == "Refused" or json.loads(said)["outcome"] == outcome


def test_status_says_what_has_been_open_for_long(double, capsys):  # noqa: F811
    database = Database("home/ledger.sqlite3") if Path("home").mkdir() is None else None
    shelved(database, ("herons", "waiting"), ("ferns", "held"), ("moss", "in_doubt"))
    age = "UPDATE attempts SET intended_at = intended_at - 7200, amount = 12400000 WHERE state = 'held'"
    database.change(lambda connection: connection.execute(age))
    database.disconnect()
    assert run(["status", "--older-than", "90m", "--json"]) == 3
    (held,) = json.loads(capsys.readouterr().out)["open"]
    assert (held["state"], held["count"], held["amount"]) == ("held", 1, "1240.00")
    assert run(["status", "--older-than", "3h"]) == 0
    assert run(["status"]) == 0
    assert "1 held" in capsys.readouterr().out
    assert run(["status", "--older-than", "soon"]) == 2


_MANIFEST = {
    "schema": int, "run": str, "catalog": str, "environment": str, "outcome": str, "counts": dict, "spent": str,
    "currency": str, "folder": str, "causes": list, "verb": str, "ledger": str, "source": str, "source_sha256": str,
    "ended_at": str, "version": str, "rows": int, "files": dict,
}  # fmt: skip


def test_what_a_program_finds_in_the_manifest_and_in_the_summary(double, monkeypatch, capsys):  # noqa: F811
    monkeypatch.setenv("PATTERNMILL_PRICE_PATTERN", "1240.00")
    sheet(row(1), row(2, "herons [unsafe]"))
    assert run(["import", "spring.csv", "--json"]) == 3
    summary = json.loads(capsys.readouterr().out)
    manifest = json.loads(Path(summary["folder"], "manifest.json").read_text())
    assert {name: type(value) for name, value in manifest.items()} == _MANIFEST
    assert manifest["schema"] == 1
    assert summary.items() <= manifest.items()
    assert (summary["spent"], summary["counts"]) == ("2480.00", {"succeeded": 1, "failed": 1})
    (cause,) = summary["causes"]
    assert (cause["code"], cause["rows"]) == ("content_refused", 1)
    assert re.fullmatch(r"2\.0\.0\+[0-9a-f]{8}", manifest["version"])
    assert run(["results", "spring", "--out", "now"]) == 0
    again = json.loads(Path("now/manifest.json").read_text())
    assert again.keys() <= _MANIFEST.keys()
    assert (again["counts"], again["rows"]) == (manifest["counts"], 2)
