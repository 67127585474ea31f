"""Orders against a real studio, whose own record judges what came of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts
from patternmill.orders.order_plan import OrderPlan, OrderSpec, order_spec
from patternmill.orders.ordering import Ordering
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest, OrderRequest
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from studio.testing import Studio

CATALOG = "sku,prompt,category,option:size,option:fabric\n" + "".join(
    f"S-{number},{number} blue herons,Cushion,50x50,linen\n" for number in range(1, 6)
)
SKUS = tuple(f"S-{number}" for number in range(1, 6))


@dataclass
class Shop:
    """One catalog, one home, one studio; every call is another command."""

    studio: Studio
    folder: Path

    async def imported(self, text: str) -> str:
        """Import a catalog without Prefect; the run's ID."""
        file = self.folder / "spring.csv"
        file.write_text(text, encoding="utf-8")
        async with Pipeline(run_spec(ImportRequest(file=file))) as work:
            await work.run_through()
            return work.ended.record.run_id

    def imported_now(self, text: str) -> str:
        return asyncio.run(self.imported(text))

    def spec(self, *skus: str, **options: Any) -> OrderSpec:
        return order_spec(OrderRequest(sku=skus, **options))

    def plan(self, *skus: str, **options: Any) -> OrderPlan:
        async def main() -> OrderPlan:
            async with Ordering(self.spec(*skus, **options)) as work:
                return await work.plan()

        return asyncio.run(main())

    def order(
        self,
        *skus: str,
        wait: float | None = None,
        on_open: Callable[[CheckoutRecord], None] = lambda record: None,
        **options: Any,
    ) -> Ordering:
        """A whole order, as the verb drives it; `wait` in seconds."""

        async def main() -> Ordering:
            async with Ordering(self.spec(*skus, **options)) as work:
                plan = await work.plan()
                await work.begin(plan)
                for item, _ in plan.checkouts:
                    on_open(await work.open(item))
                await work.close()
                if wait is not None:
                    await work.wait(timedelta(seconds=wait), sleep=lambda seconds: asyncio.sleep(0.01))
                return work

        return asyncio.run(main())

    def address(self, checkout_id: str) -> str:
        async def main() -> str:
            async with Ordering(self.spec(SKUS[0])) as work:
                record = next(one for one in self.checkouts() if one.checkout_id == checkout_id)
                return await work.address(record)

        return asyncio.run(main())

    def ledger(self) -> Ledger:
        return open_ledger(load_settings())

    def checkouts(self) -> list[CheckoutRecord]:
        with self.ledger() as ledger:
            return checkouts(ledger)

    def opened(self) -> list[str]:
        """The checkouts that the studio has, by its own database."""
        return [str(row[0]) for row in self._asked("SELECT checkout_id FROM checkout ORDER BY created_at")]

    def page_of(self, checkout_id: str) -> str:
        """The secret part of a checkout's address."""
        return str(self._asked("SELECT page_id FROM checkout WHERE checkout_id = ?", checkout_id)[0][0])

    def orders(self) -> list[str]:
        return [str(row[0]) for row in self._asked("SELECT order_id FROM orders ORDER BY paid_at")]

    def _asked(self, sql: str, *params: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.studio.home / 'studio.db'}?mode=ro", uri=True)
        try:
            return connection.execute(sql, params).fetchall()
        finally:
            connection.close()
