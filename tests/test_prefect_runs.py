"""The real flows on a real Prefect server and a real worker: what its buttons do, and what cannot disturb them."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prefect import get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.states import Cancelling, Scheduled

import tasks.make
from cli.worker import DrainingWorker
from flows.bulk_import import bulk_import
from patternmill.ledger.database import Database
from tasks.deployments import POOL, register_deployments
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.test_approval import form, read, resume
from tests.test_flows import double, recorded  # noqa: F401
from tests.test_prefect_server import servers_of
from tests.test_runs import made, row, sheet
from tests.test_secrets import called as run_process
from tests.test_secrets import of_strangers
from tests.test_up import begin, comes_true, until_line
from tests.test_up import serving as started

ROOT = Path(__file__).parent.parent
SLOW = Weather(latency=0.001, pattern_time=40.0, product_time=1.0, spread=0.01)


def called(*arguments, code="from cli.main import main; main()", **env):
    return run_process(*arguments, code=code, env={**os.environ, "PYTHONPATH": str(ROOT), **env})


async def until(condition, seconds=90.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.1)
    assert condition()


async def cancel(run):
    async with get_client() as client:
        await client.set_flow_run_state(run, Cancelling())


async def shown_with(double, act, name, jobs=4):  # noqa: F811
    """Import a sheet, act once there are some jobs, and return the states of the items' task runs."""
    sheet(*(row(number, f"{name} {number}") for number in range(jobs)), name=f"{name}.csv")
    running = asyncio.create_task(bulk_import(file=f"{name}.csv", return_state=True))
    await until(lambda: len(double.jobs) == jobs)
    await asyncio.sleep(1.0)
    await act()
    state = await running
    _, found = await recorded(tag=f"production:{name}")
    items = [one for one in found if one.name.startswith(("pattern ", "product "))]
    assert not [one.name for one in found if one.state.type.value in ("FAILED", "CRASHED")]
    return state, {(one.name.split()[0], one.state.type.value, one.state.name) for one in items}


def test_a_job_that_goes_on_is_waiting_and_grey(double, monkeypatch):  # noqa: F811
    monkeypatch.setattr("tasks.make._LOOKING", 0.2)
    monkeypatch.setattr("patternmill.halt.DRAIN", 1.0)
    double.weather = SLOW

    async def stop():
        async with get_client() as client:
            (mine,) = [run for run in await client.read_flow_runs() if "production:waiting" in run.tags]
        await cancel(mine.id)

    state, items = asyncio.run(shown_with(double, stop, "waiting"))
    assert state.name == "Cancelled"
    assert items == {("pattern", "CANCELLED", "Waiting")}


def test_an_item_that_was_not_begun_is_not_started_and_grey(double, monkeypatch):  # noqa: F811
    """The intents of the products meet the brake before the run's beat does."""
    monkeypatch.setattr("patternmill.ledger.leases.Lease.keep", lambda *_: asyncio.sleep(600))
    double.weather = Weather(latency=0.001, pattern_time=9.0, product_time=1.0, spread=0.01)

    async def pause():
        insert = "INSERT INTO brakes (scope, since, person, reason) VALUES ('production/braked', 0, 'me', '')"
        Database("home/ledger.sqlite3").change(lambda connection: connection.execute(insert))

    state, items = asyncio.run(shown_with(double, pause, "braked"))
    assert state.name == "Paused"
    assert items == {("pattern", "COMPLETED", "Completed"), ("product", "CANCELLED", "NotStarted")}


@pytest.mark.parametrize("as_groups", [False, True], ids=["items", "groups"])
def test_what_prefect_refuses_to_begin_is_made_unshown_and_what_it_loses_is_in_the_ledger(
    double, monkeypatch, as_groups  # noqa: F811
):  # fmt: skip
    name, real = f"refused-{as_groups}", tasks.make.make_group if as_groups else tasks.make.make_item
    refusals = []

    async def refused(work, **about):
        refusals.append(work.label)
        if len(refusals) % 2:
            raise RuntimeError("The server did not accept the state of this task run.")
        await real(work, **about)
        raise RuntimeError("The end of this task run was lost.")

    monkeypatch.setattr(tasks.make, "make_group" if as_groups else "make_item", refused)
    if as_groups:
        monkeypatch.setattr("patternmill.fanout.MOST_TASK_RUNS", 2)
        monkeypatch.setattr("patternmill.fanout.LEAST_ROWS", 2)
    sheet(*(row(number, f"{name} {number}") for number in range(6)), name=f"{name}.csv")
    summary = asyncio.run(bulk_import(file=f"{name}.csv"))
    assert summary.counts == {"succeeded": 6}
    assert made(double) == (6, 6)
    assert len(refusals) == (2 if as_groups else 12)


