"""The verbs that look at the ledger are quick at 100,000 rows, measured as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from patternmill.identifiers import RunId
from patternmill.ledger.database import open_database
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord

ROWS = 100_000
#: Rows that share a pattern.
SHARED = 4
STARTED = 1_800_000_000.0
#: What a call may take of processor time: wall-clock time depends on the load of the machine.
SECONDS = 2.0
HEAVY = ("prefect", "pandas", "numpy", "httpx", "aiohttp", "fastapi", "PIL", "sqlalchemy")
STANDING = {
    "status": "succeeded",
    "error_code": None,
    "error": None,
    "remedy": None,
    "pattern": 1,
    "product": 1,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of one complete run, written in bulk."""
    home = tmp_path_factory.mktemp("home")
    ledger = Ledger(open_database(None, home))
    with ledger.transaction():
        ledger.add_run(_record(), b"sku,prompt,category\n")
        for sql, records in _tables():
            ledger.database.execute_many(sql, records)
    ledger.close()
    return home


@pytest.mark.parametrize("name", ["S-77777", "job-product-77777", "made-pattern-19444", "request-product-3"])
def test_explain_is_quick_on_many_rows(home: Path, name: str) -> None:
    """By any name of the row, with nothing heavy loaded for it."""
    printed, seconds = _measured(home, "explain", name)
    assert "in catalog spring" in printed
    assert seconds < SECONDS


def test_status_is_quick_on_many_rows(home: Path) -> None:
    printed, seconds = _measured(home, "status")
    assert f"{ROWS:,} succeeded" in printed
    assert seconds < SECONDS


def _measured(home: Path, *arguments: str) -> tuple[str, float]:
    """The output of a verb, and its processor time as it reports it at its end."""
    program = (
        "import sys, time; from cli import main; code = main.run(sys.argv[1:]); "
        f"assert not [name for name in {HEAVY!r} if name in sys.modules]; "
        "print(time.process_time(), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PATTERNMILL_HOME": str(home)},
        cwd=Path(__file__).resolve().parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, float(done.stderr.strip())


def _record() -> RunRecord:
    return RunRecord(
        run_id=RunId("run-1"),
        catalog="spring",
        environment="staging",
        source="spring.csv",
        input_sha256="ab",
        input_encoding="utf-8",
        studio_url="http://127.0.0.1:9/v1",
        started_at=datetime.fromtimestamp(STARTED, UTC),
    )


def _tables() -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    names: Callable[[], Iterator[tuple[str, int]]] = lambda: (  # noqa: E731
        (stage, number)
        for stage, count in (("pattern", ROWS // SHARED), ("product", ROWS))
        for number in range(count)
    )
    yield (
        "INSERT INTO items (key, environment, catalog, stage, sku, pattern_key, content, created_at) "
        "VALUES (:key, 'staging', 'spring', :stage, :sku, :pattern, :content, 0)",
        (_item(stage, number) for stage, number in names()),
    )
    yield (
        "INSERT INTO attempts (request_id, item_key, attempt, state, body, run_id, job_id, result_id, "
        "intended_at, accepted_at, ended_at) VALUES ('request-' || :name, :name, 1, 'succeeded', :body, 'run-1', "
        "'job-' || :name, 'made-' || :name, :at, :at, :at)",
        ({"name": f"{stage}-{number}", "body": b"x" * 300, "at": STARTED} for stage, number in names()),
    )
    for kind in ("intended", "accepted", "succeeded"):
        yield (
            "INSERT INTO events (at, run_id, request_id, kind) VALUES (:at, 'run-1', 'request-' || :name, :kind)",
            ({"name": f"{stage}-{number}", "at": STARTED, "kind": kind} for stage, number in names()),
        )
    yield (
        "INSERT INTO run_rows VALUES ('run-1', :n, :n + 2, 'S-' || :n, :pattern, 'product-' || :n, :row, :standing)",
        (_row(number) for number in range(ROWS)),
    )
    ended = {"at": STARTED + 3600, "outcome": "Completed"}
    yield "UPDATE runs SET ended_at = :at, outcome = :outcome", iter([ended])
    yield "UPDATE runs SET record = json_set(record, '$.outcome', 'Completed')", iter([{}])


def _item(stage: str, number: int) -> dict[str, Any]:
    of_product = stage == "product"
    return {
        "key": f"{stage}-{number}",
        "stage": stage,
        "sku": f"S-{number}" if of_product else None,
        "pattern": f"pattern-{number // SHARED}" if of_product else None,
        "content": json.dumps({"prompt": f"herons no. {number}, " + "reeds " * 30}),
    }


def _row(number: int) -> dict[str, Any]:
    row = {
        "prompt": f"herons no. {number // SHARED}, " + "reeds " * 30,
        "category": "cat_1",
        "selections": {},
    }
    return {
        "n": number,
        "pattern": f"pattern-{number // SHARED}",
        "row": json.dumps(row),
        "standing": json.dumps(STANDING),
    }
