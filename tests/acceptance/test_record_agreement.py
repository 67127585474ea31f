"""Prefect's record of 2,000 rows: each task run and each flow run agrees with the ledger, on either database."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prefect_host.own_server import OwnServer
from prefect_host.record import OPEN_STATES
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, ServiceInThread, Zygote, some_rows
from tests.acceptance.prefect_servers import NamedServer, eventually, everything, start_import
from tests.hostile import Plan, Rule
from tests.hostile.plan import Times
from tests.prefect_api import PrefectApi, api_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 2000
#: At the least: rows of one pattern stay together.
SHARDS = 4
#: Of the patterns and of the products; a pattern takes its rows along, so that about one row in fifty has no product.
SHARE = 0.007
POSTGRES = "127.0.0.1:5432"
#: How an item's last attempt ended in the ledger, and how its task run has to read.
READS = {"succeeded": "COMPLETED", "failed": "FAILED", "rejected": "FAILED", "held": "FAILED"}


@dataclass(frozen=True)
class Databases:
    """Where Prefect's server and the ledger keep what they know; None for SQLite."""

    prefect: str | None = None
    ledger: str | None = None


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """SQLite for both, or a PostgreSQL database for each, dropped afterwards."""
    if request.param == "sqlite":
        yield Databases()
        return
    names = [f"patternmill_agreement_{part}_{uuid.uuid4().hex[:8]}" for part in ("prefect", "ledger")]
    try:
        admin = psycopg.connect(
            f"postgresql://postgres@{POSTGRES}/postgres", autocommit=True, connect_timeout=3
        )
    except psycopg.Error as error:
        reason = f"no PostgreSQL on {POSTGRES} that lets `postgres` in ({type(error).__name__})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with admin:
        for name in names:
            admin.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield Databases(
                f"postgresql+asyncpg://postgres@{POSTGRES}/{names[0]}",
                f"postgresql://postgres@{POSTGRES}/{names[1]}",
            )
        finally:
            for name in names:
                admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


def test_every_task_run_agrees_with_the_ledger(databases: Databases, tmp_path: Path, zygote: Zygote) -> None:
    """2,000 rows of which some fail: one task run an item, all final, each in the ledger's state; the events too."""
    quick = Times("uniform", low=0.1, high=0.4)
    fails = tuple(Rule(f"{name}/create", "job_fails", share=SHARE) for name in ("patterns", "products"))
    with ExitStack() as stack:
        service = stack.enter_context(
            ServiceInThread(Plan(patterns=quick, products=quick, rules=fails), tmp_path / "service")
        )
        settings = {"PATTERNMILL_LEDGER_URL": databases.ledger} if databases.ledger else {}
        room = Room(tmp_path / "room", service, some_rows(ROWS), zygote, settings)
        api, named = a_server(stack, room, databases)
        running = start_import(room, PATTERNMILL_MAX_IN_FLIGHT="100", PATTERNMILL_ATTEMPTS="1", **named)
        stack.callback(running.kill)
        ended = running.wait(600)
        assert ended.code == 3, ended.output
        assert "In the Prefect UI" in ended.out, ended.output

        evidence = Evidence(room, databases.ledger)
        assert evidence.faults(all_made=False) == []
        items = items_of(evidence)
        assert_task_runs_agree(api, items)
        assert_flow_runs_agree(api, Counter(evidence.statuses))
        assert_events_agree(api, items, Counter(evidence.statuses))


def a_server(stack: ExitStack, room: Room, databases: Databases) -> tuple[PrefectApi, dict[str, str]]:
    """The server of the room's home on SQLite, held so that it stays; or one that a user runs, on PostgreSQL."""
    if databases.prefect is None:
        own = stack.enter_context(OwnServer(room.folder / room.home))
        return api_of(own), {}
    server = NamedServer(room.folder, database=databases.prefect)
    stack.callback(server.kill)
    server.start()
    server.await_ready()
    return server.api, {"PREFECT_API_URL": server.api.url}


def items_of(evidence: Evidence) -> dict[str, str]:
    """Each item that was asked for, by the name of its task run, with the state of its last attempt."""
    found: dict[str, str] = {}
    for stage, content, state in evidence.ledger(
        "SELECT i.stage, i.content, a.state FROM attempts a JOIN items i ON i.key = a.item_key ORDER BY a.attempt"
    ):
        about = json.loads(content)["prompt" if stage == "pattern" else "sku"]
        found[f"{stage} · {about}"] = state
    return found


def assert_task_runs_agree(api: PrefectApi, items: dict[str, str]) -> None:
    task_runs = list(everything(api, "task_runs"))
    assert [run["name"] for run in task_runs if run["state_type"] in OPEN_STATES] == []
    shown = Counter(run["name"] for run in task_runs)
    assert [name for name in items if shown[name] != 1] == [], "an item has no task run, or two"
    states = {
        run["name"]: run["state_type"]
        for run in task_runs
        if run["name"].startswith(("pattern ", "product "))
    }
    assert states == {name: READS[state] for name, state in items.items()}
    failed = [run for run in task_runs if run["state_type"] == "FAILED" and run["name"] in states]
    # A person who is asked about it can name the job and the request.
    assert all(re.search(r"\(job \S+, request \S+\)$", run["state"]["message"]) for run in failed)


def assert_flow_runs_agree(api: PrefectApi, statuses: Counter[str]) -> None:
    flow_runs = list(everything(api, "flow_runs"))
    (top,) = [run for run in flow_runs if run["parent_task_run_id"] is None]
    shards = [run for run in flow_runs if run["parent_task_run_id"] is not None]
    assert (top["state"]["type"], top["state"]["name"]) == ("FAILED", "CompletedWithFailures")
    assert top["state"]["message"] == (
        f"{ROWS:,} rows: {statuses['succeeded']:,} succeeded, {statuses['failed']} failed"
    )
    assert statuses["succeeded"] + statuses["failed"] == ROWS
    assert ROWS * 0.005 < statuses["failed"] < ROWS * 0.06, "the test is about a few failures"
    assert len(shards) >= SHARDS
    made = [re.fullmatch(r"(\d+) of (\d+) products", run["state"]["message"]) for run in shards]
    whole = ["COMPLETED" if found and found[1] == found[2] else "FAILED" for found in made]
    assert [run["state_type"] for run in shards] == whole
    assert sum(int(found[1]) for found in made if found) == statuses["succeeded"]
    assert sum(int(found[2]) for found in made if found) == ROWS


def assert_events_agree(api: PrefectApi, items: dict[str, str], statuses: Counter[str]) -> None:
    """The run's beginning and end once, each failed item once; the end in the ledger's numbers."""
    eventually(lambda: events_of(api, "patternmill.run.finished"), 60)
    assert len(events_of(api, "patternmill.run.started")) == 1
    (finished,) = events_of(api, "patternmill.run.finished")
    assert finished["payload"]["outcome"] == "CompletedWithFailures"
    assert finished["payload"]["rows"] == {status: count for status, count in statuses.items() if count}
    failed = Counter(
        event["resource"]["prefect.resource.name"] for event in events_of(api, "patternmill.item.failed")
    )
    assert failed == Counter(name for name, state in items.items() if READS[state] == "FAILED")


def events_of(api: PrefectApi, name: str) -> list[dict[str, Any]]:
    asked = {"filter": {"event": {"name": [name]}}, "limit": 50}
    page = api.post("events/filter", asked)
    found: list[dict[str, Any]] = page["events"]
    assert page["total"] <= len(found) or page["total"] == 0, "more than one page"
    return found