def test_nothing_to_make_needs_no_server(double, monkeypatch):  # noqa: F811
    sheet(row(1), row(2))
    assert called("import", "spring.csv", PREFECT_API_URL="http://127.0.0.1:9/api").returncode == 0
    monkeypatch.delenv("PREFECT_API_URL")
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    code = (
        "import sys; from cli.main import run; code = run(); print('prefect' in sys.modules); sys.exit(code)"
    )
    for verb in ("import", "refresh"):
        again = called(verb, "spring.csv", code=code, PREFECT_HOME="none")
        assert again.returncode == 0, again.stderr
        assert "Completed: 2 succeeded" in again.stdout
        assert again.stdout.splitlines()[-1] == "False"
    assert not Path("home/prefect").exists()


RETRYING = """
import asyncio
from prefect import flow, task
from flows.bulk_import import bulk_import

@flow
async def plain(): ...

@task
async def simple(): ...

print(plain.retries, simple.retries)
asyncio.run(bulk_import(file="retried.csv", return_state=True))
"""


def test_default_retries_of_prefect_change_nothing(double, server):  # noqa: F811
    sheet(row(1), row(2, "retried [unsafe]"), name="retried.csv")
    defaults = {"PREFECT_FLOWS_DEFAULT_RETRIES": "2", "PREFECT_TASKS_DEFAULT_RETRIES": "2"}
    done = called(code=RETRYING, PREFECT_API_URL=server.address, **defaults)
    assert done.stdout.startswith("2 2"), done.stderr
    (run,), items = asyncio.run(recorded(tag="production:retried"))
    assert (run.run_count, run.state.name) == (1, "CompletedWithFailures")
    assert {one.run_count for one in items} == {1}
    assert made(double) == (2, 1)


@pytest.fixture
def working(double, tmp_path, monkeypatch):  # noqa: F811
    """The double, with deployments of the real flows that run in a folder of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "100")
    asyncio.run(register_deployments("production"))
    return double


async def fire(name, **parameters):
    """Begin a run of the deployment as the UI does."""
    async with get_client() as client:
        deployment = await client.read_deployment_by_name("bulk-import/bulk-import")
        about = {"file": f"{name}.csv", **parameters}
        return (await client.create_flow_run_from_deployment(deployment.id, parameters=about)).id


async def carried_out(run, act=None):
    """Carry out what is due until it waits or ends, act meanwhile, and return the run and its state's name."""
    worker = DrainingWorker(work_pool_name=POOL)
    working = asyncio.create_task(worker.start(run_once=True, printer=lambda text: None))
    try:
        if act is not None:
            await act(worker)
        await working
    finally:
        worker.kill()
    flow_run = await read(run)
    return flow_run, flow_run.state_name


def test_a_large_plan_suspends_a_second_firing_ends_and_an_answer_goes_on_to_products(working, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "3")
    sheet(*(row(number, f"asked {number}") for number in range(3)), name="asked.csv")

    async def case():
        first = await fire("asked")
        assert (await carried_out(first))[1] == "Suspended"
        shown = await form(first)
        assert "6 items" in shown["text"]
        assert shown["schema"]["properties"]["max_items"]["default"] == 6
        assert (await carried_out(await fire("asked")))[1] == "SkippedOverlap"
        assert not working.jobs
        assert not Path("results").exists()
        assert await resume(first, {"max_items": 6}) == "ACCEPT"
        run, name = await carried_out(first)
        assert name == "Completed", run.state.message
        assert made(working) == (3, 3)
        assert list(Path("results/asked").glob("*/results.csv"))

    asyncio.run(case())


@pytest.mark.soak
def test_a_question_that_gets_no_answer_or_is_about_another_plan_buys_nothing(working, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "3")
    rows = [row(number, f"unanswered {number}") for number in range(4)]
    sheet(*rows[:3], name="unanswered.csv")

    async def case():
        run = await fire("unanswered")
        await carried_out(run)
        sheet(*rows, name="unanswered.csv")
        assert await resume(run, {"max_items": 6}) == "ACCEPT"
        assert (await carried_out(run))[1] == "Suspended"
        assert "8 items" in (await form(run))["text"]
        assert await resume(run, None) == "ACCEPT"
        ended, name = await carried_out(run)
        assert name == "Refused", ended.state.message
        assert not working.jobs

    asyncio.run(case())


