"""What each catalog's source last said of each sku, and the item that answers it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from patternmill.catalog.changes import ChangeVerdict, Content
from patternmill.catalog.rows import sku_key
from patternmill.catalog.source_rows import SourceRow
from patternmill.ledger.catalog_rows import CatalogRowTables
from patternmill.ledger.records import RunRecord

_UPSERT = """
INSERT INTO source_rows (environment, catalog, sku_key, sku, said, corrected, product_key, row, edition, run_id)
VALUES (:environment, :catalog, :sku_key, :sku, :said, :corrected, :product_key, :row, :edition, :run_id)
ON CONFLICT (environment, catalog, sku_key) DO UPDATE SET
    said = excluded.said, corrected = excluded.corrected, product_key = excluded.product_key,
    row = excluded.row, edition = excluded.edition, run_id = excluded.run_id, gone_at = NULL
"""
_NOT_NAMED = """
SELECT sku FROM source_rows WHERE environment = :environment AND catalog = :catalog AND gone_at IS NULL
AND sku NOT IN (SELECT sku FROM run_rows WHERE run_id = :run_id)
"""
_GONE = "UPDATE source_rows SET gone_at = :now WHERE environment = :environment AND catalog = :catalog AND sku = :sku"
_EARLIER = """
SELECT DISTINCT r.sku, r.said, r.corrected, r.product_key, r.row, i.content, r.run_id
FROM run_rows r JOIN runs n ON n.run_id = r.run_id JOIN items i ON i.key = r.product_key
WHERE n.environment = :environment AND n.catalog = :catalog AND r.sku = :sku AND r.said IS NOT NULL
ORDER BY r.run_id DESC
"""


class SourceRowTable(CatalogRowTables):
    """One record for each sku that a catalog's source ever had, written with the plan of each run."""

    def source_rows(self, environment: str, catalog: str) -> dict[str, SourceRow]:
        """By the key of the sku; with those that the source has no longer."""
        found = self.database.stream(
            "SELECT sku, said, corrected, product_key, row, edition, run_id, gone_at IS NOT NULL FROM source_rows "
            "WHERE environment = :environment AND catalog = :catalog",
            {"environment": environment, "catalog": catalog},
        )
        return {sku_key(values[0]): _source_row(*values) for values in found}

    def earlier_answers(self, environment: str, catalog: str, sku: str) -> Iterator[SourceRow]:
        """What the catalog's runs had for a sku, the newest first."""
        where = {"environment": environment, "catalog": catalog, "sku": sku}
        for *values, content, run_id in self.database.rows(_EARLIER, where):
            yield _source_row(*values, json.loads(content).get("edition"), run_id)

    def keep_source_rows(self, record: RunRecord, rows: Iterable[SourceRow]) -> None:
        """What a run's source said, or a person corrected, and the item that answers it."""
        self.database.execute_many(
            _UPSERT,
            (
                {
                    "environment": record.environment,
                    "catalog": record.catalog,
                    "sku_key": sku_key(row.sku),
                    "sku": row.sku,
                    "said": json.dumps(row.said, ensure_ascii=False),
                    "corrected": json.dumps(row.corrected, ensure_ascii=False),
                    "product_key": row.product_key,
                    "row": json.dumps(row.content.as_json(), ensure_ascii=False) if row.content else None,
                    "edition": row.edition,
                    "run_id": row.run_id,
                }
                for row in rows
            ),
        )

    def mark_gone(self, record: RunRecord) -> None:
        """What a refresh's source has no longer, but for what waits to be retired."""
        scope = {"environment": record.environment, "catalog": record.catalog, "run_id": record.run_id}
        withheld = set(self.skus_with(record.run_id, ChangeVerdict.WITHHELD))
        gone = [sku for (sku,) in self.database.rows(_NOT_NAMED, scope) if sku not in withheld]
        now = self.now()
        self.database.execute_many(_GONE, (scope | {"sku": sku, "now": now} for sku in gone))


def _source_row(
    sku: str, said: str, corrected: str | None, product_key: object, row: str | None, *rest: object
) -> SourceRow:
    content = Content.from_json(json.loads(row)) if row is not None else None
    return SourceRow(sku, json.loads(said), json.loads(corrected or "{}"), product_key, content, *rest)  # type: ignore[arg-type]
