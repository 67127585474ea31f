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
    REOPENED,
    UNFINISHED_ROWS,
    AttemptState,
    Outcome,
    RowStatus,
)

SCHEMA = (Path(patternmill.ledger.__file__).parent / "schema.sql").read_text(encoding="utf-8")


def quoted(after: str) -> set[str]:
    """The values of the CHECK list after `after` in the schema."""
    found = re.search(re.escape(after) + r"\s*IN\s*\(([^)]*)\)", SCHEMA)
    assert found is not None
    return set(re.findall(r"'(\w+)'", found.group(1)))


def test_schema_lists_every_state_of_an_attempt() -> None:
    assert quoted("state") == {state.value for state in AttemptState}


def test_every_state_has_its_changes() -> None:
    """The table is complete, and no state changes into itself."""
    assert set(ATTEMPT_CHANGES) == set(AttemptState)
    assert all(state not in changes for state, changes in ATTEMPT_CHANGES.items())


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


def test_only_unexecuted_attempts_are_opened_again() -> None:
    """And both can become an intent again."""
    assert {AttemptState.WITHDRAWN, AttemptState.REJECTED} == REOPENED
    assert all(AttemptState.INTENDED in ATTEMPT_CHANGES[state] for state in REOPENED)


def test_failed_needs_a_job() -> None:
    """No state without a job leads to FAILED, except by a person's decision on what is held."""
    leading = {state for state, changes in ATTEMPT_CHANGES.items() if AttemptState.FAILED in changes}
    assert leading == {AttemptState.ACCEPTED, AttemptState.HELD}


def test_unfinished_rows_are_those_that_a_second_run_can_change() -> None:
    """The rest needs an edit, a retry or a decision."""
    assert set(RowStatus) - UNFINISHED_ROWS == {
        RowStatus.SUCCEEDED,
        RowStatus.FAILED,
        RowStatus.REFUSED,
        RowStatus.HELD,
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_an_exit_code(outcome: Outcome) -> None:
    """And none but Completed has 0, or 2, which means that nothing was spent."""
    code = EXIT_CODES[outcome]
    assert (code == 0) is (outcome is Outcome.COMPLETED)
    assert code != EXIT_REFUSED
