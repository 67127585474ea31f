"""deployments/automations.yaml on a real server: one message a run, and a silent run is taken up once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from prefect_host.work_pool import POOL
from tests.integration.deployments.conftest import CHECKOUT, Ask

PATTERNMILL = Path(sys.executable).with_name("patternmill")
FLOW = """
import sys, time
from prefect import flow, tags
from prefect import State
@flow(name="stand-in")
def stand_in():
    if sys.argv[1] == "hang":
        print("begun", flush=True)
        time.sleep(600)
    if sys.argv[1] == "fail":
        raise ValueError("looms are broken")
    type_ = "COMPLETED" if sys.argv[1] == "Completed" else "FAILED"
    return State(type=type_, name=sys.argv[1], message="3 rows: 2 succeeded, 1 failed")
with tags(*sys.argv[2:]):
    stand_in(return_state=True)
"""

APPLY = """
import sys
from pathlib import Path
from cli.automations import apply_automations
print(*apply_automations(Path(sys.argv[1])), sep="\\n")
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
def applied(environment: dict[str, str], inbox: Inbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The automations, with a shorter patience for silence and lateness, so that the test has some too."""
    text = (CHECKOUT / "deployments" / "automations.yaml").read_text("utf-8")
    file = tmp_path_factory.mktemp("automations") / "automations.yaml"
    for written, shorter in (
        ("silence 100", "silence 35"),
        ("patience 600", "patience 10"),
        ("pause 30", "pause 15"),
        ("farewell 75", "farewell 10"),
        ("within: 120", "within: 10"),
    ):
        assert text.count(written) == 1, written
        text = text.replace(written, shorter)
    file.write_text(text)
    command = [sys.executable, "-c", APPLY, str(file)]
    printed = ""
    for _ in range(2):
        done = subprocess.run(
            command,
            env={**environment, "PATTERNMILL_NOTIFY_URL": inbox.url},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


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


def state_names(ask: Ask, flow_run_id: str) -> list[str]:
    """The first one first."""
    states = ask(f"flow_run_states/?flow_run_id={flow_run_id}")
    return [str(found["name"]) for found in sorted(states, key=lambda found: str(found["timestamp"]))]


def test_automations_applied_again_are_replaced(applied: str, ask: Ask) -> None:
    """Never two of one name. The address is not in the block in clear."""
    names = [automation["name"] for automation in ask("automations/filter", {})]
    assert len(names) == len(set(names)) == 13
    assert applied.count("made: ") == applied.count("replaced: ") == 13
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
    applied: str, environment: dict[str, str], inbox: Inbox, tmp_path: Path, how: str, subject: str
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


def test_run_without_heartbeats_is_restarted_once(
    applied: str, environment: dict[str, str], inbox: Inbox, ask: Ask, tmp_path: Path
) -> None:
    """SIGKILL leaves it shown as running; without heartbeats it crashes and waits to be run again. No message yet."""
    inbox.messages.clear()
    process = play(environment, tmp_path, "hang", "patternmill")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
    (flow_run,) = eventually(lambda: ask("flow_runs/filter", running))
    # The first heartbeat is what its silence is measured from.
    heartbeat = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}}}
    eventually(lambda: flow_run["id"] in json.dumps(ask("events/filter", heartbeat)), within=60)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    def state() -> str:
        return str(ask(f"flow_runs/{flow_run['id']}")["state"]["name"])

    eventually(lambda: state() == "AwaitingRetry", within=120)
    assert state_names(ask, flow_run["id"])[-3:] == ["Crashed", "CrashedOnce", "AwaitingRetry"]
    assert inbox.messages == []


def test_waiting_plan_is_announced_and_ends_at_its_timeout(
    applied: str, environment: dict[str, str], inbox: Inbox, ask: Ask, tmp_path: Path
) -> None:
    """A message when it begins to wait; at its timeout it is started once more, without a message of a failure."""
    inbox.messages.clear()
    process = play(environment, tmp_path, "hang", "patternmill")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
    (flow_run,) = eventually(lambda: ask("flow_runs/filter", running))
    address = f"flow_runs/{flow_run['id']}"
    ask(f"{address}/set_state", {"state": {"type": "PAUSED", "name": "Suspended"}, "force": True})
    eventually(lambda: inbox.messages)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    late = {"type": "FAILED", "message": "The flow was paused and never resumed."}
    ask(f"{address}/set_state", {"state": late, "force": True})
    eventually(lambda: ask(address)["state"]["name"] == "AwaitingRetry", within=60)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"].startswith("Waits for approval: ")
    assert "/runs/flow-run/" in message["body"]
    ask(f"{address}/set_state", {"state": {"type": "CANCELLED"}, "force": True})
    # The message of this end is not the next test's.
    eventually(lambda: len(inbox.messages) == 2, within=60)


def set_state(ask: Ask, flow_run_id: str, kind: str, name: str) -> None:
    ask(f"flow_runs/{flow_run_id}/set_state", {"state": {"type": kind, "name": name}, "force": True})


def make_run(ask: Ask, state: dict[str, Any]) -> str:
    """A run of ours without a process."""
    flow = ask("flows/", {"name": "stand-in"})
    spec = {"flow_id": flow["id"], "name": "a stand-in's run", "tags": ["patternmill"], "state": state}
    return str(ask("flow_runs/", spec)["id"])


def test_second_crash_sends_one_message(applied: str, inbox: Inbox, ask: Ask) -> None:
    """The first crash restarts it without a message; the second is final, with one message."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "PENDING", "name": "Pending"})
    set_state(ask, flow_run, "RUNNING", "Running")
    set_state(ask, flow_run, "CRASHED", "Crashed")
    eventually(lambda: ask(f"flow_runs/{flow_run}")["state"]["name"] == "AwaitingRetry", within=60)
    assert inbox.messages == []
    set_state(ask, flow_run, "RUNNING", "Running")
    set_state(ask, flow_run, "CRASHED", "Crashed")
    eventually(lambda: inbox.messages, within=60)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"] == "Failed: a stand-in's run"
    assert state_names(ask, flow_run).count("AwaitingRetry") == 1
    assert ask(f"flow_runs/{flow_run}")["state"]["name"] == "Crashed"
    # Retried by a person, and crashed once more.
    set_state(ask, flow_run, "SCHEDULED", "AwaitingRetry")
    set_state(ask, flow_run, "RUNNING", "Running")
    set_state(ask, flow_run, "CRASHED", "Crashed")
    eventually(lambda: len(inbox.messages) == 2, within=60)
    assert ask(f"flow_runs/{flow_run}")["state"]["name"] == "Crashed"


HEALTHY = """
import asyncio, pathlib
from prefect import flow
@flow
async def healthy():
    while not pathlib.Path("ENOUGH").exists():
        await asyncio.sleep(0.5)
"""
#: What keeps a run from its beginning: a flow file, and fields of its deployment.
DEATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown parameter": (HEALTHY, {"parameters": {"nonsense": 1}}),
    "an import error": (f"import no_such_module\n{HEALTHY}", {}),
    "out of memory": (f"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n{HEALTHY}", {}),
    "a wrong folder": (
        HEALTHY,
        {"pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": "/no/such"}}]},
    ),
}


