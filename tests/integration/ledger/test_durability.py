"""What `write` acknowledged is there, however the process ends in the next instant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patternmill.ledger.ledger import Ledger, open_database

ROOT = Path(__file__).resolve().parents[3]

#: Says each attempt that was acknowledged, the instant it was.
WRITING = """
import asyncio, sys
from pathlib import Path
from patternmill.ledger.ledger import open_database
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.ledger import LedgerWriter
from tests.integration.ledger.samples import CATALOG, RUN, STAGING, UNLIMITED, intent, item

async def main(url, first):
    writer = LedgerWriter(Ledger(open_database(url, Path("unused"))))

    async def buy(name):
        def change(ledger):
            ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
            return ledger.purchases.intend(RUN, STAGING, intent(name), UNLIMITED)
        await writer.write(change)
        sys.stdout.write(name + "\\n")
        sys.stdout.flush()

    async def buy_many(task):
        for number in range(10_000):
            await buy(f"{first}-{task}-{number}")

    await asyncio.gather(*(buy_many(task) for task in range(8)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def acknowledged_until_killed(url: str, round_: int, lines: int) -> list[str]:
    """Let a process write, and kill it when it has acknowledged so many changes."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, url, str(round_)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        printed = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        printed += process.stdout.read().splitlines(keepends=False)
    assert process.wait() == -signal.SIGKILL
    return [name for name in printed if name]


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_killed_process_loses_no_acknowledged_write(url: str) -> None:
    """SIGKILL as soon as a write returned, several times over one ledger; every acknowledged change is there."""
    acknowledged: set[str] = set()
    for round_, lines in enumerate((1, 9, 40)):
        printed = acknowledged_until_killed(url, round_, lines)
        # The last line may have been cut short by the kill.
        acknowledged |= set(printed[:-1] if len(printed) > lines else printed)
        ledger = Ledger(open_database(url, Path("unused")))
        found = {key for (key,) in ledger.database.rows("SELECT item_key FROM attempts")}
        noted = {name for (name,) in ledger.database.rows("SELECT request_id FROM events")}
        if url.startswith("sqlite"):
            assert ledger.database.rows("PRAGMA integrity_check") == [("ok",)]
        ledger.close()
        assert acknowledged <= found
        assert noted == {f"{name}/1" for name in found}
