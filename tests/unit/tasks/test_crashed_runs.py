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


EUR = Spent(SPENT.items, Counter({"EUR": 700}))
RETRIED = {"run": "latest", "status": ["failed"], "code": ["too_dark"]}
RESUMED = {"run": "run-1", "status": ["cancelled", "in_doubt", "not_started", "waiting"], "code": []}


@pytest.mark.parametrize(
    ("given", "spent", "currency", "left"),
    [
        ({"budget": "1000", "max_items": 8}, SPENT, None, {"budget": "300", "max_items": 3}),
        ({"budget": 500, "max_items": None}, SPENT, None, {"budget": "0", "max_items": None}),
        ({"budget": ""}, SPENT, None, {"budget": ""}),
        ({"file": "spring.csv"}, SPENT, None, {"file": "spring.csv"}),
        ({"budget": "10.00"}, EUR, "EUR", {"budget": "€3.00"}),
        ({"budget": "10.00"}, EUR, "USD", {"budget": "$0.00"}),
        (RETRIED, SPENT, None, RESUMED),
    ],
)
def test_crashed_run_is_resumed_with_what_is_left_to_it(
    given: dict[str, Any], spent: Spent, currency: str | None, left: dict[str, Any]
) -> None:
    """None is without limit; nothing is known to be left of another currency; a retry leaves out what failed again."""
    flow_run = FlowRun(flow_id=uuid4(), parameters=given)
    crashed = DeployedRun(LEASE, "run" in given, spent)
    assert parameters_left(flow_run, crashed, currency) == left