@pytest.fixture
def worker(environment: dict[str, str], ask: Ask, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Ours, which asks for runs each second; its pool is ready."""
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PATTERNMILL), "up", "--worker"],
            cwd=tmp_path,
            env={**environment, "PREFECT_WORKER_QUERY_SECONDS": "1"},
            stdout=log,
            stderr=log,
        )
    eventually(lambda: [pool for pool in ask("work_pools/filter", {}) if pool["name"] == POOL], within=90)
    yield process
    if process.poll() is None:
        process.terminate()
        process.wait(timeout=60)


def begin(ask: Ask, folder: Path, name: str, text: str, **fields: Any) -> str:
    """A run of a deployment of ours whose flow is that text."""
    folder.mkdir()
    (folder / "healthy.py").write_text(text)
    flow = ask("flows/", {"name": "healthy"})
    deployment = {
        "name": name,
        "flow_id": flow["id"],
        "entrypoint": "healthy.py:healthy",
        "path": str(folder),
        "work_pool_name": POOL,
        "tags": ["patternmill"],
        "enforce_parameter_schema": False,
        **fields,
    }
    made = ask("deployments/", deployment)
    run = {"name": name, "state": {"type": "SCHEDULED"}}
    return str(ask(f"deployments/{made['id']}/create_flow_run", run)["id"])


def test_runs_that_die_before_they_begin_crash_twice(
    applied: str, worker: subprocess.Popen[bytes], inbox: Inbox, ask: Ask, tmp_path: Path
) -> None:
    """Whatever they die of: resumed once, then one message each; their worker lives, and so does its healthy run."""
    inbox.messages.clear()

    def subjects() -> list[str]:
        # On a busy machine five that start at once take more than the ten seconds after which that is reported here.
        found = [str(message["subject"]) for message in inbox.messages]
        return [subject for subject in found if not subject.startswith("Does not begin: ")]

    enough = tmp_path / "enough"
    healthy = begin(ask, tmp_path / "healthy", "a healthy run", HEALTHY.replace("ENOUGH", str(enough)))
    eventually(lambda: ask(f"flow_runs/{healthy}")["state"]["name"] == "Running", within=120)
    dying = {
        name: begin(ask, tmp_path / name.replace(" ", "-"), name, text, **fields)
        for name, (text, fields) in DEATHS.items()
    }
    wanted = {f"Failed: {name}" for name in dying}
    eventually(lambda: wanted <= set(subjects()), within=300)
    time.sleep(30)
    assert Counter(subjects()) == Counter(dict.fromkeys(wanted, 1))
    for name, flow_run in dying.items():
        states = state_names(ask, flow_run)
        assert (states.count("CrashedOnce"), states.count("AwaitingRetry")) == (1, 1), (name, states)
        assert states[-1] == "Crashed", (name, states)
        assert "Running" not in states, (name, states)
        found = ask(f"flow_runs/{flow_run}")
        assert found["run_count"] == 0, name
    assert worker.poll() is None, (tmp_path / "worker.log").read_text()[-2000:]
    assert ask(f"flow_runs/{healthy}")["state"]["name"] == "Running"
    enough.touch()
    eventually(lambda: ask(f"flow_runs/{healthy}")["state"]["name"] == "Completed", within=60)
    eventually(lambda: len(subjects()) == len(wanted) + 1, within=60)


def test_late_run_sends_one_message(applied: str, inbox: Inbox, ask: Ask) -> None:
    """Due a minute ago, and no worker: the server marks it late, and one message is sent."""
    inbox.messages.clear()
    due = datetime.now(UTC) - timedelta(minutes=1)
    make_run(ask, {"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}})
    eventually(lambda: inbox.messages, within=120)
    time.sleep(2)
    (message,) = inbox.messages
    assert message["subject"] == "Late: a stand-in's run"
    assert "/runs/flow-run/" in message["body"]


def test_run_that_stays_pending_sends_one_message(applied: str, inbox: Inbox, ask: Ask) -> None:
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


def test_pool_without_a_worker_sends_one_message(applied: str, inbox: Inbox, ask: Ask) -> None:
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


def test_cancelled_run_without_a_process_is_closed(applied: str, inbox: Inbox, ask: Ask) -> None:
    """Long before Prefect itself would; with one message, and it is not resumed as if it had crashed."""
    inbox.messages.clear()
    flow_run = make_run(ask, {"type": "RUNNING", "name": "Running"})
    set_state(ask, flow_run, "CANCELLING", "Cancelling")
    eventually(lambda: ask(f"flow_runs/{flow_run}")["state"]["name"] == "Cancelled", within=60)
    eventually(lambda: inbox.messages, within=60)
    time.sleep(12)
    assert [message["subject"] for message in inbox.messages] == ["Partly (Cancelled): a stand-in's run"]
    assert "Its process did not answer" in inbox.messages[0]["body"]
    assert ask(f"flow_runs/{flow_run}")["state"]["name"] == "Cancelled"
