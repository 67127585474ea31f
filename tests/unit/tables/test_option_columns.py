"""A column that holds an option without being one is never carried in silence."""

from __future__ import annotations

import csv
import io

import pytest

from patternmill.planning.offer import Category, Offer, Option
from patternmill.tables.checks import Checked

from .samples import checked, codes, problems, read

COLOURS = ("white", "black", "navy")
MUG = Category(
    "c-1", "Mug", (Option("size", ("11oz", "15oz"), True), Option("colour", COLOURS, False, ("hue",)))
)
TOTE = Category("c-2", "Tote", (Option("size", ("small", "large")), Option("handles", ("none", "black"))))
LAMP = Category("c-3", "Lamp", None)
OFFER = Offer((MUG, TOTE, LAMP), None)


def mugs(*rows: str, columns: str, offer: Offer | None = OFFER) -> Checked:
    """Mugs of a size, with other columns."""
    lines = [f"M{number},herons,Mug,11oz,{row}" for number, row in enumerate(rows)]
    return checked("\n".join([f"sku,prompt,category,option:size,{columns}", *lines]) + "\n", offer)


REFUSED = ["option_column"]


@pytest.mark.parametrize("header", ["COLOUR ", "Colors", "Colour (inside)", "opt: colour", "Hue", "色"])
def test_column_with_the_name_of_an_option_is_refused(header: str) -> None:
    """Six mugs would be bought without a colour. The remedy names both ways out."""
    found = mugs("purple", "", "red", columns=header)
    assert codes(found) == {2: REFUSED, 4: REFUSED}
    problem = problems(found)[0]
    assert problem.column == header
    assert "`purple`" in problem.message and "`colour` is an option of category `Mug`" in problem.message
    assert "`option:colour`" in problem.remedy
    assert f"`note:{header.strip()}`" in problem.remedy


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("collection", ["Tide", "Meadow"]),
        ("Farbe", ["", ""]),
        (" NOTE : Colour", ["navy", "white"]),
        ("weight", ["11oz", "15oz"]),
        ("colour scheme", ["autumn", "spring"]),
    ],
)
def test_other_columns_are_carried(header: str, cells: list[str]) -> None:
    """Nothing at all; a remark; values of an option that these rows select already."""
    assert codes(mugs(*cells, columns=header)) == {}


def test_required_option_in_another_column_is_one_problem() -> None:
    """Not missing as well."""
    assert codes(checked("sku,prompt,category,Size\nA,b,Mug,11oz\nB,b,Mug,\n", OFFER)) == {
        2: REFUSED,
        3: ["missing_option"],
    }


def test_missing_option_is_filled_in_under_the_name_that_its_column_has() -> None:
    """A column `option:size` next to `Größe`, which was confirmed as that, would be refused (`mapping_changed`)."""
    names = {"Art.": "sku", "Text": "prompt", "Typ": "category", "Größe": "option:size"}
    text = "Art.,Text,Typ,Größe\nA,herons,Mug,11oz\nB,ferns,Mug,\n"
    (missing,) = problems(mapped(text, names))
    assert (missing.code, missing.remedy) == ("missing_option", "fill in `Größe`")
    assert codes(mapped(text.replace("Mug,\n", "Mug,15oz\n"), names)) == {}
    chosen = "Art.,Text,Typ,Auswahl\nB,ferns,Mug,\n"
    (missing,) = problems(mapped(chosen, {**names, "Größe": "note", "Auswahl": "selections"}))
    assert missing.remedy == "write `size` into the selections"


def mapped(text: str, columns: dict[str, str]) -> Checked:
    """As a person confirmed the columns."""
    return checked(read(text, columns), OFFER)


def test_json_selections_are_checked_alike() -> None:
    text = io.StringIO()
    csv.writer(text).writerows(
        [
            ["sku", "prompt", "category", "selections", "Colour"],
            ["A", "b", "Mug", '{"size": "11oz"}', "navy"],
            ["B", "b", "Mug", '{"size": "11oz", "COLOUR": "navy"}', "navy"],
        ]
    )
    found = checked(text.getvalue(), OFFER)
    assert codes(found) == {2: REFUSED}


@pytest.mark.parametrize("header", ["selection", "Options"])
def test_json_selections_under_another_name_are_refused(header: str) -> None:
    """Whatever they select; a remark is none."""
    text = io.StringIO()
    rows = [
        ["sku", "prompt", "category", header],
        ["A", "b", "Tote", '{"size": "small"}'],
        ["B", "b", "Tote", "x"],
    ]
    csv.writer(text).writerows(rows)
    found = checked(text.getvalue(), OFFER)
    assert codes(found) == {2: REFUSED}
    assert "rename it: to `selections`" in problems(found)[0].remedy


def test_result_columns_are_ignored() -> None:
    """A result whose status is the value of some option."""
    odd = Offer((Category("c", "Mug", (Option("status", ("failed", "made")),)),), None)
    text = "sku,prompt,category,status,product_id,pattern_id,error_code,error,run\nA,b,Mug,failed,,,x,y,r\n"
    assert codes(checked(text, odd)) == {}


@pytest.mark.parametrize("offer", [None, Offer(None, "Unreadable.", False), Offer((LAMP,), None)])
def test_usual_option_names_are_refused_when_the_offer_is_unknown(offer: Offer | None) -> None:
    """Until the file says whether an option or a remark is meant; empty cells select nothing."""
    found = checked("sku,prompt,category,Colours,Finish,size,shelf\nA,b,Lamp,navy,,S,3\n", offer)
    assert [problem.column for problem in problems(found)] == ["Colours", "size"]
    assert "to `option:size`, or to `note:size`" in problems(found)[1].remedy
    found = checked("sku,prompt,category,note:Colours,option:size\nA,b,Lamp,navy,S\n", Offer(None, None))
    assert codes(found) == {}
