"""The contract of the ledger on each database: intents, the states of attempts, and the record of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.states import ATTEMPT_CHANGES, REOPENED, AttemptState, Stage

from .conftest import Clock
from .samples import CATALOG, RUN, STAGING, UNLIMITED, at_state, begin, change, intent, item, learned


def test_intent_is_written_with_its_exact_body(ledger: Ledger, clock: Clock) -> None:
    odd = replace(intent("herons"), body=bytes(range(256)) * 3)
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("herons")])
        attempt = ledger.purchases.intend(RUN, STAGING, odd, UNLIMITED)
    assert ledger.purchases.attempt(attempt.request_id) == attempt
    assert (attempt.state, attempt.body, attempt.intended_at) == (AttemptState.INTENDED, odd.body, clock.now)
    assert (attempt.accepted_at, attempt.ended_at, attempt.job_id) == (None, None, None)


def test_durations_are_those_of_what_succeeded_in_the_environment_the_latest_last(
    ledger: Ledger, clock: Clock
) -> None:
    for seconds, (name, end) in enumerate(
        [("a", AttemptState.SUCCEEDED), ("b", AttemptState.FAILED), ("c", AttemptState.SUCCEEDED)], start=60
    ):
        for environment in (STAGING, "production"):
            its_name = f"{name}-{environment}"
            begin(ledger, its_name, environment=environment)
            change(ledger, its_name, AttemptState.ACCEPTED)
            clock.now += seconds
            change(ledger, its_name, end)
    assert ledger.purchases.durations(STAGING) == [(Stage.PATTERN, 60.0), (Stage.PATTERN, 62.0)]


def test_known_intent_is_returned_in_its_present_state(ledger: Ledger) -> None:
    """A second run, or a second task, finds what the first one wrote."""
    for state in set(AttemptState) - REOPENED:
        before = at_state(ledger, state.value, state)
        assert begin(ledger, state.value, run=RunId("run-2")) == before


@pytest.mark.parametrize("state", sorted(REOPENED))
def test_withdrawn_attempt_is_opened_again(ledger: Ledger, clock: Clock, state: AttemptState) -> None:
    """Same ID, same bytes, and no trace of the refusal in its present state."""
    first = at_state(ledger, "herons", state)
    clock.now += 60
    again = begin(ledger, "herons", run=RunId("run-2"))
    assert (again.state, again.request_id, again.body) == (
        AttemptState.INTENDED,
        first.request_id,
        first.body,
    )
    assert again.intended_at == clock.now
    assert (again.error_code, again.error, again.ended_at) == (None, None, None)
    assert ledger.purchases.attempt(first.request_id) == again


@pytest.mark.parametrize(
    ("code", "bytes_of"),
    [("invalid_request", "now"), ("redirected", "then")],
)
def test_refused_request_goes_out_as_it_is_written_now(ledger: Ledger, code: str, bytes_of: str) -> None:
    """It made nothing; but what was redirected may have, and one request ID has one body then."""
    first = begin(ledger, "herons")
    with ledger.transaction():
        ledger.purchases.change(RUN, first.request_id, AttemptState.REJECTED, error_code=code, error="no")
        corrected = replace(intent("herons"), body=b'{"as": "now"}')
        again = ledger.purchases.intend(RUN, STAGING, corrected, UNLIMITED)
    assert again.body == (corrected.body if bytes_of == "now" else first.body)
    assert ledger.purchases.attempt(first.request_id) == again


@pytest.mark.parametrize("before", AttemptState)
def test_changes_are_those_of_the_table(ledger: Ledger, clock: Clock, before: AttemptState) -> None:
    """Each of them can be made and read; what is repeated alters nothing, not even a time; all others are refused."""
    for to in AttemptState:
        attempt = at_state(ledger, to.value, before)
        comes_with = learned(f"{to.value}/1", to)
        clock.now += 1
        if to is not before and to not in ATTEMPT_CHANGES[before]:
            refusal = f"is {before}; it cannot become {to}"
            with pytest.raises(LedgerError, match=refusal), ledger.transaction():
                ledger.purchases.change(RUN, attempt.request_id, to, **comes_with)
            assert ledger.purchases.attempt(attempt.request_id) == attempt
            continue
        with ledger.transaction():
            changed = ledger.purchases.change(RUN, attempt.request_id, to, **comes_with)
        assert ledger.purchases.attempt(attempt.request_id) == changed
        if to is before:
            assert changed == attempt
        else:
            assert changed.state is to
            assert (changed.ended_at is None) is (to in {AttemptState.INTENDED, AttemptState.ACCEPTED})


@pytest.mark.parametrize(
    ("state", "to", "fields"),
    [
        (AttemptState.ACCEPTED, AttemptState.ACCEPTED, {"job_id": "job-other"}),
        (AttemptState.SUCCEEDED, AttemptState.SUCCEEDED, {"result_id": "other"}),
        (AttemptState.INTENDED, AttemptState.ACCEPTED, {}),
        (AttemptState.ACCEPTED, AttemptState.SUCCEEDED, {}),
    ],
    ids=["another job", "another result", "no job", "no result"],
)
def test_contradicting_or_empty_answer_is_refused(
    ledger: Ledger, state: AttemptState, to: AttemptState, fields: dict[str, str]
) -> None:
    """One request has one job, one job made one thing, and neither state is without."""
    attempt = at_state(ledger, "herons", state)
    with pytest.raises(LedgerError), ledger.transaction():
        ledger.purchases.change(RUN, attempt.request_id, to, **fields)
    assert ledger.purchases.attempt(attempt.request_id) == attempt


def test_job_id_and_times_survive_later_changes(ledger: Ledger, clock: Clock) -> None:
    begin(ledger, "herons")
    clock.now += 1
    change(ledger, "herons", AttemptState.ACCEPTED)
    clock.now += 60
    made = change(ledger, "herons", AttemptState.SUCCEEDED)
    assert (made.job_id, made.result_id) == ("job-herons/1", "made-herons/1")
    assert made.picture_url == "https://pictures/herons/1.png"
    assert (made.accepted_at, made.ended_at) == (made.intended_at + 1, made.intended_at + 61)


def test_unknown_request_and_unknown_item_are_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="not in the ledger"), ledger.transaction():
        ledger.purchases.change(RUN, RequestId("unknown"), AttemptState.ACCEPTED, job_id="job-1")
    with pytest.raises(LedgerError), ledger.transaction():
        ledger.purchases.intend(RUN, STAGING, intent("unknown"), UNLIMITED)


def test_job_belongs_to_one_request(ledger: Ledger) -> None:
    at_state(ledger, "herons", AttemptState.ACCEPTED)
    at_state(ledger, "ferns", AttemptState.SUCCEEDED)
    assert ledger.purchases.request_of_job("job-herons/1", STAGING) == "herons/1"
    assert ledger.purchases.request_of_job("job-ferns/1", STAGING) == "ferns/1"
    assert ledger.purchases.request_of_job("job-unknown", STAGING) is None


def test_last_attempt_at_each_item_of_a_catalog(ledger: Ledger) -> None:
    """Without bodies, without those of another environment or catalog, streamed while the ledger can be used."""
    at_state(ledger, "herons", AttemptState.FAILED, 1)
    at_state(ledger, "herons", AttemptState.ACCEPTED, 2)
    at_state(ledger, "ferns", AttemptState.SUCCEEDED)
    at_state(ledger, "elsewhere", AttemptState.SUCCEEDED, environment="production")
    at_state(ledger, "other", AttemptState.SUCCEEDED, catalog="autumn")
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item(f"p{number}") for number in range(1500)])
        ledger.database.execute(
            "INSERT INTO attempts (request_id, item_key, attempt, state, body, run_id, intended_at) "
            "SELECT i.key, i.key, 1, 'intended', a.body, '', 0 FROM items i JOIN attempts a "
            "ON a.request_id = 'ferns/1' WHERE i.key LIKE 'p%'"
        )
    last = {attempt.item_key: attempt for attempt in ledger.purchases.last_attempts(STAGING, CATALOG)}
    assert len(last) == 1502
    herons, ferns = last[ItemKey("herons")], last[ItemKey("ferns")]
    assert (herons.attempt, herons.state, herons.body) == (2, AttemptState.ACCEPTED, b"")
    assert (ferns.state, ferns.result_id) == (AttemptState.SUCCEEDED, "made-ferns/1")
    next(ledger.purchases.last_attempts(STAGING, CATALOG))
    assert begin(ledger, "after").state is AttemptState.INTENDED


def test_events_are_added_and_never_changed(ledger: Ledger, clock: Clock) -> None:
    """What happened, in the order in which it did, with the moment and what was learned."""
    at_state(ledger, "herons", AttemptState.WITHDRAWN)
    clock.now += 1
    begin(ledger, "herons", run=RunId("run-2"))
    change(ledger, "herons", AttemptState.ACCEPTED, AttemptState.SUCCEEDED)
    with ledger.transaction():
        ledger.record_event(RUN, "stopped", detail="by a person")
    rows = ledger.database.rows("SELECT seq, kind, request_id, detail FROM events ORDER BY seq")
    assert [seq for seq, *_ in rows] == sorted(seq for seq, *_ in rows)
    assert [tuple(rest) for _, *rest in rows] == [
        ("intended", "herons/1", None),
        ("withdrawn", "herons/1", None),
        ("intended", "herons/1", None),
        ("accepted", "herons/1", "job-herons/1"),
        ("succeeded", "herons/1", "made-herons/1"),
        ("stopped", None, "by a person"),
    ]


def test_failed_transaction_leaves_nothing(ledger: Ledger) -> None:
    """A transaction that ends in an error takes all of its writes back."""
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("herons")])
        ledger.purchases.intend(RUN, STAGING, intent("herons"), UNLIMITED)
        raise RuntimeError("in the middle")
    assert ledger.purchases.attempt(RequestId("herons/1")) is None
    assert ledger.database.rows("SELECT count(*) FROM events") == [(0,)]
    assert ledger.database.rows("SELECT count(*) FROM spending") == [(0,)]


def test_time_never_runs_backward(ledger: Ledger, clock: Clock) -> None:
    """A clock set back by an hour dates nothing earlier."""
    first = ledger.now()
    clock.now -= 3600
    assert ledger.now() == first
    attempt = begin(ledger, "herons")
    assert attempt.intended_at == first
