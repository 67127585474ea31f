"""The flow order-samples on a real Prefect server: its states, its tasks, its page; and never an address."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from studio.testing import Studio
from tests.acceptance.prefect_servers import run_process
from tests.integration.deployments.conftest import CHECKOUT, Ask
from tests.integration.orders.shop import CATALOG, Shop

#: Runs the flow once for each set of parameters.
RUN = """
import asyncio, json, sys
from flows.order_samples import order_samples
for parameters in sys.argv[1:]:
    state = asyncio.run(order_samples(**json.loads(parameters), return_state=True))
    print(state.type.value, state.name, state.message, sep="|")
"""


@pytest.mark.slow
def test_order_on_a_server(
    environment: dict[str, str], ask: Ask, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened once, however often it runs; a checkout that is refused is red, and the others go on."""
    with Studio() as studio:
        ours = {
            "PATTERNMILL_HOME": str(tmp_path / "home"),
            "PATTERNMILL_STUDIO_URL": studio.base_url,
            "PATTERNMILL_API_KEY": studio.key,
        }
        for name, value in ours.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        shop = Shop(studio, tmp_path)
        shop.imported_now(CATALOG)
        with shop.ledger() as ledger, ledger.transaction():
            ledger.database.execute("UPDATE catalog_rows SET product_id = 'prd_gone' WHERE sku = 'S-2'")
        done = run_process(
            [
                *(sys.executable, "-c", RUN),
                json.dumps({"sku": ["S-1", "S-3"], "quantity": 2}),
                json.dumps({"sku": ["S-1", "S-3"], "quantity": 2}),
                json.dumps({"sku": ["S-2", "S-4"], "lines": 1, "order": "others"}),
            ],
            cwd=CHECKOUT,
            env={**environment, **ours},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-3:] == [
            "COMPLETED|Completed|1 checkout: 0 paid, 1 open",
            "COMPLETED|Completed|1 checkout: 0 paid, 1 open",
            "FAILED|CompletedWithFailures|2 checkouts: 0 paid, 1 open, 1 not opened",
        ]
        assert len(shop.opened()) == 2
        secrets = [shop.page_of(checkout_id) for checkout_id in shop.opened()]
    pages = ask("artifacts/filter", {"artifacts": {"key": {"any_": ["order-spring-samples"]}}})
    assert len(pages) == 2
    assert all("S-3" in page["data"] and "patternmill order --address" in page["data"] for page in pages)
    database = b"".join(path.read_bytes() for path in (home / "prefect").glob("prefect.db*"))
    seen = done.stdout + done.stderr + database.decode("latin-1")
    assert "order-spring-samples" in seen and not any(secret in seen for secret in secrets)
