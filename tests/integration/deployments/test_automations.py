"""deployments/automations.yaml on a real server: one message a run, and none of them changes a run."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.deployments.conftest import CHECKOUT, Ask

PATTERNMILL = Path(sys.executable).with_name("patternmill")
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

#: As a person fills it in in the UI.
BLOCK = """
import sys
from prefect.blocks.notifications import CustomWebhookNotificationBlock
message = {"subject": "{{subject}}", "body": "{{body}}"}
secrets = {"address": sys.argv[1]}
print(CustomWebhookNotificationBlock(name="ops", url="{{address}}", json_data=message, secrets=secrets).save("ops"))
"""

pytestmark = pytest.mark.soak


class Inbox:
    """A webhook that keeps what it is sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.messages.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on the terminal."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook-with-a-key"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    opened = Inbox()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def applied(
    environment: dict[str, str],
    inbox: Inbox,
    prefect: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The automations, with a shorter patience for lateness, so that the test has some too."""
    command = [sys.executable, "-c", BLOCK, inbox.url]
    block = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    text = (CHECKOUT / "deployments" / "automations.yaml").read_text("utf-8")
    file = tmp_path_factory.mktemp("automations") / "automations.yaml"
    for written, shorter in (
        ("patience 600", "patience 10"),
        ("within: 120", "within: 10"),
    ):
        assert text.count(written) == 1, written
        text = text.replace(written, shorter)
    file.write_text(text.replace("BLOCK-ID", block.stdout.strip()))
    prefect("automation", "create", "--from-file", str(file))


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
    assert len(ask("automations/filter", {})) == 7
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


@pytest.mark.parametrize(
    ("kind", "name", "subject"),
    [("CRASHED", "Crashed", "Failed: "), ("PAUSED", "Suspended", "Waits for approval: ")],
)
def test_crash_and_a_plan_that_waits_send_one_message(
    applied: None, inbox: Inbox, ask: Ask, kind: str, name: str, subject: str
) -> None:
    """And nothing begins the run again, or ends it: what crashed is found in the ledger."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "RUNNING", "name": "Running"})
    set_state(ask, flow_run, kind, name)
    eventually(lambda: inbox.messages)
    time.sleep(5)
    (message,) = inbox.messages
    assert message["subject"] == f"{subject}a stand-in's run"
    assert "/runs/flow-run/" in message["body"]
    assert ask(f"flow_runs/{flow_run}")["state"]["name"] == name


def test_late_run_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """Due a minute ago, and no worker: the server marks it late, and one message is sent."""
    inbox.messages.clear()
    due = datetime.now(UTC) - timedelta(minutes=1)
    make_run(ask, {"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}})
    eventually(lambda: inbox.messages, within=120)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"] == "Late: a stand-in's run"
    assert "/runs/flow-run/" in message["body"]


def test_run_that_stays_pending_sends_one_message(applied: None, inbox: Inbox, ask: Ask) -> None:
    """A worker took it, and its process says nothing."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "PENDING", "name": "Pending"})
    set_state(ask, flow_run, "PENDING", "Submitting")
    eventually(lambda: inbox.messages, within=60)
    time.sleep(12)
    (message,) = inbox.messages
    assert message["subject"] == "Does not begin: a stand-in's run"
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
