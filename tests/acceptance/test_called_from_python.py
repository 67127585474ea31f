"""The flows as Python code calls them: a summary where rows failed too, else the error itself, as it is on the page."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.settings import Settings
from prefect_host.own_server import OwnServer
from tests.acceptance.harness import clean_environment, some_rows, write_csv
from tests.acceptance.prefect_servers import run_process
from tests.hostile import Hostile, Plan, Rule
from tests.prefect_api import api_of

#: As docs/programs.md shows it, printed as JSON.
CALLS = """
import asyncio, json, sys

from fsspec.implementations.memory import MemoryFileSystem

from flows.bulk_import import run_import
from flows.retry_failed import run_retry
from patternmill.errors import PatternmillError
from patternmill.runs.request import ImportRequest, RetryRequest

def refuse(*arguments, **options):
    raise PermissionError

async def refusal(request):
    try:
        await run_import(request)
    except PatternmillError as refusal:
        return refusal.code, str(refusal)

async def main():
    imported = await run_import(ImportRequest(file=sys.argv[1], catalog="herons", budget="100"))
    retried = await run_retry(RetryRequest(catalog="herons", code=("no_such_code",)))
    refused = await refusal(ImportRequest(file="nowhere.csv"))
    MemoryFileSystem.put_file = refuse
    uncopied = await refusal(ImportRequest(file=sys.argv[1], catalog="teas", confirm="duplicates", out="memory://shop"))
    looks = [
        (await run_import(ImportRequest(file=sys.argv[1], catalog=catalog, **{flag: True}))).message
        for catalog, flag in (("checked", "check"), ("planned", "plan_only"))
    ]
    print(json.dumps([imported.model_dump(mode="json"), retried.model_dump(mode="json"), refused, uncopied, looks]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("called")


@pytest.fixture(scope="module")
def summaries(folder: Path, joint_server: OwnServer) -> list[Any]:
    """What the calls print, in a process that has no command line of ours."""
    file = write_csv(
        folder / "rows.csv", [*some_rows(4, shared=0), replace(some_rows(1)[0], sku="B", category="Jug")]
    )
    rule = Rule("products/create", "job_fails", {"message": "the loom broke"}, matching="70cm")
    with Hostile(Plan(rules=(rule,)), folder / "service") as service:
        environment = {
            **clean_environment(),
            **joint_server.client_environment,
            **service.environment,
            "PATTERNMILL_HOME": str(folder / "home"),
            "PATTERNMILL_PATTERN_PRICE": "10",
            "PATTERNMILL_PRODUCT_PRICE": "1",
        }
        done = run_process(
            [sys.executable, "-P", "-c", CALLS, str(file)], cwd=folder, env=environment, timeout=200
        )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_failed_rows_are_in_the_summary(summaries: list[Any], folder: Path) -> None:
    """Its run, outcome, counts, money and folder, which agree with the run's manifest."""
    summary = summaries[0]
    manifest = json.loads((Path(summary["folder"]) / "manifest.json").read_text())
    assert Path(summary["folder"]) == folder / "results" / "herons" / summary["run"]
    assert summary["outcome"] == manifest["outcome"] == "CompletedWithFailures"
    assert (summary["counts"], summary["money"]) == (manifest["counts"], manifest["money"])
    counts = {name: count for name, count in summary["counts"]["by_status"].items() if count}
    assert counts == {"succeeded": 3, "failed": 1, "refused": 1}
    # Four patterns and five products, of which the last one was tried again.
    assert summary["money"]["spent"] == {"": 45}
    assert "the loom broke" in summary["message"]


def test_refusal_is_raised(summaries: list[Any]) -> None:
    code, text = summaries[2]
    assert code == "file_missing" and text.endswith("Check the name and the folder.")


def test_results_that_cannot_be_copied_are_on_the_page(
    summaries: list[Any], folder: Path, joint_server: OwnServer
) -> None:
    """The summary is there, the results are in their folder, and the state says where they are not."""
    code, text = summaries[3]
    assert code == "results_not_copied"
    api = api_of(joint_server)
    (found,) = api.post("flow_runs/filter", {"flow_runs": {"name": {"any_": ["import teas"]}}})
    assert (found["state"]["type"], found["state"]["message"]) == ("FAILED", text)
    artifacts = api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [found["id"]]}}})
    (summary,) = [artifact["data"] for artifact in artifacts if artifact["key"].endswith("-summary")]
    assert "Completed with failures" in summary
    assert str(folder / "results" / "teas") in text


@pytest.mark.parametrize(
    ("number", "name", "state", "says", "shows"),
    [
        (0, "checked", ("FAILED", "CompletedWithFailures"), "4 accepted, 1 refused", "unknown category"),
        (
            1,
            "planned",
            ("COMPLETED", "Completed"),
            "would buy 8 items for at least 44 units",
            "Digest of this plan",
        ),
    ],
)
def test_look_at_rows_or_plan_buys_nothing(
    summaries: list[Any],
    folder: Path,
    joint_server: OwnServer,
    number: int,
    name: str,
    state: tuple[str, str],
    says: str,
    shows: str,
) -> None:
    """The state says what it came to, an artifact has all of it, and no run is on record."""
    message = summaries[4][number]
    assert says in message and message.endswith("Nothing was written or bought.")
    api = api_of(joint_server)
    (found,) = api.post("flow_runs/filter", {"flow_runs": {"name": {"any_": [f"import {name}"]}}})
    assert (found["state"]["type"], found["state"]["name"]) == state
    assert found["state"]["message"] == message
    (artifact,) = api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [found["id"]]}}})
    assert shows in artifact["data"]
    with open_ledger(Settings(home=folder / "home"), must_exist=True) as ledger:
        assert ledger.runs.find(catalog=name) == []
    assert not (folder / "results" / name).exists()


def test_retry_without_rows_has_no_run(summaries: list[Any]) -> None:
    summary = summaries[1]
    assert (summary["run"], summary["outcome"], summary["folder"]) == (None, "Completed", None)
    assert summary["message"].startswith("Nothing to retry.")


def test_flow_runs_are_those_of_the_flows(summaries: list[Any], joint_server: OwnServer) -> None:
    """Named after the catalog, and ended in the state of the summary's outcome."""
    named = {"flow_runs": {"name": {"any_": ["import herons"]}}}
    (found,) = api_of(joint_server).post("flow_runs/filter", named)
    assert (found["state"]["type"], found["state"]["name"]) == ("FAILED", "CompletedWithFailures")
    assert found["state"]["message"] == summaries[0]["message"]
