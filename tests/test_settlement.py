"""What a person decides about a request that no run may decide about."""

import time

import pytest

from patternmill.errors import Overlap, Refusal
from patternmill.ledger.attempts import find_attempts
from patternmill.plan import Action, next_action
from patternmill.service.client import Client
from patternmill.settings import Settings
from patternmill.settlement import decide, waiting_lines
from patternmill.states import State
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.spine import play, step, taken


def settings(address="http://127.0.0.1:9/v1"):
    return Settings(studio_url=address, api_key=KEY, environment="production")


def left(database, state=State.HELD, ended=True):
    """Leave one attempt behind in a state, and return it."""

    async def case():
        lease, purchases = await taken(database)
        attempt = await purchases.begin(step(), None)
        if state is State.HELD:
            attempt = await purchases.end(attempt, State.HELD, code="too_old", message="It is old.")
        if ended:
            await lease.give_back("Completed", "")
        return attempt

    return play(case())


def decided(database, attempt, choice, job="", address="http://127.0.0.1:9/v1"):
    return play(decide(database, settings(address), attempt.request_id, choice, job, "I looked"))


def now(database):
    return find_attempts(database, "production")[0]


def test_what_waits_is_listed_with_what_is_known(database):
    attempt = left(database)
    lines = "\n".join(waiting_lines(database, "production"))
    assert attempt.request_id in lines
    assert "It is old." in lines


@pytest.mark.parametrize("state", [State.HELD, State.INTENDED])
def test_a_resend_begins_the_age_of_the_request_anew(database, state):
    attempt = left(database, state)
    database.change(lambda connection: connection.execute("UPDATE attempts SET intended_at = 1"))
    decided(database, attempt, "resend")
    assert now(database).state is State.INTENDED
    assert time.time() - now(database).intended_at < 60
    assert "Decided: I looked" in now(database).message


@pytest.mark.parametrize("state", [State.HELD, State.INTENDED])
def test_beyond_a_write_off_only_a_retry_goes(database, state):
    decided(database, left(database, state), "write-off")
    attempt = now(database)
    assert attempt.state is State.WRITTEN_OFF
    assert attempt.amount > 0
    assert next_action(attempt, 2) is Action.FAILED
    assert next_action(attempt, 2, retrying=True) is Action.MAKE
    with pytest.raises(Refusal, match="nothing is to be decided"):
        decided(database, attempt, "write-off")


def test_nothing_is_decided_about_what_a_living_run_drives(database):
    with pytest.raises(Overlap, match="still drives it"):
        decided(database, left(database, ended=False), "write-off")


def created(address, body):
    async def case():
        async with Client(settings(address)) as client:
            return (await client.post("patterns/create", body)).data["jobId"]

    return play(case())


def test_a_job_that_a_person_names_is_checked_and_followed(database):
    double = Double(Weather(latency=0.001, pattern_time=0.1, echoes=True))
    attempt = left(database)
    with serving(double) as address:
        mine = created(address, attempt.body)
        decided(database, attempt, "job", mine, address)
        assert (now(database).state, now(database).job_id) == (State.ACCEPTED, mine)


def test_a_job_that_failed_is_not_taken(database):
    double = Double(Weather(latency=0.001, pattern_time=0.01, jobs_fail=1.0))
    attempt = left(database)
    with serving(double) as address:
        job = created(address, attempt.body)
        time.sleep(0.2)
        with pytest.raises(Refusal, match="failed"):
            decided(database, attempt, "job", job, address)
    assert now(database).state is State.HELD


def test_a_request_that_nobody_knows_is_no_decision(database):
    with pytest.raises(Refusal, match="There is no request"):
        play(decide(database, settings(), "nothing", "resend", "", "x"))
