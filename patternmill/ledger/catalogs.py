"""Catalogs: who drives each, which products it has, what its rows last asked for, and the last offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson
from pydantic import TypeAdapter

from patternmill.errors import LeaseLost
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.records import HAS_DECISION, HELD_LEASES, LEASES, Lease, RunRecord, RunRow
from patternmill.ledger.runs import Runs
from patternmill.planning.changes import Change, ChangeKind, ChangeVerdict, CurrentRow
from patternmill.planning.offer import Offer
from patternmill.planning.rows import Content, sku_key
from patternmill.text import moment

#: The names of a run's options for the run whose rows a retry makes, the number of takes that a run makes to choose
#: from (one if absent), and the counts of changes that a refresh found.
RETRY_OF, TAKES, CHANGES = "retry_of", "takes", "changes"

_ACCEPT = """
INSERT INTO catalog_rows (environment, catalog, sku_key, sku, requested_key, requested,
    product_key, product_id, pattern_id, row, since, run_id)
SELECT :environment, :catalog, r.sku_key, r.sku, r.product_key, r.row,
    r.product_key, p.result_id, q.result_id, r.row, :now, r.run_id
FROM run_rows r
JOIN attempts p ON p.item_key = r.product_key AND p.state = 'succeeded'
JOIN attempts q ON q.item_key = r.pattern_key AND q.state = 'succeeded'
WHERE r.run_id = :run_id AND substr(r.outcome, 1, 21) = '{"status":"succeeded"'
ON CONFLICT (environment, catalog, sku_key) DO UPDATE SET
    product_key = excluded.product_key, product_id = excluded.product_id, pattern_id = excluded.pattern_id,
    row = excluded.row, since = excluded.since, run_id = excluded.run_id, retired_at = NULL,
    requested_key = excluded.product_key, requested = excluded.row
WHERE catalog_rows.product_key IS NULL OR catalog_rows.product_key <> excluded.product_key
    OR catalog_rows.retired_at IS NOT NULL
"""
#: Accepts products that rows still ask for and an earlier run requested, once a run has followed their jobs to the end.
_ACCEPT_FOLLOWED = """
UPDATE catalog_rows SET
    product_key = requested_key, row = requested, since = :now, run_id = :run_id, retired_at = NULL,
    product_id = (SELECT result_id FROM attempts WHERE item_key = requested_key AND state = 'succeeded'),
    pattern_id = (SELECT q.result_id FROM items i JOIN attempts q ON q.item_key = i.pattern_key
        AND q.state = 'succeeded' WHERE i.key = requested_key)
WHERE environment = :environment AND catalog = :catalog AND gone_at IS NULL AND unasked_at IS NULL
    AND (product_key IS NULL OR product_key <> requested_key) AND requested NOT LIKE :decided
    AND EXISTS (SELECT 1 FROM attempts WHERE item_key = requested_key AND state = 'succeeded')
"""
_CURRENT = """
SELECT c.sku, c.row, c.product_key, c.product_id, c.pattern_id, c.since, c.run_id, c.retired_at,
    coalesce(p.picture_url, q.picture_url)
FROM catalog_rows c LEFT JOIN items i ON i.key = c.product_key
LEFT JOIN attempts p ON p.item_key = c.product_key AND p.state = 'succeeded'
LEFT JOIN attempts q ON q.item_key = i.pattern_key AND q.state = 'succeeded'
WHERE c.environment = :environment AND c.catalog = :catalog AND c.product_key IS NOT NULL
"""
#: Selects the products that were requested and may exist, and those that runs without an end have planned.
_PRODUCTS_OF_OTHERS = """
SELECT p.catalog, p.sku, p.key FROM items p
WHERE p.environment = :environment AND p.catalog <> :catalog AND p.stage = 'product' AND EXISTS
    (SELECT 1 FROM attempts a WHERE a.item_key IN (p.key, p.pattern_key)
     AND a.state IN ('intended', 'accepted', 'succeeded', 'held'))
UNION
SELECT p.catalog, p.sku, p.key FROM runs n JOIN run_rows r ON r.run_id = n.run_id JOIN items p ON p.key = r.product_key
WHERE n.environment = :environment AND n.catalog <> :catalog AND n.outcome IS NULL
"""
_REQUEST = """
INSERT INTO catalog_rows (environment, catalog, sku_key, sku, requested_key, requested)
VALUES (:environment, :catalog, :sku_key, :sku, :product_key, :row)
ON CONFLICT (environment, catalog, sku_key) DO UPDATE SET
    requested_key = excluded.requested_key, requested = excluded.requested, gone_at = NULL, unasked_at = NULL
