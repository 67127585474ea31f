"""Money: what a person, a limit or an edited sheet decides about it, over deaths, midnights and halts."""

import asyncio
import time
from dataclasses import replace

import pytest

from cli.main import run as command_here
from patternmill.errors import Halted
from patternmill.items import choice_of, product_item
from patternmill.ledger.attempts import find_attempts
from patternmill.ledger.database import Database
from patternmill.plan import Action, Step
from patternmill.settings import Settings
from patternmill.settlement import decide
from patternmill.states import Outcome, State, Status
from tests import test_runs
from tests.double.server import KEY
from tests.double.weather import Spell
from tests.spine import PRICES, of, played, refuses, step, taken
from tests.test_cli import command
from tests.test_runs import catalog, made, results, row, run, sheet, table

double = test_runs.double
DAY = 86_400.0


def on_record(condition=""):
    database = Database("home/ledger.sqlite3")
    found = find_attempts(database, "production", condition)
    database.disconnect()
    return found


def weather(double, **changed):
    double.weather = replace(double.weather, **changed)


def in_doubt(double, monkeypatch):
    """Leave the pattern of row 1 in doubt, and return its attempt."""
    monkeypatch.setenv("PATTERNMILL_CREATE_TIMEOUT", "PT1S")
    weather(double, spells=(Spell("away", 0.0, time.time() + 3600),))
    sheet(row(1))
    assert run().summary.counts == {"in_doubt": 1}
    weather(double, spells=())
    double.record.clear()
    return on_record()[0]


@pytest.mark.slow
def test_a_row_that_goes_back_to_an_earlier_prompt_has_its_product_again_and_free(double):
    had = []
    for prompt in ("herons", "waves", "herons"):
        sheet(row(1, prompt), row(2))
        had.append(results(end := run())["A-1"]["product_id"])
    assert had[0] == had[2] != had[1]
    assert (made(double), end.summary.spent, catalog()["a-1"].has_product_id) == ((3, 3), "0.00", had[0])
    assert table("results/spring/catalog.csv")[0]["product_id"] == had[0]


@pytest.mark.slow
def test_a_job_that_no_row_names_any_more_is_followed_to_its_end(double, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_JOB_TIMEOUT", "PT1S")
    weather(double, pattern_time=2.5, spread=0.01)
    sheet(row(1))
    assert run().summary.counts == {"waiting": 1}
    weather(double, pattern_time=0.1)
    monkeypatch.setenv("PATTERNMILL_JOB_TIMEOUT", "PT1M")
    sheet(row(2))
    assert run().outcome is Outcome.COMPLETED
    assert {one.label: one.state for one in on_record()} == dict.fromkeys(
        ["herons 1", "herons 2", "A-2"], State.SUCCEEDED
    )


@pytest.mark.slow
def test_a_request_in_doubt_that_no_row_names_is_not_sent_again_and_is_listed(double, monkeypatch, capsys):
    doubtful = in_doubt(double, monkeypatch)
    sheet(row(2))
    assert run().outcome is Outcome.COMPLETED
    assert doubtful.request_id not in [one.get("name") for one in double.record]
    assert [one.amount for one in on_record("state = 'intended'")] == [doubtful.amount]
    assert command_here(["status"]) == command_here(["settle"]) == 0
    said = capsys.readouterr().out
    assert "1 in doubt or being sent, 1.00 EUR" in said
    assert doubtful.request_id in said


@pytest.mark.slow
def test_products_on_paid_patterns_are_made_after_a_halt_of_patterns(double, monkeypatch):
    sheet(row(1))
    run()
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "2")
    paid = [row(number, "herons 1") for number in range(14, 26)]
    sheet(row(1), *(row(number, f"waves {number} [unsafe]") for number in range(2, 14)), *paid)
    end = run()
    assert end.outcome is Outcome.FAILED
    assert "no_good_end" in {cause.code for cause in end.summary.causes}
    assert {results(end)[sku]["status"] for sku, *_ in paid} == {"succeeded"}
    assert made(double)[0] < 10


