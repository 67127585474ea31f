"""The flows on a real Prefect server: what they return, what the server shows, and stops that are passed on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect import flow, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.states import Cancelling, Paused, Running

from cli import making
from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.remake_patterns import remake_patterns
from flows.retry_failed import retry_failed
from patternmill.errors import Refusal
from patternmill.ledger.brake import pause
from patternmill.ledger.database import Database
from patternmill.request import Request, RowsFailed, Summary
from patternmill.states import Outcome
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.test_crashes import await_that
from tests.test_runs import row, sheet

ROOT = Path(__file__).parent.parent


@pytest.fixture
def double(tmp_path, monkeypatch, server):
    double = Double(Weather(latency=0.001, pattern_time=0.3, product_time=0.3))
    with serving(double) as address:
        monkeypatch.chdir(tmp_path)
        settings = {"STUDIO_URL": address, "API_KEY": KEY, "HOME": str(tmp_path / "home")}
        for name, text in settings.items():
            monkeypatch.setenv(f"PATTERNMILL_{name}", text)
        yield double


async def recorded(**tags):
    """Return the flow runs with these tags and their task runs, once the server has recorded the end of all."""
    async with get_client() as client:
        for _ in range(60):
            runs = await client.read_flow_runs(
                flow_run_filter=FlowRunFilter.model_validate({"tags": {"all_": [*tags.values()]}})
            )
            of_runs = FlowRunFilter.model_validate({"id": {"any_": [run.id for run in runs]}})
            tasks = await client.read_task_runs(flow_run_filter=of_runs, task_run_filter=TaskRunFilter())
            if tasks and all(one.state and one.state.is_final() for one in [*runs, *tasks]):
                break
            await asyncio.sleep(0.5)
        return runs, tasks


def test_parameters_of_flows_are_the_fields_of_a_request():
    rows = {"sku", "status", "code", "take"}
    fields = set(Request.model_fields) - {"verb"}
    for of_sheet in (bulk_import, catalog_refresh):
        assert set(of_sheet.parameters.properties) == fields - rows
    assert set(retry_failed.parameters.properties) == fields - {"file", "mapping", "take"}
    assert set(remake_patterns.parameters.properties) == fields - {"file", "mapping"}


def test_an_awaited_flow_returns_its_summary(double):
    sheet(row(1), row(2), name="returns.csv")
    summary = asyncio.run(bulk_import(file="returns.csv"))
    assert isinstance(summary, Summary)
    assert (summary.outcome, summary.counts) == (Outcome.COMPLETED, {"succeeded": 2})
    assert summary.catalog == "returns"
    assert (Path(summary.folder) / "results.csv").exists()


def test_a_flow_with_failed_rows_raises_what_came_of_it_and_only_failures_are_red(double):
    sheet(row(1), row(2, "herons [unsafe]"), row(3, size="huge"), name="failures.csv")
    with pytest.raises(RowsFailed) as raised:
        asyncio.run(bulk_import(file="failures.csv"))
    assert raised.value.summary.counts == {"succeeded": 1, "failed": 1, "refused": 1}
    (run,), tasks = asyncio.run(recorded(tag="production:failures"))
    assert (run.state.name, run.state.type.value) == ("CompletedWithFailures", "FAILED")
    assert {"production", "failures"} <= set(run.tags)
    by_name = {one.name: one for one in tasks}
    assert [one.name for one in tasks if one.state.is_failed()] == ["pattern herons [unsafe]"]
    product, pattern = by_name["product A-1"], by_name["pattern herons 1"]
    assert pattern.id in {one.id for inputs in product.task_inputs.values() for one in inputs}
    assert product.start_time >= pattern.end_time


def test_a_refusal_is_a_state_with_a_message(double):
    state = asyncio.run(bulk_import(file="nowhere.csv", return_state=True))
    assert (state.name, state.type.value) == ("Refused", "FAILED")
    assert "nowhere.csv" in state.message
    assert "Traceback" not in state.message


def test_flows_in_a_gather_and_as_subflows(double):
    for name in ("one", "two"):
        sheet(row(1), row(2), name=f"{name}.csv")

    @flow(retries=0)
    async def parent():
        return await asyncio.gather(*(bulk_import(file=f"{name}.csv") for name in ("one", "two")))

    assert [summary.counts for summary in asyncio.run(parent())] == [{"succeeded": 2}] * 2
    assert len(double.jobs) == 4


PARENT = """
import asyncio, sys
from prefect import flow
from cli import making
from flows.bulk_import import bulk_import

@flow(retries=0)
async def parent():
    await bulk_import(file="first.csv")
    await bulk_import(file="second.csv")

asyncio.run(parent())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_a_stop_during_the_first_import_is_passed_on_to_its_parent(double, number):
    double.weather = Weather(latency=0.001, pattern_time=3.0, product_time=3.0, spread=0.01)
    for name in ("first", "second"):
        sheet(*(row(at, f"{name} {at}") for at in range(30)), name=f"{name}.csv")
    Path("parent.py").write_text(PARENT)
    parent = subprocess.Popen([sys.executable, "parent.py"], env={**os.environ, "PYTHONPATH": str(ROOT)})
    await_that(lambda: double.jobs)
    parent.send_signal(number)
    time.sleep(0.5)
    stopped_at = double._clock()
    assert parent.wait(60) != 0
    assert [job for job in double.jobs.values() if job.at > stopped_at] == []
    assert not Path("results/second").exists()
    assert list(Path("results/first").glob("*/results.csv"))


