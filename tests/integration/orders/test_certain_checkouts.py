"""One checkout, whatever happens: lost answers, kills, two processes at once; judged by the record of the studio."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cli.main import run
from patternmill.states import Outcome
from tests.acceptance.prefect_servers import run_process
from tests.integration.orders.shop import Shop
from tests.integrity import problems

#: The command, with something done to it at one point of those that it passes: see tests/acceptance/points.py.
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
#: Before and after the intent is durable; before the request, after its answer, and after that is on record.
QUICK = ("after checkouts/create #1", "before checkouts/create #2")


def command(shop: Shop, *arguments: str, at: str = "", do: str = "") -> subprocess.CompletedProcess[str]:
    log = shop.folder / "points"
    return run_process(
        [sys.executable, "-c", CHILD, str(log), at, do, *arguments],
        cwd=shop.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )


def verb(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which is quicker."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def judged(shop: Shop) -> None:
    """Two checkouts at the studio, one a row, both known here; and the ledger agrees with itself."""
    recorded = sorted(str(record.checkout_id) for record in shop.checkouts())
    assert sorted(shop.opened()) == recorded and len(recorded) == 2
    assert shop.studio.meter.double_purchases == []
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_lost_answer_opens_one_checkout(shop: Shop) -> None:
    close = {"kind": "close", "when": "after"}
    shop.studio.faults.use({"name": "lost", "on": "checkouts/create", "effect": close, "nth": [1]})
    assert shop.order("S-1", "S-2", lines=1).outcome is Outcome.COMPLETED
    assert shop.studio.faults.unfired == []
    judged(shop)


@pytest.mark.parametrize("point", QUICK)
def test_killed_command_opens_each_checkout_once(shop: Shop, point: str) -> None:
    killed = command(shop, *ORDER, at=point, do="kill")
    assert killed.returncode == -9, killed.stderr
    again = command(shop, *ORDER)
    assert again.returncode == 0, again.stderr
    judged(shop)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("deed", ["kill", "raise"])
def test_crash_at_every_point(shop: Shop, deed: str) -> None:
    """The points come from a dry run, so that none is forgotten; each on a state as it was before the first order."""
    dry = command(shop, *ORDER, "--order", "dry")
    assert dry.returncode == 0, dry.stderr
    points = [line for line in (shop.folder / "points").read_text().splitlines() if "#" in line]
    assert {"before checkouts/create #1", "after checkouts/create #2"} <= set(points)
    hit = 0
    for number, point in enumerate(points):
        before = set(shop.opened())
        (shop.folder / "points").unlink()
        name = ("--order", f"crash-{number}")
        first = command(shop, *ORDER, *name, at=point, do=deed)
        hit += "HERE" in (shop.folder / "points").read_text()
        again = command(shop, *ORDER, *name)
        assert again.returncode == 0, (point, first.stderr, again.stderr)
        opened = set(shop.opened()) - before
        assert len(opened) == 2, (point, first.stderr)
        records = [record for record in shop.checkouts() if record.order_name == f"crash-{number}"]
        assert {record.checkout_id for record in records} == opened, point
    print(f"{deed}: {hit} of {len(points)} points")
    assert hit > 0.9 * len(points), "too many points were not reached"
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_address_is_shown_to_its_owner_and_kept_nowhere(shop: Shop) -> None:
    """Printed for the person who ordered, and again when they ask, which opens nothing; no more once it is paid."""
    done = verb(*ORDER)
    assert done.returncode == 0, done.stderr
    checkouts = shop.opened()
    secrets = [shop.page_of(checkout_id) for checkout_id in checkouts]
    assert all(secret in done.stdout for secret in secrets) and not any(s in done.stderr for s in secrets)

    listed = [
        *(("status",), ("explain", "S-1"), ("explain", checkouts[0])),
        *(("order", "--refresh"), ("results", "--out", str(shop.folder / "again"))),
    ]
    shown = "".join(done.stdout + done.stderr for done in (verb(*words) for words in listed))
    assert all(checkout_id in shown for checkout_id in checkouts)
    assert not any(secret in shown for secret in secrets)
    files = [path for path in shop.folder.rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files for secret in secrets)

    again = verb("order", "--address", checkouts[0])
    assert secrets[0] in again.stdout, again.stderr
    assert shop.opened() == checkouts
    shop.studio.pay(checkouts[0])
    paid = verb("order", "--address", checkouts[0])
    assert "is paid" in paid.stdout and secrets[0] not in paid.stdout
