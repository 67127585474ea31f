"""The figures that `up` shows and that lie beside the results: by catalog, whatever its name, and of no row."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.applications import Starlette

from patternmill.ledger.reports.metrics import CONTENT_TYPE, METRICS_FILE, metrics, write_metrics
from patternmill.states import AttemptState, Outcome
from prefect_host.metrics_page import metrics_route
from tests.unit.cli.ledgers import FERN, FOX, HERON, NOON, Past

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


def give_past(past: Past) -> None:
    """Two catalogs: one with what is open, and one with an odd name that was refreshed twice."""
    past.currency = "EUR"
    begun = past.begin(HERON, FERN, FOX)
    begun.make("H-1")
    for sku, state in (("F-1", AttemptState.ACCEPTED), ("X-1", AttemptState.HELD)):
        begun.attempt(begun.pattern(sku), state)
    begun.attempt(begun.product("F-1"), AttemptState.INTENDED)
    for outcome in (Outcome.COMPLETED_WITH_FAILURES, Outcome.CANCELLED):
        past.begin(HERON, catalog=ODD, environment="production", options={"changes": {"added": 1}}).end(
            outcome
        )


def test_figures_of_each_catalog(past: Past, tmp_path: Path) -> None:
    """What was opened, spent and refreshed; 0 where nothing is open. A catalog's file has its own alone."""
    give_past(past)
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
    past.clock.now += 86_400
    assert samples(metrics(past.ledger))["spent_today"] == {}
    assert refreshed > datetime.fromtimestamp(NOON, UTC)


async def test_page_is_behind_the_credential(past: Past, home: Path) -> None:
    """Of the Prefect server, as Basic or as Bearer; without a ledger it is empty, and none is made."""
    give_past(past)
    nowhere = home.with_name("none") / "ledger.sqlite3"
    routes = [
        metrics_route("/metrics", CREDENTIAL, f"sqlite:///{home / 'ledger.sqlite3'}"),
        metrics_route("/none", CREDENTIAL, f"sqlite:///{nowhere}"),
    ]
    transport = httpx.ASGITransport(app=Starlette(routes=routes))
    visitor = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
    for wrong in ({}, {"Authorization": "Bearer patternmill:other"}, {"Authorization": "Basic c2VjcmV0"}):
        refused = await visitor.get("/metrics", headers=wrong)
        assert (refused.status_code, refused.text) == (401, "Unauthorized")
    user, password = CREDENTIAL.split(":")
    shown = await visitor.get("/metrics", auth=(user, password))
    assert shown.headers["content-type"] == CONTENT_TYPE
    assert samples(shown.content)["jobs_in_flight"][("spring", "staging")] == 1
    empty = await visitor.get("/none", headers={"Authorization": f"Bearer {CREDENTIAL}"})
    assert empty.text == "# EOF\n"
    assert not nowhere.exists()
