"""Reports of a ledger: figures, a row's story, the rebuilt results files, and contradictions."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.applications import Starlette

from cli import main
from patternmill.ledger.reports.metrics import CONTENT_TYPE, METRICS_FILE, metrics, write_metrics
from patternmill.looking.page import gallery
from patternmill.runs.results_files import rebuild
from patternmill.states import AttemptState, Outcome
from prefect_host.own_server import metrics_route
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, Past, troubled_run

ODD = 'tea "no. 1"\\\n{x="1"} 2'
CREDENTIAL = "patternmill:secret"


def samples(page: bytes) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values by metric and labels, as a collector reads them."""
    return {
        family.name.removeprefix("patternmill_"): {
            tuple(sample.labels[name] for name in sorted(sample.labels)): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(page.decode())
    }


async def test_figures_of_each_catalog(past: Past, home: Path, tmp_path: Path) -> None:
    """They name no row; they are on a page behind the credential, and in a file for each catalog."""
    past.currency = "EUR"
    run = past.begin(HERON, FERN, FOX)
    run.make("H-1")
    for sku, state in (("F-1", AttemptState.ACCEPTED), ("X-1", AttemptState.HELD)):
        run.attempt(run.pattern(sku), state)
    run.attempt(run.product("F-1"), AttemptState.INTENDED)
    for outcome in (Outcome.COMPLETED_WITH_FAILURES, Outcome.CANCELLED):
        options = {"changes": {"added": 1}}
        past.begin(HERON, catalog=ODD, environment="production", options=options).end(outcome)
    ours, other = ("spring", "staging"), (ODD, "production")
    page = metrics(past.ledger)
    refreshed = past.ledger.runs.find(catalog=ODD)[-1].started_at
    assert samples(page) == {
        "jobs_in_flight": {ours: 1, other: 0},
        "requests_in_doubt": {ours: 1, other: 0},
        "requests_held": {ours: 1, other: 0},
        "spent_today": {("spring", "EUR", "staging"): 50 + 200 + 50 + 50 + 200},
        "last_good_refresh_timestamp_seconds": {other: refreshed.timestamp()},
    }
    assert b"H-1" not in page and b"sku" not in page
    write_metrics(past.ledger, "spring", tmp_path)
    written = samples((tmp_path / METRICS_FILE).read_bytes())
    assert written["jobs_in_flight"] == {ours: 1} and not written["last_good_refresh_timestamp_seconds"]
    route = metrics_route("/metrics", CREDENTIAL, f"sqlite:///{home / 'ledger.sqlite3'}")
    # Without a ledger the page is empty, and none is made.
    nowhere = tmp_path / "none" / "ledger.sqlite3"
    app = Starlette(routes=[route, metrics_route("/none", CREDENTIAL, f"sqlite:///{nowhere}")])
    visitor = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")
    for wrong in ({}, {"Authorization": "Bearer patternmill:other"}, {"Authorization": "Basic c2VjcmV0"}):
        refused = await visitor.get("/metrics", headers=wrong)
        assert (refused.status_code, refused.text) == (401, "Unauthorized")
    shown = await visitor.get("/metrics", auth=("patternmill", "secret"))
    assert (
        shown.headers["content-type"] == CONTENT_TYPE and samples(shown.content)["jobs_in_flight"][ours] == 1
    )
    empty = await visitor.get("/none", headers={"Authorization": f"Bearer {CREDENTIAL}"})
    assert empty.text == "# EOF\n" and not nowhere.exists()
    past.clock.now += 86_400
    assert samples(metrics(past.ledger))["spent_today"] == {}


def test_row_is_found_by_each_of_its_ids(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The sku, the product's ID, its jobs and its requests have the same story."""
    run = past.begin(HERON, HERON_MUG)
    run.make("H-1")
    product = run.product("H-2")
    attempts = [run.attempt(product, AttemptState.FAILED), run.attempt(product, AttemptState.SUCCEEDED, 2)]
    ids = {attempt.request_id for attempt in attempts} | {attempt.job_id for attempt in attempts}
    texts = set()
    for name in ("H-2", product.key, attempts[1].result_id, *ids):
        assert main.run(["explain", str(name)]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_rebuilt_files_have_the_same_bytes(past: Past, tmp_path: Path) -> None:
    """The first run's files are the same after they were deleted, and a later run gave open items another end."""
    run = troubled_run(past)
    written = tmp_path / "results" / "spring" / run.record.run_id
    rebuild(past.ledger, run.record, written, gallery)
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


#: What the check says of each fault, by the SQL that causes it.
FAULTS = {
    "UPDATE attempts SET job_id = (SELECT min(job_id) FROM attempts) WHERE job_id IS NOT NULL": "belongs to",
    "UPDATE attempts SET result_id = (SELECT min(result_id) FROM attempts) "
    "WHERE result_id IS NOT NULL": "which asked for something else",
    "UPDATE attempts SET attempt = 3 WHERE attempt = 2": "is attempt 3, and the one before it did not fail",
    "UPDATE spending SET amount = amount + 1": "booked on",
    "DELETE FROM events WHERE kind = 'accepted'": "went from intended to succeeded",
    "DELETE FROM events WHERE kind = 'intended'": "what is on record is",
    "UPDATE events SET seq = -seq WHERE kind = 'intended' AND request_id IN (SELECT request_id FROM attempts a "
    "JOIN items i ON i.key = a.item_key WHERE i.stage = 'product')": "before what it is built on succeeded",
    "UPDATE run_rows SET product_key = 'nothing' WHERE position = 0": "names an item that is gone",
}


def busy(past: Past) -> None:
    """Make a past with every state, a further attempt, and a withdrawn request."""
    others = (f"{name}-1,{name} owls,Mug,11oz,," for name in "ODP")
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED, *others)
    run.make("H-1")
    run.make("P-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.product("H-2"), AttemptState.ACCEPTED, 2)
    run.attempt(run.pattern("F-1"), AttemptState.REJECTED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.attempt(run.pattern("O-1"), AttemptState.WITHDRAWN)
    run.attempt(run.pattern("D-1"), AttemptState.INTENDED)
    run.end()


@pytest.mark.parametrize("fault", FAULTS)
def test_each_contradiction_is_found(past: Past, fault: str) -> None:
    """The ledger was tampered with, or written by a faulty program; a sound one has none."""
    busy(past)
    assert list(problems(past.ledger)) == []
    past.ledger.database.execute("PRAGMA foreign_keys=OFF")
    past.ledger.database.execute(fault)
    assert any(FAULTS[fault] in problem for problem in problems(past.ledger))
