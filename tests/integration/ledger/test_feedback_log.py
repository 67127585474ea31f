"""The record of feedback on each database: a cause is reported once, however many runs end at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from patternmill.ledger.feedback_log import (
    ANSWERED,
    FailureCause,
    FeedbackEntry,
    FeedbackEvent,
    intend_feedback,
    last_answer,
    reported_causes,
)
from patternmill.ledger.ledger import Ledger

from .conftest import OpenLedger
from .samples import RUN, STAGING, begin

BROKEN = FailureCause("patterns/create", "pattern_failed", "loom # broke")
YARN = FailureCause("patterns/create", "pattern_failed", "no yarn \u0000 \u202e 🦢")


def end(ledger: Ledger, kind: FeedbackEvent, entry: FeedbackEntry) -> None:
    request_id = begin(ledger, "herons").request_id
    with ledger.transaction():
        ledger.record_event(RUN, kind, request_id, detail=entry.as_json("so it was"))


def intended(ledger: Ledger, entry: FeedbackEntry, once_in: str | None = STAGING) -> bool:
    request_id = begin(ledger, "herons").request_id
    return intend_feedback(ledger, RUN, request_id, entry, once_in=once_in)


def test_cause_is_reported_once(ledger: Ledger) -> None:
    """By a run; a person may repeat it. Another cause is another report, whatever characters it has."""
    first = FeedbackEntry("f-1", BROKEN, "run")
    assert intended(ledger, first)
    assert not intended(ledger, FeedbackEntry("f-2", BROKEN, "run"))
    assert intended(ledger, FeedbackEntry("f-3", YARN, "run"))
    assert intended(ledger, FeedbackEntry("f-4", BROKEN, "person"), once_in=None)
    assert set(reported_causes(ledger, STAGING)) == {BROKEN, YARN}
    assert reported_causes(ledger, "production") == {}


@pytest.mark.parametrize(
    ("kind", "again"),
    [(FeedbackEvent.SENT, False), (FeedbackEvent.IN_DOUBT, False), (FeedbackEvent.NOT_SENT, True)],
)
def test_only_what_was_not_delivered_is_reported_again(
    kind: FeedbackEvent, again: bool, ledger: Ledger
) -> None:
    entry = FeedbackEntry("f-1", BROKEN, "run")
    assert intended(ledger, entry)
    end(ledger, kind, entry)
    assert intended(ledger, FeedbackEntry("f-2", BROKEN, "run")) is again


def test_failed_repetition_does_not_undo_a_report(ledger: Ledger) -> None:
    """What a person could not send again was sent before all the same."""
    intended(ledger, FeedbackEntry("f-1", BROKEN, "run"))
    second = FeedbackEntry("f-2", BROKEN, "person")
    intended(ledger, second, once_in=None)
    end(ledger, FeedbackEvent.NOT_SENT, second)
    assert set(reported_causes(ledger, STAGING)) == {BROKEN}


def test_runs_that_end_together_report_a_cause_once(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """Each over a connection of its own."""
    request_id = begin(ledger, "herons").request_id
    ready = Barrier(4)

    def report(number: int) -> bool:
        with open_ledger() as own:
            ready.wait(10)
            entry = FeedbackEntry(f"f-{number}", BROKEN, "run")
            return intend_feedback(own, RUN, request_id, entry, once_in=STAGING)

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(report, range(4))) == [False, False, False, True]


def test_last_answer_counts(ledger: Ledger) -> None:
    request_id = begin(ledger, "herons").request_id
    assert last_answer(ledger, request_id) is None
    with ledger.transaction():
        for status in (500, 422):
            ledger.record_event(RUN, ANSWERED, request_id, detail=f'{{"status": {status}}}')
    found = last_answer(ledger, request_id)
    assert found is not None and found[1] == '{"status": 422}'
