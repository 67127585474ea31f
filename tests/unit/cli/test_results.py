"""The verb `results`: the same files again, whatever has happened since."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli import main
from patternmill.looking.page import gallery
from patternmill.runs.results_files import rebuild
from patternmill.states import AttemptState
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
