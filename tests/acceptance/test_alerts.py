"""deployments/automations.yaml with real runs of a worker: what each message says is true, and comes once."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from tests.acceptance.harness import some_rows, write_csv
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.test_worker import begin_import
from tests.acceptance.workers import OUR_WORKER, PREFECT_WORKER, Prefect, deployed, workers
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Rule, Times
from tests.webhook import Inbox, apply_automations

pytestmark = pytest.mark.soak

Worker = Callable[..., subprocess.Popen[bytes]]
PRICES = {
    "PATTERNMILL_CURRENCY": "EUR",
    "PATTERNMILL_PATTERN_PRICE": "€2.00",
    "PATTERNMILL_PRODUCT_PRICE": "€1.00",
    "PATTERNMILL_APPROVE_ABOVE_ITEMS": "90",
}
#: For a message that would be one too many.
QUIET_SECONDS = 8


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    jobs = Times(median=1.0)
    broken = Rule("patterns/create", "job_fails", {"message": "the loom broke"}, matching="Broken looms")
    with Hostile(
        Plan(rules=(broken,), patterns=jobs, products=jobs), tmp_path_factory.mktemp("service")
    ) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    opened = Inbox()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, service: Hostile, inbox: Inbox) -> Iterator[Prefect]:
    settings = {**PRICES, "PATTERNMILL_MAX_IN_FLIGHT": "8"}
    with deployed(tmp_path_factory.mktemp("home"), service.environment, **settings) as deployments:
        apply_automations(deployments.environment, inbox, tmp_path_factory.mktemp("automations"), {})
        yield deployments


@pytest.fixture
def worker(prefect: Prefect, tmp_path: Path, inbox: Inbox) -> Iterator[None]:
    inbox.messages.clear()
    with workers(prefect, tmp_path) as start:
        start()
        yield


def only_message(inbox: Inbox) -> tuple[str, str]:
    """Return subject and body of the one message that came."""
    eventually(lambda: inbox.messages, 60)
    time.sleep(QUIET_SECONDS)
    assert len(inbox.messages) == 1, inbox.messages
    (message,) = inbox.messages
    return message["subject"], message["body"]


def test_end_names_catalog_environment_machine_money_and_the_paid_failure(
    prefect: Prefect, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """With a word that nobody knows only after what was paid for."""
    good, paid, refused = some_rows(3, about="looms", shared=0, goods=1)
    rows = [good, replace(paid, prompt="Broken looms"), replace(refused, category="Samt")]
    file = write_csv(tmp_path / "looms.csv", rows)
    run = prefect.begin("bulk-import", file=str(file), out=str(tmp_path / "out"), environment="staging")
    prefect.ended(run)
    subject, body = only_message(inbox)
    assert subject.startswith("Partly (CompletedWithFailures): import looms")
    assert f"Catalog looms, environment staging, on {socket.gethostname()}; deployment bulk-import." in body
    assert "spent" in body and "€" in body, body
    assert body.index("the loom broke") < body.index("Samt"), body


@pytest.mark.parametrize("module", [OUR_WORKER, PREFECT_WORKER])
def test_cancel_sends_one_message(
    prefect: Prefect, service: Hostile, inbox: Inbox, tmp_path: Path, module: tuple[str, ...]
) -> None:
    """Whichever worker runs it."""
    inbox.messages.clear()
    with workers(prefect, tmp_path) as start:
        start(module)
        assert_one_message_of_a_cancel(prefect, service, inbox, tmp_path, module[0])


def assert_one_message_of_a_cancel(
    prefect: Prefect, service: Hostile, inbox: Inbox, tmp_path: Path, about: str
) -> None:
    begun = begin_import(prefect, service, tmp_path, f"{about[:3]}-cancelled")
    prefect.cancel(begun.flow_run)
    prefect.ended(begun.flow_run, within=60)
    subject, body = only_message(inbox)
    assert subject == f"Partly (Cancelled): import {about[:3]}-cancelled"
    assert "Cancelled in the Prefect UI" in body and "spent" in body, body


def test_paused_run_says_since_when_by_whom_and_why(
    prefect: Prefect, service: Hostile, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """Its state is an end; that of Prefect's own Pause is none, and sends nothing."""
    begun = begin_import(prefect, service, tmp_path, "held-up")
    prefect.set_state(begun.flow_run, "PAUSED", "Paused")
    time.sleep(QUIET_SECONDS)
    assert inbox.messages == []
    brake = [sys.executable, "-m", "cli.main", "pause", "--reason", "wrong prices in the feed"]
    subprocess.run(brake, env=prefect.environment, check=True, timeout=60)
    state = prefect.ended(begun.flow_run)
    assert (state["type"], state["name"]) == ("CANCELLED", "Paused")
    subject, body = only_message(inbox)
    assert subject == "Partly (Paused): import held-up"
    assert f"by {getuser()}: wrong prices in the feed" in body and "since 2" in body, body
    subprocess.run([*brake[:3], "unpause"], env=prefect.environment, check=True, timeout=60)


def test_only_an_approval_waits_for_approval(
    prefect: Prefect, service: Hostile, worker: None, inbox: Inbox, tmp_path: Path
) -> None:
    """With its amount; a run that a person suspends sends nothing."""
    begun = begin_import(prefect, service, tmp_path, "suspended")
    prefect.set_state(begun.flow_run, "PAUSED", "Suspended")
    time.sleep(20)
    assert inbox.messages == []
    begun = begin_import(prefect, service, tmp_path, "dear", count=60, sent=0)
    prefect.suspended(begun.flow_run)
    subject, body = only_message(inbox)
    assert subject == "Waits for approval: import dear"
    assert "for catalog dear (staging)" in body and "€" in body, body
