"""The main job as a person runs it: the command, the embedded studio, a Prefect server of its own, and its record."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from socket import gethostname
from typing import Any

import jsonschema
import prefect
import pytest

from patternmill.ledger.ledger import open_database
from prefect_host import shared_process
from prefect_host.own_server import OwnServer
from studio.store import read_record
from tests.acceptance.harness import CHECKOUT, clean_environment
from tests.acceptance.prefect_servers import (
    lay_database,
    migrated_database,
    run_process,
    settle_at,
)
from tests.prefect_api import OPEN_STATES, api_of

PATTERNMILL = Path(sys.executable).with_name("patternmill")
HERONS = "Blue herons among silver reeds"
ROWS = [
    ("A-1", HERONS, "Cushion", "50x50", "linen"),
    ("A-2", HERONS, "cushion", "60x40", "Velvet"),
    ("A-3", "Lemon branches on cream", "Cushion", "40x40", "cotton"),
    ("A-4", "Broken looms [fail]", "Cushion", "40x40", "cotton"),
    ("A-5", "Lemon branches on cream [fail product]", "Cushion", "40x40", "cotton"),
    ("A-6", "Lemon branches on cream", "Cushions and more", "40x40", "cotton"),
    ("A-7", "Lemon branches on cream", "Cushion", "40x40", "Linnen"),
]

ONE_ROW = "sku,prompt,category,option:size,option:fabric\nA,herons,Cushion,50x50,linen\n"
#: The seconds by which a task run may start before the first write about its item, and end after the last.
CLOSE = 5.0
#: Selects each item's stage, its content as JSON, its sku, and the times of its first and last event.
ITEM_TIMES = """
    SELECT i.stage, i.content, i.sku, MIN(e.at), MAX(e.at) FROM events e
    JOIN attempts a ON a.request_id = e.request_id JOIN items i ON i.key = a.item_key
    GROUP BY i.key, i.stage, i.content, i.sku
"""


@dataclass(frozen=True)
class Shop:
    """A folder in which imports are run."""

    folder: Path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_process(
            [str(PATTERNMILL), *arguments],
            cwd=self.folder,
            env=clean_environment() | environment,
            timeout=240,
        )

    @property
    def home(self) -> Path:
        return self.folder / ".patternmill"

    def latest(self, catalog: str) -> Path:
        return self.folder / "results" / catalog / "latest"

    def creates(self) -> int:
        return len(read_record(self.home / "studio" / "studio.db"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    with (folder / "spring.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "prompt", "category", "option:size", "option:fabric", "note"])
        writer.writerows([(*row, f"=note {number}") for number, row in enumerate(ROWS)])
    shop = Shop(folder)
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), shop.home)
    return shop


@pytest.fixture(scope="module")
def first(shop: Shop) -> subprocess.CompletedProcess[str]:
    """Return the first import of the file, started by a person whose company has a proxy, and retries by default."""
    theirs = {
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "PREFECT_FLOWS_DEFAULT_RETRIES": "2",
        "PREFECT_TASKS_DEFAULT_RETRIES": "2",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_process, "start_process", subprocess.Popen)
        return shop.run("import", "spring.csv", **theirs)


@pytest.fixture(scope="module")
def record(
    shop: Shop, first: subprocess.CompletedProcess[str]
) -> Iterator[Mapping[str, list[dict[str, Any]]]]:
    """Yield what the Prefect server has of the first import once it is reopened."""
    with OwnServer(shop.home) as server:
        api = api_of(server)
        yield {
            kind: api.post(f"{kind}/filter", {"limit": 200})
            for kind in ("flow_runs", "task_runs", "artifacts")
        }


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file without the run, which differs each time."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [{name: cell for name, cell in row.items() if name != "run"} for row in csv.DictReader(file)]


def test_import_ends_with_counts_and_exit_code_3(first: subprocess.CompletedProcess[str]) -> None:
    """Completed with failures is 3; no traceback and no warning reaches the terminal."""
    assert first.returncode == 3, first.stderr
    assert "Completed with failures: 3 succeeded, 2 failed, 2 refused" in first.stdout
    assert "In the Prefect UI: http://127.0.0.1:" in first.stdout
    for word in ("Traceback", "Warning", "ERROR", "Error"):
        assert word not in first.stdout + first.stderr


def test_results_have_every_row_in_order_with_its_status(shop: Shop, first: object) -> None:
    """The input's columns, rows and order; products on the rows that have them, reasons on the others."""
    rows = rows_of(shop.latest("spring") / "results.csv")
    assert [row["sku"] for row in rows] == [row[0] for row in ROWS]
    assert [row["status"] for row in rows] == ["succeeded"] * 3 + ["failed"] * 2 + ["refused"] * 2
    assert all(bool(row["product_id"]) == (row["status"] == "succeeded") for row in rows)
    assert rows[0]["pattern_id"] == rows[1]["pattern_id"] != rows[2]["pattern_id"]
    assert rows[0]["note"] == "'=note 0"
    assert [row["error_code"] for row in rows[5:]] == ["unknown_category", "unknown_value"]
    assert "did you mean `linen`?" in rows[6]["error"]
    assert [row["sku"] for row in rows_of(shop.latest("spring") / "failures.csv")] == [
        "A-4",
        "A-5",
        "A-6",
        "A-7",
    ]


