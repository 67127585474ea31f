"""The record of a run: written with its plan as it begins, and closed by the next run if its own did not do so."""

from __future__ import annotations

import platform
import secrets
import socket
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from itertools import islice
from typing import TYPE_CHECKING, Any

from patternmill import __version__
from patternmill.addresses import shown_address
from patternmill.errors import Overlap
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import CHANGES, RETRY_OF, TAKES
from patternmill.ledger.events import last_decisions, not_overtaken, record_decisions
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import COST, Approval, NewItem, RowDecision, RunRecord, RunRow
from patternmill.ledger.runs import entry_text
from patternmill.planning.changes import change_counts, noteworthy
from patternmill.planning.items import Scope
from patternmill.planning.offer import Offer, merged
from patternmill.planning.plan import WITHOUT_PRODUCT, Cost, Plan, PlannedRow, Reason
from patternmill.planning.rows import sku_key
from patternmill.runs.preview import Preview
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome, RowStatus, Stage, Verdict
from patternmill.tables.mapping import MAPPING, READING

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_CHUNK = 5000


def moment(ledger: Ledger) -> datetime:
    """Return the ledger's time, which dates its records."""
    return datetime.fromtimestamp(ledger.now(), UTC)


def new_record(spec: RunSpec, checked: Checked, prefect_flow_run_id: str | None, ledger: Ledger) -> RunRecord:
    """Return the record of a run that begins now."""
    started = moment(ledger)
    return RunRecord(
        run_id=RunId(f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"),
        catalog=spec.catalog,
        environment=spec.settings.environment,
        ledger=ledger.identity,
        machine=socket.gethostname(),
        source=shown_address(spec.source),
        input_sha256=checked.catalog.sheet.layout.sha256,
        input_encoding=checked.catalog.sheet.layout.encoding or "utf-8",
        studio_url="" if spec.settings.embedded else spec.settings.studio_url or "",
        started_at=started,
        versions={
            "patternmill": __version__,
            "prefect": metadata.version("prefect"),
            "python": platform.python_version(),
        },
        options=_options_on_record(spec, checked),
        prefect_flow_run_id=prefect_flow_run_id,
    )


def _options_on_record(spec: RunSpec, checked: Checked) -> dict[str, Any]:
    layout = checked.catalog.sheet.layout
    options = {
        RETRY_OF: spec.selection.record.run_id if spec.selection is not None else None,
        TAKES: spec.takes if spec.takes > 1 else None,
        "notes": list(checked.notes),
        READING: None if layout.is_usual else layout.on_record(),
        MAPPING: checked.catalog.mapping.on_record(),
    }
    return {name: value for name, value in options.items() if value}


def record_overlap(ledger: Ledger, record: RunRecord, checked: Checked, overlap: Overlap) -> None:
    """Put a run on record that ended before it began because another one drives its catalog."""
    ended = replace(record, ended_at=moment(ledger), outcome=Outcome.SKIPPED_OVERLAP, reason=overlap.message)
    with ledger.transaction():
        ledger.runs.add(ended, checked.catalog.sheet.raw)
        ledger.runs.update(ended)


def plan_options(planned: Preview, cost: Cost, decision: Approval | None) -> dict[str, Any]:
    """Return what is recorded of a plan: who decided about it and, unless they rejected it, its changes and cost."""
    options: dict[str, Any] = {}
    if decision is not None:
        options["approval"] = {
            "digest": decision.digest,
            "verdict": decision.verdict.value,
            "who": decision.who,
        }
        if decision.verdict is Verdict.REJECTED:
            return options
    if planned.is_whole:
        options[CHANGES] = change_counts(planned.changes)
    if cost.worst:
        unit = cost.currency or ""
        options[COST] = {"expected": {unit: cost.expected}, "at_most": {unit: cost.worst}}
    return options


def put_on_record(
    ledger: Ledger, record: RunRecord, plan: Plan, checked: Checked, offer: Offer | None, number: int
) -> list[RunRow]:
    """Write a run with its plan, as far as it may be carried out; return its rows. `number`: the fence of its lease."""
    ledger.runs.add(record, checked.catalog.sheet.raw, number=number)
    for sha256, raw in checked.extras.bytes_of.items():
        ledger.keep_document(sha256, raw)
    items = (
        NewItem(item.key, item.stage, item.content_text, item.sku, item.parent_key)
        for item, *_ in plan.items.values()
    )
    while chunk := list(islice(items, _CHUNK)):
        ledger.purchases.add_items(record.environment, record.catalog, chunk)
    rows = [_run_row(plan, row) for row in plan.rows]
    ledger.runs.add_rows(record.run_id, rows)
    if offer is not None and offer.categories is not None:
        before = ledger.catalogs.last_offer(record.environment)
        ledger.catalogs.remember_offer(record.environment, merged(offer, before))
    return rows


def record_requests(
    ledger: Ledger, spec: RunSpec, record: RunRecord, planned: Preview, rows: list[RunRow]
) -> None:
    """Write the products and decisions that a run adds to its catalog; a plan that a person rejected adds none."""
    if spec.recorded is None:
        ledger.catalogs.add_to_sheet(record, is_new=spec.origin is None)
    _keep_requests(ledger, record, planned.plan, rows, is_retry=spec.selection is not None)
    last = last_decisions(ledger, record.environment, record.catalog)
    record_decisions(ledger, record.run_id, not_overtaken(spec.decisions, last))
    if planned.is_whole:
        ledger.catalogs.add_changes(record.run_id, noteworthy(planned.changes))
        ledger.catalogs.mark_gone(record)


def close_broken_runs(ledger: Ledger, scope: Scope) -> list[RunRecord]:
    """Close the runs of this catalog whose process ended without doing so. Call it with the catalog's lease.

    They count as ended at the time of the last activity that is known of them, whenever somebody closes them.
    """
    broken = ledger.runs.without_end(scope.environment, scope.catalog)
    for record in broken:
        ledger.runs.close_rows(record)
        ledger.catalogs.update(record)
        reason = "The process that drove this run ended without closing it."
        ended = max(record.started_at, ledger.runs.last_activity(record.run_id) or record.started_at)
        ledger.runs.update(replace(record, ended_at=ended, outcome=Outcome.FAILED, reason=reason))
    return broken


def _run_row(plan: Plan, row: PlannedRow) -> RunRow:
    text = entry_text(row.entry, _decision(plan, row))
    return RunRow(row.position, row.entry.line, row.known_sku, row.pattern, row.product, text)


def _decision(plan: Plan, row: PlannedRow) -> RowDecision | None:
    """Return why no product is made for a row, where a person decides about it or has decided."""
    reason = plan.items[row.product].reason if row.product is not None else None
    # What was sent for a row before its takes were rejected is followed, and does not become its product.
    if row.decided is None or (reason not in WITHOUT_PRODUCT and row.decided is not RowStatus.DISCARDED):
        return None
    takes = tuple(key for key in row.candidates if plan.items[key].item.stage is Stage.PATTERN)
    return RowDecision(row.decided, takes, row.has_product)


def _keep_requests(
    ledger: Ledger, record: RunRecord, plan: Plan, rows: list[RunRow], *, is_retry: bool
) -> None:
    """Write what the rows ask for: nothing where a row is refused, or where an item of it failed before.

    What was asked for before stays the catalog's, as a correction does while its source row is refused or has failed,
    but no row asks for it now. A retry asks for what its rows asked for; but what was sent for one whose takes were
    rejected since is followed, and does not become its product.
    """
    before = ledger.catalogs.requested_items(record.environment, record.catalog)
    asking: list[RunRow] = []
    others: list[str] = []
    for planned, row in zip(plan.rows, rows, strict=True):
        if is_retry and planned.decided is None:
            continue
        last = before.get(sku_key(row.sku))
        is_other = last is not None and last != row.product_key
        if row.product_key is None or (is_other and _failed_before(plan, planned)):
            others.append(row.sku)
        else:
            asking.append(row)
    ledger.catalogs.keep_requests(record, asking)
    ledger.catalogs.mark_unasked(record, others)


def _failed_before(plan: Plan, row: PlannedRow) -> bool:
    """Return whether nothing is made for a row because its product failed before, or something that it is built on."""
    reasons = [plan.items[key].reason for key in row.keys]
    return reasons[-1] in (Reason.FAILED_BEFORE, Reason.BLOCKED) and Reason.FAILED_BEFORE in reasons
