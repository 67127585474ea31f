"""Takes and what people decide about them: which take a row wants, what a remake buys, and what it leaves alone."""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from patternmill.errors import Refusal
from patternmill.fanout import Maker
from patternmill.items import pattern_item
from patternmill.ledger.catalogs import catalog_rows
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Decision, Verdict, decide, decisions_of, move, sharing
from patternmill.pipeline import carry_out
from patternmill.remake import is_due, next_take
from patternmill.request import Request
from patternmill.states import Outcome, Status
from tests.spine import refuses
from tests.test_crashes import ended, process, surroundings
from tests.test_runs import HEADER, double, made, results, row, run, sheet  # noqa: F401
from tests.test_tables_results import catalog_row

HERONS = pattern_item("production", "herons").id


def remake(catalog="spring", **asked):
    return asyncio.run(carry_out(Request(verb="remake", catalog=catalog, **asked)))


def in_ledger(read):
    database = Database("home/ledger.sqlite3")
    try:
        return read(database)
    finally:
        asyncio.run(database.close())


def say(verdict, take=1, pattern=HERONS):
    in_ledger(lambda database: decide(database, "production", pattern, take, Verdict(verdict)))


def decided(pattern=HERONS):
    return in_ledger(lambda database: decisions_of(database, "production")).get(pattern, Decision(pattern))


def rows(catalog="spring"):
    found = in_ledger(lambda database: catalog_rows(database, "production", catalog))
    return {one.sku: one for one in found}


def test_a_picked_take_whose_products_are_not_all_made_is_gone_on_with(double):  # noqa: F811
    """A remake without names moves what is marked alone."""
    sheet(row(1, "herons"), row(2, "herons"))
    run()
    say("again")
    remake()
    say("pick", take=2)
    sheet(row(1, "herons"), row(2, "herons"), row(3, "herons"))
    run(max_items=0)
    assert remake().summary.counts == {"succeeded": 3}
    assert made(double) == (2, 5)
    assert decided().take == 2


@pytest.mark.parametrize(
    ("status", "code", "take", "verdict", "due"),
    [
        (Status.SUCCEEDED, "", 2, "", False), (Status.NOT_STARTED, "", 2, "", True),
        (Status.NOT_STARTED, "", 1, "", False), (Status.FAILED, "job_failed", 2, "", True),
        (Status.FAILED, "content_refused", 2, "", False), (Status.FAILED, "content_refused", 2, "again", True),
        (Status.NOT_STARTED, "rejected_pattern", 2, "reject", False), (Status.SUCCEEDED, "", 1, "again", True),
    ],
)  # fmt: skip
def test_what_a_remake_without_names_is_about(status, code, take, verdict, due):
    assert is_due(catalog_row(status=status, code=code, take=take, verdict=verdict)) is due


@pytest.mark.parametrize(
    ("decision", "is_made", "asked", "take"),
    [
        (Decision("p"), True, None, 2),
        (Decision("p"), False, None, 1),
        (Decision("p", 1, 1, Verdict.AGAIN, at=9.0), True, None, 2),
        (Decision("p", 2, 2, Verdict.NONE, at=9.0), True, None, 2),
        (Decision("p", 2, 2, Verdict.NONE, at=9.0), False, None, 2),
        (Decision("p", 2, 2, Verdict.AGAIN, at=9.0), False, None, 3),
        (Decision("p", 2, 2, Verdict.REJECT, at=9.0), True, None, 3),
        (Decision("p", 1, 4, Verdict.PICK, at=9.0), True, None, 5),
        (Decision("p", 1, 4, Verdict.AGAIN, at=9.0), True, 2, 2),
        (Decision("p", 4, 4, Verdict.NONE, at=9.0), True, 5, 5),
        (Decision("p", 4, 4, Verdict.NONE, at=9.0), True, 6, "no_take"),
    ],
)
def test_which_take_a_remake_makes(decision, is_made, asked, take):
    if isinstance(take, int):
        assert next_take(decision, is_made=is_made, asked=asked) == take
    else:
        with pytest.raises(Refusal) as refused:
            next_take(decision, is_made=is_made, asked=asked)
        assert (refused.value.code, refused.value.remedy) == (take, "--take 5 makes another one.")


