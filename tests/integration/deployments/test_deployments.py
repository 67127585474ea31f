"""deployments/prefect.yaml: every entrypoint loads, all is registered as written, and the forms explain themselves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from prefect_host.client_settings import POOL
from prefect_host.own_server import METRICS_PATH, OwnServer
from tasks.deployments import SCHEDULED
from tests.acceptance.harness import CHECKOUT, COMMAND, clean_environment
from tests.acceptance.prefect_servers import run_process
from tests.acceptance.workers import Prefect
from tests.prefect_api import api_of

NAMES = ("bulk-import", "retry-failed", "catalog-refresh", "remake-patterns", "resume-crashed")
#: Each in a process of its own, forked once Prefect is loaded.
LOAD = """
import os, sys, traceback
from prefect.flows import load_flow_from_entrypoint
for entrypoint in sys.argv[1:]:
    if os.fork() == 0:
        try:
            print(load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False).name, flush=True)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.wait()
"""
#: Matches parameter names that look like a secret or an address.
SECRET = re.compile(r"api.?key|secret|token|password|url", re.IGNORECASE)


Deployed = Mapping[str, dict[str, Any]]


@pytest.fixture(scope="module")
def prefect(joint_server: OwnServer) -> Prefect:
    """Return the server as its clients see it."""
    home = {"PATTERNMILL_HOME": str(joint_server.directory.parent)}
    return Prefect(api_of(joint_server), clean_environment() | joint_server.client_environment | home)


def register(prefect: Prefect) -> str:
    """Register the deployments as `up` does, and as people do on a server of theirs; return what it prints."""
    words = [sys.executable, "-P", "-m", "tasks.deployments"]
    done = run_process(words, cwd=CHECKOUT, env=prefect.environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def by_name(prefect: Prefect) -> dict[str, dict[str, Any]]:
    return {deployment["name"]: deployment for deployment in prefect.api.post("deployments/filter", {})}


@pytest.fixture(scope="module")
def deployed(prefect: Prefect) -> dict[str, dict[str, Any]]:
    register(prefect)
    return by_name(prefect)


def test_entrypoints_load(prefect: Prefect) -> None:
    """They are loaded from their files, as a worker does: Prefect deploys without warning what cannot be imported."""
    stems = [name.replace("-", "_") for name in NAMES]
    words = [sys.executable, "-P", "-c", LOAD, *(f"flows/{stem}.py:{stem}" for stem in stems)]
    loaded = run_process(words, cwd=CHECKOUT, env=prefect.environment, timeout=120)
    assert loaded.stdout.split() == list(NAMES), loaded.stderr


def test_all_deployments_are_registered(deployed: Deployed) -> None:
    """Each on the worker's pool, in this folder, with its tag for the automations, its parameters checked.

    Every parameter is described, and none asks for an address or a key.
    """
    assert set(deployed) == set(NAMES)
    assert "schedules" not in (CHECKOUT / "deployments" / "prefect.yaml").read_text(), (
        "they would be set back"
    )
    for name, deployment in deployed.items():
        assert deployment["work_pool_name"] == POOL
        assert deployment["enforce_parameter_schema"] is True
        assert deployment["tags"] == ([] if name == "resume-crashed" else ["patternmill"])
        step = deployment["pull_steps"][0]["prefect.deployments.steps.set_working_directory"]
        assert step == {"directory": str(CHECKOUT)}
        for parameter, schema in deployment["parameter_openapi_schema"]["properties"].items():
            assert schema.get("description"), f"{name}: {parameter} is not described"
            assert not SECRET.search(parameter), f"{name}: {parameter}"


def of_people(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a deployment that people can change, to compare two versions of it."""
    kept = ("active", "schedule", "parameters", "slug")
    return {
        "parameters": deployment["parameters"],
        "schedules": [{name: one[name] for name in kept} for one in deployment["schedules"]],
        "paused": deployment["paused"],
        "limit": deployment["global_concurrency_limit"] and deployment["global_concurrency_limit"]["limit"],
    }


