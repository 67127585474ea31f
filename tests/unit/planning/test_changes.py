"""The changes between a source and its catalog, and how many rows may be retired without a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from patternmill.identifiers import ItemKey, RunId
from patternmill.parameters import RowLimit
from patternmill.planning.changes import (
    ChangeKind,
    Changes,
    ChangeVerdict,
    CurrentRow,
    RequestedRow,
    change_counts,
    compare,
    replacements,
)
from patternmill.planning.plan import Reason
from patternmill.planning.rows import Content, sku_key

HERONS = Content("blue herons", "cat_1", {"size": "S", "fabric": "linen"})


def asked(sku: str, content: Content | None = HERONS, reason: Reason = Reason.DONE) -> RequestedRow:
    key = ItemKey(f"{sku}/{content}") if content else None
    return RequestedRow(sku, content, key, reason)


def current(sku: str, content: Content = HERONS, *, retired_at: float | None = None) -> CurrentRow:
    key = ItemKey(f"{sku}/{content}")
    return CurrentRow(sku, content, key, f"prd-{sku}", "pat-1", 1.0, RunId("run-1"), retired_at=retired_at)


def compared(
    catalog: Sequence[CurrentRow],
    source: Sequence[RequestedRow],
    *,
    ceiling: int | None = None,
    limit: str = "20,100%",
) -> Changes:
    own = {sku_key(row.sku): row for row in catalog}
    return compare(own, source, RowLimit.parse(limit), ceiling=ceiling)


def words(changes: Changes) -> dict[str, str]:
    return {change.sku: (change.verdict or change.kind).value for change in changes}


GREEN = replace(HERONS, prompt="green herons")


def test_each_kind_of_change_is_recognised() -> None:
    """A source may add, change, keep, lose and spoil rows, and request failed ones or a retired one again."""
    kept = ("CHANGED", "KEPT", "LOST", "SPOILED", "FAILED", "UNDECIDED", "AB-1")
    catalog = [*map(current, kept), current("RETIRED", retired_at=2.0), current("GONE", retired_at=2.0)]
    source = [
        asked("ADDED"),
        asked("CHANGED", GREEN),
        asked("KEPT"),
        asked("SPOILED", None),
        asked("FAILED", GREEN, Reason.FAILED_BEFORE),
        asked("NEVER-MADE", reason=Reason.HELD),
        asked("UNDECIDED", GREEN, Reason.TO_CHOOSE),
        asked("NEW-UNDECIDED", GREEN, Reason.TO_CHOOSE),
        asked("RETIRED"),
        RequestedRow(" ab-1 ", HERONS, current("AB-1").product_key),
    ]
    changes = compared(catalog, source)
    assert words(changes) == {
        "ADDED": ChangeKind.ADDED,
        "CHANGED": ChangeKind.CHANGED,
        "KEPT": ChangeKind.UNCHANGED,
        "SPOILED": ChangeKind.REFUSED,
        "FAILED": ChangeKind.FAILED_BEFORE,
        "NEVER-MADE": ChangeKind.FAILED_BEFORE,
        "UNDECIDED": ChangeKind.UNCHANGED,
        "NEW-UNDECIDED": ChangeKind.ADDED,
        "RETIRED": ChangeKind.ADDED,
        "AB-1": ChangeKind.UNCHANGED,
        "LOST": ChangeVerdict.RETIRED,
    }
    assert change_counts(changes)["failed_before"] == 2
    assert sum(change_counts(changes).values()) == len(changes)
    before = {change.sku: change.before.product_id for change in changes if change.before}
    assert before["RETIRED"] == "prd-RETIRED" and "ADDED" not in before


@pytest.mark.parametrize(
    ("now", "fields"),
    [
        (GREEN, ("prompt",)),
        (replace(HERONS, selections={"size": "S"}), ("option:fabric",)),
        (replace(HERONS, prompt="blue\nherons"), ()),
        (replace(HERONS, take=2), ("take",)),
        (replace(HERONS, take=1), ()),
        (
            Content("x", "cat_2", {"finish": "matt"}),
            ("prompt", "category", "option:fabric", "option:finish", "option:size"),
        ),
    ],
)
def test_changed_fields_are_named(now: Content, fields: tuple[str, ...]) -> None:
    """A change names what differs to a person, and what it replaces; other content is a change even so."""
    (change,) = compared([current("A")], [asked("A", now)])
    assert (change.kind, change.fields) == (ChangeKind.CHANGED, fields)
    assert change.before is not None and change.before.product_id == "prd-A"
    assert now.take != 2 or change.old_and_new() == {"take": "1 -> 2"}


@pytest.mark.parametrize(
    ("limit", "ceiling", "known", "removed", "retired"),
    [
        ("20,10%", None, 200, 20, 20),
        ("20,10%", None, 200, 21, 0),
        ("20,10%", None, 5, 1, 1),
        ("20,10%", None, 5, 2, 0),
        ("20,10%", None, 1, 1, 0),
        ("20,10%", None, 5, 5, 0),
        ("5", None, 100, 6, 0),
        ("0", None, 20, 1, 0),
        ("100%", None, 20, 20, 0),
        ("30 and 100%", None, 60, 30, 30),
        ("0", 0, 5, 5, 0),
        ("0", 3, 5, 5, 3),
        ("0", 9, 5, 5, 5),
    ],
)
def test_suddenly_smaller_source_retires_nothing(
    limit: str, ceiling: int | None, known: int, removed: int, retired: int
) -> None:
    """Above count or share, and of an empty source, nothing is retired but what a person allows, the first by sku."""
    catalog = [current(f"S-{number:03}") for number in range(known)]
    source = [asked(row.sku) for row in catalog[removed:]]
    counts = change_counts(compared(catalog, source, limit=limit, ceiling=ceiling))
    assert (counts["retired"], counts["withheld"]) == (retired, removed - retired)


@pytest.mark.parametrize(
    ("refused", "withheld"),
    [
        ([RequestedRow("", has_sku=False)], 1),
        ([RequestedRow("D")], 0),
        ([RequestedRow("D"), RequestedRow("d ")], 1),
        ([RequestedRow("D"), RequestedRow("D"), RequestedRow("", has_sku=False)], 2),
    ],
    ids=["without a sku", "with one", "with one sku for two", "both"],
)
def test_row_without_a_sku_of_its_own_keeps_one_of_the_gone(
    refused: list[RequestedRow], withheld: int
) -> None:
    """It may be what is gone, under the sku that a person gave it since: as many rows stay as there are such rows."""
    catalog = [current(f"S-{number:02}") for number in range(30)]
    counts = change_counts(compared(catalog, [*(asked(row.sku) for row in catalog[2:]), *refused]))
    assert (counts["retired"], counts["withheld"]) == (2 - withheld, withheld)


def test_new_sku_with_the_content_of_a_gone_one_may_be_renamed() -> None:
    """Each gone sku is one name; another take is the same content; a retired row that comes back has its own name."""
    catalog = [current("A"), current("B"), current("C"), current("R", retired_at=2.0)]
    source = [asked("R"), asked("A"), asked("D", replace(HERONS, take=2)), asked("E"), asked("F")]
    renamed = {change.sku: change.renamed_from for change in compared(catalog, source)}
    assert renamed == {"R": "", "A": "", "D": "B", "E": "C", "F": "", "B": "", "C": ""}


LISTED = replace(HERONS, category_name="Cushion", is_checked=True)


@pytest.mark.parametrize(
    ("changed", "known", "limit", "asked_about"),
    [
        (5, 6, "20,10%", 0),
        (6, 6, "20,10%", 6),
        (6, 60, "20,10%", 0),
        (7, 60, "20,10%", 7),
        (20, 1000, "20,10%", 0),
        (21, 1000, "20,10%", 21),
        (1, 1000, "0", 1),
        (3, 1000, "2", 3),
    ],
)
def test_changes_of_many_products_ask(changed: int, known: int, limit: str, asked_about: int) -> None:
    """Neither the count nor the share may be exceeded; five are never too large a share."""
    catalog = [current(f"S-{number:04}", LISTED) for number in range(known)]
    now = replace(LISTED, prompt="green herons")
    source = [asked(row.sku, now, Reason.CHANGED) for row in catalog[:changed]]
    changes = compare({sku_key(row.sku): row for row in catalog}, source)
    assert len(replacements(changes, RowLimit.parse(limit), known)) == asked_about


@pytest.mark.parametrize(
    ("before", "now", "always"),
    [
        pytest.param(LISTED, replace(LISTED, category="cat_9"), True, id="another ID of the same category"),
        pytest.param(
            LISTED, replace(LISTED, category="cat_9", category_name="Mug"), False, id="another category"
        ),
        pytest.param(
            LISTED, replace(LISTED, category="cat_9", prompt="owls"), False, id="another ID and prompt"
        ),
        pytest.param(HERONS, replace(LISTED, category="cat_9"), True, id="an offer that became readable"),
        pytest.param(HERONS, replace(LISTED, prompt="owls"), True, id="the same, and another prompt"),
        pytest.param(
            HERONS,
            replace(LISTED, category="cat_9", is_checked=False),
            True,
            id="its categories, not its options",
        ),
        pytest.param(LISTED, replace(LISTED, prompt="owls"), False, id="another prompt"),
        pytest.param(LISTED, replace(HERONS, prompt="owls"), False, id="an offer that cannot be read now"),
    ],
)
def test_what_even_one_row_asks_about(before: Content, now: Content, always: bool) -> None:
    changes = compare({"a": current("A", before)}, [asked("A", now, Reason.CHANGED)])
    assert bool(replacements(changes, RowLimit(), 1000)) is always
    free = compare({"a": current("A", before)}, [asked("A", now)])
    assert not replacements(free, RowLimit.parse("0"), 1000), "what costs nothing does not ask"


def test_what_a_decision_asked_for_does_not_count() -> None:
    """Another take of the same content was asked for by a person."""
    changes = compare({"a": current("A", LISTED)}, [asked("A", replace(LISTED, take=2), Reason.CHANGED)])
    assert not replacements(changes, RowLimit.parse("0"), 1000)
