"""What a killed studio knows when it is started again, and keys that come and go while it runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from studio.service import Service
from studio.store import Store

from .conftest import StudioProcess

MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "11oz", "finish": "matte"}}


def keys(home: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "studio", "keys", "--home", str(home), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def result(studio: StudioProcess, operation: str, body: dict[str, object]) -> dict[str, str]:
    found = studio.ended(studio.ask(operation, body).body)["result"]
    assert isinstance(found, dict)
    return found


def pay(home: Path, page_id: str) -> str:
    """From this process, while the studio runs: the order's ID."""
    store = Store(home / "studio.db")
    try:
        service = Service(store)
        checkout = service.store.checkouts.one(page_id=page_id)
        assert checkout is not None
        return service.checkouts.pay(checkout).order_id
    finally:
        store.close()


def test_everything_survives_a_kill(new_studio: StudioProcess) -> None:
    """From the prompt to the order, killed after each thing that is paid for."""
    new_studio.arguments = ("--pace", "instant")

    def restart() -> None:
        if new_studio.process is not None:
            new_studio.end(signal.SIGKILL)
        new_studio.start()

    restart()
    pattern = result(new_studio, "patterns/create", {"requestId": "1", "prompt": "ferns"})["patternId"]
    restart()
    repeated = result(new_studio, "patterns/create", {"requestId": "1", "prompt": "ferns"})
    assert repeated["patternId"] == pattern
    recolor = {"requestId": "2", "patternId": pattern, "palette": ["#203040", "#f0e0d0"]}
    recolored = result(new_studio, "refine/recolor", recolor)["patternId"]
    restart()
    product = result(new_studio, "products/create", {"requestId": "3", "patternId": recolored, **MUG})
    order = {"requestId": "4", "lines": [{"productId": product["productId"], "quantity": 2}]}
    checkout = new_studio.ask("checkouts/create", order).body
    restart()
    assert _without_address(new_studio.ask("checkouts/create", order).body) == _without_address(checkout)
    order_id = pay(new_studio.home, str(checkout["checkoutUrl"]).rsplit("/", 1)[-1])
    restart()

    found = new_studio.ask("orders/get", {"checkoutId": checkout["checkoutId"]}).body
    assert (found["orderId"], found["total"]) == (order_id, checkout["total"])
    lineage = new_studio.ask("patterns/get", {"patternId": recolored}).body
    assert (lineage["parentPatternId"], lineage["change"]) == (
        pattern,
        {"operation": "recolor", "palette": recolor["palette"]},
    )


def _without_address(checkout: dict[str, object]) -> dict[str, object]:
    """Each start takes another port."""
    return {**checkout, "checkoutUrl": str(checkout["checkoutUrl"]).rsplit("/", 1)[-1]}
