"""One checkout, whatever happens: lost answers, kills, a secret address; judged by the record of the studio."""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import run
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.checkouts import checkouts
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from studio.testing import Studio
from tests.acceptance.prefect_servers import run_process
from tests.integrity import problems
from tests.quick_writer import quick_writer as quick_writer

#: Runs the command and does something to it at one of the points that it passes: see tests/acceptance/points.py.
CHILD = """
import sys
log, at, do = sys.argv[1:4]
from pathlib import Path
from tests.acceptance.points import watch
watch(Path(log), at=at or None, do=do or None)
from cli.main import main
main(sys.argv[4:])
"""
ROOT = Path(__file__).resolve().parents[3]
ORDER = ("order", "--sku", "S-1", "--sku", "S-2", "--lines", "1")
CATALOG = "sku,prompt,category,option:size,option:fabric\n" + "".join(
    f"S-{number},{number} blue herons,Cushion,50x50,linen\n" for number in (1, 2)
)


@dataclass
class Shop:
    """A studio with two products, and a home from which they are ordered."""

    studio: Studio
    folder: Path

    def command(self, *arguments: str, at: str = "", do: str = "") -> subprocess.CompletedProcess[str]:
        log = self.folder / "points"
        return run_process(
            [sys.executable, "-c", CHILD, str(log), at, do, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=120,
        )

    def opened(self) -> list[tuple[str, str]]:
        """Return the checkouts in the studio's database, each with the secret of its address."""
        with closing(sqlite3.connect(f"file:{self.studio.home / 'studio.db'}?mode=ro", uri=True)) as database:
            return database.execute(
                "SELECT checkout_id, page_id FROM checkout ORDER BY created_at"
            ).fetchall()

    def judge(self) -> None:
        """Two checkouts at the studio, one a row, both known here; and the ledger agrees with itself."""
        with open_ledger(load_settings()) as ledger:
            recorded = sorted(str(record.checkout_id) for record in checkouts(ledger))
            assert list(problems(ledger)) == []
        assert sorted(checkout_id for checkout_id, _ in self.opened()) == recorded and len(recorded) == 2
        assert self.studio.meter.double_purchases == []


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def shop(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    studio.reset()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", studio.base_url)
    monkeypatch.setenv("PATTERNMILL_API_KEY", studio.key)
    (tmp_path / "spring.csv").write_text(CATALOG)
    asyncio.run(run_through(ImportRequest(file=tmp_path / "spring.csv")))
    return Shop(studio, tmp_path)


async def run_through(request: ImportRequest) -> None:
    async with Run(run_spec(request)) as work:
        await work.run_through()


def verb(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in this process, which is quicker."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize("point", ["after checkouts/create #1", "before checkouts/create #2"])
def test_killed_command_opens_each_checkout_once(shop: Shop, point: str) -> None:
    """Before the second intent's request, and after an answer that is lost."""
    killed = shop.command(*ORDER, at=point, do="kill")
    assert killed.returncode == -9, killed.stderr
    again = verb(*ORDER)
    assert again.returncode == 0, again.stderr
    shop.judge()


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("deed", ["kill", "raise"])
def test_crash_at_every_point(shop: Shop, deed: str) -> None:
    """The points come from a dry run, so that none is forgotten; each on a state as it was before the first order."""
    dry = shop.command(*ORDER, "--order", "dry")
    assert dry.returncode == 0, dry.stderr
    points = [line for line in (shop.folder / "points").read_text().splitlines() if "#" in line]
    assert {"before checkouts/create #1", "after checkouts/create #2"} <= set(points)
    hit = 0
    for number, point in enumerate(points):
        before = set(shop.opened())
        (shop.folder / "points").unlink()
        name = ("--order", f"crash-{number}")
        first = shop.command(*ORDER, *name, at=point, do=deed)
        hit += "HERE" in (shop.folder / "points").read_text()
        again = shop.command(*ORDER, *name)
        assert again.returncode == 0, (point, first.stderr, again.stderr)
        opened = {checkout_id for checkout_id, _ in set(shop.opened()) - before}
        with open_ledger(load_settings()) as ledger:
            records = [record for record in checkouts(ledger) if record.order_name == f"crash-{number}"]
        assert {record.checkout_id for record in records} == opened, (point, first.stderr)
        assert len(opened) == 2, (point, first.stderr)
    print(f"{deed}: {hit} of {len(points)} points")
    assert hit > 0.9 * len(points), "too many points were not reached"
    with open_ledger(load_settings()) as ledger:
        assert list(problems(ledger)) == []


def test_address_is_shown_to_its_owner_and_kept_nowhere(shop: Shop) -> None:
    """Printed for the person who ordered, and again when they ask, which opens nothing; no more once it is paid."""
    done = verb(*ORDER)
    assert done.returncode == 0, done.stderr
    (first, secret), (second, other) = opened = shop.opened()
    assert secret in done.stdout and other in done.stdout
    assert secret not in done.stderr and other not in done.stderr

    listed = [
        *(("status",), ("explain", "S-1"), ("explain", first)),
        *(("order", "--refresh"), ("results", "--out", str(shop.folder / "again"))),
    ]
    shown = "".join(done.stdout + done.stderr for done in (verb(*words) for words in listed))
    assert first in shown and second in shown and secret not in shown and other not in shown
    files = [path.read_bytes() for path in shop.folder.rglob("*") if path.is_file()]
    assert not any(page.encode() in raw for raw in files for page in (secret, other))

    again = verb("order", "--address", first)
    assert secret in again.stdout, again.stderr
    assert shop.opened() == opened
    shop.studio.pay(first)
    paid = verb("order", "--address", first)
    assert "is paid" in paid.stdout and secret not in paid.stdout
    shop.studio.control("checkout/cancel", checkoutId=second)
    assert f"Checkout {second} is cancelled" in verb("order", "--refresh").stdout
