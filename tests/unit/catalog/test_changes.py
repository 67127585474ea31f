"""The changes between a source and its catalog, and how many rows may be retired without a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from patternmill.catalog.changes import (
    ChangeKind,
    Changes,
    ChangeVerdict,
    CurrentRow,
    RequestedRow,
    change_counts,
    detect,
    old_and_new,
)
from patternmill.catalog.row_checks import check_rows
from patternmill.catalog.rows import Content
from patternmill.identifiers import ItemKey, RunId
from patternmill.parameters import RetireLimit
from patternmill.planning.items import Scope
from patternmill.planning.plan import make_plan
from patternmill.planning.recognition import Memory
from patternmill.runs.refresh_changes import requested_rows
from patternmill.sheets.csv_reader import parse_catalog

SCOPE = Scope("staging", "spring")
HERONS = Content("blue herons", "cat_1", {"size": "S", "fabric": "linen"})


def asked(sku: str, content: Content | None = HERONS, *, failed: bool = False) -> RequestedRow:
    key = ItemKey(f"{sku}/{content}") if content else None
    return RequestedRow(sku, content, key, ChangeKind.FAILED_BEFORE if failed else None)


def current(sku: str, content: Content = HERONS, *, retired_at: float | None = None) -> CurrentRow:
    key = ItemKey(f"{sku}/{content}")
    return CurrentRow(sku, content, key, f"prd-{sku}", "pat-1", 1.0, RunId("run-1"), retired_at=retired_at)


def held_against(
    catalog: Sequence[CurrentRow],
    source: Sequence[RequestedRow],
    *,
    ceiling: int | None = None,
    limit: str = "20,100%",
) -> Changes:
    return detect({row.sku: row for row in catalog}, source, RetireLimit.parse(limit), ceiling=ceiling)


def words(changes: Changes) -> dict[str, str]:
    return {change.sku: (change.verdict or change.kind).value for change in changes}


def test_each_kind_of_change_is_recognised() -> None:
    """A source may add, change, keep, lose and spoil rows, and request failed ones again."""
    now = replace(HERONS, prompt="green herons")
    catalog = [current(sku) for sku in ("CHANGED", "KEPT", "LOST", "SPOILED", "FAILED")]
    source = [
        asked("ADDED"),
        asked("CHANGED", now),
        asked("KEPT"),
        asked("SPOILED", None),
        asked("FAILED", now, failed=True),
        asked("NEVER-MADE", failed=True),
    ]
    found = held_against(catalog, source)
    assert words(found) == {
        "ADDED": ChangeKind.ADDED,
        "CHANGED": ChangeKind.CHANGED,
        "KEPT": ChangeKind.UNCHANGED,
        "SPOILED": ChangeKind.REFUSED,
        "FAILED": ChangeKind.FAILED_BEFORE,
        "NEVER-MADE": ChangeKind.FAILED_BEFORE,
        "LOST": ChangeVerdict.RETIRED,
    }
    assert change_counts(found)["failed_before"] == 2
    assert sum(change_counts(found).values()) == len(found)


@pytest.mark.parametrize(
    ("now", "fields"),
    [
        (replace(HERONS, prompt="green herons"), ("prompt",)),
        (replace(HERONS, selections={"size": "S"}), ("option:fabric",)),
        (replace(HERONS, prompt="blue\nherons"), ()),
        (
            Content("x", "cat_2", {"finish": "matt"}),
            ("prompt", "category", "option:fabric", "option:finish", "option:size"),
        ),
    ],
)
def test_changed_fields_are_named(now: Content, fields: tuple[str, ...]) -> None:
    """A change names what differs to a person, and what it replaces; other content is a change even so."""
    (change,) = held_against([current("A")], [asked("A", now)])
    assert (change.kind, change.fields) == (ChangeKind.CHANGED, fields)
    assert change.before is not None
    assert change.before.product_id == "prd-A"


def test_other_take_is_named_by_number() -> None:
    """The first take of a pattern is recorded without one."""
    assert old_and_new(HERONS, replace(HERONS, take=2)) == {"take": "1 -> 2"}
    assert old_and_new(HERONS, replace(HERONS, take=1)) == {}


def test_retired_row_that_comes_back_is_added() -> None:
    """A retired sku is not removed once more, and coming back is added, with what it had."""
    gone = current("A", retired_at=2.0)
    assert held_against([gone], []) == ()
    (change,) = held_against([gone], [asked("A")])
    assert (change.kind, change.before) == (ChangeKind.ADDED, gone)


def test_refused_row_is_not_removed() -> None:
    """A row with a problem in the source keeps what it has in the catalog."""
    assert words(held_against([current("A")], [asked("A", None)])) == {"A": "refused"}


@pytest.mark.parametrize(
    ("limit", "known", "removed", "retired"),
    [
        ("20,10%", 200, 20, 20),
        ("20,10%", 200, 21, 0),
        ("20,10%", 5, 1, 1),
        ("20,10%", 5, 2, 0),
        ("20,10%", 1, 1, 0),
        ("20,10%", 5, 5, 0),
        ("5", 100, 6, 0),
        ("0", 20, 1, 0),
        ("100%", 20, 20, 0),
        ("30 and 100%", 60, 30, 30),
    ],
)
def test_suddenly_smaller_source_retires_nothing(limit: str, known: int, removed: int, retired: int) -> None:
    """Above the count or the share nothing is retired, and an empty source never retires anything."""
    catalog = [current(f"S-{number:03}") for number in range(known)]
    source = [asked(row.sku) for row in catalog[removed:]]
    counts = change_counts(held_against(catalog, source, limit=limit))
    assert (counts["retired"], counts["withheld"]) == (retired, removed - retired)


@pytest.mark.parametrize(("ceiling", "retired"), [(0, 0), (3, 3), (9, 5)])
def test_retire_approval_is_a_ceiling(ceiling: int, retired: int) -> None:
    """A person allows at most so many retirements, above the limit and of an empty source too."""
    catalog = [current(f"S-{number}") for number in range(5)]
    counts = change_counts(held_against(catalog, [], ceiling=ceiling, limit="0"))
    assert (counts["retired"], counts["withheld"]) == (retired, 5 - retired)


def test_order_case_and_spaces_change_nothing() -> None:
    """Rows and columns in another order, headers in another case, outer spaces, other notes: the same items."""
    plain = 'sku,prompt,category,option:size,note\nA,blue herons,Cushion,S,x\nB,"lemons, é",Mug,,\n'
    turned = 'NOTE, Category ,PROMPT,option:size , Sku\n,Mug ," lemons, e\u0301",, B\ny, Cushion,blue herons , S ,A \n'
    first, second = (requested(text) for text in (plain, turned))
    before = {
        row.sku: replace(current(row.sku, row.content), product_key=row.product_key)
        for row in first
        if row.content is not None and row.product_key is not None
    }
    found = detect(before, second, RetireLimit())
    assert [change.kind for change in found] == [ChangeKind.UNCHANGED] * 2


def requested(text: str) -> list[RequestedRow]:
    found = check_rows(parse_catalog(text.encode(), name="spring.csv"), None)
    return requested_rows(make_plan(SCOPE, found.entries, Memory()), {})