def test_what_is_marked_again_is_made_once_with_all_rows_that_share_it(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "herons", label="x"), row(3, "ferns"))
    run()
    before = rows()
    say("again")
    assert remake().outcome is Outcome.COMPLETED
    assert made(double) == (3, 5)
    after = rows()
    assert {sku: (one.take, one.product_id != before[sku].product_id) for sku, one in after.items()} == {
        "A-1": (2, True), "A-2": (2, True), "A-3": (1, False),
    }  # fmt: skip
    assert (decided().take, decided().verdict) == (2, "")
    again = remake()
    assert made(double) == (3, 5)
    assert "no row to remake" in again.message


def test_the_same_remake_by_sku_twice_buys_one_take(double):  # noqa: F811
    sheet(row(1, "herons"))
    run()
    assert remake(take=2).summary.causes[0].code == "no_rows"
    assert remake(sku=("a-1",)).outcome is Outcome.COMPLETED
    second = remake(sku=("A-1",))
    assert (second.outcome, made(double)) == (Outcome.REFUSED, (2, 2))
    assert "--take 3" in second.message
    assert remake(sku=("A-1",), take=3).outcome is Outcome.COMPLETED
    assert remake(sku=("A-1",), take=3).outcome is Outcome.COMPLETED
    assert (rows()["A-1"].take, made(double)) == (3, (3, 3))


def test_a_remake_that_ended_half_way_goes_on_with_the_same_take(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "herons", label="x"))
    run()
    before = rows()
    say("again")
    remake(max_items=2)
    assert made(double) == (2, 3)
    half = rows()
    assert [one.status for one in half.values()] == ["succeeded", "not_started"]
    assert half["A-2"].has_product_id == before["A-2"].product_id
    assert remake().outcome is Outcome.COMPLETED
    assert (made(double), decided().take) == ((2, 4), 2)


@pytest.mark.slow
def test_a_remake_that_is_killed_anywhere_buys_one_take(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "herons", label="x"))
    run()
    for take, point in enumerate((3, 9, 15, 21, 27), 1):
        say("again", take)
        killed = process(point, "kill", surroundings(), {"verb": "remake", "catalog": "spring"})
        assert ended(killed) == -signal.SIGKILL
        remake()
        assert (decided().take, decided().verdict, made(double)) == (take + 1, "", (take + 1, 2 * take + 2))
        assert {(one.take, one.status) for one in rows().values()} == {(take + 1, "succeeded")}
        assert "no row to remake" in remake().message


def test_an_import_of_the_unchanged_sheet_goes_on_with_the_take_and_asks_nothing(double):  # noqa: F811
    sheet(*(row(number, "herons", label=str(number)) for number in range(1, 31)))
    run()
    say("again")
    remake(max_items=2)
    end = run("refresh")
    assert end.outcome is Outcome.COMPLETED
    assert made(double) == (2, 60)
    assert run().outcome is Outcome.COMPLETED
    assert made(double) == (2, 60)


def test_two_remakes_that_saw_the_same_take_buy_one(double):  # noqa: F811
    sheet(row(1, "herons"))
    run()
    seen = decided()
    in_ledger(lambda database: database.change(lambda one: move(one, "production", seen, 2)))
    with refuses("newer_take"):
        in_ledger(lambda database: database.change(lambda one: move(one, "production", seen, 2)))


def test_the_take_that_the_sheet_names_counts_and_is_changed_there(double):  # noqa: F811
    header = (*HEADER, "take")
    sheet((*row(1, "herons"), "2"), (*row(2, "herons", label="x"), ""), header=header)
    run()
    assert ({sku: one.take for sku, one in rows().items()}, made(double)) == ({"A-1": 2, "A-2": 1}, (2, 2))
    assert remake(sku=("A-1",)).summary.causes[0].code == "take_in_sheet"
    sheet((*row(1, "herons"), "two"), header=header)
    assert run().summary.causes[0].code == "wrong_take"
    assert made(double) == (2, 2)


