"""The final state of a run that a person cancels in the Prefect UI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prefect import State
from prefect.client.schemas.objects import StateType

from patternmill.states import Outcome
from tasks import cancellation
from tasks.prefect_states import state_of


def test_cancelled_run_keeps_its_outcome_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server lets it end as cancelled only, and would say no more than that."""

    async def current() -> State[Any]:
        return State(type=StateType.CANCELLING)

    monkeypatch.setattr(cancellation, "_current_state", current)
    state = asyncio.run(cancellation.final_state(state_of(Outcome.FAILED, "4 rows: 4 succeeded")))
    assert (state.type, state.name) == (StateType.CANCELLED, "Failed")
    assert str(state.message).startswith("4 rows: 4 succeeded. Cancelled in the Prefect UI when")


def test_other_run_ends_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked where it is cancelled anyway."""
    asked = []

    async def current() -> State[Any]:
        asked.append(True)
        return State(type=StateType.RUNNING)

    monkeypatch.setattr(cancellation, "_current_state", current)
    for outcome in (Outcome.COMPLETED, Outcome.CANCELLED, Outcome.BUDGET_REACHED):
        state = state_of(outcome, "4 rows")
        assert asyncio.run(cancellation.final_state(state)) is state
    assert len(asked) == 1
