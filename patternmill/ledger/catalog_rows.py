"""What a catalog has (sku to product), what a refresh found to differ from it, and the last offer that was read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter

from patternmill.catalog.changes import Change, ChangeKind, ChangeVerdict, Content, CurrentRow
from patternmill.catalog.offer import Offer
from patternmill.catalog.rows import sku_key
from patternmill.identifiers import RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import RunRecord
from patternmill.text import moment

#: The name in a run's options under which a retry has the ID of the run whose rows it retries.
RETRY_OF = "retry_of"
#: The same under which a refresh has its counts.
CHANGES = "changes"

_ACCEPT = """
INSERT INTO catalog_rows (environment, catalog, sku, product_key, pattern_key, product_id, pattern_id,
                          row, since, run_id)
SELECT :environment, :catalog, r.sku, r.product_key, r.pattern_key, p.result_id, q.result_id,
       r.row, :now, r.run_id
FROM run_rows r
JOIN attempts p ON p.item_key = r.product_key AND p.state = 'succeeded'
JOIN attempts q ON q.item_key = r.pattern_key AND q.state = 'succeeded'
WHERE r.run_id = :run_id {made_here}
ON CONFLICT (environment, catalog, sku) DO UPDATE SET
    product_key = excluded.product_key, pattern_key = excluded.pattern_key,
    product_id = excluded.product_id, pattern_id = excluded.pattern_id,
    row = excluded.row, since = excluded.since, run_id = excluded.run_id, retired_at = NULL
WHERE catalog_rows.product_key <> excluded.product_key OR catalog_rows.retired_at IS NOT NULL
"""
#: The product was made by this very run, by the order of events: clocks may be wrong.
_MADE_HERE = """AND p.request_id IN
    (SELECT request_id FROM events WHERE run_id = :run_id AND kind = 'succeeded' AND request_id IS NOT NULL)"""
_RETIRE = """
UPDATE catalog_rows SET retired_at = :now, retired_by = :run_id
WHERE environment = :environment AND catalog = :catalog AND retired_at IS NULL AND sku = :sku
"""
#: With what was requested and may exist, although no run has ended with it.
_OTHER_CATALOGS = """
SELECT catalog, sku, row FROM catalog_rows
WHERE environment = :environment AND catalog <> :catalog AND retired_at IS NULL
UNION
SELECT s.catalog, s.sku, s.row FROM source_rows s JOIN items p ON p.key = s.product_key
WHERE s.environment = :environment AND s.catalog <> :catalog AND s.gone_at IS NULL AND EXISTS
    (SELECT 1 FROM attempts a WHERE a.item_key IN (p.key, p.pattern_key)
     AND a.state IN ('intended', 'accepted', 'succeeded', 'held'))
"""


def counts_of(record: RunRecord) -> Mapping[str, int] | None:
    """How many changes a refresh found, by kind; None for another run."""
    counts: Mapping[str, int] | None = record.options.get(CHANGES)
    return counts


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change as it is in the ledger, with the IDs of what it replaces."""

    sku: str
    kind: ChangeKind
    #: Those that differ: each with the old and the new text.
    fields: Mapping[str, str]
    verdict: ChangeVerdict | None
    product_id: str | None
    pattern_id: str | None


class CatalogRowTables(Tables):
    """The current rows of each catalog, and the changes that each refresh found."""

    def update_catalog(self, record: RunRecord) -> None:
        """Bring a catalog up to a run that ends: its successes are what the catalog has, what it retires is marked.

        A row that failed changes nothing. A retry changes only what it made itself: the other rows of its file may be
        older than the catalog.
        """
        params = {
            "environment": record.environment,
            "catalog": record.catalog,
            "run_id": record.run_id,
            "now": self.now(),
        }
        made_here = _MADE_HERE if RETRY_OF in record.options else ""
        self.database.execute(_ACCEPT.format(made_here=made_here), params)
        retired = self.skus_with(record.run_id, ChangeVerdict.RETIRED)
        self.database.execute_many(_RETIRE, (params | {"sku": sku} for sku in retired))

    def catalog_rows(self, environment: str, catalog: str) -> Iterator[CurrentRow]:
        """Everything that a catalog has or had, in no order; the retired ones too."""
        for sku, row, *rest in self.database.stream(
            "SELECT sku, row, product_key, product_id, pattern_id, since, run_id, retired_at "
            "FROM catalog_rows WHERE environment = :environment AND catalog = :catalog",
            {"environment": environment, "catalog": catalog},
        ):
            yield CurrentRow(sku, _content(row), *rest)

    def catalogs_with(self, sku: str, environment: str | None) -> set[tuple[str, str]]:
        """The catalogs that have a product for this sku now, as (environment, catalog); None: in any environment."""
        found = self.database.rows(
            "SELECT environment, catalog FROM catalog_rows WHERE sku = :sku AND retired_at IS NULL",
            {"sku": sku},
        )
        return {(its, catalog) for its, catalog in found if environment in (None, its)}

    def other_catalogs_rows(
        self, environment: str, catalog: str, sku_keys: Collection[str]
    ) -> Iterator[tuple[str, str, Content]]:
        """What the other catalogs of an environment have now, as (catalog, key of the sku, content), in no order.

        With what is being made, or in doubt: their catalogs do not have it yet. `sku_keys`: the skus that are meant.
        """
        scope = {"environment": environment, "catalog": catalog}
        for other, sku, row in self.database.stream(_OTHER_CATALOGS, scope):
            if sku_key(sku) in sku_keys:
                yield other, sku_key(sku), _content(row)

    def add_changes(self, run_id: RunId, changes: Iterable[Change]) -> None:
        """What a refresh found, with the IDs of what is to be replaced."""
        kept = []
        for change in changes:
            ids = (change.before.product_id, change.before.pattern_id) if change.before else (None, None)
            kept.append((change.sku, change.kind, change.old_and_new(), change.verdict, *ids))
        self.keep_document(f"changes {run_id}", json.dumps(kept, ensure_ascii=False).encode())

    def changes_of(self, run_id: RunId) -> list[RecordedChange]:
        """What a refresh found: the source's rows in its order, then what it no longer has."""
        return [
            RecordedChange(sku, ChangeKind(kind), fields, ChangeVerdict(verdict) if verdict else None, *ids)
            for sku, kind, fields, verdict, *ids in json.loads(self.document(f"changes {run_id}") or "[]")
        ]

    def skus_with(self, run_id: RunId, verdict: ChangeVerdict) -> list[str]:
        """The rows that a refresh's source no longer has, and of which this is so."""
        return [change.sku for change in self.changes_of(run_id) if change.verdict is verdict]


def _content(row: str) -> Content:
    return Content.from_json(json.loads(row))


class OfferTable(Tables):
    """One offer for each environment."""

    def remember_offer(self, environment: str, offer: Offer) -> None:
        now = self.now()
        offer = replace(offer, read_on=f"{moment(now)} UTC")
        self.keep_document(f"offer {environment}", json.dumps(asdict(offer)).encode(), at=now)

    def last_offer(self, environment: str) -> Offer | None:
        found = self.document(f"offer {environment}")
        return TypeAdapter(Offer).validate_json(found) if found is not None else None
