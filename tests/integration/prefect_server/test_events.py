"""The events of runs: their content, how often they are sent, and that none can stop a run. No server is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patternmill.engine.engine import Screen
from patternmill.engine.shards import Shard
from patternmill.errors import RowFailed
from patternmill.planning.items import Item
from patternmill.results.results_files import rebuild
from patternmill.runs.run import Run
from patternmill.service.outcomes import Failed
from patternmill.states import Outcome
from tasks.run_events import MOST_ITEMS, item_failed, run_finished, run_started
from tests.unit.runs.fake_studio import Service
from tests.unit.runs.workshop import Ended, Workshop, many, rows

Sent = list[dict[str, Any]]


class ReportingScreen(Screen):
    """Reports each failure twice, as a screen that shows an item again."""

    def __init__(self, run: Run, send: Callable[..., object]) -> None:
        self._run = run
        run_started(run, send)

    def show(self, shard: Shard, item: Item, making: asyncio.Task[str]) -> None:
        making.add_done_callback(lambda made: self._report(item, made.exception()))

    def _report(self, item: Item, failed: BaseException | None) -> None:
        if isinstance(failed, RowFailed):
            item_failed(self._run, item, failed)
            item_failed(self._run, item, failed)


def play(folder: Path, catalog: str, service: Service, send: Callable[..., object]) -> Ended:
    workshop = Workshop(folder, service)
    ended = workshop.run(
        catalog, screen=lambda run: ReportingScreen(run, send), attempts=1, pattern_price=40, product_price=10
    )
    ended.run.ending = ended.ending
    with workshop.ledger() as ledger:
        run_finished(ended.run, rebuild(ledger, ended.ending.record.run_id, folder / "out"))
    return ended


def collector(sent: Sent) -> Callable[..., object]:
    return lambda event, **rest: sent.append({"event": event, **rest})


def test_run_emits_its_beginning_failures_and_end(tmp_path: Path) -> None:
    """A pattern that failed names the rows that failed with it; the end has the numbers of the ledger."""
    service = Service()
    service.on_follow["broken looms"].append(Failed("the loom broke"))
    sent: Sent = []
    catalog = rows(("A-1", "herons"), ("A-2", "broken looms"), ("A-3", "broken looms"))
    play(tmp_path, catalog, service, collector(sent))
    started, failed, finished = sent
    assert [event["event"].removeprefix("patternmill.") for event in sent] == [
        "run.started",
        "item.failed",
        "run.finished",
    ]
    assert started["payload"]["to_buy"] == {"patterns": 2, "products": 3}
    assert started["payload"]["expected_amount"] == 110
    assert failed["payload"] | {"request_id": "", "run": ""} == {
        "run": "",
        "catalog": "spring",
        "environment": "staging",
        "sku": "A-2",
        "skus": ["A-2", "A-3"],
        "rows": 2,
        "stage": "pattern",
        "code": "pattern_failed",
        "message": "the loom broke",
        "request_id": "",
        "job_id": failed["payload"]["job_id"],
    }
    assert failed["payload"]["job_id"]
    run = started["resource"]["prefect.resource.id"]
    assert run == finished["resource"]["prefect.resource.id"] == failed["related"][0]["prefect.resource.id"]
    assert finished["resource"]["patternmill.outcome"] == Outcome.COMPLETED_WITH_FAILURES
    assert finished["payload"]["rows"] == {"succeeded": 1, "failed": 2}
    assert (finished["payload"]["amount"], finished["payload"]["bought"]) == (
        90,
        {"patterns": 2, "products": 1},
    )
    assert len({event["id"] for event in sent}) == 3


def test_failure_events_are_capped(tmp_path: Path) -> None:
    """Each once, and past the cap the number of the others."""
    count = MOST_ITEMS + 7
    service = Service()
    for number in range(count):
        service.on_follow[f"prompt {number:03}"].append(Failed("the loom broke"))
    sent: Sent = []
    play(tmp_path, many(count), service, collector(sent))
    kinds = Counter(event["event"] for event in sent)
    assert kinds["patternmill.item.failed"] == MOST_ITEMS
    assert len({event["id"] for event in sent}) == len(sent)
    (more,) = [event for event in sent if event["event"] == "patternmill.run.more-items-failed"]
    assert more["payload"]["more"] == 7


def test_second_run_emits_no_event_for_earlier_failures(tmp_path: Path) -> None:
    """What stays failed and is not tried again is in the numbers alone; its own beginning and end have other IDs."""
    service = Service()
    service.on_follow["broken looms"].append(Failed("the loom broke"))
    first, second = Sent(), Sent()
    for sent in (first, second):
        play(tmp_path, rows(("A-1", "herons"), ("A-2", "broken looms")), service, collector(sent))
    assert [event["event"] for event in second] == ["patternmill.run.started", "patternmill.run.finished"]
    assert second[-1]["payload"]["rows"] == {"succeeded": 1, "failed": 1}
    assert not {event["id"] for event in first} & {event["id"] for event in second}


def test_event_that_cannot_be_sent_stops_nothing(tmp_path: Path) -> None:

    def broken(event: str, **rest: Any) -> None:
        raise RuntimeError("no server")

    assert play(tmp_path, rows(("A-1", "herons")), Service(), broken).outcome is Outcome.COMPLETED