@pytest.mark.parametrize("was_refused", [True, False])
@played
async def test_a_refused_request_is_sent_with_its_new_body_and_one_in_doubt_with_its_old(
    database, was_refused
):
    before, after = (
        product_item(of("herons").item, "A-1", choice_of("cat_mug", {"lid": value}))
        for value in ("dark blue", "dark-blue")
    )
    _, purchases = await taken(database)
    first = await purchases.begin(step(before), "pat_1")
    if was_refused:
        first = await purchases.end(first, State.REJECTED, code="unclear_refusal")
    action = Action.RESEND if was_refused else Action.FOLLOW
    again = await purchases.begin(Step(after, action, 2, first), "pat_1")
    assert (again.request_id, again.state) == (first.request_id, State.INTENDED)
    assert ("dark-blue" in again.body) is was_refused
    assert find_attempts(database, "production") == [again]


async def buyer(database, catalog, at):
    """Take a lease, and return its purchases at a time of its own, under a day's budget of two patterns."""
    _, purchases = await taken(database, catalog, Settings(**PRICES, day_budget="90"))
    purchases._now = lambda: at
    return purchases


@played
async def test_a_day_budget_counts_what_a_killed_run_has_bought_until_midnight_in_utc(database, monkeypatch):
    monkeypatch.setattr("patternmill.ledger.leases.is_gone", lambda holder: True)
    dead = await buyer(database, "spring", 2 * DAY - 60)
    refused = [await dead.begin(of(prompt), None) for prompt in "ab"]
    heir = await buyer(database, "spring", 2 * DAY - 1)
    with pytest.raises(Halted, match="day's budget"):
        await heir.begin(of("c"), None)
    early = await buyer(database, "spring", 2 * DAY)
    await asyncio.gather(*(early.begin(of(prompt), None) for prompt in "de"))
    for attempt in refused:
        await early.end(attempt, State.REJECTED, code="unclear_refusal")
    assert early.left_today() == 100_000
    with pytest.raises(Halted, match="day's budget"):
        await early.begin(of("f"), None)


@played
async def test_a_request_of_yesterday_that_is_settled_today_gives_nothing_back_to_today(database):
    before = await buyer(database, "spring", time.time() - DAY)
    attempt = await before.begin(of("a"), None)
    await before._lease.give_back("Completed", "")
    await decide(database, Settings(**PRICES), attempt.request_id, "resend", "", "I looked")
    now = await buyer(database, "spring", time.time())
    attempt = await now.take_over(find_attempts(database, "production")[0])
    await now.begin(of("b"), None)
    await now.end(attempt, State.REJECTED, code="unclear_refusal")
    assert now.left_today() == 500_000


@pytest.mark.parametrize("day_budget", ["10.00", ""])
def test_what_is_spent_in_a_day_is_never_a_sum_of_two_currencies(double, monkeypatch, capsys, day_budget):
    if day_budget:
        monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", day_budget)
    for number, currency in enumerate(("EUR", "USD"), 1):
        monkeypatch.setenv("PATTERNMILL_CURRENCY", currency)
        sheet(row(number))
        end = run()
    assert command_here(["status"]) == 0
    assert "spent today: 3.00" not in capsys.readouterr().out
    assert not day_budget or (end.outcome is Outcome.REFUSED and "spent today is in EUR" in end.message)


@pytest.mark.slow
def test_yes_answers_for_the_number_of_items_and_without_a_terminal_nothing_is_asked(double, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "1")
    sheet(row(1))
    refused = command("import", "spring.csv")
    assert (refused.returncode, made(double)) == (2, (0, 0))
    assert "--max-items 2" in refused.stderr
    assert command("import", "spring.csv", "--yes").returncode == 0
    assert made(double) == (1, 1)