def test_the_runs_of_a_killed_process_are_closed_by_the_next_run(double):
    double.weather = Weather(latency=0.001, pattern_time=2.0, product_time=2.0, spread=0.01)
    sheet(*(row(at) for at in range(4)), name="killed.csv")
    script = "import asyncio; from flows.bulk_import import bulk_import; asyncio.run(bulk_import(file='killed.csv'))"
    killed = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)})
    await_that(lambda: len(double.jobs) == 4)
    time.sleep(1.0)  # its events are on the way to the server
    killed.kill()
    killed.wait()
    summary = asyncio.run(bulk_import(file="killed.csv"))
    assert summary.counts == {"succeeded": 4}
    assert len(double.jobs) == 8
    runs, tasks = asyncio.run(recorded(tag="production:killed"))
    assert sorted(run.state.type.value for run in runs) == ["COMPLETED", "CRASHED"]
    assert all(one.state.is_final() for one in tasks)


def met(double, name, what):
    """Do something about the flow run of an import once it buys; return its end, here and on the server."""

    async def case():
        running = asyncio.create_task(bulk_import(file=f"{name}.csv", return_state=True))
        while not double.jobs:
            await asyncio.sleep(0.1)
        async with get_client() as client:
            tagged = FlowRunFilter.model_validate({"tags": {"all_": [f"production:{name}"]}})
            (mine,) = await client.read_flow_runs(flow_run_filter=tagged)
            await what(client, mine.id)
            await asyncio.wait({running})
            found = await client.read_flow_runs(flow_run_filter=tagged)
        return running.exception() or running.result(), found[0].state if found else None

    return asyncio.run(case())


def test_a_run_that_is_cancelled_on_the_screen_begins_nothing_more(double):
    double.weather = Weather(latency=0.001, pattern_time=12.0, product_time=3.0, spread=0.01)
    sheet(*(row(at) for at in range(20)), name="cancelled.csv")

    state, on_server = met(
        double, "cancelled", lambda client, run: client.set_flow_run_state(run, Cancelling())
    )
    assert (state.name, on_server.type.value) == ("Cancelled", "CANCELLED")
    assert [job.stage for job in double.jobs.values()] == ["pattern"] * 4


def test_a_flow_that_was_paused_raises_what_came_of_it(double):
    sheet(row(1), name="paused.csv")
    Path("home").mkdir()
    database = Database("home/ledger.sqlite3")
    asyncio.run(pause(database, "production", "wrong prompts"))
    database.disconnect()
    with pytest.raises(RowsFailed) as raised:
        asyncio.run(bulk_import(file="paused.csv"))
    assert raised.value.summary.outcome is Outcome.PAUSED
    assert double.jobs == {}


def test_a_run_that_is_paused_on_the_screen_buys_nothing_more(double):
    double.weather = Weather(latency=0.001, pattern_time=12.0, product_time=1.0, spread=0.01)
    sheet(*(row(at) for at in range(20)), name="held.csv")

    paused = Paused(timeout_seconds=600)
    state, _ = met(double, "held", lambda client, run: client.set_flow_run_state(run, paused, force=True))
    assert state.name == "Paused"
    assert [job.stage for job in double.jobs.values()] == ["pattern"] * 4


@pytest.mark.soak
def test_a_run_whose_flow_run_is_deleted_on_the_screen_makes_its_rows_and_writes_its_results(double):
    double.weather = Weather(latency=0.001, pattern_time=7.0, product_time=0.3, spread=0.01)
    sheet(*(row(at) for at in range(3)), name="deleted.csv")

    met(double, "deleted", lambda client, run: client.delete_flow_run(run))
    assert json.loads(Path("results/deleted/latest/manifest.json").read_text())["outcome"] == "Completed"
    assert len(double.jobs) == 6


def test_a_fault_of_ours_is_not_told_as_a_lost_server(double, monkeypatch):
    def fails(request, maker):
        raise ValueError("a fault")

    monkeypatch.setattr("tasks.make.carry_out", fails)
    with pytest.raises(Refusal, match="encountered an exception: ValueError: a fault"):
        asyncio.run(making._shown(Request(file="spring.csv"), None))


@pytest.mark.soak
def test_what_the_server_missed_of_an_ended_run_is_shown_by_the_next_one_as_the_ledger_has_it(double):
    sheet(row(1), row(2, "missed [unsafe]"), name="missed.csv")
    asyncio.run(bulk_import(file="missed.csv", return_state=True))

    async def forget():
        (run,), tasks = await recorded(tag="production:missed")
        async with get_client() as client:
            await client.set_flow_run_state(run.id, Running(), force=True)
            for one in tasks:
                await client.set_task_run_state(one.id, Running(), force=True)
        return run

    first = asyncio.run(forget())
    sheet(row(1), row(2, "missed [unsafe]"), row(3), name="missed.csv")
    asyncio.run(bulk_import(file="missed.csv", return_state=True))

    async def shown():
        async with get_client() as client:
            this = FlowRunFilter.model_validate({"id": {"any_": [first.id]}})
            tasks = await client.read_task_runs(flow_run_filter=this)
            return (await client.read_flow_run(first.id)).state, {one.name: one.state for one in tasks}

    state, tasks = asyncio.run(shown())
    assert (state.name, state.type.value) == ("CompletedWithFailures", "FAILED")
    assert "1 succeeded, 1 failed" in state.message
    names = {name: one.type.value for name, one in tasks.items() if name.startswith(("pattern", "product"))}
    well = dict.fromkeys(("pattern herons 1", "product A-1"), "COMPLETED")
    assert names == well | {"pattern missed [unsafe]": "FAILED"}
    assert tasks["product A-1"].message.startswith("pro")
    assert {tasks[name].name for name in ("check sheet", "finish")} == {"Completed"}
