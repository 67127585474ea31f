"""The verb `retry`: which rows it takes up, what it says that they cost, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cli import importing, main
from cli.importing import Request
from patternmill.errors import ConfigurationError
from patternmill.ledger.row_results import input_file
from patternmill.mill.importing import order_import
from patternmill.mill.options import RunOptions
from patternmill.mill.retrying import RETRIABLE, Choice, Chosen, Purchases, choose, cost, statuses_of
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, BegunRun, Past

PRICED = RunOptions(attempts=2, pattern_price=50, product_price=200)
OWL, DOE = "O-1,owls,Mug,11oz,,", "D-1,does,Mug,11oz,,"


def troubled(past: Past) -> BegunRun:
    """H-1 made; H-2's product failed; F-1 in doubt; X-1 held; R-1 refused; O-1 with a job; D-1 never begun."""
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED, OWL, DOE)
    run.make("H-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.pattern("F-1"), AttemptState.INTENDED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.attempt(run.pattern("O-1"), AttemptState.ACCEPTED)
    run.end()
    return run


def chosen(past: Past, run: BegunRun, latest: BegunRun | None = None, **choice: Any) -> Chosen:
    file = input_file(past.ledger, run.record)
    return choose(past.ledger, run.record, file, Choice(**choice), latest=latest and latest.record)


def skus(found: Chosen) -> list[str]:
    return [row.sku for row in found.rows]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, ["H-2", "F-1", "O-1", "D-1"]),
        ({"statuses": (RowStatus.FAILED,)}, ["H-2"]),
        ({"statuses": (RowStatus.IN_DOUBT, RowStatus.WAITING)}, ["F-1", "O-1"]),
        ({"statuses": (RowStatus.NOT_STARTED,)}, ["D-1"]),
        ({"codes": frozenset({"product_failed"})}, ["H-2"]),
        ({"codes": frozenset({"unheard_of"})}, []),
        ({"categories": frozenset({"mug"})}, ["H-2", "O-1", "D-1"]),
        ({"categories": frozenset({"tote-bag"})}, ["F-1"]),
        ({"skus": frozenset({"D-1", "H-1"})}, ["D-1"]),
        ({"skus": frozenset({"D-1"}), "statuses": (RowStatus.FAILED,)}, []),
    ],
)
def test_rows_are_chosen_by_what_a_person_names(
    past: Past, choice: dict[str, Any], expected: list[str]
) -> None:
    """Made, held and refused rows are never taken up; the rest by status, code, category and sku together."""
    assert skus(chosen(past, troubled(past), **choice)) == expected


def test_rows_stand_as_they_do_now(past: Past) -> None:
    """A row that a later run made is not taken up again from an earlier one."""
    first = troubled(past)
    later = past.begin(HERON, HERON_MUG)
    later.attempt(later.product("H-2"), AttemptState.SUCCEEDED, 2)
    later.end()
    assert "H-2" not in skus(chosen(past, first, later))


def test_row_that_a_later_run_changed_is_left_out(past: Past) -> None:
    """What was asked for before the row was edited is not bought from an old run."""
    first = troubled(past)
    later = past.begin(HERON, "H-2,grey herons,Mug,11oz,,", FERN, FOX, OWL, DOE)
    found = chosen(past, first, later)
    assert "H-2" not in skus(found)
    assert found.superseded == ("H-2",)


def test_unknown_sku_is_refused(past: Past) -> None:
    """A sku that the run does not have is most likely mistyped."""
    run = troubled(past)
    with pytest.raises(ConfigurationError, match="has no row Z-1"):
        chosen(past, run, skus=frozenset({"Z-1"}))


@pytest.mark.parametrize("words", ["succeeded", "held", "refused", "failed,broken"])
def test_statuses_that_no_retry_changes_are_refused(words: str) -> None:
    """They need an edit, an edition or a decision; a word that is no status is refused too."""
    with pytest.raises(ConfigurationError):
        statuses_of(words)


def test_statuses_are_read_from_words() -> None:
    """Commas, spaces and dashes as people write them; none means all."""
    assert statuses_of("failed, in-doubt") == (RowStatus.FAILED, RowStatus.IN_DOUBT)
    assert statuses_of("") == RETRIABLE


