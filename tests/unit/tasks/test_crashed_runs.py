"""What a crashed run is begun again with: its own parameters, and no more than is left of its limits."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from patternmill.identifiers import RunId
from patternmill.ledger.records import Lease
from patternmill.ledger.spending import Spent
from patternmill.runs.lease import DeployedRun
from patternmill.states import Stage
from tasks.crashed_runs import parameters_left

LEASE = Lease("staging", "spring", 1, RunId("run-1"))
SPENT = Spent(Counter({Stage.PATTERN: 2, Stage.PRODUCT: 3}), Counter({"": 700}))


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"budget": "1000", "max_items": 8}, {"budget": "300", "max_items": 3}),
        ({"budget": 500, "max_items": None}, {"budget": "0", "max_items": None}),
        ({"budget": ""}, {"budget": ""}),
        ({}, {}),
    ],
)
def test_limits_are_what_is_left_of_them(given: dict[str, Any], left: dict[str, Any]) -> None:
    """None is without limit; what was reserved is spent."""
    found = FlowRun(flow_id=uuid4(), parameters={"file": "spring.csv", **given})
    assert parameters_left(found, DeployedRun(LEASE, False, SPENT), None) == {"file": "spring.csv", **left}


def test_budget_that_is_left_is_written_in_its_currency() -> None:
    """Nothing is known to be left of it where something was spent in another one."""
    found = FlowRun(flow_id=uuid4(), parameters={"budget": "10.00"})
    spent = Spent(SPENT.items, Counter({"EUR": 700}))
    assert parameters_left(found, DeployedRun(LEASE, False, spent), "EUR") == {"budget": "€3.00"}
    assert parameters_left(found, DeployedRun(LEASE, False, spent), "USD") == {"budget": "$0.00"}


def test_retry_goes_on_without_what_failed_in_it() -> None:
    """By the crashed run's ID: its rows that were retried, and failed again, wait for a person."""
    found = FlowRun(flow_id=uuid4(), parameters={"run": "latest", "status": ["failed"], "code": ["too_dark"]})
    assert parameters_left(found, DeployedRun(LEASE, True, SPENT), None) == {
        "run": "run-1",
        "status": ["cancelled", "in_doubt", "not_started", "waiting"],
        "code": [],
    }
