"""Which fault fires on a call, how that is counted, and what a killed studio still knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from studio.instruments.calls import Call, read_call
from studio.instruments.fault_plan import FaultPlan
from studio.instruments.faults import Faults
from studio.operations.context import Caller
from studio.requests import CreatePattern
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")
CLOSE = {"kind": "close"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "studio.db")
    yield made
    made.close()


def faults(store: Store, *plan: dict[str, Any]) -> Faults:
    """Counting from the beginning."""
    made = Faults(store, FaultPlan())
    made.use(FaultPlan.model_validate({"faults": [{"effect": CLOSE, **one} for one in plan]}))
    return made


def fired(faults: Faults, *calls: Call) -> list[str]:
    return [fault.name if fault is not None else "" for fault in map(faults.on_exchange, calls)]


def call(operation: str) -> Call:
    return Call(operation, DEFAULT_ACCOUNT)


def test_counting_goes_on_after_a_restart(store: Store) -> None:
    faults(store, {"name": "third", "on": "creates", "nth": [3]}).on_exchange(call("patterns/create"))
    restarted = Faults(store, FaultPlan())

    assert fired(restarted, *[call("patterns/create")] * 2) == ["", "third"]
    restarted.use(restarted.plan)
    assert restarted.report() == [{"name": "third", "calls": 0, "fired": 0, "expected": 1}]


def test_calls_are_about_jobs_and_prompts(store: Store, tmp_path: Path) -> None:
    """A poll is known by the requestId and prompt of its job, and a product by its pattern's."""
    at = [NOW]
    service = Service(store, home=tmp_path, clock=lambda: at[0])
    job = service.patterns.create(CreatePattern(requestId="r1", prompt="Ferns"), CALLER)
    pattern = store.jobs.page(DEFAULT_ACCOUNT, None, 1)[0][1].result_id

    poll = read_call(store, "jobs/get", DEFAULT_ACCOUNT, {"jobId": job["jobId"]})
    assert (poll.request_id, poll.prompt) == ("r1", "Ferns")
    product = read_call(store, "products/create", DEFAULT_ACCOUNT, {"requestId": "r2", "patternId": pattern})
    assert (product.request_id, product.prompt, product.repeated) == ("r2", "Ferns", False)
    again = read_call(store, "patterns/create", DEFAULT_ACCOUNT, {"requestId": "r1", "prompt": 7})
    assert (again.prompt, again.repeated) == ("", True)
    report = read_call(store, "feedback/create", DEFAULT_ACCOUNT, {"requestId": "r1", "text": "x"})
    assert not report.repeated
    assert read_call(store, "jobs/get", DEFAULT_ACCOUNT, {"jobId": []}).request_id == ""