@pytest.mark.parametrize(
    ("sku", "expected", "worst"),
    [
        # Its pattern is paid: never another.
        ("H-2", Purchases(0, 1, 200), Purchases(0, 2, 400)),
        # Its pattern is reserved already; should it fail, one more attempt is allowed.
        ("F-1", Purchases(0, 1, 200), Purchases(1, 2, 450)),
        ("O-1", Purchases(0, 1, 200), Purchases(1, 2, 450)),
        ("D-1", Purchases(1, 1, 250), Purchases(2, 2, 500)),
    ],
)
def test_cost_counts_what_is_not_paid(past: Past, sku: str, expected: Purchases, worst: Purchases) -> None:
    """What is made or under way costs nothing more; the worst case is every attempt that is allowed."""
    found = cost(chosen(past, troubled(past), skus=frozenset({sku})).rows, PRICED)
    assert (found.expected, found.worst) == (expected, worst)


def test_shared_pattern_costs_once(past: Past) -> None:
    """Rows that share a pattern pay for it once."""
    run = past.begin(HERON, HERON_MUG)
    run.end()
    assert cost(chosen(past, run).rows, PRICED).expected == Purchases(1, 2, 450)


def test_plan_only_and_no_terminal_begin_nothing(
    past: Past, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both show the rows and the cost; without a terminal and --yes the refusal is exit code 2."""
    monkeypatch.setattr(importing, "run_import", _never)
    monkeypatch.setenv("PATTERNMILL_PATTERN_PRICE", "50")
    monkeypatch.setenv("PATTERNMILL_PRODUCT_PRICE", "200")
    troubled(past)
    assert main.run(["retry", "--plan-only"]) == 0
    told = capsys.readouterr()
    assert "To buy:  1 patterns and 4 products for 850 (minor units)" in told.out
    assert "At most: 4 patterns and 8 products for 1800 (minor units)" in told.out
    assert "4 rows: 1 failed, 1 not started, 1 in doubt, 1 waiting" in told.out
    assert main.run(["retry"]) == 2
    assert capsys.readouterr().out == told.out


def test_nothing_to_retry_is_no_failure(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """A catalog that is complete has nothing to take up."""
    run = past.begin(HERON)
    run.make("H-1")
    run.end()
    assert main.run(["retry", "--yes"]) == 0
    assert "Nothing to retry" in capsys.readouterr().out


def test_import_gets_the_same_bytes_and_the_chosen_rows(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run gets the copy of the file in the ledger, its scope and the rows; nothing is left behind."""
    run = troubled(past)
    seen: list[Path] = []

    def run_import(request: Request, approve: str | None) -> int:
        assert request.only is not None
        assert approve == "58903795eb6b"
        seen.extend([request.file, request.only])
        order = order_import(request.file, catalog=request.catalog, only=request.only)
        assert request.file.read_bytes() == past.ledger.input_of(run.record)
        assert request.file.name == "spring.csv"
        assert (request.catalog, request.environment, request.budget) == ("spring", "staging", 7)
        assert order.taken_up is not None
        assert (order.taken_up.skus, order.taken_up.source) == (frozenset({"D-1"}), "inputs/spring.csv")
        assert _chosen_by(order.only, run) == _chosen_by(order.retry, run) == ["D-1"]
        return 3

    monkeypatch.setattr(importing, "run_import", run_import)
    assert main.run(["retry", "--sku", "D-1", "--yes", "--budget", "7", "--approve", "58903795eb6b"]) == 3
    assert seen
    assert not any(path.exists() for path in seen)


def test_long_lists_are_cut(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """A screen gets the first rows and the number of the rest."""
    past.begin(*(f"S-{number},storks {number},Mug,11oz,," for number in range(50))).end()
    assert main.run(["retry", "--plan-only"]) == 0
    assert "… and 10 more" in capsys.readouterr().out


def test_skipped_runs_are_passed_over(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The latest run of a catalog is the latest that held it."""
    run = troubled(past)
    past.begin(HERON).end(Outcome.SKIPPED_OVERLAP)
    assert main.run(["retry", "--plan-only"]) == 0
    assert run.record.run_id in capsys.readouterr().out


def _never(request: Request) -> int:
    raise AssertionError("nothing was to be begun")


def _chosen_by(predicate: Any, run: BegunRun) -> list[str]:
    rows: Iterable[Any] = (row.entry.row for row in run.plan.rows if row.entry.row)
    return [row.sku for row in rows if predicate(row)]
