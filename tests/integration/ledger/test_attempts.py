"""The contract of the ledger on each database: intents, the states of attempts, orders, and the record of events."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from patternmill import processes
from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import OrderRecord, PickedLine
from patternmill.states import (
    ATTEMPT_CHANGES,
    INVALID_REQUEST,
    REDIRECTED,
    REFUSED_ALIKE,
    REOPENED,
    TO_RESEND,
    UNCLEAR_REFUSAL,
    AttemptState,
    Stage,
)

from .conftest import Clock, OpenLedger
from .samples import CATALOG, RUN, STAGING, UNLIMITED, at_state, begin, change, intent, item, learned

OTHER_RUN = RunId("run-2")
HOUR = 3600.0
#: For the error code of an attempt on record: the body that a new intent has, and whether the reason stays on record.
REOPENED_WITH = {
    None: ("now", False),
    INVALID_REQUEST: ("now", False),
    UNCLEAR_REFUSAL: ("now", True),
    REDIRECTED: ("then", True),
}


def test_intent_is_written_with_its_exact_body(ledger: Ledger, clock: Clock) -> None:
    """Nothing has come of it yet; a clock that is set back dates nothing earlier."""
    first = ledger.now()
    clock.now -= HOUR
    odd = replace(intent("herons"), body=bytes(range(256)) * 3)
    with ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("herons")])
        attempt = ledger.purchases.intend(RUN, odd, UNLIMITED)
    assert ledger.purchases.attempt(attempt.request_id) == attempt
    assert (attempt.state, attempt.body, attempt.intended_at) == (AttemptState.INTENDED, odd.body, first)
    assert (attempt.accepted_at, attempt.ended_at, attempt.job_id) == (None, None, None)
    last = ledger.purchases.last_attempt(ItemKey("herons"))
    assert last == replace(attempt, body=b"")


def test_intent_on_record_is_returned_in_its_present_state(ledger: Ledger) -> None:
    """A second run, or a second task, finds what the first one wrote."""
    for state in set(AttemptState) - REOPENED:
        before = at_state(ledger, state.value, state)
        assert begin(ledger, state.value, run=OTHER_RUN) == before


@pytest.mark.parametrize("code", REOPENED_WITH, ids=str)
def test_request_that_made_nothing_goes_out_as_it_is_written_now(
    ledger: Ledger, clock: Clock, code: str | None
) -> None:
    """A redirected request is the exception: it may have made something, so that its ID keeps its body."""
    whose, keeps_reason = REOPENED_WITH[code]
    first, refused = begin(ledger, "herons"), {"error_code": code, "error": "no"} if code else {}
    to = AttemptState.REJECTED if code else AttemptState.WITHDRAWN
    clock.now += 60
    corrected = replace(intent("herons"), body=b'{"as": "now"}')
    with ledger.transaction():
        ledger.purchases.change(RUN, first.request_id, to, **refused)
        again = ledger.purchases.intend(OTHER_RUN, corrected, UNLIMITED)
    assert (again.state, again.intended_at, again.ended_at) == (AttemptState.INTENDED, clock.now, None)
    assert again.body == (corrected.body if whose == "now" else first.body)
    assert (again.error_code, again.error) == ((code, "no") if keeps_reason else (None, None))
    assert ledger.purchases.attempt(first.request_id) == again


@pytest.mark.parametrize("before", AttemptState)
def test_changes_are_those_of_the_table(ledger: Ledger, clock: Clock, before: AttemptState) -> None:
    """Each of them can be made and read; what is repeated alters nothing, not even a time; all others are refused."""
    for to in AttemptState:
        attempt = at_state(ledger, to.value, before)
        comes_with = learned(to, f"{to.value}/1")
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


def test_contradicting_or_empty_answer_is_refused(ledger: Ledger) -> None:
    """One request has one job, one job made one thing, neither state is without, and each request has its item."""
    contradictions: list[tuple[AttemptState, AttemptState, dict[str, str]]] = [
        (AttemptState.ACCEPTED, AttemptState.ACCEPTED, {"job_id": "another"}),
        (AttemptState.SUCCEEDED, AttemptState.SUCCEEDED, {"result_id": "another"}),
        (AttemptState.INTENDED, AttemptState.ACCEPTED, {}),
        (AttemptState.ACCEPTED, AttemptState.SUCCEEDED, {}),
    ]
    for number, (state, to, fields) in enumerate(contradictions):
        attempt = at_state(ledger, f"herons {number}", state)
        with pytest.raises(LedgerError), ledger.transaction():
            ledger.purchases.change(RUN, attempt.request_id, to, **fields)
        assert ledger.purchases.attempt(attempt.request_id) == attempt
    with pytest.raises(LedgerError, match="not in the ledger"), ledger.transaction():
        ledger.purchases.change(RUN, RequestId("unknown"), AttemptState.ACCEPTED, job_id="job-1")
    with pytest.raises(LedgerError), ledger.transaction():
        ledger.purchases.intend(RUN, intent("unknown"), UNLIMITED)


def test_job_and_times_survive_later_changes(ledger: Ledger, clock: Clock) -> None:
    """A request is found by its job, even if another service has a job of the same number."""
    begin(ledger, "herons")
    clock.now += 1
    change(ledger, "herons", AttemptState.ACCEPTED)
    clock.now += 60
    change(ledger, "herons", AttemptState.FAILED)
    change(ledger, "herons", AttemptState.ACCEPTED)
    clock.now += 60
    made = change(ledger, "herons", AttemptState.SUCCEEDED)
    assert (made.job_id, made.result_id) == ("job-herons/1", "made-herons/1")
    assert made.picture_url == "https://pictures/herons/1.png"
    assert (made.accepted_at, made.ended_at) == (made.intended_at + 61, made.intended_at + 121)
    for job_id, environment, request_id in (
        ("job-herons/1", STAGING, "herons/1"),
        ("job-herons/1", "production", None),
        ("job-unknown", STAGING, None),
    ):
        assert ledger.purchases.request_of_job(job_id, environment) == request_id
    of_result = ledger.purchases.attempts_with_result(
        "made-herons/1", STAGING, [Stage.PATTERN, Stage.PRODUCT]
    )
    assert of_result == [made]
    assert not ledger.purchases.attempts_with_result("made-herons/1", STAGING, [Stage.REFINEMENT])


def test_last_attempt_at_each_item_of_a_catalog(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """Without bodies, without those of another environment or catalog; what is written meanwhile is durable."""
    at_state(ledger, "herons", AttemptState.FAILED, 1)
    at_state(ledger, "herons", AttemptState.ACCEPTED, 2)
    at_state(ledger, "ferns", AttemptState.SUCCEEDED)
    at_state(ledger, "elsewhere", AttemptState.SUCCEEDED, environment="production")
    at_state(ledger, "other", AttemptState.SUCCEEDED, catalog="autumn")
    last = {attempt.item_key: attempt for attempt in ledger.purchases.last_attempts(STAGING, CATALOG)}
    assert {(name, each.attempt, each.state, each.body) for name, each in last.items()} == {
        ("herons", 2, AttemptState.ACCEPTED, b""),
        ("ferns", 1, AttemptState.SUCCEEDED, b""),
    }
    streams = [ledger.purchases.last_attempts(STAGING, CATALOG) for _ in range(2)]
    assert {next(stream).item_key for stream in streams} <= last.keys()
    written = begin(ledger, "after")
    assert open_ledger().purchases.attempt(written.request_id) == written
    assert all(last.keys() >= {each.item_key for each in stream} - {"after"} for stream in streams)


def test_what_a_service_has_done_so_far(ledger: Ledger, clock: Clock) -> None:
    """How long jobs that succeeded took, the latest last, and what it ever accepted: by environment."""
    ends = (AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.SUCCEEDED)
    for seconds, (name, end) in enumerate(zip("abc", ends, strict=True), start=60):
        for environment in (STAGING, "production"):
            its_name = f"{name}-{environment}"
            begin(ledger, its_name, environment=environment)
            change(ledger, its_name, AttemptState.ACCEPTED)
            clock.now += seconds
            change(ledger, its_name, end)
    assert ledger.purchases.durations(STAGING) == [(Stage.PATTERN, 60.0), (Stage.PATTERN, 62.0)]
    crop = '{"operation":"crop","pattern":"a-staging"}'
    at_state(ledger, "cropped", AttemptState.ACCEPTED, stage=Stage.REFINEMENT, content=crop)
    at_state(ledger, "mug", AttemptState.REJECTED, stage=Stage.PRODUCT)
    operations = ("crop", "recolor")
    assert ledger.purchases.accepted(STAGING, operations) == ({Stage.PATTERN, Stage.REFINEMENT}, {"crop"})
    assert ledger.purchases.accepted("production", operations) == ({Stage.PATTERN}, set())
    assert ledger.purchases.item(ItemKey("cropped"))[0] is Stage.REFINEMENT
    assert ledger.purchases.chain_of(ItemKey("cropped")) == {"cropped", "a-staging"}
    assert ledger.purchases.chain_of(ItemKey("a-staging")) == {"a-staging"}


@pytest.mark.parametrize(
    ("seconds", "uptime", "age"),
    [
        (-HOUR, None, HOUR),
        (120, None, 0),
        (121, None, None),
        (-2 * HOUR, "this boot", 13 * HOUR),
        (-2 * HOUR, "another", 2 * HOUR),
    ],
)
def test_age_of_a_request(
    ledger: Ledger, clock: Clock, seconds: float, uptime: str | None, age: float | None
) -> None:
    """By the clock or by the uptime, whichever is longer; unknown for an intent from the future."""
    boot = processes.boot_id() if uptime == "this boot" else uptime
    then = f"{boot} {processes.uptime() - 13 * HOUR}" if uptime else None
    attempt = replace(begin(ledger, "herons"), intended_at=clock.now + seconds, uptime=then)
    age_now = ledger.purchases.age_of(attempt)
    if age is None or age_now is None:
        assert age_now is age
    elif uptime == "this boot":
        assert timedelta(0) <= age_now - timedelta(seconds=age) < timedelta(hours=1)
    else:
        assert age_now == timedelta(seconds=age)


def test_age_is_unknown_where_a_later_event_has_an_earlier_time(ledger: Ledger, clock: Clock) -> None:
    attempt = begin(ledger, "herons")
    for earlier, is_known in ((119, True), (121, False)):
        with ledger.transaction():
            ledger.record_event(RUN, "noted", at=clock.now - earlier)
        assert (ledger.purchases.age_of(attempt) is not None) is is_known


def test_request_that_a_person_sends_again(ledger: Ledger, clock: Clock) -> None:
    """It counts as sent now until a run begins to send it; if that run dies, it is in doubt again."""
    for name, state in (("herons", AttemptState.INTENDED), ("ferns", AttemptState.HELD)):
        before = at_state(ledger, name, state)
        clock.now += HOUR
        with ledger.transaction():
            again = ledger.purchases.reopen_for_resend(RUN, before.request_id)
        assert (again.state, again.error_code) == (AttemptState.INTENDED, TO_RESEND)
        assert (again.intended_at, again.uptime, again.accepted_at) == (clock.now, None, None)
        assert ledger.purchases.attempt(before.request_id) == again
        with ledger.transaction():
            begun = ledger.purchases.begin_resend(again)
        assert begun == ledger.purchases.attempt(before.request_id) == replace(again, error_code=None)
    made = at_state(ledger, "made", AttemptState.SUCCEEDED)
    for request_id in (made.request_id, RequestId("unknown")):
        with pytest.raises(LedgerError), ledger.transaction():
            ledger.purchases.reopen_for_resend(RUN, request_id)


def test_notes_change_no_state(ledger: Ledger) -> None:
    """The service's last word; and that a refusal which named its row was said of other rows too."""
    ends = (
        (AttemptState.REJECTED, INVALID_REQUEST),
        (AttemptState.REJECTED, "other"),
        (AttemptState.HELD, INVALID_REQUEST),
    )
    for number, (state, code) in enumerate(ends):
        request_id = begin(ledger, f"p{number}").request_id
        with ledger.transaction():
            ledger.purchases.change(RUN, request_id, state, error_code=code)
            ledger.purchases.note_last_response(request_id, "503")
    with ledger.transaction():
        ledger.purchases.doubt_refusals([RequestId(f"p{number}/1") for number in range(3)])
    noted = sorted(ledger.purchases.last_attempts(STAGING, CATALOG), key=lambda attempt: attempt.item_key)
    assert [(each.state, each.error_code, each.error) for each in noted] == [
        (AttemptState.REJECTED, REFUSED_ALIKE, "503"),
        (AttemptState.REJECTED, "other", "503"),
        (AttemptState.HELD, INVALID_REQUEST, "503"),
    ]