def since(double, moment):  # noqa: F811
    return [job for job in double.jobs.values() if job.at > moment]


@pytest.mark.parametrize(
    ("how", "states"),
    [("cancel", {"CANCELLED"}), pytest.param("sigterm", {"CANCELLED", "CRASHED"}, marks=pytest.mark.soak)],
)
def test_a_workers_run_that_is_stopped_begins_nothing_more_and_writes_its_results(working, how, states):
    working.weather, name = SLOW, f"stopped-{how}"
    sheet(*(row(number, f"{name} {number}") for number in range(20)), name=f"{name}.csv")

    async def case():
        run, stopped = await fire(name), []

        async def stop(worker):
            await until(lambda: len(working.jobs) == 4)
            await asyncio.sleep(1.0)
            if how == "cancel":
                await cancel(run)
            else:
                os.kill(worker._processes[run], signal.SIGTERM)
            await asyncio.sleep(6.0)  # until the run has looked
            stopped.append(time.time())

        ended, _ = await carried_out(run, stop)
        assert ended.state.type.value in states
        assert since(working, stopped[0]) == []
        (results,) = Path(f"results/{name}").glob("2*/results.csv")
        assert results.read_text("utf-8-sig").count("not_started") == 16
        manifest = json.loads((results.parent / "manifest.json").read_text())
        assert manifest["outcome"] == "Cancelled"

    asyncio.run(case())


def suspended_on_the_screen():
    """Return what the button Pause of Prefect's pages sets."""
    until = (datetime.now(UTC) + timedelta(seconds=300)).isoformat()
    return {
        "type": "PAUSED",
        "name": "Suspended",
        "state_details": {"pause_timeout": until, "pause_reschedule": True},
    }


@pytest.mark.soak
def test_a_workers_run_that_is_suspended_writes_its_results_and_goes_on_when_it_is_resumed(
    working, monkeypatch
):
    working.weather = Weather(latency=0.001, pattern_time=12.0, product_time=0.5, spread=0.01)
    sheet(*(row(number, f"suspended {number}") for number in range(10)), name="suspended.csv")

    async def case():
        run = await fire("suspended")

        async def suspend(worker):
            await until(lambda: len(working.jobs) == 4)
            await asyncio.sleep(1.0)
            async with get_client() as client:
                body = {"state": suspended_on_the_screen(), "force": True}
                await client.request("POST", f"/flow_runs/{run}/set_state", json=body)

        ended, name = await carried_out(run, suspend)
        async with get_client() as client:
            for one in await client.read_logs(limit=200):
                print("LOG", one.message)
        assert name == "Suspended", ended.state.message
        assert [job.stage for job in working.jobs.values()] == ["pattern"] * 4
        manifest = json.loads(Path("results/suspended/latest/manifest.json").read_text())
        assert manifest["outcome"] == "Paused"
        working.weather = Weather(latency=0.001, pattern_time=0.3, product_time=0.3)
        assert await resume(run, None) == "ACCEPT"
        ended, name = await carried_out(run)
        assert name == "Completed", ended.state.message
        assert made(working) == (10, 10)
        _, shown = await recorded(tag="production:suspended")
        assert not [one.name for one in shown if not one.state.is_final() or one.state.is_failed()]

    asyncio.run(case())


@pytest.mark.parametrize(
    "is_cancelled",
    [False, pytest.param(True, marks=pytest.mark.soak)],
    ids=["restarted", "cancelled meanwhile"],
)
def test_a_rolling_restart_of_workers_loses_no_run_and_begins_none_that_was_cancelled(
    working, monkeypatch, is_cancelled
):
    monkeypatch.setenv("PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR", "reschedule")
    working.weather, name = SLOW, f"rolling-{is_cancelled}"
    sheet(*(row(number, f"{name} {number}") for number in range(10)), name=f"{name}.csv")

    async def case():
        run = await fire(name)

        async def restart(worker):
            await until(lambda: len(working.jobs) == 4)
            await asyncio.sleep(1.0)
            if is_cancelled:
                await cancel(run)
            for job in working.jobs.values():
                job.ends_at = min(job.ends_at, time.time() + 3.0)
            await worker.drain()

        _, name_of_state = await carried_out(run, restart)
        assert len(working.jobs) == 4
        if is_cancelled:
            assert name_of_state in ("Cancelled", "Cancelling")
            return
        assert name_of_state == "AwaitingRetry"
        working.weather = Weather(latency=0.001, pattern_time=0.3, product_time=0.3)
        ended, name_of_state = await carried_out(run)
        assert name_of_state == "Completed", ended.state.message
        assert (made(working), ended.run_count) == ((10, 10), 2)

    asyncio.run(case())


