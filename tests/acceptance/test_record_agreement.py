"""Prefect's record of a run of many rows: each group's task run is final and agrees with the ledger.

That of a run of few rows, with a task run for each item, is in test_import.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from prefect_host.own_server import OwnServer
from tests.acceptance.agreement import ITEM_TIMES, Span, disagreements, item_times
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, some_rows
from tests.acceptance.prefect_servers import NamedServer, eventually, everything, start_import
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.plan import Times
from tests.prefect_api import OPEN_STATES, api_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 1200
#: Of the patterns and of the products; a pattern takes its rows along.
FAILS = tuple(Rule(f"{name}/create", "job_fails", share=0.02) for name in ("patterns", "products"))
TIMES = Times("uniform", low=1.0, high=4.0)


@pytest.mark.parametrize("is_own", [True, False])
def test_every_group_agrees_with_the_ledger(is_own: bool, tmp_path: Path, zygote: Zygote) -> None:
    """On the home's own server, held so that it stays; or on one that a user runs."""
    with ExitStack() as stack:
        plan = Plan(patterns=TIMES, products=TIMES, rules=FAILS)
        service = stack.enter_context(Hostile(plan, tmp_path / "service"))
        room = Room(tmp_path / "room", service, some_rows(ROWS), zygote)
        settings = {
            "PATTERNMILL_MAX_IN_FLIGHT": "100",
            "PATTERNMILL_ATTEMPTS": "1",
            "PATTERNMILL_JOB_TIMEOUT": "PT5M",
        }
        if is_own:
            api = api_of(stack.enter_context(OwnServer(room.folder / room.home)))
        else:
            server = NamedServer(room.folder)
            stack.callback(server.kill)
            server.start()
            server.await_ready()
            api = server.api
            # What it asks its database for the first time takes longest: longer than a run waits on a busy machine.
            assert not list(everything(api, "task_runs"))
            settings["PREFECT_API_URL"] = api.url
        running = start_import(room, **settings)
        stack.callback(running.kill)
        ended = running.wait(600)
        assert ended.code == 3 and "In the Prefect UI" in ended.out, ended.output
        evidence = Evidence(room)
        assert evidence.faults(all_made=False) == []

        def open_task_runs() -> list[str]:
            return [run["name"] for run in everything(api, "task_runs") if run["state_type"] in OPEN_STATES]

        # A user's own server has been sent everything by now, and records it at its own pace.
        eventually(lambda: not open_task_runs(), 0 if is_own else 60)
        task_runs = list(everything(api, "task_runs"))
        (run,) = everything(api, "flow_runs")
        (table,) = [one for one in everything(api, "artifacts") if str(one["key"]).endswith("-groups")]
    statuses = Counter(evidence.statuses)
    counts = f"{statuses['succeeded']:,} succeeded, {statuses['failed']} failed"
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "CompletedWithFailures")
    assert run["state"]["message"].startswith(f"{ROWS:,} rows: {counts}. ")
    assert 0 < statuses["failed"] < ROWS / 4, "the test is about a few failures"

    groups = [run for run in task_runs if run["name"].startswith(("row ", "rows ", "20 rows "))]
    assert len(groups) > 50
    made = [re.match(r"(\d+) of (\d+) products", run["state"]["message"]) for run in groups]
    numbers = [(int(match[1]), int(match[2])) for match in made if match]
    assert [run["state_type"] == "COMPLETED" for run in groups] == [one == of for one, of in numbers]
    assert [sum(column) for column in zip(*numbers, strict=True)] == [statuses["succeeded"], ROWS]

    group_of = {line["sku"]: line["group"] for line in json.loads(table["data"])}
    assert set(group_of) == {row.sku for row in room.rows}
    written, items = dict[str, Span](), item_times(evidence.ledger(ITEM_TIMES))
    for row in room.rows:
        group = group_of[row.sku]
        for name in (f"pattern · {row.pattern_text}", f"product · {row.sku}"):
            if name in items:
                (first, last), (begun, done) = items[name], written.get(group, (math.inf, 0.0))
                written[group] = min(first, begun), max(last, done)
    assert disagreements(task_runs, written) == []
