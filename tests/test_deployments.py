"""The deployments on a real Prefect server, and what people set there."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from prefect import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.exceptions import PrefectHTTPStatusError

from cli.main import run
from cli.server import Server, look_at_server
from cli.worker import DrainingWorker
from patternmill.errors import Refusal
from patternmill.files import code_version
from patternmill.states import Status
from tasks.deployments import POOL, register_deployments, schedule_refresh


async def read(name: str) -> DeploymentResponse:
    async with get_client() as client:
        return await client.read_deployment_by_name(name)


async def run_once(name: str, **parameters: Any) -> tuple[str, str]:
    """Begin a run of a deployment, have a worker carry it out, and return its state and message."""
    async with get_client() as client:
        deployment = await client.read_deployment_by_name(name)
        run = await client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
        await DrainingWorker(work_pool_name=POOL).start(run_once=True, printer=lambda text: None)
        state = (await client.read_flow_run(run.id)).state
        assert state
        return state.name or "", state.message or ""


def test_each_deployment_of_the_file_runs_in_the_folder_that_it_was_registered_in(deployed: Path) -> None:
    names = asyncio.run(register_deployments("studio"))
    assert names == ["bulk-import", "catalog-refresh", "remake-patterns", "retry-failed"]
    state, message = asyncio.run(run_once("bulk-import/bulk-import", file="a.csv", catalog="spring"))
    assert state == "Completed"
    assert message.startswith("a.csv of spring in ")  # the environment of who registered it first stays
    assert message.endswith(f", from {deployed}")


def test_what_people_set_on_the_server_stays(deployed: Path) -> None:
    async def set_and_register() -> tuple[DeploymentResponse, DeploymentResponse]:
        await register_deployments("staging")
        async with get_client() as client:
            mine = await client.read_deployment_by_name("retry-failed/retry-failed")
            own = {"catalog": "autumn", "environment": "staging"}
            people = DeploymentUpdate(
                parameters=own, tags=["theirs"], paused=True, concurrency_limit=3, description="Theirs."
            )
            await client.update_deployment(mine.id, people)
            schedule = DeploymentScheduleCreate(schedule=IntervalSchedule(interval=86400), active=False)  # type: ignore[arg-type]
            await client.create_deployment_schedules(mine.id, [schedule])
        before = await read("retry-failed/retry-failed")
        await register_deployments("production")
        return before, await read("retry-failed/retry-failed")

    before, after = asyncio.run(set_and_register())
    kept = {"parameters", "tags", "paused", "description", "enforce_parameter_schema", "work_pool_name"}
    assert before.model_dump(include=kept) == after.model_dump(include=kept)
    assert after.global_concurrency_limit and after.global_concurrency_limit.limit == 3
    assert [(one.active, one.schedule) for one in after.schedules] == [
        (one.active, one.schedule) for one in before.schedules
    ]
    assert after.paused


def test_the_environment_is_a_choice_of_those_that_workers_have(deployed: Path) -> None:
    async def choices() -> list[str]:
        await register_deployments("staging")
        await register_deployments("production")
        form = (await read("bulk-import/bulk-import")).parameter_openapi_schema
        assert form
        return list(form["properties"]["environment"]["enum"])

    assert {"production", "staging"} <= set(asyncio.run(choices()))
    with pytest.raises(PrefectHTTPStatusError):
        asyncio.run(run_once("bulk-import/bulk-import", file="a.csv", environment="nowhere"))


def test_a_schedule_of_a_catalog_keeps_the_others_and_its_folder(
    deployed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def schedule_twice() -> list[tuple[str | None, str]]:
        said = await schedule_refresh("spring.csv", "spring", "studio", "0 5 * * *")
        assert "spring (studio)" in said
        assert re.search(r"next on \d{4}-\d\d-\d\d 05:00", said)
        first = await read("catalog-refresh/spring (studio)")
        async with get_client() as client:
            people = DeploymentScheduleCreate(schedule=IntervalSchedule(interval=3600), slug="hourly")  # type: ignore[arg-type]
            await client.create_deployment_schedules(first.id, [people])
        await schedule_refresh("summer.csv", "spring", "studio", "30 6 * * 1")
        monkeypatch.chdir(tmp_path)  # where `up` is started later
        await register_deployments("studio")
        after = await read("catalog-refresh/spring (studio)")
        assert str(deployed) in str(after.pull_steps)
        assert after.parameters == {"file": "summer.csv", "catalog": "spring", "environment": "studio"}
        assert after.tags == ["patternmill", "patternmill-scheduled"]
        crons = [(one.slug, getattr(one.schedule, "cron", "")) for one in after.schedules]
        return sorted(crons, key=str)

    assert asyncio.run(schedule_twice()) == [("hourly", ""), ("refresh", "30 6 * * 1")]


@pytest.mark.parametrize("cron", ["every day", "99 5 * * *", "", "0 0 5 * * *", "0 5 30 2 *"])
def test_a_schedule_that_cannot_be_read_is_refused_with_an_example(cron: str, deployed: Path) -> None:
    with pytest.raises(Refusal, match='--cron "0 5') as refusal:
        asyncio.run(schedule_refresh("spring.csv", "spring", "studio", cron))
    assert refusal.value.exit_code == 2


def test_the_forms_of_the_real_flows_have_choices_and_limits_and_say_which_code_they_are_of(
    server: Server,
) -> None:
    async def registered() -> DeploymentResponse:
        await register_deployments("staging")
        return await read("remake-patterns/remake-patterns")

    found = asyncio.run(registered())
    assert found.version == code_version()
    form: Any = found.parameter_openapi_schema
    fields = form["properties"]
    of_status = fields["status"]["items"]
    assert set(form["definitions"][of_status["$ref"].rpartition("/")[2]]["enum"]) == set(Status)
    assert "staging" in fields["environment"]["enum"]
    assert [one.get("minimum") for one in fields["max_items"]["anyOf"]] == [0, None]
    assert [one.get("minimum") for one in fields["take"]["anyOf"]] == [1, None]
    assert all(field.get("description") for field in fields.values())


def test_status_says_which_server_there_is_and_what_is_scheduled_there(
    deployed: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(schedule_refresh("told.csv", "told", "studio", "0 5 * * *"))
    monkeypatch.setenv("PATTERNMILL_HOME", "home")
    assert run(["status"]) == 0
    said = capsys.readouterr().out
    assert f"Prefect server: {server.address} answers" in said
    assert re.search(r"schedule told \(studio\): 0 5 \* \* \*, (next on [\d-]+ 05:00|not due)", said)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert run(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["prefect"]
    assert (found["address"], found["says"]) == ("http://127.0.0.1:9/api", "does not answer")


@pytest.mark.parametrize(
    "profile", ["", 'active = "mine"\n[profiles.mine]\n'], ids=["none", "without a server"]
)
def test_status_starts_no_server_where_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    if profile:
        (tmp_path / "profiles.toml").write_text(profile)
    assert "none runs" in asyncio.run(look_at_server(tmp_path / "home"))["says"]
    assert not (tmp_path / "home").exists()
