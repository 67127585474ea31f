"""Orders against a real studio, whose own record judges what came of them."""

from __future__ import annotations

import asyncio
import csv
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import Decision, patterns_of_products, record_decisions
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.reports.checkouts import CheckoutRecord, checkouts
from patternmill.orders.order_plan import Order
from patternmill.orders.ordering import Ordering
from patternmill.orders.picked_rows import read_order
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.runs.request import (
    ImportRequest,
    OrderRequest,
    RefreshRequest,
    RemakeRequest,
    RetryRequest,
)
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import Settings, in_environment, load_settings, read_settings
from patternmill.states import Decided
from studio.testing import Studio

CATALOG = "sku,prompt,category,option:size,option:fabric\n" + "".join(
    f"S-{number},{number} blue herons,Cushion,50x50,linen\n" for number in range(1, 6)
)
SKUS = tuple(f"S-{number}" for number in range(1, 6))


async def _run(request: ImportRequest | RefreshRequest | RemakeRequest | RetryRequest) -> str:
    async with Run(run_spec(request)) as work:
        await work.run_through()
        return work.ended.record.run_id


@dataclass
class Shop:
    """One catalog, one home, one studio; every call is another command."""

    studio: Studio
    folder: Path

    async def imported(self, text: str, name: str = "spring") -> str:
        """Import a catalog without Prefect; the run's ID."""
        file = self.folder / f"{name}.csv"
        file.write_text(text, encoding="utf-8")
        return await _run(ImportRequest(file=file))

    def imported_now(self, text: str, name: str = "spring") -> str:
        return asyncio.run(self.imported(text, name))

    @property
    def file(self) -> Path:
        """The catalog's own."""
        return self.folder / "spring.csv"

    def run(self, request: ImportRequest | RefreshRequest | RemakeRequest | RetryRequest) -> str:
        """Another run of the catalog; its ID."""
        return asyncio.run(_run(request))

    def latest_run(self) -> str:
        with self.ledger() as ledger:
            return ledger.runs.find()[0].run_id

    def catalog(self) -> dict[str, str]:
        """The product of each sku, as the verb `catalog` writes it."""
        with self.ledger() as ledger:
            return {row.sku: row.product_id for row in ledger.catalogs.rows("staging", "spring")}

    def results(self, run_id: str) -> dict[str, str]:
        """The product of each sku, as a run's results.csv has it."""
        with (self.folder / "results" / "spring" / run_id / "results.csv").open(encoding="utf-8-sig") as file:
            return {row["sku"]: row["product_id"] for row in csv.DictReader(file)}

    @property
    def settings(self) -> Settings:
        return in_environment(read_settings(), "staging")

    def asked(self, *skus: str, **options: Any) -> Order:
        return read_order(OrderRequest(sku=skus, **options))

    def plan(self, *skus: str, **options: Any) -> Order:
        async def main() -> Order:
            async with Ordering(self.settings) as work:
                return await work.plan(self.asked(*skus, **options))

        return asyncio.run(main())

    def order(
        self,
        *skus: str,
        wait: float | None = None,
        on_open: Callable[[CheckoutRecord], None] = lambda record: None,
        **options: Any,
    ) -> Order:
        """A whole order, as the verb drives it; `wait` in seconds."""

        async def show(record: CheckoutRecord) -> None:
            on_open(record)

        async def main() -> Order:
            async with Ordering(self.settings) as work:
                ending = await work.open(await work.plan(self.asked(*skus, **options)), show)
                if wait is None:
                    return ending
                limit = timedelta(seconds=wait)
                return await work.follow(ending, limit, sleep=lambda seconds: asyncio.sleep(0.01))

        return asyncio.run(main())

    def patterns(self, sku: str) -> list[ItemKey]:
        """The takes of a row's pattern that were made, the first one first."""
        with self.ledger() as ledger:
            takes = CatalogTakes(ledger, "staging", "spring")
            now = next(row for row in ledger.catalogs.rows("staging", "spring") if row.sku == sku)
            pattern = patterns_of_products(ledger, "staging", "spring")[now.product_key]
        return [take.item for take in takes.of(pattern) if take.is_made]

    def decide(self, sku: str, verdict: Decided, *, take: int = 1) -> None:
        pattern = self.patterns(sku)[take - 1]
        decision = Decision(str(uuid4()), pattern, "", verdict, "", "anna", datetime.now(UTC))
        with self.ledger() as ledger, ledger.transaction():
            record_decisions(ledger, ledger.runs.find()[0].run_id, [decision])

    def address(self, checkout_id: str) -> str:
        async def main() -> str:
            async with Ordering(self.settings) as work:
                record = next(
                    checkout for checkout in self.checkouts() if checkout.checkout_id == checkout_id
                )
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
