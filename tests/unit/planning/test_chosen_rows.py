"""Rows that are chosen from a file: what the plan does about the others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from patternmill.catalog.rows import Row
from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan, Reason, make_plan
from patternmill.planning.recognition import Memory
from patternmill.states import AttemptState, Stage
from tests.unit.catalog.samples import HEADER, checked

SCOPE = Scope("staging", "spring")
ROWS = f"{HEADER}\nH-1,blue herons,Cushion,S,linen,\nH-2,blue herons,Mug,11oz,,\nF-1,green ferns,Mug,11oz,,\n"


@dataclass(frozen=True)
class Known:
    state: AttemptState
    attempt: int = 1


def plan(*skus: str, memory: Memory | None = None) -> Plan:
    def chosen(row: Row) -> bool:
        return row.sku in skus

    return make_plan(SCOPE, checked(ROWS).entries, memory or Memory(), retry=chosen, only=chosen)


def reasons(found: Plan) -> tuple[list[Reason], list[Reason]]:
    patterns, products = map(found.of_stage, (Stage.PATTERN, Stage.PRODUCT))
    return [p.reason for p in patterns.values()], [p.reason for p in products.values()]


def test_rows_not_chosen_are_left_out() -> None:
    """Their items are on record, and nothing is done for them."""
    found = plan("F-1")
    assert reasons(found) == ([Reason.LEFT_OUT, Reason.NEW], [Reason.LEFT_OUT, Reason.LEFT_OUT, Reason.NEW])
    assert [row.sku for row in found.to_do()] == ["F-1"]
    assert found.purchases() == {Stage.PATTERN: 1, Stage.PRODUCT: 1}
    assert len(found.rows) == 3


def test_shared_pattern_is_made_for_the_chosen_row() -> None:
    """Whichever other rows have it, and it counts for that row alone."""
    found = plan("H-2")
    assert reasons(found)[0] == [Reason.NEW, Reason.LEFT_OUT]
    assert [pattern.rows for pattern in found.of_stage(Stage.PATTERN).values()] == [1, 0]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (AttemptState.SUCCEEDED, Reason.DONE),
        (AttemptState.FAILED, Reason.FAILED_BEFORE),
        (AttemptState.HELD, Reason.HELD),
        (AttemptState.ACCEPTED, Reason.LEFT_OUT),
        (AttemptState.INTENDED, Reason.LEFT_OUT),
    ],
)
def test_rows_not_chosen_keep_their_reason(state: AttemptState, reason: Reason) -> None:
    """Made, failed or held, chosen or not; what could be resumed is left out."""
    whole = plan("H-1", "H-2", "F-1")
    memory = Memory({key: Known(state) for key in whole.items})
    found = plan(memory=memory)
    assert set(reasons(found)[1]) == {reason}
    assert set(reasons(found)[0]) == {reason}
    assert list(found.to_do()) == []


def test_failed_pattern_of_a_chosen_row_is_retried() -> None:
    """For the row that was chosen, not for its neighbour."""
    key = next(iter(plan("H-1").of_stage(Stage.PATTERN)))
    found = plan("H-1", memory=Memory({key: Known(AttemptState.FAILED)}))
    assert found.items[key].reason is Reason.RETRIED
    assert [row.sku for row in found.to_do()] == ["H-1"]
