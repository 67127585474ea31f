"""deployments/automations.yaml on a real Prefect server: what a person should look at sends one message."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prefect import get_client
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.states import Completed, Crashed, Running, Scheduled, Suspended

from flows.bulk_import import bulk_import
from patternmill.request import RowsFailed
from tests.test_flows import double  # noqa: F401
from tests.test_runs import row, sheet

_STATE = {"type": True, "name": True, "state_details": {"scheduled_time"}}
pytestmark = pytest.mark.soak
FILE = Path(__file__).parent.parent / "deployments" / "automations.yaml"


@pytest.fixture(scope="module")
def inbox(server, tmp_path_factory):
    """Messages that the automations of the file have sent; what waits for minutes or a day there waits for seconds."""
    messages = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{listening.server_port}"
        about = {"subject": "{{subject}}", "body": "{{body}}"}
        block = CustomWebhookNotificationBlock(name="chat", url=url, json_data=about)
        text = FILE.read_text().replace("BLOCK-ID", str(block.save("chat", overwrite=True)))
        for long in ("600", "93600", "120"):
            text = text.replace(f"within: {long}\n", "within: 10\n")
        (file := tmp_path_factory.mktemp("automations") / "automations.yaml").write_text(text)
        create = [sys.executable, "-m", "prefect", "automation", "create", "--from-file", str(file)]
        done = subprocess.run(create, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield messages
        listening.shutdown()


async def made_run(*tags, state=None, deployment=None):
    """Make a run that no process drives."""
    async with get_client() as client:
        if deployment:
            flow = await client.create_flow_from_name("stand-in")
            number = await client.create_deployment(flow, deployment, tags=list(tags))
            return (await client.create_flow_run_from_deployment(number, state=state)).id
        flow = await client.create_flow_from_name("stand-in")
        about = {"flow_id": str(flow), "tags": tags, "name": "a run"}
        about["state"] = state.model_dump(mode="json", include=_STATE)
        return (await client.request("POST", "/flow_runs/", json=about)).json()["id"]


async def moved(run, state):
    async with get_client() as client:
        await client.set_flow_run_state(run, state, force=True)


def crashes():
    asyncio.run(moved(asyncio.run(made_run("patternmill", state=Running())), Crashed()))


def waits():
    asyncio.run(moved(asyncio.run(made_run("patternmill", state=Running())), Suspended(timeout_seconds=900)))


def is_late():
    from datetime import UTC, datetime, timedelta

    asyncio.run(
        made_run("patternmill", state=Scheduled(scheduled_time=datetime.now(UTC) - timedelta(minutes=2)))
    )


def does_not_come():
    run = asyncio.run(made_run("patternmill-scheduled", state=Running(), deployment="spring (staging)"))
    asyncio.run(moved(run, Completed()))


def no_worker():
    async def once():
        async with get_client() as client:
            for pool in ("patternmill", "looms"):
                await client.create_work_pool(WorkPoolCreate(name=pool, type="process", base_job_template={}))
                await client.send_worker_heartbeat(pool, "one", heartbeat_interval_seconds=1)

    asyncio.run(once())


def of_others():
    asyncio.run(moved(asyncio.run(made_run(state=Running())), Crashed()))


@pytest.mark.parametrize(
    ("happens", "subject"),
    [
        (crashes, "Crashed; the next run of its catalog goes on with it"), (waits, "A plan waits for a person"),
        (is_late, "Due for ten minutes, and no worker has begun it"),
        (does_not_come, "Not refreshed for 26 hours: spring (staging)"), (no_worker, "No worker is online"),
        (of_others, ""),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
def test_what_a_person_should_know_sends_one_message(inbox, happens, subject):
    inbox.clear()
    happens()
    until = time.monotonic() + (150 if subject else 10)
    while not inbox and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(3.0)
    assert [one["subject"] for one in inbox] == ([subject] if subject else [])


def test_the_end_of_a_run_tells_its_counts_and_its_money(inbox, double, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PATTERNMILL_PRICE_PATTERN", "1240.00")
    monkeypatch.setenv("PATTERNMILL_CURRENCY", "EUR")
    inbox.clear()
    sheet(row(1), name="well.csv")
    asyncio.run(bulk_import(file="well.csv", max_items=9))
    sheet(row(1), row(2, "herons [unsafe]"), name="told.csv")
    with pytest.raises(RowsFailed):
        asyncio.run(bulk_import(file="told.csv", max_items=9))
    until = time.monotonic() + 20
    while not inbox and time.monotonic() < until:
        time.sleep(0.2)
    (message,) = inbox
    assert message["subject"] == "CompletedWithFailures: told (production)"
    assert message["body"].splitlines()[0] == "1 succeeded, 1 failed, spent 1240.00 EUR"
    assert "content_refused: " in message["body"]
