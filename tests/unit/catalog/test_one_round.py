"""Everything that is wrong with a row is named at once, also where its category or its number of cells is wrong."""

from __future__ import annotations

from patternmill.catalog.offer import Offer

from .samples import CUSHION, HEADER, MUG, checked, codes

WHOLE = Offer((CUSHION, MUG), note=None)


def test_mixed_mistakes_of_eight_rows_are_named_in_one_round() -> None:
    """The mistakes of all rows, those behind other mistakes too."""
    wrong = [
        "A,,Cusion,XL,linnen,",
        "B,TBD,Cushon,S,,",
        "C,b,Pillow,XXL,linen,",
        "#REF!,b,Mugg,12oz,,",
        "1.23E+05,b,Cushion,L,,",
        "F,b,,S,silk,",
        "G,,Mug,11 ounces",
        "G,b,Cushio,M,velvett,",
    ]
    found = checked("\n".join([HEADER, *wrong]) + "\n", WHOLE)
    assert codes(found) == {
        2: ["empty_prompt", "unknown_category", "unknown_value", "unknown_value"],
        3: ["placeholder", "unknown_category", "missing_option"],
        4: ["unknown_category"],
        5: ["spreadsheet_error", "unknown_category", "unknown_value"],
        6: ["number_as_shown", "unknown_value", "missing_option"],
        7: ["empty_category"],
        8: ["missing_cells", "duplicate_sku", "empty_prompt", "unknown_value"],
        9: ["duplicate_sku", "unknown_category", "unknown_value"],
    }


def test_options_are_not_judged_without_a_category_that_is_near() -> None:
    """What belongs to which is not known."""
    found = checked(f"{HEADER}\nA,b,Pillow,11 oz!,,\n", WHOLE)
    assert codes(found) == {2: ["unknown_category"]}


def test_missing_option_says_where_it_is_filled_in() -> None:
    """In no column yet, and in the one that is there."""
    remedies = {
        "shelf": "fill in `option:fabric`, a column that the file does not have yet",
        "option:fabric": "fill in `option:fabric`",
    }
    for column, remedy in remedies.items():
        (problem,) = checked(f"sku,prompt,category,option:size,{column}\nA,b,Cushion,S,\n", WHOLE).problems
        assert problem.remedy == remedy
