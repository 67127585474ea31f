"""What the engine does about answers: a scripted service in place of the client, and the real ledger."""

import asyncio
from dataclasses import replace

import pytest

from patternmill import engine as engine_module
from patternmill.engine import Engine
from patternmill.errors import Halted
from patternmill.halt import Admission, Halt
from patternmill.ledger.attempts import find_attempts, last_attempts
from patternmill.ledger.database import Database
from patternmill.service.answers import Accepted, Again, Ended, Held, Refused, Stop, Unclear
from patternmill.states import Attempt, State
from tests import virtual
from tests.spine import of, plan_of, play, played, taken

FAILED = Ended(None, "no ink", "job_failed")


class Script:
    """Answers creates, follows and questions by what a test says; the last answer of each repeats."""

    def __init__(self, create=(), follow=(), ask=()):
        self._answers = {"create": [*create], "follow": [*follow], "ask": [*ask]}
        self.sent, self.asked = [], []

    def _next(self, kind):
        answers = self._answers[kind]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def create(self, attempt, *, in_doubt, is_other):
        self.sent.append((attempt.request_id, attempt.body, in_doubt))
        return self._next("create") if self._answers["create"] else Accepted(f"job-{attempt.request_id}")

    async def follow(self, attempt, is_other):
        return self._next("follow") if self._answers["follow"] else Ended(f"pat-{attempt.item_id}")

    async def ask_about(self, attempt, is_other):
        self.asked.append(asyncio.get_running_loop().time())
        return self._next("ask")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(engine_module, "_ERRING", 0.0)
    monkeypatch.setattr(engine_module, "_LOOKING", 0.01)


async def run(database, script, *prompts, catalog="spring", retrying=False, in_doubt_limit=3600.0):
    """Make the patterns of these prompts at once in a run of its own; return their attempts, and the halt."""
    lease, purchases = await taken(database, catalog)
    halt = Halt()
    admission = Admission(halt, purchases.standings)
    engine = Engine(purchases, script, halt, admission, in_doubt_limit)
    plan = plan_of(*prompts, retrying=retrying)
    plan = plan_of(*prompts, last=last_attempts(database, "production", plan.steps), retrying=retrying)
    steps = [plan.steps[row.chain[0].id] for row in sorted(plan.rows, key=lambda row: row.number)]

    async def make(step):
        if step.action in ("make", "resend") and not await admission.admit(step.item.stage):
            return None
        return await engine.make(step) if step.action in ("make", "resend", "follow") else step.attempt

    attempts = await asyncio.gather(*map(make, steps), return_exceptions=True)
    await lease.give_back("Completed", "")
    return attempts, halt


def made(tmp_path, *runs, **options):
    """Play one run after the other; return the attempts and the halt of the last one, and all attempts on record."""

    async def case():
        database = Database(str(tmp_path / "ledger.sqlite3"))
        for script, *prompts in runs:
            attempts, halt = await run(database, script, *prompts, **options)
        on_record = find_attempts(database, "production")
        await database.close()
        return attempts, halt, on_record

    return play(case())


@pytest.mark.parametrize(
    ("script", "state"),
    [
        (Script(), State.SUCCEEDED),
        (Script(create=[Refused("invalid_request", "no")]), State.REJECTED),
        (Script(create=[Held("repeated_request", "known")]), State.HELD),
        (Script(create=[Unclear("silence")]), State.INTENDED),
        (Script(create=[Stop("unauthorized", "no key")]), State.INTENDED),
        (Script(follow=[Unclear("still running")]), State.ACCEPTED),
        (Script(follow=[Held("contradiction", "other job")]), State.HELD),
        (Script(follow=[FAILED]), State.FAILED),
    ],
)
def test_an_item(tmp_path, script, state):
    attempts, _, on_record = made(tmp_path, (script, "herons"))
    assert [attempt.state for attempt in (*attempts, *on_record)] == [state, state]


@pytest.mark.parametrize(
    ("asked", "states"),
    [
        ([FAILED], [State.FAILED, State.SUCCEEDED]), ([Again(0.0), FAILED], [State.FAILED, State.SUCCEEDED]),
        ([Ended("pat_late")], [State.SUCCEEDED]), ([Again(0.0)], [State.HELD]),
    ],
)  # fmt: skip
def test_a_failed_item_once_another_has_ended_well(tmp_path, asked, states):
    script = Script(follow=[FAILED, Ended("pat_1"), Ended("pat_2")], ask=asked)
    attempts, _, on_record = made(tmp_path, (script, "a", "b"))
    failed = attempts[0].item_id
    assert [attempt.state for attempt in on_record if attempt.item_id == failed] == states


