"""The record of feedback on each database: a failure is reported once, however often that is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from patternmill.ledger.feedback_log import ANSWERED, FeedbackEvent, intend_feedback, last_answer
from patternmill.ledger.ledger import Ledger

from .conftest import OpenLedger
from .samples import RUN, begin


def test_only_what_was_not_delivered_is_reported_again(ledger: Ledger) -> None:
    """What has no event after it neither: its sender was killed, so that it may have been."""
    for kind in (None, FeedbackEvent.SENT, FeedbackEvent.IN_DOUBT, FeedbackEvent.NOT_SENT):
        request_id = begin(ledger, f"herons-{kind}").request_id
        assert intend_feedback(ledger, RUN, request_id, "f-1")
        if kind is not None:
            with ledger.transaction():
                ledger.record_event(RUN, kind, request_id, detail="so it was")
        assert intend_feedback(ledger, RUN, request_id, "f-2") is (kind is FeedbackEvent.NOT_SENT)


def test_failure_is_reported_once_by_all_together(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """Each over a connection of its own."""
    request_id = begin(ledger, "herons").request_id
    ready = Barrier(4)

    def report(number: int) -> bool:
        with open_ledger() as own:
            ready.wait(10)
            return intend_feedback(own, RUN, request_id, f"f-{number}")

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
