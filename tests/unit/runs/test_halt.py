"""Why a run begins nothing new, as it is recorded."""

from __future__ import annotations

from patternmill.engine.progress import STOPPED, Halt, HaltReason
from patternmill.states import Outcome, Stage

STOP = HaltReason(Outcome.CANCELLED, STOPPED, "Stopped by SIGTERM.")


def test_stop_is_explained_by_what_is_learned_later() -> None:
    """A cancellation in the Prefect UI arrives as a signal."""
    halt = Halt()
    halt.begin(STOP)
    halt.explain_stop("Cancelled in the Prefect UI.")
    assert halt.reason == HaltReason(Outcome.CANCELLED, STOPPED, "Cancelled in the Prefect UI.")


def test_other_reasons_are_not_explained_away() -> None:
    """A rejected plan is no stop, and where nothing was stopped nothing is explained."""
    halt = Halt()
    halt.explain_stop("Cancelled in the Prefect UI.")
    assert halt.reason is None
    refused = HaltReason(Outcome.CANCELLED, "rejected", "The plan was rejected.")
    spent = HaltReason(Outcome.BUDGET_REACHED, "limit", "The budget is spent.")
    halt.begin(refused, stages=(Stage.PATTERN,))
    halt.begin(spent, stages=(Stage.PRODUCT,))
    halt.explain_stop("Cancelled in the Prefect UI.")
    assert halt.reason == refused