def test_a_failed_item_is_made_again_by_the_next_run_that_has_asked_about_it(tmp_path):
    second = Script(ask=[FAILED])
    _, _, on_record = made(tmp_path, (Script(follow=[FAILED]), "a"), (second, "a"))
    assert [attempt.state for attempt in on_record] == [State.FAILED, State.SUCCEEDED]
    assert len(second.asked) == 1


def test_a_failed_item_waits_for_no_good_end_that_cannot_come(tmp_path):
    class LateFailure(Script):
        async def follow(self, attempt, is_other):
            await asyncio.sleep(2.0 if attempt.label == "a" else 0.1)
            return FAILED if attempt.label == "a" else Ended("pat_b")

    attempts, _, _ = made(tmp_path, (LateFailure(), "a", "b"))
    assert [attempt.state for attempt in attempts] == [State.FAILED, State.SUCCEEDED]


@pytest.mark.parametrize(
    ("ended", "asked", "at"),
    [
        (990.0, [Again(1.0), Again(1.0), Again(1.0), Again(1.0)], [50.0, 52.0, 56.0, 64.0]),
        (990.0, [Again(1.0), FAILED], [50.0, 52.0]), (1090.0, [FAILED], [60.0]), (900.0, [FAILED], [0.0]),
        (None, [FAILED], [0.0]),
    ],
)  # fmt: skip
def test_a_failure_is_asked_about_a_minute_after_it(monkeypatch, ended, asked, at):
    """A job of a clock that is ahead too is asked about a minute from now at the latest."""
    monkeypatch.setattr(engine_module, "_ERRING", 60.0)
    place = "pattern", "patterns/create", "production", "spring", "run", "herons", "{}"
    failed = Attempt("r1", "i1", 1, *place, State.FAILED, job_id="j1", ended_at=ended)

    class OfOne:
        def is_other(self, attempt):
            return None

        async def end(self, attempt, state, code, message):
            return replace(attempt, state=state, code=code)

    script = Script(ask=asked)
    engine = Engine(OfOne(), script, Halt(), Admission(Halt(), {}), 3600.0, now=lambda: 1000.0)
    found = virtual.play(lambda: engine._ask_once_more(failed))
    assert script.asked == [1000.0 + one for one in at]
    assert (found is failed) == (asked[-1] is FAILED)
    assert found is failed or found.code == "failure_not_confirmed"


@played
async def test_what_is_beyond_a_limit_is_not_begun_and_says_so(database):
    _, purchases = await taken(database, max_items=1)
    halt = Halt()
    engine = Engine(purchases, Script(), halt, Admission(halt, purchases.standings), 3600.0)
    assert (await engine.make(of("a"))).state is State.SUCCEEDED
    with pytest.raises(Halted) as halted:
        await engine.make(of("b"))
    assert halted.value is halt.reason


@played
async def test_after_a_halt_nothing_is_begun_or_sent_again(database):
    script = Script(create=[Unclear("silence")])
    (attempt,), _ = await run(database, script, "herons")
    _, purchases = await taken(database)
    (halt := Halt()).stop()
    engine = Engine(purchases, script, halt, Admission(halt, purchases.standings), 3600.0)
    attempt = await purchases.take_over(attempt)
    assert await engine._send(attempt) == attempt
    with pytest.raises(Halted):
        await engine.make(of("ferns"))
    assert len(script.sent) == 1
    assert find_attempts(database, "production") == [attempt]


def test_a_refusal_of_the_content_has_no_second_attempt(tmp_path):
    refused = Ended(None, "not allowed", "content_refused")
    script = Script(follow=[refused, Ended("pat_1")], ask=[refused])
    _, _, on_record = made(tmp_path, (script, "a", "b"), (Script(), "a"))
    assert sorted(attempt.state for attempt in on_record) == [State.FAILED, State.SUCCEEDED]


def test_a_stage_without_a_good_end_begins_with_four(tmp_path):
    _, halt, on_record = made(tmp_path, (Script(follow=[FAILED], ask=[FAILED]), *"abcdefgh"))
    assert len(on_record) == 4
    assert halt.stages["pattern"].code == "no_good_end"
    assert "account" in halt.stages["pattern"].remedy
    assert halt.reason is None  # what stands on paid items goes on


def test_the_first_good_end_opens_a_stage(tmp_path):
    _, _, on_record = made(tmp_path, (Script(), *"abcdefgh"))
    assert [attempt.state for attempt in on_record] == [State.SUCCEEDED] * 8


