"""Runs from sheet to results against the double: what is bought, what the catalog has then, and what is left alone."""

import asyncio
import csv
import json
from pathlib import Path

import pytest

from patternmill.ledger.catalogs import catalog_rows
from patternmill.ledger.database import Database
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.states import Outcome, Status
from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.lapse import lapsing

HEADER = ("sku", "prompt", "category", "option:size", "option:label")


@pytest.fixture
def double(tmp_path, monkeypatch):
    """A service, and a folder and settings that lead to it."""
    double = Double(Weather(latency=0.001, pattern_time=0.1, product_time=0.1))
    with lapsing(), serving(double) as address:
        monkeypatch.chdir(tmp_path)
        for name, text in {
            "STUDIO_URL": address, "API_KEY": KEY, "HOME": str(tmp_path / "home"), "CONFIRM_ABOVE": "100",
            "PRICE_PATTERN": "1.00", "PRICE_PRODUCT": "0.50", "CURRENCY": "EUR",
        }.items():  # fmt: skip
            monkeypatch.setenv(f"PATTERNMILL_{name}", text)
        yield double


def sheet(*rows, name="spring.csv", header=HEADER):
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return Path(name)


def row(number, prompt=None, size="m", sku=None, label=""):
    return (sku or f"A-{number}", prompt or f"herons {number}", "Tote", size, label)


def run(verb="import", file="spring.csv", **asked):
    asked = {"file": file, **asked} if verb != "retry" else {"catalog": "spring", **asked}
    return asyncio.run(carry_out(Request(verb=verb, **asked)))


def made(double):
    stages = [job.stage for job in double.jobs.values()]
    return stages.count("pattern"), stages.count("product")


def table(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def results(end):
    return {line["sku"]: line for line in table(Path(end.summary.folder) / "results.csv")}


def catalog():
    database = Database("home/ledger.sqlite3")
    found = {one.key: one for one in catalog_rows(database, "production", "spring")}
    asyncio.run(database.close())
    return found


def test_an_import_again_or_into_another_catalog_buys_nothing(double):
    sheet(row(1), row(2, "herons 1", label="x"), row(3))
    ends = [run(catalog=name) for name in ("spring", "spring", "summer")]
    assert {end.outcome for end in ends} == {Outcome.COMPLETED}
    assert made(double) == (2, 3)
    assert len({one["product_id"] for end in ends for one in results(end).values()}) == 3


def test_rows_that_are_refused_cost_nothing_and_come_back(double):
    sheet(row(1), row(2, size="huge"), ("", "waves", "Tote", "m", ""))
    end = run()
    assert end.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert end.summary.counts == {"succeeded": 1, "refused": 2}
    assert made(double) == (1, 1)
    found = results(end)
    assert found["A-2"]["error_code"] == "unknown_value"
    assert found[""]["error_code"] == "empty_sku"
    assert [failure.code for failure in end.failures] == ["unknown_value", "empty_sku"]


def test_corrected_failures_complete_their_catalog_in_its_order(double):
    sheet(row(1), row(2, size="huge"), row(3))
    end = run()
    failures = Path(end.summary.folder) / "failures.csv"
    failures.write_text(failures.read_text(encoding="utf-8-sig").replace("huge", "s"), encoding="utf-8")
    again = run(file=str(failures))
    assert again.outcome is Outcome.COMPLETED
    assert again.summary.catalog == "spring"
    assert [(one.key, one.position, one.status) for one in catalog().values()] == [
        ("a-1", 0, "succeeded"), ("a-2", 1, "succeeded"), ("a-3", 2, "succeeded"),
    ]  # fmt: skip


def test_a_row_that_is_refused_or_fails_keeps_the_product_of_its_sku(double):
    sheet(*map(row, range(1, 8)))
    run()
    before = catalog()
    sheet(row(1, size="huge"), row(2, "herons [unsafe]"), *map(row, range(3, 8)))
    assert run().outcome is Outcome.COMPLETED_WITH_FAILURES
    now = catalog()
    assert (now["a-1"].status, now["a-2"].status) == (Status.REFUSED, Status.FAILED)
    for key in ("a-1", "a-2"):
        assert now[key].has_product_id == before[key].product_id
    products = [line["product_id"] for line in table("results/spring/catalog.csv")]
    assert products == [one.product_id for one in before.values()]


def test_a_refresh_makes_the_catalog_what_its_source_says(double):
    sheet(*map(row, range(1, 9)))
    run()
    sheet(row(1), row(2, "waves"), *map(row, range(4, 9)), row(9))
    end = run("refresh")
    assert end.outcome is Outcome.COMPLETED
    now = catalog()
    assert now["a-3"].retired is not None
    assert {key for key, one in now.items() if one.retired is None} == {
        f"a-{n}" for n in (1, 2, 4, 5, 6, 7, 8, 9)
    }
    assert made(double) == (10, 10)


def test_what_is_beyond_the_limit_of_retired_rows_stays_and_the_rest_goes_on(double):
    sheet(*map(row, range(1, 11)))
    run()
    sheet(row(1), row(11))
    end = run("refresh")
    assert end.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert "--retire 9" in end.message
    assert all(one.retired is None for one in catalog().values())
    assert made(double) == (11, 11)
    sheet(row(1), row(11))
    assert run("refresh", retire=9).outcome is Outcome.COMPLETED
    assert sum(one.retired is None for one in catalog().values()) == 2


def test_many_replaced_products_need_a_word(double):
    sheet(*map(row, range(1, 11)))
    run()
    sheet(*(row(number, f"waves {number}") for number in range(1, 11)))
    end = run()
    assert end.outcome is Outcome.REFUSED
    assert "--change 10" in end.message
    assert made(double) == (10, 10)
    assert run(change=10).outcome is Outcome.COMPLETED


def test_a_large_plan_needs_a_word_or_a_cap(double, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "3")
    sheet(*map(row, range(1, 4)))
    end = run()
    assert end.outcome is Outcome.REFUSED
    assert "--max-items 6" in end.message
    assert made(double) == (0, 0)
    capped = run(max_items=4)
    assert capped.outcome is Outcome.BUDGET_REACHED
    assert made(double) == (2, 2)


def test_a_budget_buys_whole_rows(double):
    sheet(*map(row, range(1, 4)))
    end = run(budget="3.10")
    assert end.outcome is Outcome.BUDGET_REACHED
    assert made(double) == (2, 2)
    assert end.summary.spent == "3.00"
    manifest = json.loads((Path(end.summary.folder) / "manifest.json").read_text())
    assert (manifest["outcome"], manifest["spent"], manifest["currency"]) == ("BudgetReached", "3.00", "EUR")


@pytest.mark.parametrize(
    ("verb", "file"),
    [
        ("import", "spring.csv"),
        ("refresh", "spring.csv"),
        ("retry", None),
        ("import", "results/spring/sheet.csv"),
        ("import", "results/spring/latest/failures.csv"),
    ],
)
def test_a_rename_that_nobody_allowed_is_not_bought_by_the_next_command(double, verb, file):
    sheet(*map(row, range(1, 4)))
    run()
    sheet(row(1, sku="B-1"), row(2), row(3), row(4))
    assert results(run("refresh"))["B-1"]["error_code"] == "rename"
    for _ in range(2):
        assert run(verb, file=file).outcome in (Outcome.REFUSED, Outcome.COMPLETED_WITH_FAILURES)
        assert (made(double), json.loads(catalog()["b-1"].refusal)["code"]) == ((4, 4), "rename")
    assert catalog()["a-1"].retired is None
    assert run("refresh", rename=1).outcome is Outcome.COMPLETED
    assert made(double) == (4, 5)


@pytest.mark.parametrize("given", ["option", "day"])
def test_a_budget_without_prices_is_refused(double, monkeypatch, given):
    for stage in ("PATTERN", "PRODUCT"):
        monkeypatch.delenv(f"PATTERNMILL_PRICE_{stage}")
    if given == "day":
        monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "3.00")
    sheet(*map(row, range(1, 4)))
    end = run(**({"budget": "3.00"} if given == "option" else {}))
    assert end.outcome is Outcome.REFUSED and "PATTERNMILL_PRICE_PATTERN" in end.message
    assert made(double) == (0, 0)


