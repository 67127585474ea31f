"""Everything that is wrong with a row is named at once, also where its category or its number of cells is wrong."""

from __future__ import annotations

from patternmill.catalog.offer import Offer

from .samples import CUSHION, HEADER, MUG, checked, codes

WHOLE = Offer((CUSHION, MUG), note=None)


def test_mixed_mistakes_are_named_in_one_round() -> None:
    """All that can be known of a row; options once its category is known, and cells once they are in their places."""
    wrong = [
        "A,,Cusion,XL,linnen,",
        "B,TBD,Cushion,S,,",
        "#REF!,b,Mugg,12oz,,",
        "1.23E+05,b,Cushion,L,,",
        "F,b,,S,silk,",
        "G,,Mug,11 ounces",
        "G,b,Cushion,M,velvett,",
    ]
    found = checked("\n".join([HEADER, *wrong]) + "\n", WHOLE)
    assert codes(found) == {
        2: ["empty_prompt", "unknown_category"],
        3: ["placeholder", "missing_option"],
        4: ["spreadsheet_error", "unknown_category"],
        5: ["number_as_shown", "unknown_value", "missing_option"],
        6: ["empty_category"],
        7: ["missing_cells", "duplicate_sku"],
        8: ["duplicate_sku", "unknown_value"],
    }


def test_missing_option_says_where_it_is_filled_in() -> None:
    """In no column yet, and in the one that is there."""
    remedies = {
        "shelf": "fill in `option:fabric`, a column that the file does not have yet",
        "option:fabric": "fill in `option:fabric`",
    }
    for column, remedy in remedies.items():
        (problem,) = checked(f"sku,prompt,category,option:size,{column}\nA,b,Cushion,S,\n", WHOLE).problems
        assert problem.remedy == remedy
