"""deployments/automations.yaml on a real server with runs of a worker: each message is true, and is sent once."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from tests.acceptance.harness import COMMAND, some_rows, write_csv
from tests.acceptance.test_worker import begin_import
from tests.acceptance.workers import Prefect, deployed, workers
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Rule, Times
from tests.webhook import QUIET_SECONDS, Inbox, apply_automations

pytestmark = pytest.mark.soak

SETTINGS = {
    "PATTERNMILL_CURRENCY": "EUR",
    "PATTERNMILL_PATTERN_PRICE": "€2.00",
    "PATTERNMILL_PRODUCT_PRICE": "€1.00",
    "PATTERNMILL_APPROVE_ABOVE_ITEMS": "90",
    "PATTERNMILL_MAX_IN_FLIGHT": "8",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    jobs = Times(median=1.0)
    broken = Rule("patterns/create", "job_fails", {"message": "the loom broke"}, matching="Broken looms")
    plan = Plan(rules=(broken,), patterns=jobs, products=jobs)
    with Hostile(plan, tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def opened() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.close()


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, service: Hostile, opened: Inbox) -> Iterator[Prefect]:
    with deployed(tmp_path_factory.mktemp("home"), service.environment, **SETTINGS) as deployments:
        apply_automations(deployments.environment, opened, tmp_path_factory.mktemp("automations"))
        yield deployments


@pytest.fixture
def inbox(opened: Inbox) -> Inbox:
    opened.messages.clear()
    return opened


@pytest.fixture
def worker(prefect: Prefect, tmp_path: Path) -> Iterator[None]:
    with workers(prefect, tmp_path) as start:
        start()
        yield


def test_end_names_catalog_environment_machine_money_and_the_paid_failure(
    prefect: Prefect, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """The message names an unknown word only after what was paid for."""
    good, paid, refused = some_rows(3, about="looms", shared=0, goods=1)
    rows = [good, replace(paid, prompt="Broken looms"), replace(refused, category="Samt")]
    file = write_csv(tmp_path / "looms.csv", rows)
    run = prefect.begin("bulk-import", file=str(file), out=str(tmp_path / "out"), environment="staging")
    prefect.ended(run)
    subject, body = inbox.only_message()
    assert subject.startswith("Partly (CompletedWithFailures): import looms")
    assert f"Catalog looms, environment staging, on {socket.gethostname()}; deployment bulk-import." in body
    assert "spent" in body and "€" in body and "/runs/flow-run/" in body, body
    assert body.index("the loom broke") < body.index("Samt"), body


def test_paused_run_says_since_when_by_whom_and_why(
    prefect: Prefect, service: Hostile, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """Our Paused is a final state; that of Prefect's own Pause is not, and sends nothing."""
    begun = begin_import(prefect, service, tmp_path, "held-up")
    prefect.set_state(begun.flow_run, "PAUSED", "Paused")
    time.sleep(QUIET_SECONDS)
    assert inbox.messages == []
    brake = [str(COMMAND), "pause", "--reason", "wrong prices in the feed"]
    subprocess.run(brake, env=prefect.environment, check=True, timeout=60)
    state = prefect.ended(begun.flow_run)
    assert (state["type"], state["name"]) == ("CANCELLED", "Paused")
    subject, body = inbox.only_message()
    assert subject == "Partly (Paused): import held-up"
    assert f"by {getuser()}: wrong prices in the feed" in body and "since 2" in body, body
    subprocess.run([str(COMMAND), "unpause"], env=prefect.environment, check=True, timeout=60)


def test_only_an_approval_waits_for_approval(
    prefect: Prefect, service: Hostile, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """The message names the amount; a run that a person suspends sends none."""
    begun = begin_import(prefect, service, tmp_path, "suspended")
    prefect.set_state(begun.flow_run, "PAUSED", "Suspended")
    time.sleep(20)
    assert inbox.messages == []
    begun = begin_import(prefect, service, tmp_path, "dear", count=60, sent=0)
    prefect.suspended(begun.flow_run)
    subject, body = inbox.only_message()
    assert subject == "Waits for approval: import dear"
    assert "for catalog dear (staging)" in body and "€" in body, body
