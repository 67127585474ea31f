"""A run on record: its beginning with the whole plan, an overlap, and the ends of runs that crashed."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from patternmill import __version__
from patternmill.catalog.offer import Offer, merged
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.errors import Overlap
from patternmill.identifiers import RunId
from patternmill.ledger.catalog_rows import RETRY_OF
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval, NewItem, RunRecord, RunRow
from patternmill.ledger.run_rows import entry_text
from patternmill.planning.items import Item, Scope
from patternmill.planning.plan import Plan
from patternmill.planning.request_ids import canonical_json
from patternmill.results.picture_files import KEPT_PICTURES
from patternmill.runs.refresh_changes import (
    find_changes,
    record_changes,
    row_sku,
    with_counts,
)
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome

_CHUNK = 5000


def moment(ledger: Ledger) -> datetime:
    """The ledger's time, which dates its records."""
    return datetime.fromtimestamp(ledger.now(), UTC)


def new_record(
    spec: RunSpec, checked: CheckedCatalog, prefect_flow_run_id: str | None, started: datetime
) -> RunRecord:
    return RunRecord(
        run_id=RunId(f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"),
        catalog=spec.catalog,
        environment=spec.settings.environment,
        source=spec.named_source,
        input_sha256=checked.file.sha256,
        input_encoding=checked.file.encoding,
        studio_url="" if spec.settings.embedded else spec.settings.studio_url or "",
        started_at=started,
        versions={
            "patternmill": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("prefect", "httpx", "pandas", "pydantic")},
        },
        options=_options_on_record(spec, checked),
        prefect_flow_run_id=prefect_flow_run_id,
    )


def _options_on_record(spec: RunSpec, checked: CheckedCatalog) -> dict[str, Any]:
    options: dict[str, Any] = {
        "max_in_flight": spec.options.max_in_flight,
        "attempts": spec.options.attempts,
        "edition": spec.edition,
    }
    if spec.options.currency is not None:
        options["currency"] = spec.options.currency
    if spec.settings.embedded:
        options[KEPT_PICTURES] = True
    if spec.selection is not None:
        options[RETRY_OF] = spec.selection.record.run_id
    if checked.notes:
        options["notes"] = list(checked.notes)
    return options


def with_approval(record: RunRecord, approval: Approval) -> RunRecord:
    """With the decision that the run rests on, or was refused by."""
    decision = {
        "digest": approval.digest,
        "verdict": approval.verdict.value,
        "who": approval.who,
        # On an open-source Prefect server, as on a terminal, a name is whatever was typed.
        "who_is_verified": False,
        "note": approval.note,
        "items": approval.ceiling.items,
        "amount": approval.ceiling.amount,
    }
    return replace(record, options={**record.options, "approval": decision})


def record_overlap(ledger: Ledger, record: RunRecord, checked: CheckedCatalog, overlap: Overlap) -> None:
    ended = replace(record, ended_at=moment(ledger), outcome=Outcome.SKIPPED_OVERLAP, reason=overlap.message)
    with ledger.transaction():
        ledger.add_run(ended, checked.file.raw)
        ledger.update_run(ended)


def put_on_record(
    ledger: Ledger,
    spec: RunSpec,
    record: RunRecord,
    plan: Plan,
    checked: CheckedCatalog,
    offer: Offer | None,
    number: int,
) -> RunRecord:
    """Returns the record as it was written: a refresh's has what it found. `number` is the fence of the run's lease."""
    changes = find_changes(ledger, spec.scope, plan, spec.refresh) if spec.refresh else None
    if changes is not None:
        record = with_counts(record, changes)
    ledger.add_run(record, checked.file.raw, number=number)
    items = [_new_item(planned.item) for planned in plan.patterns.values()]
    items += [_new_item(planned.item, planned.written) for planned in plan.products.values()]
    for first in range(0, len(items), _CHUNK):
        ledger.add_items(record.environment, record.catalog, items[first : first + _CHUNK])
    ledger.add_rows(record.run_id, _run_rows(plan))
    if offer is not None and offer.categories is not None:
        ledger.remember_offer(record.environment, merged(offer, ledger.last_offer(record.environment)))
    if changes is not None:
        record_changes(ledger, record, changes)
    return record


def close_broken_runs(ledger: Ledger, scope: Scope) -> None:
    """Close the runs of this catalog whose process ended without doing so. To be called with the catalog's lease."""
    for record in ledger.runs(environment=scope.environment, catalog=scope.catalog):
        if record.outcome is None:
            ledger.close_rows(record)
            ledger.update_catalog(record)
            reason = "The process that drove this run ended without closing it."
            ledger.update_run(replace(record, ended_at=moment(ledger), outcome=Outcome.FAILED, reason=reason))


def _new_item(item: Item, written: Mapping[str, Any] | None = None) -> NewItem:
    """`written`: what a product's row has in its own spelling."""
    as_written = canonical_json(written) if written is not None else None
    return NewItem(item.key, item.stage, canonical_json(item.content), item.sku, item.pattern_key, as_written)


def _run_rows(plan: Plan) -> Iterator[RunRow]:
    for row in plan.rows:
        entry = row.entry
        yield RunRow(
            row.position, entry.record.line, row_sku(row), row.pattern, row.product, entry_text(entry)
        )
