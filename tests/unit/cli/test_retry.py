"""The verb `retry`: which rows it takes up, what it says that they cost, and what it passes on."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from cli import launcher, main
from patternmill.engine.options import RunOptions
from patternmill.planning.plan import Cost
from patternmill.runs.input import read_input
from patternmill.runs.preview import make_preview
from patternmill.runs.request import RetryRequest
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.spec import RunSpec
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Stage
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, BegunRun, Past, troubled_run

PRICED = RunOptions(attempts=2, prices={Stage.PATTERN: 50, Stage.PRODUCT: 200})
OWL, DOE, DEER = (
    f"{name}-1,{prompt},Mug,11oz,," for name, prompt in (("O", "owls"), ("D", "does"), ("D", "deer"))
)
GREY, SOFA = "H-2,grey herons,Mug,11oz,,", "H-2,grey herons,Sofa,,,"
OTHER = "requested since with other content"


def chosen(past: Past, run: BegunRun, **choice: Any) -> RetrySelection:
    return select_rows(past.ledger, RetryRequest(run=run.record.run_id, **choice))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, "H-2 F-1 O-1 D-1"),
        ({"code": ("product_failed",)}, "H-2"),
        ({"sku": ("D-1", "H-1")}, "D-1"),
        ({"status": ("failed,in-doubt",), "category": ("tote bag",)}, "F-1"),
    ],
)
def test_rows_are_chosen_by_status_code_and_sku(past: Past, choice: dict[str, Any], expected: str) -> None:
    """Made, held and refused rows are never retried; the filters apply together."""
    assert list(chosen(past, troubled_run(past), **choice).rows) == expected.split()


@pytest.mark.parametrize(
    ("later", "rows", "left_out"),
    [
        # The content before the edit is not bought from an old run.
        ([(HERON, GREY, FERN, FOX, OWL, DOE)], "F-1 O-1 D-1", {"H-2": OTHER}),
        # The import of a failures.csv is no evidence about rows that it does not have.
        ([(HERON, GREY, FERN, FOX, OWL, DEER), (FERN,)], "F-1 O-1", {"H-2": OTHER, "D-1": OTHER}),
        ([(HERON, GREY, FERN, FOX, OWL, DEER), (OWL, DOE)], "F-1 O-1 D-1", {"H-2": OTHER}),
        # Edited, and refused: neither content is requested.
        ([(SOFA, FERN)], "F-1 O-1 D-1", {"H-2": "refused since, with other content"}),
        # A retry has every row of its file, the superseded ones too, and requests none of them.
        ([(GREY,), ("retry", HERON, HERON_MUG, FERN)], "F-1 O-1 D-1", {"H-2": OTHER}),
        # The source of a refresh is the whole catalog, also of rows for which nothing was made.
        (
            [("refresh", HERON, FERN, FOX, OWL), (FERN,)],
            "F-1 O-1",
            dict.fromkeys(("H-2", "D-1"), "gone from the source"),
        ),
    ],
)
def test_rows_that_a_later_run_superseded_are_left_out(
    past: Past, later: list[tuple[str, ...]], rows: str, left_out: dict[str, str]
) -> None:
    first = troubled_run(past)
    for sheet in later:
        kind, *lines = sheet if sheet[0] in ("refresh", "retry") else ("import", *sheet)
        options = {"refresh": {"changes": {"removed": 1}}, "retry": {"retry_of": first.record.run_id}}
        run = past.begin(*lines, options=options.get(kind, {}))
        if kind == "refresh":
            with past.ledger.transaction():
                past.ledger.catalogs.mark_gone(run.record)
        run.end()
    selection = chosen(past, first)
    assert (list(selection.rows), selection.left_out) == (rows.split(), left_out)
    if kind == "retry":
        # A retry does not make them eligible either.
        assert chosen(past, run).left_out == left_out


def test_row_that_a_later_run_made_is_not_retried(past: Past) -> None:
    first = troubled_run(past)
    later = past.begin(HERON, HERON_MUG)
    later.attempt(later.product("H-2"), AttemptState.SUCCEEDED, 2)
    later.end()
    assert "H-2" not in chosen(past, first).rows


@pytest.mark.parametrize(
    ("sku", "bought", "spent"),
    [
        # Its pattern is paid for, and never bought again.
        ("H-2", {Stage.PRODUCT: 1}, Cost(200, 400)),
        # Its pattern is reserved already; should it fail, one more attempt is allowed.
        ("F-1", {Stage.PRODUCT: 1}, Cost(200, 450)),
        ("O-1", {Stage.PRODUCT: 1}, Cost(200, 450)),
        ("D-1", {Stage.PATTERN: 1, Stage.PRODUCT: 1}, Cost(250, 500)),
    ],
)
def test_cost_counts_what_is_not_paid(past: Past, sku: str, bought: dict[Stage, int], spent: Cost) -> None:
    """Made and begun items cost nothing more; the worst case is every attempt that is allowed."""
    selection = chosen(past, troubled_run(past), sku=(sku,))
    spec = RunSpec("spring.csv", "spring", load_settings(), PRICED, selection=selection, retries=True)
    planned = make_preview(spec, selection.checked)
    assert (planned.plan.purchases(), planned.proposal.cost) == (bought, spent)


def test_run_gets_the_stored_bytes_and_the_chosen_rows(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also gets the scope and limits; no file is written for it."""
    run = troubled_run(past)
    calls: list[tuple[RetryRequest, RunSpec, str]] = []
    monkeypatch.setattr(launcher, "run_request", lambda *arguments: calls.append(arguments) or 3)
    monkeypatch.setenv("PATTERNMILL_PRODUCT_PRICE", "1")
    command = "retry --sku D-1 --yes --budget 7 --max-failures 10% --approve 098799b1ba16"
    assert main.run(shlex.split(command)) == 3
    ((request, spec, approve),) = calls
    assert (request.run, request.catalog, request.environment) == (run.record.run_id, "spring", "staging")
    assert (request.budget, request.max_failures, approve) == ("7", "10%", "098799b1ba16")
    file = read_input(spec)
    assert (file.sheet.raw, file.sheet.name) == (past.ledger.runs.input_of(run.record), "spring.csv")
    assert (spec.catalog, spec.settings.environment) == ("spring", "staging")
    assert spec.source == "inputs/spring.csv"
    assert (spec.options.limits.run_amount, spec.options.most_failures) == (7, 0.1)
    assert spec.retries and spec.selection is not None and spec.selection.record.run_id == run.record.run_id
    rows = (row.entry.row for row in run.plan.rows if row.entry.row)
    assert [row.sku for row in rows if spec.chooses(row)] == ["D-1"]
