"""deployments/prefect.yaml: every entrypoint loads, all is registered as written, and the forms explain themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from prefect_host.work_pool import POOL
from tests.integration.deployments.conftest import CHECKOUT, Ask

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
#: As automation and audit people would look for them.
SECRET = re.compile(r"api.?key|secret|token|password|url", re.IGNORECASE)


@pytest.fixture(scope="module")
def deployed(prefect: Callable[..., str], ask: Ask) -> dict[str, dict[str, Any]]:
    prefect("work-pool", "create", POOL, "--type", "process")
    prefect("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    return {deployment["name"]: deployment for deployment in ask("deployments/filter", {})}


def test_entrypoints_load(environment: dict[str, str]) -> None:
    """From their files, as a worker does it: Prefect deploys what cannot be imported without a warning."""
    stems = [name.replace("-", "_") for name in NAMES]
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, *(f"flows/{stem}.py:{stem}" for stem in stems)],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert loaded.stdout.split() == list(NAMES), loaded.stderr


def test_all_deployments_are_registered(deployed: dict[str, dict[str, Any]]) -> None:
    """Each on the worker's pool, in this folder, with its parameters checked and its tag for the automations."""
    assert set(deployed) == set(NAMES)
    for name, deployment in deployed.items():
        assert deployment["work_pool_name"] == POOL
        assert deployment["enforce_parameter_schema"] is True
        assert deployment["tags"] == ([] if name == "resume-crashed" else ["patternmill"])
        step = deployment["pull_steps"][0]["prefect.deployments.steps.set_working_directory"]
        assert step == {"directory": str(CHECKOUT)}


def test_form_describes_every_parameter(deployed: dict[str, dict[str, Any]]) -> None:
    """Every parameter has a description, and none asks for an address or a key."""
    for name, deployment in deployed.items():
        for parameter, schema in deployment["parameter_openapi_schema"]["properties"].items():
            assert schema.get("description"), f"{name}: {parameter} is not described"
            assert not SECRET.search(parameter), f"{name}: {parameter}"


def test_refresh_has_a_schedule_with_a_time_zone(deployed: dict[str, dict[str, Any]]) -> None:
    """A cron line in a time zone, off until a person has named the source; never two at once."""
    refresh = deployed["catalog-refresh"]
    (schedule,) = refresh["schedules"]
    assert schedule["active"] is False
    assert schedule["schedule"]["timezone"] == "Europe/Berlin"
    assert refresh["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"


def test_wrong_parameters_are_refused_before_a_run(deployed: dict[str, dict[str, Any]], ask: Ask) -> None:
    """By the server, from the schema: an unknown status never becomes a run."""
    import urllib.error

    path = f"deployments/{deployed['retry-failed']['id']}/create_flow_run"
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(path, {"parameters": {"status": ["broken"]}})
    with refused.value as answer:
        assert answer.code == 409
