"""Rows that are taken up alone: what the plan does about the others, and the file that names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.planning.items import Scope
from patternmill.planning.memory import Memory
from patternmill.planning.plan import Plan, Reason, make_plan
from patternmill.runs.row_selection import Selection, read_selection, write_selection
from patternmill.states import AttemptState
from tests.unit.catalog.samples import HEADER, checked

SCOPE = Scope("staging", "spring")
ROWS = f"{HEADER}\nH-1,blue herons,Cushion,S,linen,\nH-2,blue herons,Mug,11oz,,\nF-1,green ferns,Mug,11oz,,\n"


@dataclass(frozen=True)
class Known:
    state: AttemptState


def plan(*skus: str, memory: Memory | None = None) -> Plan:
    chosen = Selection("run-1", "spring.csv", frozenset(skus))
    return make_plan(
        SCOPE, checked(ROWS).entries, memory or Memory(), retry=chosen.chooses, only=chosen.chooses
    )


def reasons(found: Plan) -> tuple[list[Reason], list[Reason]]:
    return [p.reason for p in found.patterns.values()], [p.reason for p in found.products.values()]


def test_others_are_left_out() -> None:
    """Rows not chosen have their items on record, and nothing is done for them."""
    found = plan("F-1")
    assert reasons(found) == ([Reason.LEFT_OUT, Reason.NEW], [Reason.LEFT_OUT, Reason.LEFT_OUT, Reason.NEW])
    assert [row.sku for row in found.to_do()] == ["F-1"]
    assert found.purchases() == (1, 1)
    assert len(found.rows) == 3


def test_shared_pattern_is_made_for_the_chosen_row() -> None:
    """A pattern of a chosen row is made, whoever else has it, and counts for that row alone."""
    found = plan("H-2")
    assert reasons(found)[0] == [Reason.NEW, Reason.LEFT_OUT]
    assert [pattern.rows for pattern in found.patterns.values()] == [1, 0]


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
def test_others_keep_what_they_are(state: AttemptState, reason: Reason) -> None:
    """What is made, failed or held reads so, chosen or not; what could be gone on with is left out."""
    whole = plan("H-1", "H-2", "F-1")
    memory = Memory({key: Known(state) for key in (*whole.patterns, *whole.products)})
    found = plan(memory=memory)
    assert set(reasons(found)[1]) == {reason}
    assert set(reasons(found)[0]) == {reason}
    assert list(found.to_do()) == []


def test_failed_pattern_of_a_chosen_row_is_tried_again() -> None:
    """The pattern that failed is retried for the row that was chosen, not for its neighbour."""
    key = next(iter(plan("H-1").patterns))
    found = plan("H-1", memory=Memory({key: Known(AttemptState.FAILED)}))
    assert found.patterns[key].reason is Reason.RETRIED
    assert [row.sku for row in found.to_do()] == ["H-1"]


def test_selection_comes_back_as_written(tmp_path: Path) -> None:
    """Skus with commas, quotes and other letters survive."""
    selection = Selection("run-1", "in/frühling.csv", frozenset({'a,"b"', "ö", "H-1"}))
    write_selection(selection, tmp_path / "selection.json")
    assert read_selection(tmp_path / "selection.json") == selection


@pytest.mark.parametrize("text", ["", "[]", '{"run_id": "x"}', '{"run_id": 1, "source": 2, "skus": 3}'])
def test_what_is_no_selection_is_refused(tmp_path: Path, text: str) -> None:
    """A file that names no rows stops the run before anything is bought."""
    path = tmp_path / "selection.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        read_selection(path)