@pytest.mark.parametrize(
    ("verb", "rows", "home", "option"),
    [
        ("import", [row(number, f"waves {number}") for number in range(1, 11)], "home", "--change 10"),
        ("refresh", [row(1)], "home", "--retire 9"),
        ("refresh", [row(1, sku="B-1"), *map(row, range(2, 11))], "home", "--rename 1"),
        ("import", [*map(row, range(1, 11))], "elsewhere", "--confirm ledger"),
    ],
)
def test_yes_never_answers_for_change_retire_rename_or_ledger(
    double, monkeypatch, capsys, verb, rows, home, option
):
    sheet(*map(row, range(1, 11)))
    run()
    before = [(one.key, one.product_id, one.retired) for one in catalog().values()]
    sheet(*rows)
    monkeypatch.setenv("PATTERNMILL_HOME", home)
    assert command_here([verb, "spring.csv", "--yes"]) == 2
    assert option in capsys.readouterr().err
    assert made(double) == (10, 10)
    assert [(one.key, one.product_id, one.retired) for one in catalog().values()] == before


@pytest.mark.parametrize("job_of", ["another", "a stranger", "an earlier attempt"])
@played
async def test_a_job_that_is_not_the_requests_own_is_not_taken(double, database, job_of):
    weather(double, echoes=job_of == "a stranger")
    _, purchases = await taken(database)
    mine, other = [await purchases.begin(of(prompt), None) for prompt in ("herons", "waves")]
    await double.exchange(
        "patterns/create", (mine if job_of == "an earlier attempt" else other).body.encode()
    )
    if job_of == "another":
        await purchases.accept(other, "job_1")
    if job_of == "an earlier attempt":
        failed = await purchases.end(await purchases.accept(mine, "job_1"), State.FAILED, code="job_failed")
        mine = await purchases.begin(step(of("herons").item, failed), None, failed.request_id)
    mine = await purchases.end(mine, State.HELD, code="too_old", message="It is old.")
    await purchases._lease.give_back("Completed", "")
    with refuses("contradiction"):
        about = Settings(api_key=KEY, environment="production")
        await decide(database, about, mine.request_id, "job", "job_1", "I looked")
    assert mine in find_attempts(database, "production")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "then", "at_last"),
    [
        (["--job", "job_1"], Status.WAITING, Status.SUCCEEDED),
        (["--resend"], Status.IN_DOUBT, Status.SUCCEEDED),
        (["--write-off"], Status.FAILED, Status.FAILED),
    ],
)
def test_what_became_of_a_row_is_true_after_a_person_has_settled_it(
    double, monkeypatch, choice, then, at_last
):
    attempt = in_doubt(double, monkeypatch)
    assert catalog()["a-1"].status == Status.IN_DOUBT
    asyncio.run(double.exchange("patterns/create", attempt.body.encode()))
    assert command_here(["settle", attempt.request_id, *choice, "--reason", "x"]) == 0
    assert catalog()["a-1"].status == then
    assert [one["status"] for one in results(run()).values()] == [at_last]
    assert made(double)[0] == 1


@pytest.mark.slow
def test_what_became_of_a_row_is_true_after_another_catalog_has_made_its_item(double, monkeypatch):
    for name in ("spring", "summer"):
        sheet(row(1, "herons [unsafe]"), row(2), name=f"{name}.csv")
        run(file=f"{name}.csv")
    assert catalog()["a-1"].status == Status.FAILED
    monkeypatch.setattr("tests.double.service.UNSAFE", "[nothing]")
    assert run("retry", catalog="summer").outcome is Outcome.COMPLETED
    assert (catalog()["a-1"].status, catalog()["a-1"].product_id != "") == (Status.SUCCEEDED, True)


def test_the_address_of_an_environment_is_pinned_by_its_first_purchase(double, monkeypatch):
    sheet(row(1))
    run()
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    assert [cause.code for cause in run().summary.causes] == ["other_address"]


def test_another_ledger_is_noticed_with_another_folder_for_the_results(double, monkeypatch):
    sheet(row(1))
    run()
    monkeypatch.setenv("PATTERNMILL_HOME", "elsewhere")
    assert "--confirm ledger" in run(out="other").message
    assert made(double) == (1, 1)
