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
from tests.prefect_api import PrefectApi, api_of

#: The calls as docs/programs.md shows them; they print what each comes to, as JSON.
CALLS = """
import asyncio, json, sys

from fsspec.implementations.memory import MemoryFileSystem

from flows.bulk_import import run_import
from flows.catalog_refresh import run_refresh
from flows.remake_patterns import run_remake
from flows.retry_failed import run_retry
from patternmill.errors import PatternmillError
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest

file, source = sys.argv[1:]
calls = {
    "imported": run_import(ImportRequest(file=file, catalog="herons", budget="100")),
    "remade": run_remake(RemakeRequest(catalog="herons", sku=("herons-0000",))),
    "refreshed": run_refresh(RefreshRequest(source=source, catalog="herons")),
    "retried": run_retry(RetryRequest(catalog="herons", code=("no_such_code",))),
    "refused": run_import(ImportRequest(file="nowhere.csv")),
    "uncopied": run_import(ImportRequest(file=file, catalog="teas", confirm="duplicates", out="memory://shop")),
    "checked": run_import(ImportRequest(file=file, catalog="checked", check=True)),
    "planned": run_import(ImportRequest(file=file, catalog="planned", plan_only=True)),
}

def refuse(*arguments, **options):
    raise PermissionError

async def result(call):
    try:
        return (await call).model_dump(mode="json")
    except PatternmillError as refusal:
        return refusal.code, str(refusal)

async def main():
    print(json.dumps({name: await result(call) for name, call in calls.items()}))

MemoryFileSystem.put_file = refuse
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("called")


@pytest.fixture(scope="module")
def results(folder: Path, joint_server: OwnServer) -> dict[str, Any]:
    """Return what the calls come to, in a process without our command line."""
    rows = some_rows(4, shared=0)
    file = write_csv(folder / "rows.csv", [*rows, replace(rows[0], sku="B", category="Jug")])
    source = write_csv(folder / "source.csv", rows[:2])
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
        command = [sys.executable, "-P", "-c", CALLS, str(file), str(source)]
        done = run_process(command, cwd=folder, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return shown


@pytest.fixture
def api(joint_server: OwnServer) -> PrefectApi:
    return api_of(joint_server)


def shown(api: PrefectApi, name: str) -> tuple[dict[str, str], str]:
    """Return the state of a flow run, and all that is on its page."""
    (run,) = api.post("flow_runs/filter", {"flow_runs": {"name": {"any_": [name]}}})
    artifacts = api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}})
    return run["state"], "\n".join(
        artifact["data"] for artifact in artifacts if artifact["type"] == "markdown"
    )


def test_failed_rows_are_in_the_summary(results: dict[str, Any], folder: Path, api: PrefectApi) -> None:
    """The summary's run, outcome, counts, money and folder agree with the run's manifest and its flow run."""
    summary = results["imported"]
    manifest = json.loads((Path(summary["folder"]) / "manifest.json").read_text())
    assert Path(summary["folder"]) == folder / "results" / "herons" / summary["run"]
    assert summary["outcome"] == manifest["outcome"] == "CompletedWithFailures"
    assert (summary["counts"], summary["money"]) == (manifest["counts"], manifest["money"])
    counts = {name: count for name, count in summary["counts"]["by_status"].items() if count}
    assert counts == {"succeeded": 3, "failed": 1, "refused": 1}
    # Four patterns and five products, of which the last one was tried again.
    assert summary["money"]["spent"] == {"": 45}
    assert "the loom broke" in summary["message"]
    state, _ = shown(api, "import herons")
    assert (state["type"], state["name"]) == ("FAILED", "CompletedWithFailures")
    assert state["message"] == summary["message"]


@pytest.mark.parametrize(
    ("call", "name", "by_status", "spent"),
    [
        # Another take of one pattern, and the product of its row.
        ("remade", "remake herons", {"succeeded": 1}, {"": 11}),
        # The source has only the first two rows; the pick of the first one stays.
        ("refreshed", "refresh herons", {"succeeded": 2}, {}),
    ],
)
def test_summary_is_that_of_the_flow_run(
    results: dict[str, Any], api: PrefectApi, call: str, name: str, by_status: dict[str, int], spent: Any
) -> None:
    summary = results[call]
    assert summary["outcome"] == "Completed", summary
    assert {status: n for status, n in summary["counts"]["by_status"].items() if n} == by_status, summary
    assert summary["money"]["spent"] == spent
    state, _ = shown(api, name)
    assert (state["name"], state["message"]) == ("Completed", summary["message"])


def test_refusal_is_raised(results: dict[str, Any]) -> None:
    code, text = results["refused"]
    assert code == "file_missing" and text.endswith("Check the name and the folder.")


def test_results_that_cannot_be_copied_are_on_the_page(
    results: dict[str, Any], folder: Path, api: PrefectApi
) -> None:
    """The summary is returned, the results are in their own folder, and the state says where they are missing."""
    code, text = results["uncopied"]
    state, page = shown(api, "import teas")
    assert (code, state["type"], state["message"]) == ("results_not_copied", "FAILED", text)
    assert "Completed with failures" in page
    assert str(folder / "results" / "teas") in text


@pytest.mark.parametrize(
    ("call", "state", "says", "shows"),
    [
        ("checked", ("FAILED", "CompletedWithFailures"), "4 accepted, 1 refused", "unknown category"),
        (
            "planned",
            ("COMPLETED", "Completed"),
            "would buy 8 items for at least 44 units",
            "Digest of this plan",
        ),
    ],
)
def test_look_at_rows_or_plan_buys_nothing(
    results: dict[str, Any],
    folder: Path,
    api: PrefectApi,
    call: str,
    state: tuple[str, str],
    says: str,
    shows: str,
) -> None:
    """The state says what it came to, an artifact has all of it, and no run is on record."""
    message = results[call]["message"]
    assert says in message and message.endswith("Nothing was written or bought.")
    ended, page = shown(api, f"import {call}")
    assert (ended["type"], ended["name"], ended["message"]) == (*state, message)
    assert shows in page
    with open_ledger(Settings(home=folder / "home"), must_exist=True) as ledger:
        assert ledger.runs.find(catalog=call) == []
    assert not (folder / "results" / call).exists()


def test_retry_without_rows_has_no_run(results: dict[str, Any]) -> None:
    summary = results["retried"]
    assert (summary["run"], summary["outcome"], summary["folder"]) == (None, "Completed", None)
    assert summary["message"].startswith("Nothing to retry.")
