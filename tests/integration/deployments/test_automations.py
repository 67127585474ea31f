"""deployments/automations.yaml on a real server: what crashes, or does not happen at all, sends one message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasks.deployments import SCHEDULED
from tests.acceptance.workers import Prefect, deployed
from tests.webhook import IMPATIENT, Inbox, apply_automations

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    opened = Inbox()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, inbox: Inbox) -> Iterator[Prefect]:
    with deployed(tmp_path_factory.mktemp("home"), {}) as deployments:
        folder = tmp_path_factory.mktemp("automations")
        apply_automations(deployments.environment, inbox, folder, IMPATIENT)
        assert len(deployments.api.post("automations/filter", {})) == 8
        blocks = json.dumps(deployments.api.post("block_documents/filter", {}))
        assert "hook-with-a-key" not in blocks, "the address is in a block in clear"
        yield deployments


def make_run(prefect: Prefect, state: dict[str, Any], *tags: str) -> str:
    """Make a flow run that no process drives."""
    flow = prefect.api.post("flows/", {"name": "stand-in"})
    run = {"flow_id": flow["id"], "name": "a stand-in's run", "tags": tags, "state": state}
    return str(prefect.api.post("flow_runs/", run)["id"])


def completed(prefect: Prefect) -> None:
    """Complete a run that is not ours, which sends nothing."""
    prefect.set_state(make_run(prefect, {"type": "RUNNING"}), "COMPLETED", "Completed")


def crash(prefect: Prefect) -> None:
    """Crash a run of ours, which nothing begins again or ends: it is found in the ledger."""
    completed(prefect)
    prefect.set_state(make_run(prefect, {"type": "RUNNING"}, "patternmill"), "CRASHED", "Crashed")


def late(prefect: Prefect) -> None:
    due = datetime.now(UTC) - timedelta(minutes=1)
    details = {"scheduled_time": due.isoformat()}
    make_run(prefect, {"type": "SCHEDULED", "state_details": details}, "patternmill")


def stays_pending(prefect: Prefect) -> None:
    """Leave a run pending: a worker took it, and its process reports nothing."""
    run = make_run(prefect, {"type": "PENDING", "name": "Pending"}, "patternmill")
    prefect.set_state(run, "PENDING", "Submitting")


def no_worker(prefect: Prefect) -> None:
    """A worker of ours sends no heartbeats any more; other people's pools are not ours to watch."""
    for pool in ("patternmill-night", "looms"):
        prefect.api.post("work_pools/", {"name": pool, "type": "process", "base_job_template": {}})
        worker = {"name": "one", "heartbeat_interval_seconds": 1}
        prefect.api.post(f"work_pools/{pool}/workers/heartbeat", worker)


def not_refreshed(prefect: Prefect) -> None:
    """No further run of a schedule comes after its last one, which is not ours to speak of."""
    flow = prefect.api.post("flows/", {"name": "stand-in"})
    deployment = {"flow_id": flow["id"], "name": "spring (staging)", "tags": [SCHEDULED]}
    number = prefect.api.post("deployments/", deployment)["id"]
    run = prefect.api.post(f"deployments/{number}/create_flow_run", {"state": {"type": "RUNNING"}})["id"]
    prefect.set_state(run, "COMPLETED", "Completed")


@pytest.mark.parametrize(
    ("happen", "subject"),
    [
        (crash, "Failed: a stand-in's run"),
        (late, "Late (due for 10 minutes, and no worker has begun it): a stand-in's run"),
        (stays_pending, "Does not begin (a worker took it 10 minutes ago"),
        (no_worker, "No worker: patternmill-night"),
        (not_refreshed, "Not refreshed for 26 hours: spring (staging)"),
    ],
    ids=lambda happen: getattr(happen, "__name__", ""),
)
def test_what_does_not_happen_sends_one_message(
    prefect: Prefect, inbox: Inbox, happen: Callable[[Prefect], None], subject: str
) -> None:
    inbox.messages.clear()
    happen(prefect)
    assert inbox.only_message()[0].startswith(subject)