def test_manifest_counts_and_checksums_hold(shop: Shop, first: object) -> None:
    """The manifest and results.jsonl also match their documented schemas."""
    manifest = json.loads((shop.latest("spring") / "manifest.json").read_text())
    docs = CHECKOUT / "docs"
    jsonschema.validate(manifest, json.loads((docs / "manifest.schema.json").read_text()))
    schema = json.loads((docs / "results.schema.json").read_text())
    for line in (shop.latest("spring") / "results.jsonl").read_text("utf-8").split("\n")[:-1]:
        jsonschema.validate(json.loads(line), schema)
    assert manifest["outcome"] == "CompletedWithFailures"
    assert (manifest["machine"], manifest["versions"]["prefect"]) == (gethostname(), prefect.__version__)
    assert sum(manifest["counts"]["by_status"].values()) == manifest["counts"]["rows"] == len(ROWS)
    for name, sha256 in manifest["files"].items():
        assert hashlib.sha256((shop.latest("spring") / name).read_bytes()).hexdigest() == sha256


def test_each_product_belongs_to_its_row(shop: Shop, first: object) -> None:
    """The studio's own record has the row's pattern, category and selections; nothing was bought twice."""
    lines = [line for line in read_record(shop.home / "studio" / "studio.db") if line.verdict == "accepted"]
    assert len({line.request_id for line in lines}) == len(lines)
    products = [line.body for line in lines if line.operation == "products/create"]
    bought = Counter((body["selections"]["size"], body["selections"]["fabric"]) for body in products)
    assert bought[("50x50", "linen")] == bought[("60x40", "velvet")] == 1


def test_run_with_nothing_to_do_starts_no_server(shop: Shop, first: object) -> None:
    """It has all that a run has, and draws nothing: pictures are drawn when somebody looks."""
    before, results = shop.creates(), rows_of(shop.latest("spring") / "results.csv")
    again = shop.run("import", "spring.csv")
    assert again.returncode == 3, again.stderr
    assert "Nothing to do." in again.stdout
    assert "Prefect server" not in again.stderr
    assert shop.creates() == before
    assert rows_of(shop.latest("spring") / "results.csv") == results
    assert not (shop.latest("spring") / "pictures").exists()


def test_prefect_record_is_complete(record: Mapping[str, list[dict[str, Any]]]) -> None:
    """Every run is in a final state; failed items read as failed; names say what is made."""
    for run in (*record["flow_runs"], *record["task_runs"]):
        assert run["state"]["type"] not in OPEN_STATES, run["name"]
    states = {run["name"]: run["state"] for run in record["flow_runs"]}
    state = states["import spring"]
    assert (state["type"], state["name"]) == ("FAILED", "CompletedWithFailures")
    assert "3 succeeded" in state["message"]
    items = {run["name"]: run["state"] for run in record["task_runs"]}
    assert items[f"pattern · {HERONS}"]["type"] == items["product · A-2"]["type"] == "COMPLETED"
    assert items["pattern · Broken looms [fail]"]["type"] == items["product · A-5"]["type"] == "FAILED"
    assert not {"product · A-4", "product · A-6", "product · A-7"} & set(items)


def test_task_runs_are_the_work(shop: Shop, record: Mapping[str, list[dict[str, Any]]]) -> None:
    """Each begins just before its item's first write, and ends just after its last; Prefect retries none."""
    shown = {run["name"]: run for run in record["task_runs"]}
    with (
        closing(open_database(f"sqlite:///{shop.home}/embedded/ledger.sqlite3")) as database,
        database.transaction(),
    ):
        written = list(database.rows(ITEM_TIMES))
    assert len(written) == 8
    for stage, content, sku, first, last in written:
        run = shown[f"{stage} · {json.loads(content)['prompt'] if stage == 'pattern' else sku}"]
        begun, ended = (datetime.fromisoformat(run[edge]).timestamp() for edge in ("start_time", "end_time"))
        assert begun <= first <= begun + CLOSE and last <= ended <= last + CLOSE, run["name"]
    runs = [run for kind in ("flow_runs", "task_runs") for run in record[kind]]
    assert {run["run_count"] for run in runs if run["state"]["type"] == "FAILED"} == {1}


def test_run_has_progress_and_summary(record: Mapping[str, list[dict[str, Any]]]) -> None:
    artifacts = {artifact["key"].rpartition("-")[2]: artifact for artifact in record["artifacts"]}
    assert artifacts.keys() == {"progress", "summary"}
    assert artifacts["progress"]["data"] == 100.0
    assert "| 7 | A-6 | refused | unknown_category |" in artifacts["summary"]["data"]


def test_results_that_cannot_be_written_are_the_end_of_the_command(
    tmp_path: Path, joint_server: OwnServer
) -> None:
    """It says what was made and why it is in no file, with exit code 1; the Prefect UI does not say Completed."""
    settle_at(joint_server, tmp_path / ".patternmill")
    (tmp_path / "tea.csv").write_text(ONE_ROW)
    (tmp_path / "out" / "results.csv" / "in-the-way").mkdir(parents=True)
    ended = Shop(tmp_path).run("import", "tea.csv", "--out", "out")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "Completed: 1 succeeded" in ended.stdout
    assert "The results could not be written to out: " in ended.stderr
    assert "then `patternmill results " in ended.stderr
    assert "To go on" not in ended.stdout
    flow_run = ended.stdout.partition("/runs/flow-run/")[2].split()[0]
    state = api_of(joint_server).get(f"flow_runs/{flow_run}")["state"]
    assert (state["type"], state["name"]) == ("FAILED", "Failed")
    assert "could not be written" in state["message"]
