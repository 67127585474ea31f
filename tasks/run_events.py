"""Events about runs and their failed items, for automations and other listeners; no decision rests on one.

A run of the ledger has one event for its beginning, one for its end, and one for each item that failed. A flow run
that is retried or resumed begins another run of the ledger, with another ID and its own events: items that failed
earlier and are not tried again have none there. An event may be lost with a process that is killed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from typing import Any
from uuid import UUID, uuid5
from weakref import WeakKeyDictionary

from prefect.context import TaskRunContext
from prefect.events import emit_event

from patternmill.errors import RowFailed
from patternmill.ledger.catalog_rows import counts_of
from patternmill.planning.items import Item
from patternmill.results.results_files import Results
from patternmill.runs.run import Run
from patternmill.text import by_kind
from tasks.markup import line

logger = logging.getLogger(__name__)

RUN_STARTED = "patternmill.run.started"
RUN_FINISHED = "patternmill.run.finished"
ITEM_FAILED = "patternmill.item.failed"
MORE_ITEMS_FAILED = "patternmill.run.more-items-failed"

#: So many failed items have an event each; one event at the end counts the rest.
MOST_ITEMS = 200
_MOST_LETTERS = 500
_MOST_SKUS = 10
#: Event IDs are derived from this and the content, so that a server that receives one twice keeps it once.
_NAMESPACE = UUID("7d6c1d0e-6d1f-5f0e-9a53-0b1f2f1c7a11")

Send = Callable[..., object]
_EVENTS: WeakKeyDictionary[Run, RunEvents] = WeakKeyDictionary()


def run_started(run: Run, send: Send = emit_event) -> None:
    """Call it in the run's flow, once the run has its lease and its plan."""
    _EVENTS[run] = events = RunEvents(run, send)
    events.emit(
        RUN_STARTED,
        {
            "source": run.record.source,
            "rows": len(run.plan.rows),
            "to_buy": by_kind(run.plan.purchases()),
            "expected_amount": run.cost.expected,
            "amount_at_worst": run.cost.worst,
        },
    )


def item_failed(run: Run, item: Item, failed: RowFailed) -> None:
    events = _EVENTS.get(run)
    if events is not None and failed.is_final:
        events.item_failed(item, failed)


def run_finished(run: Run, results: Results) -> None:
    events = _EVENTS.pop(run, None)
    if events is not None and run.ending is not None:
        events.finished(results)


class RunEvents:
    """The events of one run, related to the flow run in which this was created, and to its tags."""

    def __init__(self, run: Run, send: Send) -> None:
        self._run = run
        self._send = send
        self._context: Context = copy_context()
        self._failed: set[str] = set()

    def item_failed(self, item: Item, failed: RowFailed) -> None:
        if item.key in self._failed:
            return
        self._failed.add(item.key)
        if len(self._failed) > MOST_ITEMS:
            return
        skus = self._skus(item)
        payload = {
            "sku": skus[0] if skus else None,
            "skus": skus[:_MOST_SKUS],
            "rows": len(skus),
            "stage": item.stage.value,
            "code": line(failed.code),
            "message": line(failed.message, _MOST_LETTERS),
            "request_id": failed.request_id,
            "job_id": failed.job_id,
        }
        resource = {
            "prefect.resource.id": f"patternmill.item.{item.key}",
            "prefect.resource.name": item.describe(),
            "patternmill.stage": item.stage.value,
            "patternmill.code": failed.code,
        }
        related = [{"prefect.resource.role": "patternmill-run", **self._resource()}, *_task_run()]
        self.emit(ITEM_FAILED, payload, resource=resource, related=related, which=item.key)

    def finished(self, results: Results) -> None:
        more = len(self._failed) - MOST_ITEMS
        if more > 0:
            self.emit(MORE_ITEMS_FAILED, {"more": more, "reported": MOST_ITEMS})
        ending, out = self._run.ending, results.out.resolve()
        assert ending is not None, "it has ended"
        record, progress = ending.record, self._run.progress
        payload = {
            "source": record.source,
            "outcome": ending.outcome.value,
            "reason": line(record.reason) if record.reason else None,
            "rows": {status.value: count for status, count in ending.rows.items() if count},
            "changes": dict(counts_of(record) or {}),
            "made": by_kind(progress.made),
            "bought": by_kind(ending.spent.items),
            "amount": ending.spent.amount,
            "expected_amount": self._run.cost.expected,
            "seconds": round((record.ended_at - record.started_at).total_seconds(), 1)
            if record.ended_at
            else None,
            "results": str(out),
            "gallery": str(out / "gallery.html"),
        }
        self.emit(
            RUN_FINISHED, payload, resource={**self._resource(), "patternmill.outcome": ending.outcome.value}
        )

    def emit(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        resource: Mapping[str, str] | None = None,
        related: list[dict[str, str]] | None = None,
        which: str = "",
    ) -> None:
        """Queue the event for Prefect's sender; never blocks or raises."""
        record = self._run.record
        scope = {"run": record.run_id, "catalog": record.catalog, "environment": record.environment}
        labels = {f"patternmill.{name}": value for name, value in scope.items()}
        try:
            self._context.copy().run(
                self._send,
                event,
                resource={**labels, **(resource or self._resource())},
                related=related or [],
                payload={**scope, **payload},
                id=uuid5(_NAMESPACE, f"{event}\n{record.environment}\n{record.run_id}\n{which}"),
            )
        except Exception as error:
            logger.info("An event was not sent: %s", type(error).__name__)

    def _resource(self) -> dict[str, str]:
        record = self._run.record
        return {
            "prefect.resource.id": f"patternmill.run.{record.run_id}",
            "prefect.resource.name": line(f"{record.catalog} ({record.environment})"),
        }

    def _skus(self, item: Item) -> list[str]:
        """The rows of this run that share the item."""
        if item.sku is not None:
            return [item.sku]
        return [row.sku for row in self._run.plan.rows if item.key in row.keys]


def _task_run() -> list[dict[str, str]]:
    """The current task run, as a related resource."""
    context = TaskRunContext.get()
    if context is None:
        return []
    task_run = context.task_run
    return [
        {
            "prefect.resource.id": f"prefect.task-run.{task_run.id}",
            "prefect.resource.role": "task-run",
            "prefect.resource.name": task_run.name,
        }
    ]
