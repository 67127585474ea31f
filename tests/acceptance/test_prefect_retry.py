"""Retry pressed in the Prefect UI on runs that a worker has ended: nothing is bought again, the states are right."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import broken_files
from tests.acceptance.harness import some_rows, write_csv
from tests.acceptance.prefect_servers import eventually, lay_database, migrated_database
from tests.acceptance.workers import FINAL, Prefect, deployed, workers
from tests.hostile import ExpectedRow, Hostile, Plan, Rule, audit
from tests.hostile.plan import Times
from tests.hostile.record import lines_of

pytestmark = pytest.mark.soak

ROWS = 20
SECOND = Times(median=1.0)
BROKEN = Rule("patterns/create", "job_fails", matching="broken no. 3,")
REFUSED_KEY = Rule("patterns/create", "status", {"code": 401}, matching="refused no. 14,")


@dataclass
class Pressed:
    """An import that a worker has run once, and what may be asked of it."""

    prefect: Prefect
    flow_run: str
    out: Path
    rows: list[ExpectedRow]

    def end(self, *, within: float = 90) -> dict[str, Any]:
        """Its state, once it has ended, with all of its records."""
        state = self.prefect.ended(self.flow_run, within=within)
        eventually(lambda: self.prefect.open_runs(self.flow_run) == 0, 20, lambda: "runs are left open")
        return state

    def press_retry(self) -> dict[str, Any]:
        """What the UI sends; returns the state in which the run ends this time."""
        self.prefect.set_state(self.flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
        eventually(lambda: self.prefect.state(self.flow_run)["type"] not in FINAL, 10)
        ended = self.end()
        assert self.prefect.ask(f"flow_runs/{self.flow_run}")["run_count"] == 2, "it did not run again"
        return ended

    @property
    def statuses(self) -> dict[str, str]:
        with (self.out / "results.csv").open(encoding="utf-8-sig", newline="") as file:
            return {row["sku"]: row["status"] for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    plan = Plan(patterns=SECOND, products=SECOND, rules=(BROKEN, REFUSED_KEY))
    with Hostile(plan, tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, service: Hostile) -> Iterator[Prefect]:
    """A server with the deployments, and a worker on it."""
    home = tmp_path_factory.mktemp("home")
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), home)
    with (
        deployed(home, service.environment, PATTERNMILL_MAX_IN_FLIGHT="6") as deployments,
        workers(deployments, home) as start,
    ):
        start()
        yield deployments


@pytest.fixture(scope="module")
def runs(prefect: Prefect, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pressed]:
    """One run with a row that fails finally, and one whose key is refused when it has bought a part; side by side."""
    return {about: begin(prefect, tmp_path_factory.mktemp(about), about) for about in ("broken", "refused")}


def begin(prefect: Prefect, folder: Path, about: str) -> Pressed:
    rows = some_rows(ROWS, about=about)
    file = write_csv(folder / f"{about}.csv", rows)
    values = {"file": str(file), "out": str(folder / "out"), "environment": "staging"}
    return Pressed(prefect, prefect.begin("bulk-import", **values), folder / "out", rows)


def creates(service: Hostile) -> int:
    return sum(
        line["event"] == "request" and line["operation"].endswith("/create")
        for line in lines_of(service.record)
    )


def test_retry_of_a_run_with_failures(service: Hostile, runs: dict[str, Pressed]) -> None:
    """The failed row has used its attempts: the second try sends nothing, and ends as the first did."""
    broken = runs["broken"]
    first = broken.end()
    runs["refused"].end()
    assert (first["type"], first["name"]) == ("FAILED", "CompletedWithFailures"), first["message"]
    statuses, before = broken.statuses, creates(service)
    assert Counter(statuses.values()) == {"succeeded": ROWS - 1, "failed": 1}
    again = broken.press_retry()
    assert creates(service) == before, "the second try sent a create"
    assert (again["type"], again["name"], again["message"]) == (
        first["type"],
        first["name"],
        first["message"],
    )
    assert broken.statuses == statuses
    assert broken_files(broken.out) == []


def test_retry_of_a_failed_run(service: Hostile, runs: dict[str, Pressed]) -> None:
    """The key was refused in the middle, and then replaced: the second try makes what is missing, and only that."""
    refused = runs["refused"]
    first = refused.end()
    assert (first["type"], first["name"]) == ("FAILED", "Failed"), first
    assert set(refused.statuses.values()) >= {"succeeded", "not_started"}
    service.change(Plan(patterns=SECOND, products=SECOND, rules=(BROKEN,)))
    again = refused.press_retry()
    assert (again["type"], again["name"]) == ("COMPLETED", "Completed"), again
    assert set(refused.statuses.values()) == {"succeeded"}
    assert broken_files(refused.out) == []


def test_nothing_was_bought_twice(service: Hostile, runs: dict[str, Pressed]) -> None:
    """By the service's own record, over all tries of both runs."""
    found = audit(service.record, [row for run in runs.values() for row in run.rows], service.plan)
    assert (found.double_purchases, found.requests_with_two_jobs, found.changed_bodies) == ((), (), ())
    assert found.bought("product") == 2 * ROWS - 1
    assert found.unfinished == ()
