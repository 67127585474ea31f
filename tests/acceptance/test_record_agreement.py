"""Prefect's record of a run: every task run is final and agrees with the ledger to the second, on any server."""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from prefect_host.own_server import OwnServer
from tests.acceptance.agreement import ITEM_TIMES, Span, disagreements, item_times
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, some_rows
from tests.acceptance.prefect_servers import NamedServer, eventually, everything, start_import
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.plan import Times
from tests.prefect_api import OPEN_STATES, PrefectApi, api_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

#: Of the patterns and of the products; a pattern takes its rows along.
SHARE = 0.02
POSTGRES = "127.0.0.1:5432"
#: How an item's last attempt ended in the ledger, and how its task run has to read.
READS = {"succeeded": "COMPLETED", "failed": "FAILED", "rejected": "FAILED", "held": "FAILED"}


@dataclass(frozen=True)
class Databases:
    """Where a user's own server and the ledger keep what they know; None for SQLite."""

    prefect: str | None = None
    ledger: str | None = None


@pytest.fixture(params=["own", "stock", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which server shows the run: the home's own, or a user's, on SQLite or PostgreSQL."""
    return str(request.param)


@pytest.fixture
def databases(kind: str) -> Iterator[Databases]:
    """SQLite for both, or a PostgreSQL database for each, dropped afterwards."""
    if kind != "postgresql":
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


@pytest.mark.parametrize("rows", [24, 1200])
def test_every_task_run_agrees_with_the_ledger(
    rows: int, kind: str, databases: Databases, tmp_path: Path, zygote: Zygote
) -> None:
    """Rows of which some fail: one task run an item, or above 500 items one a group; all final, with true states."""
    times = Times("uniform", low=1.0, high=4.0)
    fails = tuple(Rule(f"{name}/create", "job_fails", share=SHARE) for name in ("patterns", "products"))
    with ExitStack() as stack:
        service = stack.enter_context(
            Hostile(Plan(patterns=times, products=times, rules=fails), tmp_path / "service")
        )
        settings = {"PATTERNMILL_LEDGER_URL": databases.ledger} if databases.ledger else {}
        room = Room(tmp_path / "room", service, some_rows(rows), zygote, settings)
        api, named = a_server(stack, room, kind, databases)
        running = start_import(room, PATTERNMILL_MAX_IN_FLIGHT="100", PATTERNMILL_ATTEMPTS="1", **named)
        stack.callback(running.kill)
        ended = running.wait(600)
        assert ended.code == 3, ended.output
        assert "In the Prefect UI" in ended.out, ended.output

        evidence = Evidence(room, databases.ledger)
        assert evidence.faults(all_made=False) == []
        # A user's own server has been sent everything by now, and records it at its own pace.
        eventually(lambda: not open_task_runs(api), 0 if kind == "own" else 60)
        task_runs = list(everything(api, "task_runs"))
        statuses = Counter(evidence.statuses)
        assert_flow_run_agrees(api, statuses)
        written = item_times(evidence.ledger(ITEM_TIMES))
        if rows > 500:
            assert_groups_agree(task_runs, statuses)
            groups = groups_by_sku(api)
            assert set(groups) == {row.sku for row in room.rows}
            written = group_times(written, groups, {row.sku: row.pattern_text for row in room.rows})
        else:
            assert_items_agree(task_runs, items_of(evidence))
        assert disagreements(task_runs, written) == []


def a_server(
    stack: ExitStack, room: Room, kind: str, databases: Databases
) -> tuple[PrefectApi, dict[str, str]]:
    """The server of the room's home, in a fresh folder, held so that it stays; or one that a user runs."""
    if kind == "own":
        own = stack.enter_context(OwnServer(room.folder / room.home))
        return api_of(own), {}
    server = NamedServer(room.folder, database=databases.prefect)
    stack.callback(server.kill)
    server.start()
    server.await_ready()
    # What it asks its database for the first time takes longest: longer than a run waits on a busy machine.
    assert not list(everything(server.api, "task_runs"))
    return server.api, {"PREFECT_API_URL": server.api.url}


def open_task_runs(api: PrefectApi) -> list[str]:
    return [run["name"] for run in everything(api, "task_runs") if run["state_type"] in OPEN_STATES]


def items_of(evidence: Evidence) -> dict[str, str]:
    """Each item that was asked for, by the name of its task run, with the state of its last attempt."""
    found: dict[str, str] = {}
    for stage, content, sku, state in evidence.ledger(
        "SELECT i.stage, i.content, i.sku, a.state FROM attempts a "
        "JOIN items i ON i.key = a.item_key ORDER BY a.attempt"
    ):
        about = json.loads(content)["prompt"] if stage == "pattern" else sku
        found[f"{stage} · {about}"] = state
    return found


def assert_items_agree(task_runs: list[dict[str, Any]], items: dict[str, str]) -> None:
    shown = Counter(run["name"] for run in task_runs)
    assert [name for name in items if shown[name] != 1] == [], "an item has no task run, or two"
    states = {run["name"]: run["state_type"] for run in task_runs if run["name"] in items}
    assert states == {name: READS[state] for name, state in items.items()}
    failed = [run for run in task_runs if run["state_type"] == "FAILED"]
    # A person who is asked about it can name the job and the request.
    assert all(re.search(r"\(job \S+, request \S+\)$", run["state"]["message"]) for run in failed)


def assert_groups_agree(task_runs: list[dict[str, Any]], statuses: Counter[str]) -> None:
    groups = [run for run in task_runs if run["name"].startswith(("row ", "rows ", "20 rows "))]
    assert len(groups) > 50
    assert not [run["name"] for run in task_runs if run["name"].startswith(("pattern ·", "product ·"))]
    made = [re.match(r"(\d+) of (\d+) products", run["state"]["message"]) for run in groups]
    whole = ["COMPLETED" if found and found[1] == found[2] else "FAILED" for found in made]
    assert [run["state_type"] for run in groups] == whole
    assert sum(int(found[1]) for found in made if found) == statuses["succeeded"]
    assert sum(int(found[2]) for found in made if found) == statuses.total()


def groups_by_sku(api: PrefectApi) -> dict[str, str]:
    """A table says of each sku in which task run it was driven."""
    (table,) = [one for one in everything(api, "artifacts") if str(one["key"]).endswith("-groups")]
    return {line["sku"]: line["group"] for line in json.loads(table["data"])}


def group_times(
    items: Mapping[str, Span], groups: Mapping[str, str], prompts: Mapping[str, str]
) -> dict[str, Span]:
    """The first and last write of each group: of all that its rows are made of."""
    found: dict[str, Span] = {}
    for sku, group in groups.items():
        for name in (f"pattern · {prompts[sku]}", f"product · {sku}"):
            if name in items:
                first, last = found.get(group, (math.inf, 0.0))
                found[group] = min(first, items[name][0]), max(last, items[name][1])
    return found


def assert_flow_run_agrees(api: PrefectApi, statuses: Counter[str]) -> None:
    (run,) = everything(api, "flow_runs")
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "CompletedWithFailures")
    counts = f"{statuses['succeeded']:,} succeeded, {statuses['failed']} failed"
    # Then comes a cause.
    assert run["state"]["message"].startswith(f"{statuses.total():,} rows: {counts}. ")
    assert 0 < statuses["failed"] < statuses.total() / 4, "the test is about a few failures"
