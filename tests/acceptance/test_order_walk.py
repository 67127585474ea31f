"""The whole walk: a CSV becomes products, picks become a checkout, a person pays in a browser, and there is an order.

The import on a real Prefect server with a worker, against a real studio; with an approval and two kills on the way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.worker import children
from patternmill.ledger.ledger import Ledger, open_database
from studio.testing import Studio
from tests.acceptance.browser import Browser
from tests.acceptance.harness import CHECKOUT
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import Prefect, deployed, workers
from tests.integrity import problems

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ROWS = """sku,prompt,category,option:size,option:finish,reference,refine:recolor
W-1,blue herons on cream,Mug,11oz,matte,reeds.png,#1f3a5f #f2e8cf
W-2,red foxes in snow,Mug,11oz,matte,,
"""
PICTURE = CHECKOUT / "inputs" / "references" / "reeds.png"
PICKS = "sku,picked,quantity,note\nW-1,yes,5,for Anna\nW-2,x,,\n"
#: Six items of the import are bought without asking; seven pieces of the order wait for a person.
ABOVE = "6"


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with Studio(process=True, home=tmp_path / "studio") as studio:
        yield studio


@pytest.fixture
def prefect(studio: Studio, tmp_path: Path) -> Iterator[Prefect]:
    operations = tmp_path / "operations.json"
    operations.write_text(json.dumps({"staging": {"repeatable": True}}))
    service = {"PATTERNMILL_STUDIO_URL": studio.base_url, "PATTERNMILL_API_KEY": studio.key}
    settings = {
        "PATTERNMILL_OPERATIONS_FILE": str(operations),
        "PATTERNMILL_APPROVE_ABOVE_ITEMS": ABOVE,
    }
    with deployed(tmp_path / "home", service, **settings) as deployments:
        yield deployments


@pytest.fixture
def worker(prefect: Prefect, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with workers(prefect, tmp_path) as start:
        yield start()


def opened(studio: Studio) -> list[tuple[str, str]]:
    """The checkouts by the studio's own record, with the secret part of their addresses."""
    with closing(sqlite3.connect(f"file:{studio.home / 'studio.db'}?mode=ro", uri=True)) as database:
        return database.execute("SELECT checkout_id, page_id FROM checkout ORDER BY created_at").fetchall()


def command(prefect: Prefect, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        cwd=CHECKOUT,
        env=prefect.environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kept_with(secret: str, folder: Path) -> set[Path]:
    """The files that have it, the database of the Prefect server with its log among them."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path for path in files if secret.encode() in path.read_bytes()}


def kill_run(worker: subprocess.Popen[bytes]) -> None:
    """The process of the flow run that the worker has."""
    for child in children(worker.pid):
        os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not children(worker.pid), 30)


def import_killed_in_a_refinement(
    prefect: Prefect, studio: Studio, worker: subprocess.Popen[bytes], catalog: Any
) -> None:
    """Between a refinement and its record."""
    studio.faults.use({"on": "refine/recolor", "effect": {"kind": "delay", "after": 30}, "nth": [2]})
    flow_run = prefect.begin("bulk-import", **catalog)
    eventually(lambda: not studio.faults.unfired, 120, lambda: prefect.state(flow_run))
    kill_run(worker)
    studio.faults.clear()


def order_killed_in_the_middle(prefect: Prefect, studio: Studio, order: list[str]) -> None:
    """An order that is approved, and whose process is killed between the checkout and its record."""
    digest = re.search(r"\b[0-9a-f]{12,}\b", command(prefect, *order, "--plan-only"))
    assert digest is not None
    studio.faults.use({"on": "checkouts/create", "effect": {"kind": "delay", "after": 30}, "nth": [1]})
    ordering = [sys.executable, "-m", "cli.main", *order, "--approve", digest[0]]
    with subprocess.Popen(ordering, cwd=CHECKOUT, env=prefect.environment) as process:
        eventually(lambda: opened(studio), 120)
        process.kill()
    studio.faults.clear()


def test_from_a_file_to_an_order(
    prefect: Prefect, studio: Studio, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / "walk.csv").write_text(ROWS)
    shutil.copy(PICTURE, tmp_path)
    (tmp_path / "picks.csv").write_text(PICKS)
    catalog = {"file": str(tmp_path / "walk.csv"), "out": str(tmp_path / "out"), "environment": "staging"}
    import_killed_in_a_refinement(prefect, studio, worker, catalog)
    imported = prefect.begin("bulk-import", **catalog)
    assert prefect.ended(imported, within=120)["name"] == "Completed"

    picks = ["--picks", str(tmp_path / "picks.csv"), "--quantity", "2", "--environment", "staging"]
    order = ["order", *picks]
    order_killed_in_the_middle(prefect, studio, order)
    assert "1 checkout: 0 paid, 1 open." in command(prefect, *order)
    ((checkout_id, secret),) = opened(studio)

    shown = command(prefect, "order", "--address", checkout_id)
    (address,) = [line.partition("Pay here: ")[2] for line in shown.splitlines() if "Pay here" in line]
    assert address.endswith(secret)
    with Browser(tmp_path / "profile") as browser:
        browser.open(address)
        browser.shows("TEST: nothing is charged")
        button = browser.do("[...document.querySelectorAll('button')].map(one => one.textContent.trim())")
        browser.click(next(text for text in button if text.startswith("Pay")))
        browser.shows("Thank you")

    assert "1 checkout: 1 paid, 0 open." in command(prefect, *order, "--wait", "1m")
    found = studio.ask("orders/get", checkoutId=checkout_id)[1]
    assert str(found["orderId"]) in command(prefect, "explain", checkout_id)
    assert opened(studio) == [(checkout_id, secret)]
    assert studio.meter.double_purchases == []
    with Ledger(open_database(None, tmp_path / "home")) as ledger:
        assert list(problems(ledger)) == []
    worker.terminate()
    worker.wait(timeout=60)
    assert kept_with(secret, tmp_path / "home") | kept_with(secret, tmp_path / "out") == set()
    assert kept_with(secret, tmp_path) <= {
        *(tmp_path / "studio").rglob("*"),
        *(tmp_path / "profile").rglob("*"),
    }
