"""A plan that waits for a person, from the command line: refused, asked about on a terminal, approved."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.embedded_studio import embedded_studio
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.records import Approval
from prefect_host.own_server import OwnServer
from tests.acceptance.prefect_servers import run_process, settle_at

COMMAND = Path(sys.executable).with_name("patternmill")
ROWS = """sku,prompt,category,option:size,option:fabric
H-1,blue herons,Cushion,50x50,linen
H-2,green ferns,Cushion,50x50,linen
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATTERNMILL_HOME": str(tmp_path / "home"),
        "PATTERNMILL_APPROVE_ABOVE_ITEMS": "3",
        "PATTERNMILL_PATTERN_PRICE": "50",
        "PATTERNMILL_PRODUCT_PRICE": "200",
    }


@pytest.fixture
def command(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Run a verb in a folder of its own, without a terminal."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_process([str(COMMAND), *arguments], cwd=tmp_path, env=environment, timeout=180)

    return run


def on_a_terminal(
    answer: str, arguments: list[str], folder: Path, environment: dict[str, str]
) -> tuple[int, str]:
    """Run a verb on a terminal, and answer its first question; its exit code and what it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), *arguments], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, answered, until = "", False, time.monotonic() + 180
    while time.monotonic() < until:
        if select.select([ours], [], [], 1.0)[0]:
            try:
                shown += os.read(ours, 65536).decode("utf-8", "replace")
            except OSError:
                # The other end is closed: the process has ended.
                break
        if not answered and shown.rstrip().endswith("[y/N]:"):
            os.write(ours, f"{answer}\n".encode())
            answered = True
    code = process.wait(timeout=60)
    os.close(ours)
    return code, shown


def approvals(home: Path) -> list[Approval]:
    ledger = Ledger(open_database(None, home))
    try:
        return ledger.approvals()
    finally:
        ledger.close()


def test_plan_is_refused_then_prompted_for_then_approved(
    command: Run,
    environment: dict[str, str],
    tmp_path: Path,
    joint_server: OwnServer,
) -> None:
    """Nothing is on record before a person agrees; then the same command runs, and shows who approved."""
    (tmp_path / "spring.csv").write_text(ROWS)
    ledger = tmp_path / "home" / "ledger.sqlite3"
    settle_at(joint_server, tmp_path / "home")
    with embedded_studio(tmp_path / "studio", pace="instant") as studio:
        environment["PATTERNMILL_STUDIO_URL"] = studio.url
        environment["PATTERNMILL_API_KEY"] = studio.key.get_secret_value()

        refused = command("import", "spring.csv")
        assert refused.returncode == 2
        named = re.search(r"--approve ([0-9a-f]{12})`", refused.stderr)
        assert (
            named is not None
            and "4 items for at least 500 units, at most 1,000 units if jobs fail" in refused.stderr
        )
        digest = named[1]
        assert digest in command("import", "spring.csv", "--plan-only").stdout

        code, shown = on_a_terminal("n", ["import", "spring.csv"], tmp_path, environment)
        assert (code, "the plan was not approved" in shown) == (2, True), shown
        assert (
            f"Approve plan {digest}: 4 items for at least 500 units, at most 1,000 units if jobs fail"
            in shown
        )
        assert not ledger.exists()

        code, shown = on_a_terminal("y", ["import", "spring.csv"], tmp_path, environment)
        assert code == 0, shown
        (decided,) = approvals(tmp_path / "home")
        assert (decided.short, decided.purchases, decided.amount) == (digest, 4, 500)
        assert decided.who is not None and "@" in decided.who
