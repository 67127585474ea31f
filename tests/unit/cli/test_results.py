"""The verb `results`: the same files again, whatever has happened since."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli import main
from patternmill.looking.page import gallery
from patternmill.runs.results_files import rebuild
from patternmill.states import AttemptState
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, Past, troubled_run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_rebuilt_files_have_the_same_bytes(past: Past, tmp_path: Path) -> None:
    """Files deleted, and open items ended otherwise by a later run: the first run's files are the same."""
    run = troubled_run(past)
    written = tmp_path / "results" / "spring" / run.record.run_id
    rebuild(past.ledger, run.record.run_id, written, gallery)
    before = contents(written)
    shutil.rmtree(written)
    later = past.begin(HERON, HERON_MUG, FERN, FOX)
    later.attempt(later.product("H-2"), AttemptState.SUCCEEDED, 2)
    change = past.ledger.purchases.change
    requests = [later.pattern(sku).request_id(1) for sku in ("F-1", "X-1")]
    with past.ledger.transaction():
        change(later.record.run_id, requests[0], AttemptState.ACCEPTED, job_id="job-late")
        change(later.record.run_id, requests[1], AttemptState.FAILED, error_code="written_off")
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
    names = ("latest", "latest-staging", "latest-production")
    links = [(tmp_path / "results" / "spring" / name).resolve().name for name in names]
    assert links == [staging.record.run_id, staging.record.run_id, production.record.run_id]