def test_after_a_halt_the_next_run_begins_with_four_again(tmp_path):
    bad = Script(follow=[FAILED], ask=[FAILED])
    _, _, on_record = made(tmp_path, (bad, *"abcdefgh"), (bad, *"ijklmnop"))
    assert len(on_record) == 8


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (Script(create=[Refused("unclear_refusal", "last words")]), "were refused alike"),
        (Script(create=[Unclear("last words")]), "in a row"), (Script(follow=[Held("last words", "")]), "in a row"),
    ],
)  # fmt: skip
def test_bad_ends_in_a_row_halt_an_open_stage(tmp_path, bad, problem):
    _, halt, _ = made(tmp_path, (Script(), "first"), (bad, *"abcdef"))
    assert problem in halt.stages["pattern"].message
    assert "The last: last words." in halt.stages["pattern"].remedy


def test_a_stop_of_the_service_begins_nothing_more(tmp_path):
    _, halt, on_record = made(
        tmp_path, (Script(), "first"), (Script(create=[Stop("unauthorized", "no key")]), "a")
    )
    assert halt.reason.code == "unauthorized"
    assert sorted(attempt.state for attempt in on_record) == [State.INTENDED, State.SUCCEEDED]


def test_a_request_in_doubt_is_sent_again_as_it_was(tmp_path):
    script = Script(create=[Unclear("silence"), Accepted("job_1")])
    made(tmp_path, (script, "herons"), (script, "herons"))
    (first, body, fresh), (second, again, in_doubt) = script.sent
    assert (first, body) == (second, again)
    assert (fresh, in_doubt) == (False, True)


def test_a_request_that_is_too_old_is_held(tmp_path):
    script = Script(create=[Unclear("silence")])
    _, _, on_record = made(tmp_path, (script, "herons"), (script, "herons"), in_doubt_limit=-1.0)
    assert [(attempt.state, attempt.code) for attempt in on_record] == [(State.HELD, "too_old")]
    assert "so old" in on_record[0].message
    assert len(script.sent) == 1


@played
async def test_a_request_from_a_clock_that_was_ahead_is_held(database):
    script = Script(create=[Unclear("silence")])
    await run(database, script, "herons")
    ahead = "UPDATE attempts SET intended_at = intended_at + 9e4"
    database.change(lambda connection: connection.execute(ahead))
    await run(database, script, "herons")
    (held,) = find_attempts(database, "production")
    assert held.code == "too_old"
    assert "in the future" in held.message
    assert len(script.sent) == 1


def test_two_runs_on_one_item_have_one_driver(tmp_path):
    """The second neither sends nor polls; it reads the ledger until the first has ended the item."""

    class Slow(Script):
        async def follow(self, attempt, is_other):
            await asyncio.sleep(1.0)
            return Ended(f"pat-{attempt.item_id}")

    async def case():
        address = str(tmp_path / "ledger.sqlite3")
        first, second = Database(address), Database(address)
        slow, idle = Slow(), Slow()
        (one, _), (other, _) = await asyncio.gather(
            run(first, slow, "herons"), run(second, idle, "herons", catalog="summer")
        )
        sent = slow.sent + idle.sent
        await first.close()
        await second.close()
        return one[0], other[0], sent

    one, other, sent = play(case())
    assert one.result_id == other.result_id == f"pat-{one.item_id}"
    assert len(sent) == 1


@played
async def test_an_item_whose_driver_gave_up_is_taken_over(database):
    await run(database, Script(follow=[Unclear("not ended")]), "herons")
    script = Script()
    (other,), _ = await run(database, script, "herons", catalog="summer")
    assert other.state is State.SUCCEEDED
    assert script.sent == []


@played
async def test_an_attempt_that_failed_meanwhile_is_asked_about_once_more(database):
    """The second run planned before the first had begun: it must not take the failure on trust, nor buy at once."""
    _, purchases = await taken(database)
    begun = await purchases.begin(of("herons"), None)
    failed = await purchases.end(await purchases.accept(begun, "job"), State.FAILED, code="job_failed")
    _, of_second = await taken(database, "summer")
    assert await of_second.begin(of("herons"), None) == failed
    assert (await of_second.begin(of("herons"), None, failed.request_id)).number == 2


@played
async def test_what_a_living_run_gave_up_can_be_taken_over_at_once(database):
    _, purchases = await taken(database)
    attempt = await purchases.begin(of("herons"), None)
    await purchases.give_up(attempt, "silence")
    _, of_second = await taken(database, "summer")
    assert not of_second.has_living_driver(purchases.look(attempt))