def test_order_is_as_it_was_last_seen_and_stays_paid(ledger: Ledger, clock: Clock) -> None:
    """With an event where that is new; lines are read back in their order."""
    line = PickedLine("H-1", ItemKey("mug"), "prod-1", 2, "für Anna 🦩")
    lines = (line, replace(line, sku="H-2", note=None))
    request_id = begin(ledger, "checkout", stage=Stage.CHECKOUT, picked=lines).request_id
    assert ledger.purchases.checkout(ItemKey("checkout")) == (lines, None)
    assert ledger.purchases.checkout(ItemKey("unknown")) == ((), None)
    first = clock.now
    seen = [
        ("open", False, False),
        ("open", False, False),
        ("paid", True, True),
        ("paid", False, True),
        ("sent", False, True),
    ]
    for status, paid, expected in seen:
        clock.now += 60
        with ledger.transaction():
            order = ledger.purchases.record_order(
                RUN, ItemKey("checkout"), OrderRecord("o-1", status, paid, False)
            )
        assert order == OrderRecord("o-1", status, expected, False, first + 60)
        _, read = ledger.purchases.checkout(ItemKey("checkout"))
        assert read == order and read.read_at == clock.now
    events = ledger.database.rows("SELECT request_id, detail FROM events WHERE kind = 'ordered' ORDER BY seq")
    assert events == [(request_id, f"o-1 {status}") for status in ("open", "paid", "sent")]


