"""What could not be read now is taken from what was read before, category by category, with a note."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patternmill.planning.offer import UNREADABLE_OFFER, Category, Offer, Option, merged

SIZE = Option("size", ("S", "M"), True, labels=(("Small", "S"),))
MUG = Category("c-1", "Mug", (SIZE,))
TOTE = Category("c-2", "Tote", (Option("hem", ("plain",)),))
LAMP = Category("c-9", "Lamp")
FIRST_DAY, LATER_DAY = "2026-07-01 10:00 UTC", "2026-07-09 10:00 UTC"
WHOLE = Offer((MUG, TOTE), None, read_on=FIRST_DAY)
BLIND_MUG = replace(MUG, options=None)
OLD_MUG, OLD_TOTE = (replace(category, read_on=FIRST_DAY) for category in (MUG, TOTE))
OPTIONS_NOTE = f"The options of Mug could not be read now; those read on {FIRST_DAY} were used."
LAMP_NOTE = "Options were not checked for Lamp: they cannot be read."
#: A remembered offer that was remembered again; its options are as old as when they were read.
AGAIN = replace(merged(Offer((BLIND_MUG, TOTE), None), WHOLE), read_on=LATER_DAY)


@pytest.mark.parametrize(
    ("now", "before", "categories", "note"),
    [
        (Offer((MUG,), None), None, (MUG,), None),
        (Offer((MUG,), None), UNREADABLE_OFFER, (MUG,), None),
        (Offer((MUG,), None), WHOLE, (MUG,), None),
        (Offer((BLIND_MUG, TOTE), "x"), WHOLE, (OLD_MUG, TOTE), OPTIONS_NOTE),
        (Offer((BLIND_MUG, TOTE), None), AGAIN, (OLD_MUG, TOTE), OPTIONS_NOTE),
        (Offer((BLIND_MUG, LAMP), "x"), WHOLE, (OLD_MUG, LAMP), f"{OPTIONS_NOTE} {LAMP_NOTE}"),
        (
            UNREADABLE_OFFER,
            WHOLE,
            (OLD_MUG, OLD_TOTE),
            f"The categories could not be read now; those read on {FIRST_DAY} were used.",
        ),
    ],
    ids=["none", "empty", "not needed", "options", "remembered again", "never known", "the list"],
)
def test_offer_is_completed_from_memory(
    now: Offer, before: Offer | None, categories: tuple[Category, ...], note: str | None
) -> None:
    offer = merged(now, before)
    assert (offer.categories, offer.note) == (categories, note)