"""
_HAS_PRODUCT = "product_key IS NOT NULL"
_OF_CATALOG = "WHERE environment = :environment AND catalog = :catalog"
_RETIRE = f"""
UPDATE catalog_rows SET retired_at = :now, retired_by = :run_id {_OF_CATALOG} AND retired_at IS NULL AND sku = :sku
"""
_UNASKED = f"UPDATE catalog_rows SET unasked_at = :now {_OF_CATALOG} AND sku_key = :sku_key"
_GONE = f"UPDATE catalog_rows SET gone_at = :now {_OF_CATALOG} AND sku = :sku"
_NOT_NAMED = f"""
SELECT sku FROM catalog_rows {_OF_CATALOG} AND gone_at IS NULL
AND sku_key NOT IN (SELECT sku_key FROM run_rows WHERE run_id = :run_id)
"""


def counts_of(record: RunRecord) -> Mapping[str, int] | None:
    """Return how many changes a refresh found, by kind; None for a run of another kind."""
    return cast(Mapping[str, int] | None, record.options.get(CHANGES))


@dataclass(frozen=True, slots=True)
class RequestedContent:
    """The content that was last requested under a sku, and the product item that it asks for."""

    sku: str
    product_key: ItemKey
    content: Content


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change as it is in the ledger, with the IDs of what it replaces."""

    sku: str
    kind: ChangeKind
    #: The fields that differ, each with the old and the new text.
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
        """Return the lease of a catalog, even a released one; None when it never had any."""
        row = self._row(f"{LEASES}{_OF_CATALOG}", environment=environment, catalog=catalog)
        return Lease(*row) if row else None

    def held_leases(self) -> list[Lease]:
        """Return the leases that were not released, whether their holders live or not."""
        return [Lease(*row) for row in self.database.rows(HELD_LEASES)]

    def claim_lease(
        self, environment: str, catalog: str, run_id: RunId, holder: str, *, over: Lease | None
    ) -> Lease | None:
        """Write a new lease; `over` is the lease that was seen free or dead (None if there was none).

        Returns None when another process was quicker, or the holder has beaten since.
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

    def renew_lease(self, lease: Lease, brake: int = 0) -> None:
        """Record a heartbeat, and the count of the brake that the holder acknowledges.

        Raises LeaseLost when another run has taken the lease over.
        """
        self._update_lease(lease, "beats = beats + 1, brake = :brake", brake=brake)

    def release_lease(self, lease: Lease) -> None:
        """Release a lease; its fence stays, so that the next holder's is newer. Raises LeaseLost."""
        self._update_lease(lease, "holder = ''")

    def record_stop(self, lease: Lease, why: str) -> None:
        """Record that the run was asked to stop, so that nobody begins it again. Raises LeaseLost."""
        self._update_lease(lease, "stop = :why", why=why)

    def _update_lease(self, lease: Lease, assignment: str, **params: str | int) -> None:
        changed = self.database.execute(
            f"UPDATE leases SET {assignment} {_OF_CATALOG} AND fence = :fence",
            vars(lease),
            **params,
        )
        if changed != 1:
            raise _fenced(lease)

    def check_fence(self, lease: Lease) -> None:
        """Raise LeaseLost when another run has the lease; it is not taken over until the transaction ends."""
        query = f"SELECT fence FROM leases {_OF_CATALOG} AND fence = :fence{self.database.lock_suffix}"
        if self._row(query, vars(lease)) is None:
            raise _fenced(lease)

    def update(self, record: RunRecord) -> None:
        """Bring a catalog up to date as a run ends: add what the run made, and mark what it retired.

        Call this once the outcomes of the run's rows are written. A row that failed changes nothing; neither does one
        whose takes wait for a choice or were rejected, even if its product exists.
        """
        params = vars(record) | {"now": self.now()}
        self.database.execute(_ACCEPT, params)
        self.database.execute(_ACCEPT_FOLLOWED, params, decided=f"%{HAS_DECISION}%")
        retired = self._skus_with(record, ChangeVerdict.RETIRED)
        self.database.execute_many(_RETIRE, (params | {"sku": sku} for sku in retired))

    def rows(self, environment: str, catalog: str) -> Iterator[CurrentRow]:
        """Yield everything that a catalog has or had, retired rows too, in no order."""
        for sku, row, *rest in self.database.stream(_CURRENT, environment=environment, catalog=catalog):
            yield CurrentRow(sku, _content(row), *rest)

    def products(self, environment: str, catalog: str) -> dict[str, ItemKey]:
        """Return the product item that a catalog has for each sku, by its key, without the retired ones."""
        return self._keys("product_key", f"{_HAS_PRODUCT} AND retired_at IS NULL", environment, catalog)

    def add_to_sheet(self, record: RunRecord, *, is_new: bool) -> None:
        """Add a run's file to those that make up a catalog's sheet, or start the sheet anew with it if it `is_new`."""
        before = [] if is_new else self.sheet_runs(record.environment, record.catalog)
        name = _sheet_name(record.environment, record.catalog)
        self.keep_document(name, orjson.dumps([*before, record.run_id]), anew=True)

    def sheet_runs(self, environment: str, catalog: str) -> list[RunId]:
        """Return the runs whose files make up a catalog's sheet: its last source, then corrections of it."""
        return list(map(RunId, orjson.loads(self.document(_sheet_name(environment, catalog)) or "[]")))

    def sizes(self) -> dict[tuple[str, str], int]:
        """Return how many products each catalog that ever had one has now, by (catalog, environment)."""
        rows = self.database.rows(
            "SELECT catalog, environment, COUNT(*) - COUNT(retired_at) FROM catalog_rows "
            f"WHERE {_HAS_PRODUCT} GROUP BY catalog, environment ORDER BY catalog, environment"
        )
        return {(catalog, environment): int(count) for catalog, environment, count in rows}

    def having(self, sku: str, environment: str | None) -> set[tuple[str, str]]:
        """Return the catalogs of an environment, or of any, that have a product for a sku: (environment, catalog)."""
        rows: list[Any] = self.database.rows(
            f"SELECT environment, catalog FROM catalog_rows WHERE sku = :sku AND {_HAS_PRODUCT} "
            "AND retired_at IS NULL AND coalesce(:environment, environment) = environment",
            sku=sku,
            environment=environment,
        )
        return set(rows)

    def products_of_others(self, environment: str, catalog: str) -> list[tuple[str, str, ItemKey]]:
        """Return what the other catalogs of an environment have, had or are making, as (catalog, sku, item)."""
        rows = self.database.rows(_PRODUCTS_OF_OTHERS, environment=environment, catalog=catalog)
        return [(other, sku, ItemKey(key)) for other, sku, key in rows]

    def add_changes(self, run_id: RunId, changes: Iterable[Change]) -> None:
        """Write the changes that a refresh found, with the IDs of what they replace."""
        self.keep_document(f"changes {run_id}", orjson.dumps(list(map(RecordedChange.of, changes))))

    def changes_of(self, run_id: RunId) -> list[RecordedChange]:
        """Return the changes that a refresh found: in the order of the source's rows, then what it no longer has."""
        return _CHANGES.validate_json(self.document(f"changes {run_id}") or "[]")

    def _skus_with(self, record: RunRecord, verdict: ChangeVerdict) -> list[str]:
        """Return the skus that a refresh's source no longer has and that it treated in this way."""
        return [change.sku for change in self.changes_of(record.run_id) if change.verdict is verdict]

    def remember_offer(self, environment: str, offer: Offer) -> None:
        """Keep an offer that could be read, in case a later one cannot be."""
        offer = replace(offer, read_on=f"{moment(self.now())} UTC")
        self.keep_document(f"offer {environment}", orjson.dumps(offer), anew=True)

    def last_offer(self, environment: str) -> Offer | None:
        """Return the last offer of an environment that could be read."""
        offer = self.document(f"offer {environment}")
        return _OFFER.validate_json(offer) if offer is not None else None

    def requested_rows(self, environment: str, catalog: str) -> dict[str, RequestedContent]:
        """Return what was last requested for each sku that the source has, by the key of the sku."""
        query = f"SELECT sku_key, sku, requested_key, requested FROM catalog_rows {_OF_CATALOG} AND gone_at IS NULL"
        rows = self.database.stream(query, environment=environment, catalog=catalog)
        return {key: RequestedContent(sku, item, _content(row)) for key, sku, item, row in rows}

    def requested_items(self, environment: str, catalog: str) -> dict[str, ItemKey]:
        """Return only the product items of `requested_rows`, which is quicker."""
        return self._keys("requested_key", "gone_at IS NULL", environment, catalog)

    def gone_skus(self, environment: str, catalog: str) -> set[str]:
        """Return the keys of the skus that the source no longer has."""
        return set(self._keys("requested_key", "gone_at IS NOT NULL", environment, catalog))

    def _keys(self, column: str, where: str, environment: str, catalog: str) -> dict[str, ItemKey]:
        """Return one column of some rows of a catalog, by the keys of their skus."""
        query = f"SELECT sku_key, {column} FROM catalog_rows {_OF_CATALOG} AND {where}"
        return dict(self.database.stream(query, environment=environment, catalog=catalog))

    def keep_requests(self, record: RunRecord, rows: Iterable[RunRow]) -> None:
        """Write what the rows of a run ask for."""
        requests = ({**vars(record), **vars(row), "sku_key": sku_key(row.sku)} for row in rows)
        self.database.execute_many(_REQUEST, requests)

    def mark_unasked(self, record: RunRecord, skus: Iterable[str]) -> None:
        """Mark the skus whose rows do not ask for what was last requested under them."""
        params = vars(record) | {"now": self.now()}
        self.database.execute_many(_UNASKED, (params | {"sku_key": sku_key(sku)} for sku in skus))

    def mark_gone(self, record: RunRecord) -> None:
        """Mark what a refresh's source no longer has, except what is withheld from being retired."""
        params = vars(record) | {"now": self.now()}
        withheld = self._skus_with(record, ChangeVerdict.WITHHELD)
        gone = [sku for (sku,) in self.database.rows(_NOT_NAMED, params) if sku not in withheld]
        self.database.execute_many(_GONE, (params | {"sku": sku} for sku in gone))


def _sheet_name(environment: str, catalog: str) -> str:
    return f"sheet {environment}/{catalog}"


def _content(row: str) -> Content:
    return Content.from_json(orjson.loads(row))


def _fenced(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"Another run took over the catalog {lease.catalog!r} ({lease.environment}) while this one was stopped.",
        remedy="See `patternmill status`; nothing that this run does from now on counts.",
    )
