"""The ledger: intents within limits, one run a catalog, one driver an attempt, and no write without the lease."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from patternmill.errors import Halted, LeaseLost, LedgerFault, Overlap, Refusal
from patternmill.ledger import database as ledgers
from patternmill.ledger import leases
from patternmill.ledger.attempts import find_attempts, last_event
from patternmill.ledger.brake import pause, unpause
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.settings import Settings
from patternmill.states import Outcome, State
from tests.spine import drop_postgres, new_postgres, of, play, played, step, taken


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """The address of an empty ledger, of each kind."""
    is_file = request.param == "sqlite"
    return str(tmp_path / "ledger.sqlite3") if is_file else request.getfixturevalue("postgres")


@pytest.fixture
def database(address):
    database = Database(address)
    yield database
    play(database.close())


@pytest.fixture
def postgres():
    """The address of an empty ledger in PostgreSQL."""
    made = new_postgres()
    yield made
    drop_postgres(made)


@played
async def test_an_intent_is_durable_and_made_once(database):
    _, purchases = await taken(database)
    one, other = await asyncio.gather(purchases.begin(step(), None), purchases.begin(step(), None))
    assert one == other
    assert one.state is State.INTENDED
    assert find_attempts(database, "production") == [one]


@pytest.mark.parametrize("limits", [{"max_items": 2}, {"budget": 900_000}])
@played
async def test_limits_hold_among_intents_at_once(database, limits):
    _, purchases = await taken(database, **limits)
    made = await asyncio.gather(
        *(purchases.begin(of(f"p{n}"), None) for n in range(10)), return_exceptions=True
    )
    assert sum(isinstance(one, Halted) for one in made) == 8
    refused = next(one for one in made if not isinstance(one, Halted))
    await purchases.end(refused, State.REJECTED, code="invalid_request")
    assert (await purchases.begin(of("p9"), None)).state is State.INTENDED


@played
async def test_a_day_budget_binds_all_runs(database):
    settings = Settings(price_pattern="40", day_budget="90", environment="production")
    for catalog, prompt in (("spring", "a"), ("summer", "b")):
        lease, purchases = await taken(database, catalog, settings)
        await purchases.begin(of(prompt), None)
        assert purchases.left_today() == (500_000 if prompt == "a" else 100_000)
    with pytest.raises(Halted, match="day's budget"):
        await purchases.begin(of("c"), None)
    await lease.give_back("Completed", "")


@played
async def test_a_job_or_result_of_another_item_is_held(database):
    _, purchases = await taken(database)
    one, other, third = [await purchases.begin(of(prompt), None) for prompt in "abc"]
    one = await purchases.accept(one, "job_1")
    assert one.state is State.ACCEPTED
    assert (await purchases.accept(other, "job_1")).state is State.HELD
    third = await purchases.accept(third, "job_3")
    assert (await purchases.succeed(one, "pat_1")).state is State.SUCCEEDED
    assert (await purchases.succeed(third, "pat_1")).state is State.HELD


@played
async def test_a_second_job_for_one_request_is_held_with_both_named(database):
    _, purchases = await taken(database)
    intended = await purchases.begin(step(), None)
    await purchases.accept(intended, "job_1")
    held = await purchases.accept(intended, "job_2")
    assert held.state is State.HELD
    assert "job_1 and job_2" in held.message


@played
async def test_each_change_is_an_event_with_a_token_of_its_own(database):
    lease, purchases = await taken(database)
    made = await purchases.succeed(
        await purchases.accept(await purchases.begin(step(), None), "job_1"), "pat_1"
    )
    await purchases.end(made, State.HELD, code="x")  # is no legal change
    events = database.read("SELECT state, run_id, token FROM events ORDER BY seq")
    assert [event.state for event in events] == ["intended", "accepted", "succeeded"]
    assert {event.run_id for event in events} == {lease.driver}
    assert len({event.token for event in events}) == 3
    assert last_event(database) == (3, events[-1].token)


@played
async def test_what_was_refused_is_given_back_once(database):
    _, purchases = await taken(database, max_items=1)
    attempt = await purchases.begin(of("a"), None)
    await purchases.end(attempt, State.REJECTED, code="no")
    await purchases.end(attempt, State.REJECTED, code="no")
    await purchases.begin(of("b"), None)
    with pytest.raises(Halted):
        await purchases.begin(of("c"), None)


@played
async def test_one_change_that_breaks_a_rule_stands_alone(database):
    _, purchases = await taken(database)
    broken = database.write(lambda connection: connection.insert("facts", name="identity", value="x"))
    bad, good = await asyncio.gather(broken, purchases.begin(step(), None), return_exceptions=True)
    assert isinstance(bad, sqlite3.IntegrityError | psycopg.IntegrityError)
    assert good.state is State.INTENDED


@played
async def test_a_living_run_is_not_taken_over(database):
    lease, _ = await taken(database)
    beating = asyncio.create_task(_beat(database, lease))
    with pytest.raises(Overlap):
        await taken(database)
    beating.cancel()


async def _beat(database, lease):
    while True:
        await asyncio.sleep(0.02)
        database.change(lease.prove)


@played
async def test_a_silent_run_is_taken_over_and_fenced_off(database, monkeypatch):
    monkeypatch.setattr(leases, "TAKEOVER_AFTER", 0.3)
    lease, purchases = await taken(database)
    guard = database.guard
    await taken(database)
    database.guard = guard
    with pytest.raises(LeaseLost):
        await purchases.begin(step(), None)
    ended = database.read("SELECT outcome FROM runs WHERE id = :id", id=lease.driver)
    assert ended[0].outcome == "Crashed"


@played
async def test_a_run_that_stood_still_sends_nothing(database, monkeypatch):
    lease, _ = await taken(database)
    lease.confirm()
    lease._beaten_at = time.monotonic() - leases.TAKEOVER_AFTER
    with pytest.raises(LeaseLost):
        lease.confirm()
    await lease.renew()
    lease.confirm()
    lease.brake = Halted(Outcome.PAUSED, "paused", "wrong prompts", "")
    with pytest.raises(Halted):
        lease.confirm()


@played
async def test_a_lease_beats_and_tells_what_it_meets_until_it_is_lost(database, monkeypatch):
    monkeypatch.setattr(leases, "BEAT", 0.5)
    lease, _ = await taken(database)
    beats, met, began = [], [], asyncio.get_running_loop().time()
    keeping = asyncio.create_task(lease.keep(met.append, lambda: beats.append(1)))
    async with asyncio.timeout(1000.0):
        while len(beats) < 3:
            await asyncio.sleep(0.1)
    assert len(beats) <= 2 * (asyncio.get_running_loop().time() - began)
    assert (met, keeping.done()) == ([], False)
    assert await pause(database, "production", "wrong prompts") == []
    async with asyncio.timeout(1000.0):
        while not met:
            await asyncio.sleep(0.1)
    assert {one.code for one in met} == {"paused"}
    database.change(lambda connection: connection.execute("UPDATE leases SET driver = 'another'"))
    await asyncio.wait_for(keeping, 1000.0)
    assert met[-1].code == "lease_lost"


@played
async def test_an_attempt_has_one_driver(database):
    first, of_first = await taken(database, "spring")
    attempt = await of_first.begin(step(), None)
    second, of_second = await taken(database, "summer")
    assert await of_second.begin(step(), None) == attempt
    assert of_second.has_living_driver(attempt)
    for ago, lives in ((10.0, True), (46.0, False)):  # since it was seen to beat
        second._watched[first.driver] = second._watched[first.driver][0], time.monotonic() - ago
        assert of_second.has_living_driver(attempt) == lives
    database.guard = first.prove
    await first.give_back("Completed", "")
    database.guard = second.prove
    assert not of_second.has_living_driver(attempt)
    mine = await of_second.take_over(attempt)
    assert mine.driver == second.driver
    assert (await of_second.take_over(attempt)).driver == second.driver  # the first one's view is too old


@played
async def test_a_paused_catalog_begins_nothing(database):
    _, purchases = await taken(database)
    database.guard = None
    assert await pause(database, "production", "wrong prompts", patience=0.1)
    lease = Lease(database, "production", "summer")
    with pytest.raises(Halted, match="wrong prompts"):
        await lease.take({"verb": "import", "source": ""}, lambda connection: None)
    database.guard = purchases._lease.prove
    with pytest.raises(Halted, match="has paused production"):
        await purchases.begin(step(), None)
    assert unpause(database, "production")
    assert not unpause(database, "production")
    assert (await purchases.begin(step(), None)).state is State.INTENDED


@played
async def test_what_ends_as_it_had_before_does_not_count(database):
    for counts in (1, 0):
        lease, purchases = await taken(database)
        last = next(iter(find_attempts(database, "production")), None)
        attempt = await purchases.begin(step(last=last), None)
        await purchases.end(attempt, State.REJECTED, code="unclear_refusal", message="quota")
        found = database.read("SELECT counts FROM events WHERE state = 'rejected' ORDER BY seq DESC")
        assert found[0].counts == counts
        await lease.give_back("Failed", "")


@played
async def test_a_halt_is_on_record_and_the_next_run_begins_with_four(database):
    _, purchases = await taken(database)
    for prompt in "abcd":
        attempt = await purchases.begin(of(prompt), None)
        await purchases.end(attempt, State.REJECTED, code="x", message=prompt)
    assert purchases.standings["pattern"].problem
    await purchases.note_halt(attempt, "four")
    await purchases.stand(["pattern"])
    assert purchases.standings["pattern"].room == 4


@played
async def test_no_request_is_sent_with_a_ledger_whose_file_was_replaced(tmp_path):
    database = Database(str(tmp_path / "ledger.sqlite3"))
    _, purchases = await taken(database)
    (tmp_path / "ledger.sqlite3").rename(tmp_path / "moved")
    other = Database(str(tmp_path / "ledger.sqlite3"))
    with pytest.raises(LeaseLost):
        await purchases.begin(step(), None)
    await other.close()
    await database.close()


@played
async def test_a_process_of_another_version_stops_at_its_next_beat(database):
    _, purchases = await taken(database)
    upgrade = "UPDATE facts SET value = '99' WHERE name = 'schema'"
    database.change(lambda connection: connection.execute(upgrade))
    with pytest.raises(LeaseLost):
        await purchases.begin(step(), None)


@pytest.fixture
def newer(tmp_path):
    """Has a program of the next version run meanwhile: its tables have a column more."""
    (script := tmp_path / "002.sql").write_text(
        "ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';"
    )

    @contextmanager
    def program():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledgers, "_SCRIPTS", [*ledgers._SCRIPTS, script])
            patch.setattr(ledgers, "VERSION", "2")
            yield

    return program


@played
async def test_an_upgrade_waits_for_older_programs_and_then_keeps_them_out(address, database, newer):
    lease, purchases = await taken(database)
    attempt = await purchases.begin(step(), None)
    with newer(), pytest.raises(Refusal, match=r"older version holds production/spring, by .*:\d+"):
        Database(address)
    attempt = await purchases.accept(attempt, "job_1")  # nothing was changed
    await lease.give_back("Completed", "")
    with newer():
        upgraded = Database(address)
        assert Database(address).identity == upgraded.identity == database.identity
        assert upgraded.read("SELECT machine FROM runs")[0].machine == ""
        assert find_attempts(upgraded, "production") == [attempt]
        await upgraded.close()
    with pytest.raises(Refusal, match="has version 2; this program reads 1"):
        Database(address)
    with pytest.raises(LeaseLost, match="upgraded"):
        database.change(lambda connection: None)


@played
async def test_a_new_ledger_has_all_changes_and_a_dead_program_holds_up_no_upgrade(
    address, newer, monkeypatch
):
    database = Database(address)
    await taken(database)
    await database.close()
    monkeypatch.setattr(ledgers, "is_gone", lambda holder: True)
    with newer():
        upgraded = Database(address)
        assert upgraded.read("SELECT machine FROM runs")[0].machine == ""
        await upgraded.close()


def test_a_ledger_of_an_earlier_edition_is_refused_by_name(address):
    if address.endswith("sqlite3"):
        with sqlite3.connect(address) as connection:
            connection.execute("CREATE TABLE ledger (id TEXT)")
        connection.close()
    else:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE ledger (id TEXT)")
    with pytest.raises(Refusal, match="earlier edition"):
        Database(address)


def test_a_database_that_is_away_for_a_while_is_waited_for(postgres):
    database, address = Database(postgres), postgres

    async def case():
        _, purchases = await taken(database)
        name = address.rsplit("/", 1)[1]
        with psycopg.connect(address.rsplit("/", 1)[0] + "/postgres", autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            begun = asyncio.create_task(purchases.begin(step(), None))
            await asyncio.sleep(1.0)
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert (await begun).state is State.INTENDED

    play(case())
    play(database.close())


def test_the_words_of_a_database_name_no_password():
    with pytest.raises(LedgerFault) as refused:
        Database("postgresql://anna:s3cret-word@127.0.0.1:9/x")
    assert "s3cret" not in str(refused.value)


def test_a_process_is_gone_or_not_where_the_system_keeps_no_list_of_them(monkeypatch):
    """macOS has no /proc: there every living run was taken for dead, and its catalog taken over."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    ended = subprocess.Popen(["true"])
    ended.wait()
    mine, dead = (f"{socket.gethostname()}:{pid}" for pid in (os.getpid(), ended.pid))
    assert not leases.is_gone(mine)
    assert leases.is_gone(dead)
    assert not leases.is_gone(f"elsewhere:{ended.pid}")


def test_a_day_budget_holds_where_clocks_stand_on_both_sides_of_midnight(database):
    settings = Settings(price_pattern="40", day_budget="90", environment="production")
    midnight = 20_000 * 86_400.0

    async def case():
        _, late = await taken(database, "spring", settings)
        _, early = await taken(database, "summer", settings)
        late._now, early._now = (lambda: midnight + 1), (lambda: midnight - 1)
        for purchases, prompt in ((late, "a"), (early, "b"), (late, "c"), (early, "d")):
            if prompt in "ab":
                await purchases.begin(of(prompt), None)
            else:
                with pytest.raises(Halted, match="day's budget"):
                    await purchases.begin(of(prompt), None)
                assert purchases.left_today() == 100_000

    play(case())
