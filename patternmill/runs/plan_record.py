"""The record of a run: what is written of it as it begins, with its plan, and of runs that nobody closed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from patternmill import __version__
from patternmill.catalog.catalog_file import READING, CatalogFile
from patternmill.catalog.changes import change_counts, noteworthy
from patternmill.catalog.column_mapping import MAPPING
from patternmill.catalog.offer import Offer, merged
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.source_rows import SourceRow, difference, keys_of, texts_of
from patternmill.errors import Overlap
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import CHANGES, RETRY_OF
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import NewItem, RunRecord, RunRow
from patternmill.ledger.runs import entry_text
from patternmill.looking.kept_pictures import KEPT_PICTURES
from patternmill.planning.items import Scope, canonical_json
from patternmill.planning.plan import Plan, Reason
from patternmill.runs.approval import APPROVE_ABOVE
from patternmill.runs.followed_source import source_rows_of
from patternmill.runs.refresh_changes import find_changes
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome

_CHUNK = 5000


def moment(ledger: Ledger) -> datetime:
    """The ledger's time, which dates its records."""
    return datetime.fromtimestamp(ledger.now(), UTC)


def new_record(
    spec: RunSpec, checked: CheckedCatalog, prefect_flow_run_id: str | None, ledger: Ledger
) -> RunRecord:
    started = moment(ledger)
    return RunRecord(
        run_id=RunId(f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"),
        catalog=spec.catalog,
        environment=spec.settings.environment,
        ledger=ledger.identity,
        source=spec.named_source,
        input_sha256=checked.file.sha256,
        input_encoding=checked.file.encoding,
        studio_url="" if spec.settings.embedded else spec.settings.studio_url or "",
        started_at=started,
        versions={"patternmill": __version__},
        options=_options_on_record(spec, checked),
        prefect_flow_run_id=prefect_flow_run_id,
    )


def _options_on_record(spec: RunSpec, checked: CheckedCatalog) -> dict[str, Any]:
    options: dict[str, Any] = {}
    limits = spec.settings.approve_above_items, spec.settings.approve_above_cost
    if limits != (None, None):
        options[APPROVE_ABOVE] = [*limits, spec.settings.currency]
    if spec.settings.embedded:
        options[KEPT_PICTURES] = True
    if spec.selection is not None:
        options[RETRY_OF] = spec.selection.record.run_id
    if checked.notes:
        options["notes"] = list(checked.notes)
    if checked.file.layout is not None:
        options[READING] = checked.file.layout.on_record()
    elif spec.selection is not None and READING in spec.selection.record.options:
        options[READING] = spec.selection.record.options[READING]
    if mapping := checked.file.mapping.on_record():
        options[MAPPING] = mapping
    return options


def record_overlap(ledger: Ledger, record: RunRecord, checked: CheckedCatalog, overlap: Overlap) -> None:
    ended = replace(record, ended_at=moment(ledger), outcome=Outcome.SKIPPED_OVERLAP, reason=overlap.message)
    with ledger.transaction():
        ledger.runs.add(ended, checked.file.raw)
        ledger.runs.update(ended)


def put_on_record(
    ledger: Ledger,
    spec: RunSpec,
    record: RunRecord,
    plan: Plan,
    checked: CheckedCatalog,
    offer: Offer | None,
    number: int,
    kept: Mapping[str, SourceRow] | None,
) -> RunRecord:
    """Returns the record as it was written: a refresh's has what it found. `number` is the fence of the run's lease.

    `kept`: what the catalog keeps of its source so far; None: it keeps nothing of this run.
    """
    changes = find_changes(ledger, spec, plan) if spec.retire_limit else None
    if changes is not None:
        record = record.with_options({CHANGES: change_counts(changes)})
    ledger.runs.add(record, checked.file.raw, number=number)
    for sha256, raw in checked.extras.bytes_of.items():
        ledger.keep_document(sha256, raw)
    items = [
        NewItem(item.key, item.stage, canonical_json(item.content), item.sku, item.parent_key)
        for item in (planned.item for planned in plan.items.values())
    ]
    for first in range(0, len(items), _CHUNK):
        ledger.purchases.add_items(record.environment, record.catalog, items[first : first + _CHUNK])
    ledger.runs.add_rows(record.run_id, _run_rows(plan, checked.file))
    if offer is not None and offer.categories is not None:
        before = ledger.catalogs.last_offer(record.environment)
        ledger.catalogs.remember_offer(record.environment, merged(offer, before))
    if changes is not None:
        ledger.catalogs.add_changes(record.run_id, noteworthy(changes))
    if kept is not None:
        rows = source_rows_of(
            record.run_id, plan, checked.file, kept, is_source=spec.origin is None and spec.remake is None
        )
        ledger.catalogs.keep_source_rows(record, rows)
    if changes is not None:
        ledger.catalogs.mark_gone(record)
    return record


def close_broken_runs(ledger: Ledger, scope: Scope) -> list[RunRecord]:
    """Close the runs of this catalog whose process ended without doing so. To be called with the catalog's lease.

    They ended with the last that is known of them, whenever somebody closes them.
    """
    broken = ledger.runs.without_end(scope.environment, scope.catalog)
    for record in broken:
        ledger.runs.close_rows(record)
        ledger.catalogs.update(record)
        reason = "The process that drove this run ended without closing it."
        ended = max(record.started_at, ledger.runs.last_activity(record.run_id) or record.started_at)
        ledger.runs.update(replace(record, ended_at=ended, outcome=Outcome.FAILED, reason=reason))
    return broken


def _run_rows(plan: Plan, file: CatalogFile) -> Iterator[RunRow]:
    for row, key, texts in zip(plan.rows, keys_of(file), texts_of(file), strict=True):
        entry = row.entry
        own = file.own_texts.get(entry.record.line, texts)
        corrected = difference(own, texts)
        undecided = row.product is not None and plan.items[row.product].reason is Reason.UNDECIDED
        yield RunRow(
            row.position,
            entry.record.line,
            row.known_sku,
            row.pattern,
            row.product,
            entry_text(entry, undecided=undecided),
            json.dumps(own, ensure_ascii=False) if key else None,
            json.dumps(corrected, ensure_ascii=False) if key and corrected else None,
        )
