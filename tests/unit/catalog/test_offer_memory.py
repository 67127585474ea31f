"""What could not be read now is taken from what was read before, category by category, with a note."""

from __future__ import annotations

from dataclasses import replace

from patternmill.catalog.offer import UNREADABLE_OFFER, Category, Offer, Option, merged

SIZE = Option("size", ("S", "M"), True, labels=(("Small", "S"),))
MUG = Category("c-1", "Mug", (SIZE,))
TOTE = Category("c-2", "Tote", (Option("hem", ("plain",)),))
WHOLE = Offer((MUG, TOTE), None, read_on="2026-07-01 10:00 UTC")
BLIND_MUG = replace(MUG, options=None)


def test_no_memory_changes_nothing() -> None:
    """None, or an empty one."""
    now = Offer((MUG,), None)
    assert merged(now, None) is now
    assert merged(now, UNREADABLE_OFFER) is now
    assert merged(now, WHOLE) is now


def test_unreadable_options_are_those_read_last() -> None:
    """Of that category alone, with the day; the rest is as read now."""
    found = merged(Offer((BLIND_MUG, TOTE), "Options were not checked for Mug."), WHOLE)
    assert found.categories == (replace(MUG, read_on=WHOLE.read_on), TOTE)
    assert all(one.checkable for one in found.categories)
    assert (
        found.note
        == "The options of Mug could not be read now; those read on 2026-07-01 10:00 UTC were used."
    )


def test_categories_never_known_stay_reported() -> None:
    """Memory helps one category, and the other stays unchecked."""
    both = (BLIND_MUG, Category("c-9", "Lamp"))
    found = merged(Offer(both, "Options were not checked for Mug, Lamp."), WHOLE)
    assert [one.checkable for one in found.categories or ()] == [True, False]
    assert "were used" in (found.note or "")
    assert "not checked for Lamp:" in (found.note or "")


def test_whole_list_forgets() -> None:
    """What it does not have is not offered."""
    assert merged(Offer((TOTE,), None), WHOLE).categories == (TOTE,)


def test_unreadable_list_is_the_one_read_last() -> None:
    found = merged(UNREADABLE_OFFER, WHOLE)
    assert [one.id for one in found.categories or ()] == ["c-1", "c-2"]
    assert all(one.checkable for one in found.categories or ())
    assert found.note == "The categories could not be read now; those read on 2026-07-01 10:00 UTC were used."


def test_repeated_memory_keeps_its_day() -> None:
    """What is remembered again and again is as old as when it was read."""
    first = merged(Offer((BLIND_MUG, TOTE), None), WHOLE)
    later = replace(first, read_on="2026-07-09 10:00 UTC")
    second = merged(Offer((BLIND_MUG, TOTE), None), later)
    assert second.categories == first.categories
    assert "2026-07-01" in (second.note or "")
    assert merged(Offer((MUG, TOTE), None), later).categories == (MUG, TOTE)