def test_two_firings_at_once_make_each_thing_once_and_the_second_says_so(working):
    working.weather = Weather(latency=0.001, pattern_time=8.0, product_time=0.3, spread=0.01)
    sheet(*(row(number, f"twice {number}") for number in range(3)), name="twice.csv")

    async def case():
        runs = [await fire("twice"), await fire("twice")]
        await carried_out(runs[0])
        states = sorted([(await read(run)).state_name for run in runs])
        assert states == ["Completed", "SkippedOverlap"]
        assert made(working) == (3, 3)

    asyncio.run(case())


def test_retry_of_an_ended_run_begins_it_again_and_buys_nothing_twice(working):
    sheet(row(1, "retry 1"), row(2, "retry [unsafe]"), name="again.csv")

    async def case():
        run = await fire("again")
        assert (await carried_out(run))[1] == "CompletedWithFailures"
        bought = made(working)
        async with get_client() as client:
            await client.set_flow_run_state(run, Scheduled(name="AwaitingRetry"), force=True)
        ended, name = await carried_out(run)
        assert (name, ended.run_count) == ("CompletedWithFailures", 2)
        assert made(working) == bought == (2, 1)
        assert len(list(Path("results/again").glob("2*/results.csv"))) == 2

    asyncio.run(case())


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": "lots"},
        *(pytest.param(one, marks=pytest.mark.soak) for one in ({"fiel": "x"}, {"max_items": -1})),
    ],
)
def test_parameters_that_the_form_does_not_have_are_refused_before_anything_runs(working, wrong):
    sheet(row(1, "parameters"), name="parameters.csv")

    async def case():
        with contextlib.suppress(PrefectHTTPStatusError):
            ended, _ = await carried_out(await fire("parameters", **wrong))
            assert ended.state.type.value in ("FAILED", "CRASHED")

    asyncio.run(case())
    assert working.record == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "of_libraries",
    [False, pytest.param(True, marks=pytest.mark.soak)],
    ids=["named like ours", "named like a library's"],
)
def test_a_run_of_up_imports_nothing_of_its_folder(tmp_path, monkeypatch, of_libraries):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "spring.csv").write_text(
        "sku,prompt,category,option:size,option:fabric\nA-1,herons,Cushion,50x50,linen\n"
    )
    of_strangers(tmp_path, of_libraries)
    with started([str(Path(sys.executable).parent / "patternmill"), "up"], tmp_path) as process:
        (address, *_) = re.findall(r"http://127\.0\.0\.1:\d+", until_line(process, "Ctrl-C stops."))
        run, ended = begin(address, file="spring.csv"), []

        def is_ended():
            ended[:] = [
                httpx.get(f"{address}/api/flow_runs/{run}", trust_env=False, timeout=30).json()["state"]
            ]
            return ended[0]["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")

        assert comes_true(is_ended, 120)
    assert list(tmp_path.glob("imported-*")) == []
    assert ended[0]["name"] in ("Completed", "CompletedWithFailures"), ended


@pytest.mark.soak
def test_a_server_of_our_own_that_freezes_in_mid_run_stops_no_purchase_and_holds_no_command(
    tmp_path, monkeypatch
):
    frozen = Double(Weather(latency=0.01, pattern_time=4.0, product_time=2.0, spread=0.01))
    monkeypatch.chdir(tmp_path)
    sheet(*map(row, range(12)))
    with serving(frozen) as address:
        about = {"STUDIO_URL": address, "API_KEY": KEY, "HOME": str(tmp_path / "home")}
        env = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
        env |= {f"PATTERNMILL_{name}": text for name, text in about.items()} | {"PYTHONPATH": str(ROOT)}
        env["PREFECT_HOME"] = str(tmp_path / "none")
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "import", "spring.csv"], env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while not frozen.jobs and process.poll() is None:
            time.sleep(0.1)
        servers = servers_of(tmp_path)
        for server in servers:
            os.kill(server, signal.SIGSTOP)
        try:
            said, _ = process.communicate(timeout=150)
        finally:
            process.kill()
            for server in servers:
                os.kill(server, signal.SIGKILL)
    assert len(servers) == 1
    assert process.returncode == 0, said
    assert "Completed: 12 succeeded" in said
    assert "missed part of this run" in said
    assert "Traceback" not in said
    assert made(frozen) == (12, 12)
    assert time.time() - Path("results/spring/latest/manifest.json").stat().st_mtime < 120
