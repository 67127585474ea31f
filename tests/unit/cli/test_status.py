"""The verb `status`: what it says of runs, money, holders and what is open."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from cli import main
from cli.commands.status import show_refreshes, status_lines
from patternmill.ledger.catalogs import CHANGES
from patternmill.planning.items import Scope
from patternmill.runs.lease import this_process
from patternmill.runs.refresh_changes import withheld_reason
from patternmill.settings import load_settings
from patternmill.states import EXIT_REFUSED, AttemptState, Outcome
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, BegunRun, Past


def shown(past: Past, *, catalog: str | None = None, most: int | None = None) -> str:
    return "\n".join(status_lines(past.ledger, load_settings(), catalog, None, most))


def lease(past: Past, run: BegunRun, holder: str) -> None:
    with past.ledger.transaction():
        taken = past.ledger.catalogs.claim_lease(
            run.record.environment, run.record.catalog, run.record.run_id, holder, over=None
        )
    assert taken is not None


def of_every_status(past: Past) -> BegunRun:
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED, "O-1,owls,Mug,11oz,,", "D-1,does,Mug,11oz,,")
    run.make("H-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.attempt(run.pattern("O-1"), AttemptState.ACCEPTED)
    return run


def test_money_and_open_items_are_shown(past: Past) -> None:
    """Purchases and their price by run and today; open items by age; and the commands for them."""
    run = of_every_status(past)
    run.end()
    past.clock.now += 3600
    text = shown(past)
    assert run.record.run_id in text.splitlines()[0]
    assert "CompletedWithFailures" in text
    assert "Today in staging: 4 patterns and 2 products, 600 units spent or reserved." in text
    assert "1 pattern sent or about to be, without an answer, the oldest for 1 h" in text
    assert "1 pattern waiting for a person's decision" in text
    assert "patternmill retry --catalog spring --environment staging" in text
    assert "patternmill settle" in text


@pytest.mark.parametrize("flow_run", [None, "0f7c"])
def test_run_that_no_prefect_ui_shows_is_said_to_be_so(past: Past, flow_run: str | None) -> None:
    past.flow_run = flow_run
    of_every_status(past).end()
    assert ("driven without Prefect" in shown(past)) is (flow_run is None)


def test_money_is_in_the_configured_currency(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """By run, for the day and of its budget; nowhere the bare number that a person would misread."""
    past.currency = "EUR"
    of_every_status(past).end()
    monkeypatch.setenv("PATTERNMILL_CURRENCY", "EUR")
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "500.00")
    text = shown(past)
    assert "€6.00 of €500.00 spent or reserved." in text
    assert text.splitlines()[3].endswith(", for €6.00")
    assert "minor" not in text


def test_money_stays_in_the_unit_that_it_was_written_in(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings say by now; and no budget is compared with another unit."""
    of_every_status(past).end()
    monkeypatch.setenv("PATTERNMILL_CURRENCY", "EUR")
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "500.00")
    text = shown(past)
    assert "600 units spent or reserved; the budget of €500.00 is in another unit." in text
    assert text.splitlines()[3].endswith(", for 600 units")
    assert "€6.00" not in text


def test_daily_spending_restarts_at_midnight_utc(past: Past) -> None:
    run = past.begin(HERON)
    run.make("H-1")
    run.end(Outcome.COMPLETED)
    past.clock.now += 24 * 3600
    assert "Today" not in shown(past)
    assert "250" in shown(past)


@pytest.mark.parametrize("alive", [True, False])
def test_holder_on_this_machine_is_known_by_its_process(past: Past, alive: bool) -> None:
    """A run whose process is gone crashed; one whose process lives is running."""
    me = this_process()
    run = past.begin(HERON)
    lease(past, run, json.dumps(me if alive else {**me, "born": "long ago"}))
    text = shown(past)
    assert f"is held by {run.record.run_id}: {'alive' if alive else 'dead'} (process {os.getpid()})" in text
    assert ("running" if alive else "crashed") in text.splitlines()[0]


def test_catalog_option_filters_runs_and_open_items(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    run = past.begin(HERON)
    run.attempt(run.pattern("H-1"), AttemptState.HELD)
    past.begin(FERN, catalog="autumn")
    assert main.run(["status", "--catalog", "autumn"]) == 0
    shown = capsys.readouterr().out
    assert "autumn" in shown
    assert "spring" not in shown


def test_open_checkouts_are_of_their_catalog(past: Past) -> None:
    run = past.begin(HERON, catalog=Scope("staging", "spring").of_orders.catalog)
    run.attempt(run.pattern("H-1"), AttemptState.ACCEPTED)
    assert "with a job at the service" in shown(past, catalog="spring")


def test_killed_run_says_what_is_left_and_how_to_go_on(past: Past) -> None:
    """Nobody cancelled its rows, and nobody knows how long it took."""
    run = past.begin(HERON, FERN)
    run.attempt(run.pattern("F-1"), AttemptState.ACCEPTED)
    first, scope, rows, *_, last = shown(past).splitlines()
    assert first.endswith("  crashed") and scope.endswith(", was ended before its end")
    assert rows == "  rows: 1 not started, 1 not finished"
    assert last == "To go on: patternmill retry --catalog spring --environment staging"


def test_rows_that_wait_to_be_retired_are_named_with_the_command(past: Past) -> None:
    """The source has none of them for good: each refresh would end so again."""
    run = past.begin(HERON, options={"changes": {"unchanged": 1, "withheld": 3}})
    run.make("H-1")
    run.record = replace(run.record, reason=withheld_reason(run.record))
    run.end()
    assert "3 rows not retired (withheld). If they are to go: " in shown(past)
    assert "patternmill refresh inputs/spring.csv --catalog spring --environment staging --retire 3" in shown(
        past
    )


def refreshed(past: Past, catalog: str, outcome: Outcome) -> None:
    past.begin(HERON, catalog=catalog, options={CHANGES: {"added": 1}}).end(outcome)


def test_refresh_that_did_not_come_is_noticed(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """By catalog: the last one that tried every row counts, of imports none; one that never came is noticed too."""

    def noticed(catalog: str | None = None) -> tuple[int, str]:
        return show_refreshes(past.ledger, catalog, None, timedelta(hours=26)), capsys.readouterr().out

    assert noticed() == (3, "No catalog was ever refreshed.\n")
    refreshed(past, "spring", Outcome.COMPLETED)
    refreshed(past, "autumn", Outcome.COMPLETED_WITH_FAILURES)
    past.begin(HERON, catalog="summer").end(Outcome.COMPLETED)
    assert noticed()[0] == 0
    past.clock.now += 20 * 3600
    refreshed(past, "spring", Outcome.COMPLETED)
    past.clock.now += 10 * 3600
    refreshed(past, "autumn", Outcome.FAILED)
    code, text = noticed()
    assert code == 3
    autumn, spring = text.splitlines()
    assert autumn == "autumn (staging): refreshed 1 d 6 h ago, and not in 1 d 2 h"
    assert spring == "spring (staging): refreshed 10 h 1 min ago"
    assert noticed("spring")[0] == 0
    assert noticed("winter") == (3, "No catalog was ever refreshed.\n")
    assert main.run(["status", "--older-than", "one night"]) == EXIT_REFUSED
