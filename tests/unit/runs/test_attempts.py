"""The attempts at an item: which one is begun, what is held, and what a halted or paused run leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from patternmill.engine.item_attempts import Attempts, failure_of, request_of
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason
from patternmill.errors import BudgetReached, NotStarted, RowFailed
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import LedgerWriter, open_ledger
from patternmill.ledger.records import Attempt, NewItem, SpendingLimits
from patternmill.ledger.spending import SECOND_ATTEMPT
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.planning.plan import PlannedItem, Reason
from patternmill.service.jobs import read_job
from patternmill.service.outcomes import Ended, Refusal
from patternmill.settings import Settings
from patternmill.states import AttemptState, Outcome, Stage
from tests.integration.ledger.samples import CATALOG, RECORD, RUN, STAGING, WAYS

SCOPE = Scope(STAGING, CATALOG)
HERONS = Item(Stage.PATTERN, SCOPE, pattern_content("herons"))
#: Nobody promises that these may be sent again.
RED, BLUE = (
    Item(
        Stage.REFINEMENT, SCOPE, {"pattern": HERONS.key, "operation": "recolor", "parameters": {"to": colour}}
    )
    for colour in ("red", "blue")
)
MADE = {HERONS.key: "pat-1"}
STOPPED = HaltReason(Outcome.CANCELLED, "cancelled", "Stopped.")
IN_DOUBT = Refusal(None, "not_repeatable", "No answer.")


class Bench:
    """The attempts of one run on a ledger of their own."""

    def __init__(self, home: Path) -> None:
        self.ledger = open_ledger(Settings(home=home))
        self.halt, self.limits = Halt(), SpendingLimits()
        self.writer = LedgerWriter(self.ledger, linger=timedelta(0))
        with self.ledger.transaction():
            items = [NewItem(item.key, item.stage, item.content_text) for item in (HERONS, RED, BLUE)]
            self.ledger.purchases.add_items(STAGING, CATALOG, items)

    @property
    def attempts(self) -> Attempts:
        if not hasattr(self, "_attempts"):
            options = RunOptions(limits=self.limits, prices={Stage.PATTERN: 10, Stage.REFINEMENT: 5})
            self._attempts = Attempts(RECORD, self.writer, options, self.halt, to_make=[HERONS])
        return self._attempts

    def begin(self, item: Item = HERONS, **how: Any) -> tuple[Attempt, timedelta | None]:
        return self.run(self.attempts.begin(item, MADE, **how))

    def run(self, work: Any) -> Any:
        return asyncio.run(work)

    def was(self, state: AttemptState, code: str = "", item: Item = HERONS, number: int = 1) -> Attempt:
        """Bring an attempt to a state in which an earlier run left it."""
        self.begin(item) if number == 1 else self.begin(item, after=number - 1)
        request_id = item.request_id(number)
        with self.ledger.transaction():
            for to in WAYS[state]:
                fields = {"error_code": code, "error": "why"} if to is state and code else {}
                fields |= {"job_id": f"job-{number}"} if to is AttemptState.ACCEPTED else {}
                fields |= {"result_id": "pat"} if to is AttemptState.SUCCEEDED else {}
                self.ledger.purchases.change(RUN, request_id, to, **fields)
            if not WAYS[state]:
                earlier = "UPDATE attempts SET error_code = :code, intended_at = intended_at - 60"
                self.ledger.database.execute(earlier, {"code": code or None})
        return self.last(item)

    def last(self, item: Item = HERONS) -> Attempt:
        return self.ledger.purchases.attempts_of(item.key)[-1]


@pytest.fixture
def bench(home: Path) -> Iterator[Bench]:
    bench = Bench(home)
    yield bench
    bench.writer._thread.shutdown(wait=True)
    bench.ledger.close()


def cells(line: str) -> list[str]:
    """Return the cells of a line of a table; a dash is none."""
    return ["" if cell == "-" else cell for cell in line.replace("|", " ").split()]


#: State and code of the last attempt, whether a person retries, the known failure | the number that is begun.
NEXT = """
-         -               - 0 | 1
failed    pattern_failed  - 0 | -
failed    pattern_failed  - 1 | 2
failed    pattern_failed  r 0 | -
failed    written_off     - 0 | -
failed    written_off     - 1 | -
failed    written_off     r 0 | 2
rejected  invalid_request - 0 | -
rejected  invalid_request r 0 | 1
rejected  unclear_refusal - 0 | 1
rejected  redirected      - 0 | 1
withdrawn -               - 0 | 1
intended  -               r 0 | -
accepted  -               r 0 | -
succeeded -               r 0 | -
held      not_repeatable  r 0 | -
"""


@pytest.mark.parametrize("line", NEXT.strip().splitlines())
def test_which_attempt_is_begun(bench: Bench, line: str) -> None:
    """With the age of its request: none where it was never sent, none of a redirect, that of an open one."""
    state, code, retried, after, number = cells(line)
    before = bench.was(AttemptState(state), code) if state else None
    attempt, sent_ago = bench.begin(retried=bool(retried), after=int(after))
    if not number:
        assert before is not None and (attempt.attempt, attempt.state) == (1, before.state)
        assert sent_ago is not None and (sent_ago >= timedelta(minutes=1)) == (state == "intended")
    else:
        assert (attempt.attempt, attempt.state) == (int(number), AttemptState.INTENDED)
        assert sent_ago == (timedelta(0) if code == "redirected" else None)
        assert bench.last() == attempt


def test_open_request_of_a_clock_that_contradicts_itself_is_a_century_old(bench: Bench) -> None:
    bench.was(AttemptState.INTENDED)
    with bench.ledger.transaction():
        bench.ledger.database.execute("UPDATE attempts SET intended_at = intended_at + 86400")
    assert bench.begin()[1] == timedelta(days=36_500)


#: The item, state and code of its last attempt, the known failure | the guard under which it is begun.
GUARDED = """
pattern    -        -              0 | halted
pattern    failed   pattern_failed 1 | -
refinement -        -              0 | -
refinement intended to_resend      0 | -
"""


@pytest.mark.parametrize("guard", ["paused", "halted"])
@pytest.mark.parametrize("line", GUARDED.strip().splitlines())
def test_paused_or_halted_run_begins_nothing(bench: Bench, guard: str, line: str) -> None:
    """The transaction of the intent reads the brake; a halt keeps back what is bought again, or sent only once."""
    stage, state, code, after, begins_under = cells(line)
    item = HERONS if stage == "pattern" else RED
    before = bench.was(AttemptState(state), code, item) if state else None
    if guard == "paused":
        bench.ledger.brake.set(Pause(STAGING, CATALOG, "audit", "A. Weaver"))
        with bench.ledger.transaction():
            pass
    else:
        bench.halt.begin(STOPPED)
    if guard == begins_under:
        assert bench.begin(item, after=int(after))[0].state is AttemptState.INTENDED
        return
    with pytest.raises(NotStarted):
        bench.begin(item, after=int(after))
    assert bench.ledger.purchases.attempts_of(item.key) == ([before] if before else [])


def test_open_request_that_may_not_be_sent_again_is_held(bench: Bench) -> None:
    """Unless a person decided that it is sent once more, which counts once."""
    bench.was(AttemptState.INTENDED, "to_resend", RED)
    attempt, sent_ago = bench.begin(RED)
    assert (attempt.state, attempt.error_code) == (AttemptState.INTENDED, None) and sent_ago is not None
    attempt, _ = bench.begin(RED)
    assert (attempt.state, attempt.error_code) == (AttemptState.HELD, "not_repeatable")
    assert "An earlier run sent it" in (bench.last(RED).error or "")


@pytest.mark.parametrize("is_second", [False, True])
def test_limit_halts_what_leads_to_the_item(bench: Bench, is_second: bool) -> None:
    """Products of patterns that exist are still bought; a second attempt keeps nothing else from being bought."""
    if is_second:
        bench.limits = SpendingLimits(items=2, first={Stage.PATTERN: 2})
        bench.was(AttemptState.FAILED, "pattern_failed")
    else:
        bench.limits = SpendingLimits(items=0)
    with pytest.raises(BudgetReached) as reached:
        bench.begin(after=int(is_second))
    halted = {stage for stage in Stage if bench.halt.halts(stage)}
    if is_second:
        assert reached.value.code == SECOND_ATTEMPT
        assert halted == set() and bench.halt.kept_purchase is not None
    else:
        assert halted == {Stage.REFERENCE, Stage.PATTERN}
        assert bench.halt.reason is not None and bench.halt.reason.outcome is Outcome.BUDGET_REACHED


def test_transaction_that_is_repeated_after_a_lost_connection_begins_once(bench: Bench) -> None:
    """What this very call has begun was not sent."""
    write = bench.writer.write

    async def twice(change: Any) -> Any:
        await write(change)
        return await write(change)

    bench.writer.write = twice  # type: ignore[method-assign]
    for item in (HERONS, RED):
        assert bench.begin(item)[1] is None
        assert bench.last(item).state is AttemptState.INTENDED


def test_outage_holds_one_and_a_second_hold_is_none(bench: Bench) -> None:
    """The first halts its stage until a later create is accepted; the second halts all that leads there."""
    red, (blue, _) = bench.begin(RED)[0], bench.begin(BLUE)
    held = bench.run(bench.attempts.record_create(RED, red, IN_DOUBT))
    assert (held.state, bench.last(RED).state) == (AttemptState.HELD, AttemptState.HELD)
    assert "No answer. Nothing promises" in (held.error or "")
    assert [stage for stage in Stage if bench.halt.halts(stage)] == [Stage.REFINEMENT]
    bench.run(bench.attempts.record_create(BLUE, blue, IN_DOUBT))
    assert [stage for stage in Stage if bench.halt.halts(stage)] == [
        *(Stage.REFERENCE, Stage.PATTERN, Stage.REFINEMENT)
    ]


@pytest.mark.parametrize("is_later", [True, False])
def test_create_that_began_after_a_hold_ends_the_halt(bench: Bench, is_later: bool) -> None:
    """One that began before it says nothing about the outage."""
    red, blue = bench.begin(RED)[0], bench.begin(BLUE)[0]
    if is_later:
        moment = bench.ledger.now() + 3600
        with bench.ledger.transaction():
            bench.ledger.database.execute(
                "UPDATE attempts SET intended_at = :at WHERE request_id = :id",
                {"at": moment, "id": blue.request_id},
            )
        blue = bench.last(BLUE)
    bench.run(bench.attempts.record_create(RED, red, IN_DOUBT))
    job = read_job({"jobId": "job-2", "status": "succeeded", "result": {"patternId": "pat-2"}})
    assert bench.run(bench.attempts.record_create(BLUE, blue, job)).state is AttemptState.SUCCEEDED
    assert bench.halt.halts(Stage.REFINEMENT) != is_later


@pytest.mark.parametrize("message", ["", "The service answered 500."])
def test_request_in_doubt_stays_open_with_the_last_response(bench: Bench, message: str) -> None:
    attempt = bench.begin()[0]
    earlier = Refusal(None, "no_clear_answer", "The service answered 502.", exchange={"status": 502})
    attempt = bench.run(bench.attempts.record_create(HERONS, attempt, earlier))
    attempt = bench.run(bench.attempts.record_create(HERONS, attempt, Refusal(None, "in_doubt", message)))
    assert (attempt.state, attempt.error) == (AttemptState.INTENDED, message or "The service answered 502.")
    assert bench.last().error == attempt.error
    events = bench.ledger.database.rows("SELECT count(*) FROM events WHERE detail LIKE '%502%'")
    assert list(events) == [(1,)] and bench.halt.reason is None


def test_refusal_that_stops_halts_the_run(bench: Bench) -> None:
    attempt = bench.begin()[0]
    end = Refusal(AttemptState.WITHDRAWN, "unauthorized", "401", stops=True)
    assert bench.run(bench.attempts.record_create(HERONS, attempt, end)).state is AttemptState.WITHDRAWN
    assert bench.halt.reason == HaltReason(Outcome.FAILED, "unauthorized", "401")
    assert bench.last().error_code is None


@pytest.mark.parametrize(("alike", "code"), [("422 none left", "refused_alike"), ("", "invalid_request")])
def test_refusal_that_all_have_may_be_about_the_account(bench: Bench, alike: str, code: str) -> None:
    """Though it names something of the row, the next run sends it again."""
    attempt = bench.begin()[0]
    end = Refusal(AttemptState.REJECTED, "invalid_request", "none left", alike=alike)
    assert bench.run(bench.attempts.record_create(HERONS, attempt, end)).state is AttemptState.REJECTED
    assert (bench.last().state, bench.last().error_code) == (AttemptState.REJECTED, code)


#: State of the last attempt; ID, status and result of the job that is shown | the state and code that follow.
LEARNED = """
intended job-1 running   -     | accepted  -
intended job-1 succeeded pat-1 | succeeded -
accepted job-1 failed    -     | failed    pattern_failed
failed   job-1 failed    -     | failed    pattern_failed
failed   job-1 running   -     | accepted  -
failed   job-1 succeeded pat-1 | succeeded -
failed   job-9 succeeded pat-1 | held      wrong_job
accepted job-1 failed    pat-1 | held      failed_with_result
"""


@pytest.mark.parametrize("line", LEARNED.strip().splitlines())
def test_what_is_learned_from_a_job(bench: Bench, line: str) -> None:
    state, job_id, status, result, to, code = cells(line)
    attempt = bench.was(AttemptState(state), "pattern_failed" if state == "failed" else "")
    shown = {"jobId": job_id, "status": status, "result": {"patternId": result} if result else None}
    job = read_job(shown | ({"error": {"message": "broke"}} if status == "failed" else {}))
    assert job is not None
    learned = bench.run(bench.attempts.record_end(HERONS, attempt, Ended(job)))
    assert (learned.state, learned.error_code or "") == (to, code)
    assert bench.last().state == to and bench.last().job_id == "job-1"
    if to == "succeeded":
        assert learned.result_id == "pat-1"
    if to == "failed":
        assert learned.error == ("broke" if state == "accepted" else "why")
    assert (bench.halt.reason is not None) == (code == "wrong_job")


#: State and code of the last attempt, its number; whether the run is halted; whether it is kept back.
PLANNED = """
failed    pattern_failed 1 halted | kept
failed    pattern_failed 1 -      | -
failed    pattern_failed 2 halted | -
failed    written_off    1 halted | -
succeeded -              1 halted | -
-         -              0 halted | -
"""


@pytest.mark.parametrize("line", PLANNED.strip().splitlines())
def test_planned_attempt_is_kept_back_by_a_halted_run(bench: Bench, line: str) -> None:
    """It waits, and has not failed; a limit, or another attempt that followed, leaves it as it is."""
    state, code, count, is_halted, is_kept = cells(line)
    for number in range(1, int(count) + 1):
        bench.was(AttemptState(state), code, number=number)
    if is_halted:
        bench.halt.begin(STOPPED)
    bench.run(bench.attempts.withhold_planned(PlannedItem(HERONS, Reason.TRIED_AGAIN, 1, bool(state))))
    attempts = bench.ledger.purchases.attempts_of(HERONS.key)
    assert len(attempts) == int(count)
    if is_kept:
        assert (attempts[-1].state, attempts[-1].error_code) == (AttemptState.ACCEPTED, "held_back")
        assert attempts[-1].error == "Attempt 2 held back: Stopped; `patternmill retry`. why"
        assert bench.run(bench.attempts.is_open(HERONS))
    elif attempts:
        assert (attempts[-1].state, attempts[-1].error_code or "") == (state, code)


@pytest.mark.parametrize(
    ("state", "code", "failure", "is_final", "text"),
    [
        (AttemptState.INTENDED, "not_repeatable", "in_doubt", False, "in doubt; the next run resumes it."),
        (AttemptState.ACCEPTED, None, "gave_up_waiting", False, "gave up waiting; the next run resumes it."),
        (AttemptState.ACCEPTED, "held_back", "held_back", False, "held back; the next run resumes it. why"),
        (AttemptState.FAILED, None, "failed", True, ""),
        (AttemptState.HELD, "second_job", "second_job", True, "why"),
    ],
)
def test_failure_says_how_the_last_attempt_ended(
    state: AttemptState, code: str | None, failure: str, is_final: bool, text: str
) -> None:
    error = "why" if code in ("held_back", "second_job") else None
    attempt = Attempt(
        HERONS.request_id(1), HERONS.key, 1, state, b"{}", "job-1", error_code=code, error=error
    )
    failed = failure_of(HERONS, attempt)
    assert isinstance(failed, RowFailed)
    assert (failed.code, failed.is_final, failed.request_id, failed.job_id) == (
        *(failure, is_final, HERONS.request_id(1), "job-1"),
    )
    assert failed.message.endswith(text)


def test_withdrawn_attempt_was_not_begun() -> None:
    attempt = Attempt(HERONS.request_id(1), HERONS.key, 1, AttemptState.WITHDRAWN, b"{}", None)
    assert isinstance(failure_of(HERONS, attempt), NotStarted)


def test_what_may_not_be_sent_again_is_sent_one_by_one(bench: Bench) -> None:
    async def main() -> list[str]:
        order, attempts = [], bench.attempts

        async def send(name: str, item: Item) -> None:
            await attempts.take_turn(item)
            await attempts.take_turn(item)
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")
            attempts.leave_turn(item)
            attempts.leave_turn(item)

        await asyncio.gather(send("red", RED), send("blue", BLUE), send("herons", HERONS))
        return [line for line in order if "herons" not in line]

    assert bench.run(main()) == ["red begins", "red ends", "blue begins", "blue ends"]


def test_request_is_sent_with_what_is_known_of_it(bench: Bench) -> None:
    attempt = bench.begin(RED)[0]
    request = request_of(RED, attempt, timedelta(minutes=1))
    assert (request.stage, request.body, request.operation) == (
        Stage.REFINEMENT,
        attempt.body,
        "refine/recolor",
    )
    assert (request.repeatable, request.known_job_id, request.age) == (False, None, timedelta(minutes=1))
