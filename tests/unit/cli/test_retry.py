"""The verb `retry`: which rows it takes up, what it says that they cost, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from cli import launcher, main
from patternmill.engine.options import RunOptions
from patternmill.planning.changes import Change
from patternmill.planning.plan import Cost
from patternmill.runs.input import read_input
from patternmill.runs.preview import preview
from patternmill.runs.request import RetryRequest, RunRequest
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.spec import RunSpec
from patternmill.settings import load_settings
from patternmill.states import AttemptState, RowStatus, Stage
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, BegunRun, Past

PRICED = RunOptions(attempts=2, prices={Stage.PATTERN: 50, Stage.PRODUCT: 200})
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


def chosen(past: Past, run: BegunRun, **choice: Any) -> RetrySelection:
    return select_rows(past.ledger, RetryRequest(run=run.record.run_id, **choice))


def skus(found: RetrySelection) -> list[str]:
    return list(found.rows)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, ["H-2", "F-1", "O-1", "D-1"]),
        ({"status": (RowStatus.FAILED,)}, ["H-2"]),
        ({"status": (RowStatus.IN_DOUBT, RowStatus.WAITING)}, ["F-1", "O-1"]),
        ({"code": ("product_failed",)}, ["H-2"]),
        ({"sku": ("D-1", "H-1")}, ["D-1"]),
        ({"status": ("failed,in-doubt",), "category": ("tote bag",)}, ["F-1"]),
    ],
)
def test_rows_are_chosen_by_status_code_and_sku(
    past: Past, choice: dict[str, Any], expected: list[str]
) -> None:
    """Made, held and refused rows are never retried; the filters apply together."""
    assert skus(chosen(past, troubled(past), **choice)) == expected


def test_rows_have_their_present_status(past: Past) -> None:
    """A row that a later run made is not retried from an earlier one."""
    first = troubled(past)
    later = past.begin(HERON, HERON_MUG)
    later.attempt(later.product("H-2"), AttemptState.SUCCEEDED, 2)
    later.end()
    assert "H-2" not in skus(chosen(past, first))


def test_row_changed_by_a_later_run_is_left_out(past: Past) -> None:
    """The content before the edit is not bought from an old run."""
    first = troubled(past)
    past.begin(HERON, "H-2,grey herons,Mug,11oz,,", FERN, FOX, OWL, DOE)
    found = chosen(past, first)
    assert "H-2" not in skus(found)
    assert found.left_out == {"H-2": "requested since with other content"}


@pytest.mark.parametrize("partial", [(FERN,), (OWL, DOE)])
def test_partial_run_in_between_restores_no_old_content(past: Past, partial: tuple[str, ...]) -> None:
    """The import of a failures.csv is no evidence for rows that it does not have."""
    first = troubled(past)
    past.begin(HERON, "H-2,grey herons,Mug,11oz,,", FERN, FOX, OWL, "D-1,deer,Mug,11oz,,").end()
    past.begin(*partial).end()
    found = chosen(past, first)
    assert skus(found) == (["F-1", "O-1", "D-1"] if DOE in partial else ["F-1", "O-1"])
    assert set(found.left_out) == {"H-2", "D-1"} - set(skus(found))


def test_retry_supersedes_no_row(past: Past) -> None:
    """It has every row of its file, the superseded ones too; nor does it make them eligible itself."""
    first = troubled(past)
    past.begin("H-2,grey herons,Mug,11oz,,").end()
    again = past.begin(HERON, HERON_MUG, FERN, options={"retry_of": first.record.run_id})
    again.end()
    assert list(chosen(past, first).left_out) == list(chosen(past, again).left_out) == ["H-2"]


def refresh_of(past: Past, *rows: str, withheld: Sequence[Change] = ()) -> BegunRun:
    run = past.begin(*rows, options={"changes": {"removed": 1}})
    with past.ledger.transaction():
        past.ledger.catalogs.add_changes(run.record.run_id, withheld)
        past.ledger.catalogs.mark_gone(run.record)
    run.end()
    return run


def test_row_missing_in_a_later_refresh_is_left_out(past: Past) -> None:
    """A refresh's source is the whole catalog, also for rows of which nothing was made that could be retired."""
    first = troubled(past)
    refresh_of(past, HERON, FERN, FOX, OWL)
    past.begin(FERN).end()
    found = chosen(past, first)
    assert skus(found) == ["F-1", "O-1"]
    assert found.left_out["D-1"] == "gone from the source"


def test_row_refused_now_is_left_out(past: Past) -> None:
    """It was edited; its new content cannot be bought, and its old content is no longer requested."""
    first = troubled(past)
    past.begin("H-2,grey herons,Sofa,,,", FERN).end()
    assert chosen(past, first).left_out["H-2"] == "refused since, with other content"


@pytest.mark.parametrize(
    ("sku", "bought", "spent"),
    [
        # Its pattern is paid: never another.
        ("H-2", {Stage.PRODUCT: 1}, Cost(200, 400)),
        # Its pattern is reserved already; should it fail, one more attempt is allowed.
        ("F-1", {Stage.PRODUCT: 1}, Cost(200, 450)),
        ("O-1", {Stage.PRODUCT: 1}, Cost(200, 450)),
        ("D-1", {Stage.PATTERN: 1, Stage.PRODUCT: 1}, Cost(250, 500)),
    ],
)
def test_cost_counts_what_is_not_paid(past: Past, sku: str, bought: dict[Stage, int], spent: Cost) -> None:
    """Made and begun items cost nothing more; the worst case is every attempt that is allowed."""
    selection = chosen(past, troubled(past), sku=(sku,))
    spec = RunSpec("spring.csv", "spring", load_settings(), PRICED, selection=selection, retries=True)
    planned = preview(spec, selection.checked)
    assert (planned.plan.purchases(), planned.proposal.cost) == (bought, spent)


def test_run_gets_the_stored_bytes_and_the_chosen_rows(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its scope; no file is written for it."""
    run = troubled(past)
    seen: list[RunSpec] = []

    def run_request(request: RunRequest, spec: RunSpec, approve: str | None) -> int:
        assert approve == "098799b1ba16"
        assert isinstance(request, RetryRequest)
        assert (request.run, request.catalog, request.environment) == (run.record.run_id, "spring", "staging")
        assert (request.budget, request.max_failures) == ("7", "10%")
        seen.append(spec)
        return 3

    monkeypatch.setattr(launcher, "run_request", run_request)
    monkeypatch.setenv("PATTERNMILL_PRODUCT_PRICE", "1")
    asked = ("--sku", "D-1", "--yes", "--budget", "7", "--max-failures", "10%", "--approve", "098799b1ba16")
    assert main.run(["retry", *asked]) == 3
    (spec,) = seen
    assert read_input(spec).sheet.raw == past.ledger.runs.input_of(run.record)
    assert read_input(spec).name == "spring.csv"
    assert (spec.catalog, spec.settings.environment) == ("spring", "staging")
    assert (spec.options.limits.run_amount, spec.options.most_failures_share) == (7, 0.1)
    assert spec.selection is not None
    assert (spec.selection.record.run_id, spec.named_source) == (run.record.run_id, "inputs/spring.csv")
    assert spec.retries and _chosen_by(spec.only, run) == ["D-1"]


def _chosen_by(predicate: Any, run: BegunRun) -> list[str]:
    rows: Iterable[Any] = (row.entry.row for row in run.plan.rows if row.entry.row)
    return [row.sku for row in rows if predicate(row)]