def test_a_retry_is_about_rows_that_did_not_end_well(double):
    sheet(row(1), row(2, "herons [unsafe]"), row(3, size="huge"))
    end = run()
    assert end.summary.counts == {"succeeded": 1, "failed": 1, "refused": 1}
    again = run("retry")
    assert again.summary.counts == {"failed": 1, "refused": 1}
    assert made(double) == (3, 1)  # one more attempt at the pattern
    only = run("retry", sku=["A-1"])
    assert only.outcome is Outcome.COMPLETED
    assert "no row to retry" in only.message
    assert len(catalog()) == 3


def test_another_service_behind_a_name_is_refused_only_once_it_was_bought_from(double, monkeypatch):
    sheet(row(1, size="huge"))
    run()
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    assert "PATTERNMILL_STUDIO_URL says" not in run().message
    monkeypatch.undo()


def test_an_environment_that_nobody_configured_is_refused(double):
    sheet(row(1))
    end = run(environment="prodction")
    assert end.outcome is Outcome.REFUSED
    assert "Did you mean production?" in end.message


def test_two_catalogs_with_equal_rows_begun_together_buy_nothing_twice(double):
    rows = [row(number) for number in range(1, 13)]
    sheet(*rows)
    sheet(*rows, name="summer.csv")

    async def both():
        asked = [Request(verb="import", file=Path(name)) for name in ("spring.csv", "summer.csv")]
        return await asyncio.gather(*map(carry_out, asked))

    ends = asyncio.run(both())
    assert [end.outcome for end in ends] == [Outcome.COMPLETED] * 2
    assert made(double) == (12, 12)


@pytest.mark.parametrize("name", ["a/b", "..", "-x", "a b"])
def test_a_catalog_is_named_as_a_folder_can_be(double, name):
    sheet(row(1))
    assert run(catalog=name).outcome is Outcome.REFUSED


def test_a_name_that_macos_has_taken_apart_is_the_same_catalog(double):
    sheet(row(1), name="e\u0301te\u0301.csv")
    assert run(file="e\u0301te\u0301.csv").summary.catalog == "\u00e9t\u00e9"


def test_a_sku_that_begins_with_a_hash_is_a_sku(double):
    sheet(row(1, sku="#5"), row(2), row(3), ("", "waves", "Tote", "m", ""))
    run()
    sheet(row(2), row(1, sku="#5"), row(3))
    end = run()
    assert end.outcome is Outcome.COMPLETED
    assert set(catalog()) == {"#5", "a-2", "a-3"}
    assert made(double) == (3, 3)


def test_a_misshapen_row_with_the_sku_of_another_hides_nothing(double):
    sheet(row(1), (*row(1, "waves"), "surplus"), row(2))
    end = run()
    assert end.summary.counts == {"succeeded": 2, "refused": 1}
    assert [one.status for one in catalog().values()] == ["succeeded", "refused", "succeeded"]