def test_a_pattern_that_rows_of_two_catalogs_share(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "herons", label="x"))
    sheet(row(9, "herons"), name="summer.csv")
    run()
    run(file="summer.csv")
    shared = in_ledger(lambda database: sharing(database, "production", HERONS))
    assert shared == [("spring", "A-1"), ("spring", "A-2"), ("summer", "A-9")]
    before = rows("summer")["A-9"]
    say("again")
    remake()
    assert made(double) == (2, 5)
    assert rows("summer")["A-9"].product_id == before.product_id
    assert run("refresh", file="summer.csv").outcome is Outcome.COMPLETED
    assert (rows("summer")["A-9"].take, made(double)) == (2, (2, 6))


def test_on_a_rejected_pattern_no_product_is_begun_until_it_is_taken_back(double):  # noqa: F811
    sheet(row(1, "herons"))
    run()
    say("reject")
    sheet(row(1, "herons"), row(2, "herons", label="x"))
    end = run()
    assert (made(double), end.outcome) == ((1, 1), Outcome.COMPLETED_WITH_FAILURES)
    assert results(end)["A-2"]["error_code"] == "rejected_pattern"
    assert results(end)["A-1"]["status"] == "succeeded"
    catalog = (Path(end.summary.folder).parent / "catalog.csv").read_text("utf-8-sig").splitlines()
    assert [line.rsplit(",", 1)[1] for line in catalog] == ["decision", "rejected"]
    say("")
    assert run().outcome is Outcome.COMPLETED
    assert made(double) == (1, 2)


class Rejecting(Maker):
    """Rejects the pattern as soon as it has its first product, as a person on the page does."""

    async def item(self, work):
        made = await work.do()
        if work.label.startswith("product"):
            database = Database("home/ledger.sqlite3")
            decide(database, "production", HERONS, 1, Verdict.REJECT)
            await database.close()
        return made


def test_a_pattern_that_is_rejected_while_its_products_are_made_gets_no_more(double, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "1")
    sheet(*(row(number, "herons", label=str(number)) for number in range(1, 5)))
    end = asyncio.run(carry_out(Request(file="spring.csv"), Rejecting()))
    assert (made(double), end.outcome) == ((1, 1), Outcome.COMPLETED_WITH_FAILURES)
    assert results(end)["A-4"]["error_code"] == "rejected_pattern"


def test_back_to_take_1_is_free_where_its_product_exists(double):  # noqa: F811
    sheet(row(1, "herons"))
    run()
    first = rows()["A-1"].product_id
    say("again")
    remake()
    sheet(row(1, "herons"), row(2, "herons", label="x"))
    run()
    assert made(double) == (2, 3)
    assert remake(sku=("A-1",), take=1).outcome is Outcome.COMPLETED
    assert made(double) == (2, 4)  # the second row never had a product of take 1
    assert (rows()["A-1"].product_id, rows()["A-1"].take) == (first, 1)
    say("again")
    remake()
    assert (decided().take, made(double)) == (3, (3, 6))


def test_a_wanted_take_that_failed_for_good_is_tried_again_and_the_product_stays(double, monkeypatch):  # noqa: F811
    monkeypatch.setattr("patternmill.engine._ERRING", 0.0)
    sheet(row(1, "herons"))
    run()
    first = rows()["A-1"].product_id
    say("again")
    double.weather = double.weather.__class__(latency=0.001, pattern_time=0.1, jobs_fail=1.0)
    end = remake()
    assert end.outcome is not Outcome.COMPLETED
    assert (rows()["A-1"].status, rows()["A-1"].has_product_id) == ("failed", first)
    double.weather = double.weather.__class__(latency=0.001, pattern_time=0.1, product_time=0.1)
    assert remake().outcome is Outcome.COMPLETED
    assert (decided().take, rows()["A-1"].take) == (2, 2)


def test_a_lost_ledger_and_its_sheet_imported_back(double, monkeypatch):  # noqa: F811
    sheet(row(1, "herons"))
    run()
    say("again")
    end = remake()
    Path("elsewhere").mkdir()
    shutil.copy(Path(end.summary.folder).parent / "sheet.csv", "elsewhere/kept.csv")
    monkeypatch.chdir("elsewhere")
    monkeypatch.setenv("PATTERNMILL_HOME", "home")
    assert run(file="kept.csv", catalog="spring").outcome is Outcome.COMPLETED
    assert (rows()["A-1"].take, decided().take, made(double)) == (2, 2, (2, 2))
