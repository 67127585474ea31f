"""What no person sees is no difference; what one may see is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.planning.normal_text import normalised, visible_text
from patternmill.planning.offer import Category, Offer, Option
from tests.unit.tables.samples import checked_row, codes

#: The plain spelling of what programs write with typographic signs.
TYPED = 'a "blue" heron\'s reed - dawn...'
SAME = [
    "a \u201cblue\u201d heron\u2019s reed - dawn...",
    "a \u201eblue\u201c heron's reed \u2013 dawn...",
    'a "blue" heron\'s reed \u2212 dawn\u2026',
    'a\u00a0"blue" heron\'s\u202freed\u2009- dawn...',
    ' a  "blue"\theron\'s   reed - dawn... ',
    'a "bl\u200bue" he\u00adron\'s reed - dawn...',
    'a \u200e"blue"\u200f \u2068heron\'s\u2069 reed - dawn...',
    'a "bl\u200due" heron\'s\x07 reed\u200c - dawn...',
]
#: Texts that differ visibly: in case, punctuation, line breaks, guillemets, primes, and in joiners that are needed.
OTHER = [
    "one\n\ntwo",
    "\u00abikat\u00bb.",
    "5\u2033 wide",
    "caf\u00e9 \u84dd\u8272",
    "\U0001f469\u200d\U0001f3a8 \u2764\ufe0f",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u0915\u094d\u200d\u0937",
    "50x50 #1f3a5f 'x' \"y\" a-b",
]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        *((text, TYPED) for text in SAME),
        *((text, "one\ntwo") for text in ("one\r\ntwo", "one\rtwo", "one \n two", "one\u2028two")),
        *((text, text) for text in OTHER),
    ],
)
def test_invisible_differences_are_none(text: str, normal: str) -> None:
    """Line ends are one line feed; what may mean something stays."""
    assert normalised(text) == normal


odd = st.text(
    st.sampled_from(
        "ab'\u0301 \n\r\t\x85\u00a0\u00ad\u034f\u200b\u200c\u200d\u2019\u2013\u2026\u0645\u212a\ufeff\U0001f469"
    )
)


@given(odd | st.text(st.characters(codec="utf-8")))
def test_twice_is_once(text: str) -> None:
    """The result is also composed, and has no outer spaces."""
    once = normalised(text)
    assert normalised(once) == once == unicodedata.normalize("NFC", once).strip()
    assert visible_text(once) == visible_text(text)


def test_prompts_and_unchecked_selections_are_normalised_and_cells_are_not() -> None:
    """Cells are carried to the results as they are written."""
    rows = checked_row("A,it\u2019s\u00a0 ikat,B\u00a0 C,11\u00a0oz,,", None)
    (row,) = rows.accepted
    assert (row.prompt, row.category, row.selections) == ("it's ikat", "B C", {"size": "11 oz"})
    assert next(rows.catalog.sheet.records())[1][1:4] == ("it\u2019s\u00a0 ikat", "B\u00a0 C", "11\u00a0oz")


def test_offered_spellings_are_found_whatever_their_quotes() -> None:
    """The quotes may differ in the file or in the offer."""
    offer = Offer((Category("c", "Kid\u2019s mug", (Option("size", ("7\u20138 oz", '9" wide')),)),), None)
    for category, size in (
        ("kid's mug", "7-8 oz"),
        ("Kid\u2019s\u00a0mug", "7\u20138 oz"),
        ("Kid's mug", "9\u201d wide"),
    ):
        found = checked_row(f'A,b,{category},"{size.replace(chr(34), chr(34) * 2)}",,', offer)
        assert codes(found) == {}, found.problems
        assert found.accepted[0].selections["size"] in ("7\u20138 oz", '9" wide')
