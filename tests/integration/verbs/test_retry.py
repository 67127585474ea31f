"""`patternmill retry` as a process, three times in a row, against a studio that fails on purpose."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.embedded_studio import embedded_studio
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.reports.integrity import problems
from prefect_host.own_server import OwnServer
from tests.acceptance.prefect_servers import run_process, settle_at

COMMAND = Path(sys.executable).with_name("patternmill")
ROWS = """sku,prompt,category,option:size,option:fabric
GOOD,blue herons,Cushion,50x50,linen
ONCE-1,green ferns [fail once],Cushion,50x50,linen
ONCE-2,green ferns [fail once],Cushion,60x40,velvet
NEVER,red foxes [fail product],Cushion,50x50,linen
"""
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run a verb of the command in a folder of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        home = {"PATTERNMILL_HOME": str(tmp_path / "home")}
        return run_process(
            [str(COMMAND), *arguments], cwd=tmp_path, env={**os.environ, **home, **environment}, timeout=120
        )

    return run


def statuses(folder: Path) -> dict[str, str]:
    with (folder / "results" / "spring" / "latest" / "results.csv").open(
        encoding="utf-8-sig", newline=""
    ) as file:
        return {row["sku"]: row["status"] for row in csv.DictReader(file)}


def attempts(home: Path) -> Counter[tuple[str, str]]:
    """How many requests there were, by stage and what came of them."""
    ledger = Ledger(open_database(None, home))
    try:
        assert list(problems(ledger)) == []
        rows = ledger.database.rows(
            "SELECT i.stage, a.state FROM attempts a JOIN items i ON i.key = a.item_key"
        )
    finally:
        ledger.close()
    return Counter((stage, state) for stage, state in rows)


def test_three_retries_in_a_row(command: Command, tmp_path: Path, joint_server: OwnServer) -> None:
    """Each retries what failed, buys nothing that is paid for, and leaves results of the whole catalog."""
    (tmp_path / "spring.csv").write_text(ROWS)
    settle_at(joint_server, tmp_path / "home")
    # A service of its own, so that no command stops to draw pictures.
    with embedded_studio(tmp_path / "studio", pace="instant") as studio:
        service = {
            "PATTERNMILL_STUDIO_URL": studio.url,
            "PATTERNMILL_API_KEY": studio.key.get_secret_value(),
            "PATTERNMILL_ATTEMPTS": "1",
        }
        assert command("import", "spring.csv", **service).returncode == 3
        assert statuses(tmp_path) == {
            "GOOD": "succeeded",
            "ONCE-1": "failed",
            "ONCE-2": "failed",
            "NEVER": "failed",
        }

        refused = command("retry", **service)
        assert (refused.returncode, "3 rows: 3 failed" in refused.stdout) == (2, True)

        one = command("retry", "--sku", "ONCE-1", "--yes", **service)
        assert one.returncode == 3, one.stderr
        # ONCE-2 shares the pattern that was made now; it was not chosen, and waits for its product.
        assert statuses(tmp_path) == {
            "GOOD": "succeeded",
            "ONCE-1": "succeeded",
            "ONCE-2": "cancelled",
            "NEVER": "failed",
        }

        both = command("retry", "--yes", **service)
        assert (both.returncode, "2 rows: 1 failed, 1 cancelled" in both.stdout) == (3, True), both.stderr
        third = command("retry", "--yes", **service)
        assert "1 row: 1 failed" in third.stdout
        assert third.returncode == 3
        assert statuses(tmp_path) == dict.fromkeys(("GOOD", "ONCE-1", "ONCE-2"), "succeeded") | {
            "NEVER": "failed"
        }
    assert attempts(tmp_path / "home") == {
        ("pattern", "failed"): 1,
        ("pattern", "succeeded"): 3,
        ("product", "succeeded"): 3,
        ("product", "failed"): 3,
    }
    assert not (tmp_path / "home" / "retries").exists()
    shown = command("status").stdout
    assert shown.count("CompletedWithFailures") == 4
    assert "spring.csv" in command("explain", "NEVER").stdout
