"""Catalogs: who drives each, what it has (sku to product), what its source last said, and the last offer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import orjson
from pydantic import TypeAdapter

from patternmill.catalog.changes import Change, ChangeKind, ChangeVerdict, CurrentRow
from patternmill.catalog.offer import Offer
from patternmill.catalog.rows import Content, sku_key
from patternmill.catalog.source_rows import SourceRow
from patternmill.errors import LeaseLost
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.records import Lease, RunRecord
from patternmill.ledger.runs import Runs
from patternmill.text import moment

#: The name in a run's options under which a retry has the ID of the run whose rows it retries.
RETRY_OF = "retry_of"
#: The same under which a refresh has its counts.
CHANGES = "changes"

_ACCEPT = """
INSERT INTO catalog_rows (environment, catalog, sku, product_key, product_id, pattern_id, row, since, run_id)
SELECT :environment, :catalog, r.sku, r.product_key, p.result_id, q.result_id, r.row, :now, r.run_id
FROM run_rows r
JOIN attempts p ON p.item_key = r.product_key AND p.state = 'succeeded'
JOIN attempts q ON q.item_key = r.pattern_key AND q.state = 'succeeded'
WHERE r.run_id = :run_id {made_here}
ON CONFLICT (environment, catalog, sku) DO UPDATE SET
    product_key = excluded.product_key, product_id = excluded.product_id, pattern_id = excluded.pattern_id,
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
#: What was requested and may exist, and what a run without an end has planned.
_PRODUCTS_OF_OTHERS = """
SELECT p.catalog, p.sku, p.key FROM items p
WHERE p.environment = :environment AND p.catalog <> :catalog AND p.stage = 'product' AND EXISTS
    (SELECT 1 FROM attempts a WHERE a.item_key IN (p.key, p.pattern_key)
     AND a.state IN ('intended', 'accepted', 'succeeded', 'held'))
UNION
SELECT p.catalog, p.sku, p.key FROM runs n JOIN run_rows r ON r.run_id = n.run_id JOIN items p ON p.key = r.product_key
WHERE n.environment = :environment AND n.catalog <> :catalog AND n.outcome IS NULL
"""
_UPSERT = """
INSERT INTO source_rows (environment, catalog, sku_key, sku, said, corrected, product_key, row, run_id)
VALUES (:environment, :catalog, :sku_key, :sku, :said, :corrected, :product_key, :row, :run_id)
ON CONFLICT (environment, catalog, sku_key) DO UPDATE SET
    said = excluded.said, corrected = excluded.corrected, product_key = excluded.product_key,
    row = excluded.row, run_id = excluded.run_id, gone_at = NULL
"""
_NOT_NAMED = """
SELECT sku FROM source_rows WHERE environment = :environment AND catalog = :catalog AND gone_at IS NULL
AND sku NOT IN (SELECT sku FROM run_rows WHERE run_id = :run_id)
"""
_GONE = "UPDATE source_rows SET gone_at = :now WHERE environment = :environment AND catalog = :catalog AND sku = :sku"
_EARLIER = """
SELECT r.sku, r.said, r.corrected, r.product_key, r.row, r.run_id
FROM run_rows r JOIN runs n ON n.run_id = r.run_id
WHERE n.environment = :environment AND n.catalog = :catalog AND r.sku = :sku
AND r.said IS NOT NULL AND r.product_key IS NOT NULL
ORDER BY n.number DESC
"""
_LEASE = "SELECT environment, catalog, fence, run_id, holder, beats, stop FROM leases "


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

    @classmethod
    def of(cls, change: Change) -> RecordedChange:
        ids = (change.before.product_id, change.before.pattern_id) if change.before else (None, None)
        return cls(change.sku, change.kind, change.old_and_new(), change.verdict, *ids)


_CHANGES = TypeAdapter(list[RecordedChange])
_OFFER = TypeAdapter(Offer)


