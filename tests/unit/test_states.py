"""The states: which changes are legal, which are final, and that the tables have the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import patternmill.ledger
from patternmill.states import (
    ATTEMPT_CHANGES,
    EXIT_CODES,
    EXIT_REFUSED,
    AttemptState,
    Outcome,
)

SCHEMA = (Path(patternmill.ledger.__file__).parent / "migrations/001.sql").read_text(encoding="utf-8")


def test_schema_lists_every_state_of_an_attempt() -> None:
    listed = re.search(r"state\s*IN\s*\(([^)]*)\)", SCHEMA)
    assert listed is not None
    assert set(re.findall(r"'(\w+)'", listed[1])) == {state.value for state in AttemptState}


def test_legal_changes() -> None:
    """Written out once more by hand: a change of the table is a decision, not a slip."""
    words = {before.value: {to.value for to in changes} for before, changes in ATTEMPT_CHANGES.items()}
    assert words == {
        "intended": {"withdrawn", "accepted", "rejected", "held"},
        "withdrawn": {"intended"},
        "accepted": {"succeeded", "failed", "held"},
        "rejected": {"intended"},
        "held": {"intended", "accepted", "failed"},
        "succeeded": set(),
        "failed": {"accepted"},
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_an_exit_code(outcome: Outcome) -> None:
    """None but Completed has 0, and none has 2, which means that nothing was spent."""
    code = EXIT_CODES[outcome]
    assert (code == 0) is (outcome is Outcome.COMPLETED)
    assert code != EXIT_REFUSED