def test_events_are_added_and_never_changed(ledger: Ledger) -> None:
    """What happened, in the order in which it did, and what was learned; an error takes all of its writes back."""
    at_state(ledger, "herons", AttemptState.WITHDRAWN)
    begin(ledger, "herons", run=OTHER_RUN)
    change(ledger, "herons", AttemptState.ACCEPTED, AttemptState.SUCCEEDED)
    with ledger.transaction():
        ledger.record_event(RUN, "stopped", detail="by a person")
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.purchases.add_items(STAGING, CATALOG, [item("half")])
        ledger.purchases.intend(RUN, intent("half"), UNLIMITED)
        raise RuntimeError("in the middle")
    assert ledger.purchases.attempt(RequestId("half/1")) is None
    assert ledger.database.rows("SELECT run_id, kind, request_id, detail FROM events ORDER BY seq") == [
        (RUN, "intended", "herons/1", None),
        (RUN, "withdrawn", "herons/1", None),
        (OTHER_RUN, "intended", "herons/1", None),
        (RUN, "accepted", "herons/1", "job-herons/1"),
        (RUN, "succeeded", "herons/1", "made-herons/1"),
        (RUN, "stopped", None, "by a person"),
    ]


def test_each_transition_is_one_line_with_its_fields(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once durable, and not for a repeated change. Only a product has a sku, as rows share patterns."""
    caplog.set_level(logging.INFO, "patternmill")
    at_state(
        ledger, "mug", AttemptState.REJECTED, stage=Stage.PRODUCT, sku="H-1", pattern_key=ItemKey("herons")
    )
    at_state(ledger, "ferns", AttemptState.ACCEPTED)
    change(ledger, "ferns", AttemptState.ACCEPTED)
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.purchases.change(RUN, RequestId("ferns/1"), AttemptState.HELD)
        raise RuntimeError("in the middle")
    assert caplog.messages == [
        "product H-1 intended, request mug/1",
        "product H-1 rejected, request mug/1",
        "pattern intended, request ferns/1",
        "pattern accepted, request ferns/1",
    ]
    scope: dict[str, Any] = {"run": RUN, "environment": STAGING, "catalog": CATALOG}
    mug = {"stage": "product", "sku": "H-1", "built_on": "herons", "request_id": "mug/1", "item": "mug"}
    ferns = {"stage": "pattern", "sku": None, "built_on": None, "request_id": "ferns/1", "item": "ferns"}
    rejected, accepted = vars(caplog.records[1]), vars(caplog.records[3])
    assert (
        rejected.items()
        >= {**scope, **mug, "event": "rejected", "job_id": None, "error_code": "invalid"}.items()
    )
    assert accepted.items() >= {**scope, **ferns, "event": "accepted", "job_id": "job-ferns/1"}.items()
