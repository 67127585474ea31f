"""deployments/automations.yaml on a real server: one message a run, and none of them changes a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.deployments import SCHEDULED
from tests.integration.deployments.conftest import Ask
from tests.webhook import IMPATIENT, Inbox, apply_automations

FLOW = """
import sys
from prefect import flow, tags
from prefect import State
@flow(name="stand-in")
def stand_in():
    if sys.argv[1] == "fail":
        raise ValueError("looms are broken")
    type_ = "COMPLETED" if sys.argv[1] == "Completed" else "FAILED"
    return State(type=type_, name=sys.argv[1], message="3 rows: 2 succeeded, 1 failed")
with tags(*sys.argv[2:]):
    stand_in(return_state=True)
"""

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    opened = Inbox()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def applied(environment: dict[str, str], inbox: Inbox, tmp_path_factory: pytest.TempPathFactory) -> None:
    apply_automations(environment, inbox, tmp_path_factory.mktemp("automations"), IMPATIENT)


def play(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.Popen[str]:
    script = folder / "stand_in.py"
    script.write_text(FLOW)
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def eventually(what: Callable[[], Any], within: float = 30.0) -> Any:
    until = time.monotonic() + within
    while not (found := what()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.3)
    return found


def test_every_automation_is_made(applied: None, ask: Ask) -> None:
    """By Prefect's own command. The address is not in the block in clear."""
    assert len(ask("automations/filter", {})) == 8
    assert "hook-with-a-key" not in json.dumps(ask("block_documents/filter", {}))


@pytest.mark.parametrize(
    ("how", "subject"),
    [
        ("Completed", "Good: "),
        ("CompletedWithFailures", "Partly (CompletedWithFailures): "),
        ("fail", "Failed: "),
    ],
)
def test_each_run_sends_one_message(
    applied: None, environment: dict[str, str], inbox: Inbox, tmp_path: Path, how: str, subject: str
) -> None:
    """Worded by its outcome, with its numbers; a run that is not ours sends nothing."""
    inbox.messages.clear()
    for tags in (["patternmill"], []):
        process = play(environment, tmp_path, how, *tags)
        process.communicate(timeout=60)
    eventually(lambda: inbox.messages)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"].startswith(subject)
    assert ("looms are broken" if how == "fail" else "3 rows: 2 succeeded, 1 failed") in message["body"]
    assert "/runs/flow-run/" in message["body"]


def set_state(ask: Ask, flow_run_id: str, kind: str, name: str) -> None:
    ask(f"flow_runs/{flow_run_id}/set_state", {"state": {"type": kind, "name": name}, "force": True})


def make_run(ask: Ask, state: dict[str, Any]) -> str:
    """A run of ours without a process."""
    flow = ask("flows/", {"name": "stand-in"})
    spec = {"flow_id": flow["id"], "name": "a stand-in's run", "tags": ["patternmill"], "state": state}
    return str(ask("flow_runs/", spec)["id"])


def test_crash_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """And nothing begins the run again, or ends it: what crashed is found in the ledger."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "RUNNING", "name": "Running"})
    set_state(ask, flow_run, "CRASHED", "Crashed")
    eventually(lambda: inbox.messages)
    time.sleep(5)
    (message,) = inbox.messages
    assert message["subject"] == "Failed: a stand-in's run"
    assert "/runs/flow-run/" in message["body"]
    assert ask(f"flow_runs/{flow_run}")["state"]["name"] == "Crashed"


def test_refresh_that_does_not_come_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """After the last run of a schedule; the next one in time keeps it quiet. It names the deployment."""
    flow = ask("flows/", {"name": "stand-in"})
    spec = {"flow_id": flow["id"], "name": "spring (staging)", "tags": ["patternmill", SCHEDULED]}
    deployment = ask("deployments/", spec)["id"]
    began = time.monotonic()
    for pause in (8, 0):
        run = ask(f"deployments/{deployment}/create_flow_run", {"state": {"type": "RUNNING"}})["id"]
        set_state(ask, run, "COMPLETED", "Completed")
        time.sleep(pause)
    inbox.messages.clear()
    eventually(lambda: any("Not refreshed" in message["subject"] for message in inbox.messages), within=60)
    assert time.monotonic() - began > 8 + 15, "the second run did not count"
    time.sleep(5)
    (message,) = [message for message in inbox.messages if not message["subject"].startswith("Good: ")]
    assert message["subject"] == "Not refreshed for 26 hours: spring (staging)"


def test_late_run_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """Due a minute ago, and no worker: the server marks it late, and one message is sent."""
    inbox.messages.clear()
    due = datetime.now(UTC) - timedelta(minutes=1)
    make_run(ask, {"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}})
    eventually(lambda: inbox.messages, within=120)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"] == "Late (due for 10 minutes, and no worker has begun it): a stand-in's run"
    assert "/runs/flow-run/" in message["body"]


def test_run_that_stays_pending_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """A worker took it, and its process says nothing."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "PENDING", "name": "Pending"})
    set_state(ask, flow_run, "PENDING", "Submitting")
    eventually(lambda: inbox.messages, within=60)
    time.sleep(12)
    (message,) = inbox.messages
    assert message["subject"].startswith("Does not begin (a worker took it 10 minutes ago")
    set_state(ask, flow_run, "CANCELLED", "Cancelled")
    # The message of this end is not the next test's.
    eventually(lambda: len(inbox.messages) == 2, within=60)


def test_pool_without_a_worker_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """A worker of ours sends no heartbeats any more; other people's pools are not ours to watch."""
    inbox.messages.clear()
    for pool in ("patternmill-night", "looms"):
        ask("work_pools/", {"name": pool, "type": "process", "base_job_template": {}})
        worker = {"name": "one", "heartbeat_interval_seconds": 1}
        ask(f"work_pools/{pool}/workers/heartbeat", worker)
    eventually(lambda: inbox.messages, within=120)
    time.sleep(12)
    (message,) = inbox.messages
    assert message["subject"] == "No worker: patternmill-night"
