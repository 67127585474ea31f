"""The verb `results`: the same files again, whatever has happened since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli import main
from patternmill.looking.page import gallery
from patternmill.results.results_files import rebuild
from patternmill.states import AttemptState, Outcome
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, BegunRun, Past


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def troubled_run(past: Past) -> BegunRun:
    """One row made, one with a failed product, one in doubt, one held, one refused."""
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED)
    run.make("H-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.end()
    return run


def test_rebuilt_files_have_the_same_bytes(past: Past, tmp_path: Path) -> None:
    """Files deleted, and every open item ended otherwise by a later run: the first run's files are the same."""
    run = troubled_run(past)
    written = tmp_path / "results" / "spring" / run.record.run_id
    rebuild(past.ledger, run.record.run_id, written, gallery)
    before = contents(written)
    shutil.rmtree(written)
    later = past.begin(HERON, HERON_MUG, FERN, FOX)
    later.attempt(later.product("H-2"), AttemptState.SUCCEEDED, 2)
    later.attempt(later.pattern("F-1"), AttemptState.INTENDED)
    with past.ledger.transaction():
        job = past.ledger.purchases.change(
            later.record.run_id, later.pattern("F-1").request_id(1), AttemptState.ACCEPTED, job_id="job-late"
        )
        past.ledger.purchases.change(
            later.record.run_id,
            later.pattern("X-1").request_id(1),
            AttemptState.FAILED,
            error_code="written_off",
        )
    assert job.job_id == "job-late"
    later.end()
    assert main.run(["results", run.record.run_id]) == 0
    assert contents(written) == before


def test_latest_of_each_environment(past: Past, tmp_path: Path) -> None:
    """`latest` is the catalog's last run, wherever that was; each environment keeps a link of its own."""
    production, staging = past.begin(HERON, environment="production"), past.begin(HERON)
    for run in (production, staging):
        run.end()
    for run in (staging, production):
        assert main.run(["results", run.record.run_id]) == 0
    folder = tmp_path / "results" / "spring"
    assert (folder / "latest").resolve().name == staging.record.run_id
    assert (folder / "latest-staging").resolve().name == staging.record.run_id
    assert (folder / "latest-production").resolve().name == production.record.run_id


def test_crashed_run_shows_the_present_states(
    past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a recorded end, a run's rows have the ledger's present states."""
    run = past.begin(HERON, FERN)
    run.make("H-1")
    assert main.run(["results", "latest", "--out", str(tmp_path / "out")]) == 0
    assert "1 succeeded, 1 not started" in capsys.readouterr().out
    assert b"made-" in (tmp_path / "out" / "results.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nothing", "no run 'nothing'"),
        ("run", "2 runs begin with 'run'"),
        ("latest", "Which catalog is meant"),
    ],
)
def test_ambiguous_and_unknown_names_are_refused(
    past: Past, capsys: pytest.CaptureFixture[str], name: str, shown: str
) -> None:
    """With what to write instead."""
    past.begin(HERON).end()
    past.begin(HERON, catalog="autumn").end()
    assert main.run(["results", name]) == 2
    assert shown in capsys.readouterr().err


def test_skipped_run_has_no_files(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """It made nothing, and `latest` never means it."""
    held = past.begin(HERON)
    held.end()
    skipped = past.begin(HERON)
    skipped.end(Outcome.SKIPPED_OVERLAP)
    assert main.run(["results", skipped.record.run_id]) == 2
    assert "made nothing" in capsys.readouterr().err
    assert main.run(["results", "latest"]) == 0
    assert held.record.run_id in capsys.readouterr().out