class Catalogs(Tables):
    """One lease for each catalog and environment, and a record of each sku that it has or that its source named."""

    def __init__(self, database: Database, now: Clock, runs: Runs) -> None:
        super().__init__(database, now)
        self._runs = runs

    def lease(self, environment: str, catalog: str) -> Lease | None:
        """The lease of a catalog, also one that was released; None when it never had any."""
        where = "WHERE environment = :environment AND catalog = :catalog"
        found = self._row(f"{_LEASE}{where}", environment=environment, catalog=catalog)
        return Lease(*found) if found else None

    def held_leases(self) -> list[Lease]:
        """The leases that were not released, whether their holders live or not."""
        rows = self.database.rows(f"{_LEASE}WHERE holder <> '' ORDER BY environment, catalog")
        return [Lease(*row) for row in rows]

    def claim_lease(
        self, environment: str, catalog: str, run_id: RunId, holder: str, *, over: Lease | None
    ) -> Lease | None:
        """Write a new lease; `over` is the one that was seen free or dead (None: no lease at all).

        None when another process was quicker, or its holder has beaten since.
        """
        lease = Lease(environment, catalog, (over.fence if over else 0) + 1, run_id)
        claimed = self.database.execute(
            "INSERT INTO leases (environment, catalog, fence, run_id, holder, beats) "
            "VALUES (:environment, :catalog, :fence, :run_id, :holder, 0) ON CONFLICT (environment, catalog) "
            "DO UPDATE SET fence = excluded.fence, run_id = excluded.run_id, holder = excluded.holder, beats = 0, "
            "stop = NULL WHERE leases.fence = :over AND leases.beats = :seen",
            {**vars(lease), "holder": holder, "over": over and over.fence, "seen": over and over.beats},
        )
        if claimed != 1:
            return None
        self._runs.close_groups(environment, catalog)
        return lease

    def renew_lease(self, lease: Lease) -> None:
        """A heartbeat. Raises LeaseLost when the lease is another's by now."""
        self._update_lease(lease, "beats = beats + 1")

    def release_lease(self, lease: Lease) -> None:
        """The fence stays, so that the next holder's is newer. Raises LeaseLost."""
        self._update_lease(lease, "holder = ''")

    def record_stop(self, lease: Lease, why: str) -> None:
        """That its run was asked to stop: whatever becomes of its process, the run has ended. Raises LeaseLost."""
        self._update_lease(lease, "stop = :why", why=why)

    def _update_lease(self, lease: Lease, assignment: str, **params: str) -> None:
        changed = self.database.execute(
            f"UPDATE leases SET {assignment} "  # noqa: S608
            "WHERE environment = :environment AND catalog = :catalog AND fence = :fence",
            {"environment": lease.environment, "catalog": lease.catalog, "fence": lease.fence, **params},
        )
        if changed != 1:
            raise _fenced(lease)

    def check_fence(self, lease: Lease) -> None:
        """Raise LeaseLost when the lease is another's by now; it is not taken over until the transaction ends."""
        found = self._row(
            "SELECT fence FROM leases WHERE environment = :environment "  # noqa: S608
            f"AND catalog = :catalog AND fence = :fence{self.database.lock_suffix}",
            environment=lease.environment,
            catalog=lease.catalog,
            fence=lease.fence,
        )
        if found is None:
            raise _fenced(lease)

    def update(self, record: RunRecord) -> None:
        """Bring a catalog up to a run that ends: its successes are what the catalog has, what it retires is marked.

        A row that failed changes nothing. A retry changes only what it made itself: the other rows of its file may be
        older than the catalog.
        """
        params = _scope(record) | {"now": self.now()}
        made_here = _MADE_HERE if RETRY_OF in record.options else ""
        self.database.execute(_ACCEPT.format(made_here=made_here), params)
        retired = self.skus_with(record.run_id, ChangeVerdict.RETIRED)
        self.database.execute_many(_RETIRE, (params | {"sku": sku} for sku in retired))

    def rows(self, environment: str, catalog: str) -> Iterator[CurrentRow]:
        """Everything that a catalog has or had, in no order; the retired ones too."""
        for sku, row, *rest in self.database.stream(
            "SELECT sku, row, product_key, product_id, pattern_id, since, run_id, retired_at "
            "FROM catalog_rows WHERE environment = :environment AND catalog = :catalog",
            {"environment": environment, "catalog": catalog},
        ):
            yield CurrentRow(sku, _content(row), *rest)

    def names(self) -> list[tuple[str, str]]:
        """Those that ever had a product, as (catalog, environment)."""
        rows = self.database.rows("SELECT DISTINCT catalog, environment FROM catalog_rows")
        return sorted((catalog, environment) for catalog, environment in rows)

    def having(self, sku: str, environment: str | None) -> set[tuple[str, str]]:
        """The catalogs that have a product for this sku now, as (environment, catalog); None: in any environment."""
        sql = "SELECT environment, catalog FROM catalog_rows WHERE sku = :sku AND retired_at IS NULL"
        found = self.database.rows(sql, {"sku": sku})
        return {(its, catalog) for its, catalog in found if environment in (None, its)}

    def products_of_others(self, environment: str, catalog: str) -> list[tuple[str, str, ItemKey]]:
        """Return what the other catalogs of an environment have, had or are making, as (catalog, sku, item)."""
        scope = {"environment": environment, "catalog": catalog}
        return [
            (other, sku, ItemKey(key)) for other, sku, key in self.database.rows(_PRODUCTS_OF_OTHERS, scope)
        ]

    def add_changes(self, run_id: RunId, changes: Iterable[Change]) -> None:
        """What a refresh found, with the IDs of what is to be replaced."""
        self.keep_document(f"changes {run_id}", orjson.dumps(list(map(RecordedChange.of, changes))))

    def changes_of(self, run_id: RunId) -> list[RecordedChange]:
        """What a refresh found: the source's rows in its order, then what it no longer has."""
        return _CHANGES.validate_json(self.document(f"changes {run_id}") or "[]")

    def skus_with(self, run_id: RunId, verdict: ChangeVerdict) -> list[str]:
        """The rows that a refresh's source no longer has, and of which this is so."""
        return [change.sku for change in self.changes_of(run_id) if change.verdict is verdict]

    def remember_offer(self, environment: str, offer: Offer) -> None:
        offer = replace(offer, read_on=f"{moment(self.now())} UTC")
        self.keep_document(f"offer {environment}", orjson.dumps(offer), anew=True)

    def last_offer(self, environment: str) -> Offer | None:
        found = self.document(f"offer {environment}")
        return _OFFER.validate_json(found) if found is not None else None

    def source_rows(self, environment: str, catalog: str) -> dict[str, SourceRow]:
        """By the key of the sku; with those that the source has no longer."""
        found = self.database.stream(
            "SELECT sku, said, corrected, product_key, row, run_id, gone_at IS NOT NULL FROM source_rows "
            "WHERE environment = :environment AND catalog = :catalog",
            {"environment": environment, "catalog": catalog},
        )
        return {sku_key(values[0]): _source_row(*values) for values in found}

    def earlier_answers(self, environment: str, catalog: str, sku: str) -> Iterator[SourceRow]:
        """What the catalog's runs had for a sku, the newest first."""
        where = {"environment": environment, "catalog": catalog, "sku": sku}
        for values in self.database.rows(_EARLIER, where):
            yield _source_row(*values)

    def keep_source_rows(self, record: RunRecord, rows: Iterable[SourceRow]) -> None:
        """What a run's source said, or a person corrected, and the item that answers it."""
        self.database.execute_many(
            _UPSERT,
            (
                _scope(record)
                | {
                    "sku_key": sku_key(row.sku),
                    "sku": row.sku,
                    "said": json.dumps(row.said, ensure_ascii=False),
                    "corrected": json.dumps(row.corrected, ensure_ascii=False),
                    "product_key": row.product_key,
                    "row": json.dumps(row.content.as_json(), ensure_ascii=False) if row.content else None,
                    "run_id": row.run_id,
                }
                for row in rows
            ),
        )

    def mark_gone(self, record: RunRecord) -> None:
        """What a refresh's source has no longer, but for what waits to be retired."""
        scope = _scope(record)
        withheld = set(self.skus_with(record.run_id, ChangeVerdict.WITHHELD))
        gone = [sku for (sku,) in self.database.rows(_NOT_NAMED, scope) if sku not in withheld]
        now = self.now()
        self.database.execute_many(_GONE, (scope | {"sku": sku, "now": now} for sku in gone))


def _scope(record: RunRecord) -> dict[str, object]:
    return {"environment": record.environment, "catalog": record.catalog, "run_id": record.run_id}


def _content(row: str) -> Content:
    return Content.from_json(json.loads(row))


def _source_row(
    sku: str, said: str, corrected: str | None, product_key: object, row: str | None, *rest: object
) -> SourceRow:
    content = Content.from_json(json.loads(row)) if row is not None else None
    return SourceRow(sku, json.loads(said), json.loads(corrected or "{}"), product_key, content, *rest)  # type: ignore[arg-type]


def _fenced(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"Another run took over the catalog {lease.catalog!r} ({lease.environment}) while this one was stopped.",
        remedy="See `patternmill status`; nothing that this run does from now on counts.",
    )