def schedule(environment: Mapping[str, str], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`refresh SOURCE --catalog linens --cron …` at the server of PREFECT_API_URL."""
    words = [str(COMMAND), "refresh", *options, "--catalog", "linens", "--cron", "30 2 * * *"]
    return run_process(words, cwd=folder, env=environment, timeout=120)


def test_what_people_set_survives_a_registration(
    prefect: Prefect, deployed: Deployed, tmp_path: Path
) -> None:
    """Schedules that were made by `--cron`, with a slug and in the UI without one, parameters, a pause, a limit."""
    api = prefect.api
    made = schedule(
        prefect.environment, tmp_path, "linens.csv", "--timezone", "Europe/Berlin", "--max-items", "7"
    )
    assert made.returncode == 0, made.stderr
    refresh, imports = deployed["catalog-refresh"]["id"], deployed["bulk-import"]["id"]
    nightly = {"cron": "0 4 * * *", "timezone": "Europe/Berlin"}
    for slug in (None, "mine"):
        wish = {"active": True, "schedule": nightly, "parameters": {"source": "a.csv"}, "slug": slug}
        api.post(f"deployments/{refresh}/schedules", [wish])
    api.patch(f"deployments/{imports}", {"parameters": {"file": "b.csv", "environment": "production"}})
    api.patch(f"deployments/{imports}", {"concurrency_limit": 3})
    api.post(f"deployments/{imports}/pause_deployment", {})
    before = {name: of_people(deployment) for name, deployment in by_name(prefect).items()}
    assert before["linens (staging)"]["schedules"][0]["active"] is True

    assert register(prefect) == ""
    assert {name: of_people(deployment) for name, deployment in by_name(prefect).items()} == before


def test_doctor_asks_the_server(prefect: Prefect, deployed: Deployed, tmp_path: Path) -> None:
    """It finds it by the home, and says what nobody would do: no worker is online, and the pool is paused."""
    here = {name: text for name, text in prefect.environment.items() if not name.startswith("PREFECT_")}

    def facts(expected: int) -> dict[str, dict[str, str]]:
        done = run_process([str(COMMAND), "doctor", "--json"], cwd=tmp_path, env=here, timeout=120)
        assert done.returncode == expected, done.stdout + done.stderr
        return {fact["about"]: fact for fact in json.loads(done.stdout)["facts"]}

    shown = facts(2)
    assert shown["prefect"]["text"] == f"{prefect.api.url} answers"
    assert shown["workers"]["text"] == "0 online: what is scheduled waits"
    assert shown["deployments"]["text"].startswith(f"{len(by_name(prefect))} registered")
    prefect.api.patch(f"work_pools/{POOL}", {"is_paused": True})
    try:
        assert "is paused" in facts(2)["workers"]["text"]
    finally:
        prefect.api.patch(f"work_pools/{POOL}", {"is_paused": False})


def test_metrics_are_behind_the_credential(prefect: Prefect) -> None:
    """They share the API's port and password."""
    address = prefect.api.url.removesuffix("/api") + METRICS_PATH
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(address, timeout=20)
    with urllib.request.urlopen(urllib.request.Request(address, headers=dict(prefect.api.headers))) as page:
        assert page.read().endswith(b"# EOF\n")


def test_schedule_of_a_catalog(prefect: Prefect, deployed: Deployed, tmp_path: Path) -> None:
    """Named after it, with its environment written in and the tags that automations look for; again, it is replaced."""
    for options in (("linens.csv", "--max-items", "7"), ("other.csv", "--timezone", "Europe/Berlin")):
        made = schedule(prefect.environment, tmp_path, *options)
        assert made.returncode == 0, made.stderr
    assert "catalog-refresh/linens (staging)" in made.stdout
    refresh = by_name(prefect)["linens (staging)"]
    assert refresh["parameters"] == {"source": "other.csv", "catalog": "linens", "environment": "staging"}
    (its,) = refresh["schedules"]
    assert its["active"] and its["schedule"]["timezone"] == "Europe/Berlin"
    assert set(refresh["tags"]) == {"patternmill", SCHEDULED}
    assert refresh["work_pool_name"] == POOL and refresh["enforce_parameter_schema"]


@pytest.mark.parametrize(
    ("source", "settings", "code", "says"),
    [
        ("https://me:secret@example.com/a.csv", {}, 2, "PATTERNMILL_SOURCES"),
        ("https://example.com/a.csv?token=secret", {}, 2, "PATTERNMILL_SOURCES"),
        (
            "a.csv",
            {"PATTERNMILL_STUDIO_URL": "https://studio.example/v1", "PATTERNMILL_API_KEY": "k"},
            2,
            "--confirm staging",
        ),
        ("a.csv", {"PREFECT_API_URL": "http://127.0.0.1:9/api"}, 1, "does not answer"),
    ],
)
def test_schedule_that_is_refused(
    prefect: Prefect, tmp_path: Path, source: str, settings: dict[str, str], code: int, says: str
) -> None:
    """A secret that Prefect would show, a service that nobody confirmed to be paid, a server that is away."""
    refused = schedule(prefect.environment | settings, tmp_path, source)
    assert refused.returncode == code, refused.stderr
    assert says in refused.stderr
    assert "secret" not in refused.stdout + refused.stderr


def test_parameters_that_a_flow_has_no_longer_are_dropped(prefect: Prefect, deployed: Deployed) -> None:
    """From the deployment and its schedules, which stay as they are otherwise, and named in a line."""
    retry = deployed["retry-failed"]["id"]
    nightly = {"cron": "0 4 * * *", "timezone": "UTC"}
    wish = {"active": True, "schedule": nightly, "parameters": {"looms": 3, "catalog": "spring"}}
    prefect.api.post(f"deployments/{retry}/schedules", [wish])
    prefect.api.patch(f"deployments/{retry}", {"parameters": {"thread": "red", "environment": "staging"}})

    assert register(prefect) == "retry-failed: dropped what its flow has no longer: looms, thread.\n"
    retry_failed = by_name(prefect)["retry-failed"]
    assert retry_failed["parameters"] == {"environment": "staging"}
    (its,) = retry_failed["schedules"]
    assert its["active"] and its["parameters"] == {"catalog": "spring"}


def test_wrong_parameters_are_refused_before_a_run(prefect: Prefect, deployed: Deployed) -> None:
    """By the server, from the schema: an unknown status never becomes a run."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        prefect.begin("retry-failed", status=["broken"])
    with refused.value as answer:
        assert answer.code == 409
