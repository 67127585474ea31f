"""What no person sees is no difference; what one may see is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.catalog.normal_text import normalised, visible_text

from .samples import HEADER, checked_row, codes

#: What programs write for `a "blue" heron's reed - dawn...`.
SAME = {
    "typed": 'a "blue" heron\'s reed - dawn...',
    "smart quotes": "a \u201cblue\u201d heron\u2019s reed - dawn...",
    "German quotes": "a \u201eblue\u201c heron's reed - dawn...",
    "dashes": 'a "blue" heron\'s reed \u2013 dawn...',
    "a minus sign and an ellipsis": 'a "blue" heron\'s reed \u2212 dawn\u2026',
    "no-break spaces": 'a\u00a0"blue" heron\'s\u202freed\u2009- dawn...',
    "runs of spaces and tabs": ' a  "blue"\theron\'s   reed - dawn... ',
    "a zero-width space": 'a "bl\u200bue" heron\'s reed - dawn...',
    "soft hyphens": 'a "blue" he\u00adron\'s reed - dawn...',
    "marks of direction": 'a \u200e"blue"\u200f \u2068heron\'s\u2069 reed - dawn...',
    "a joiner between Latin letters": 'a "bl\u200due" heron\'s reed\u200c - dawn...',
    "a bell": 'a "blue" heron\'s\x07 reed - dawn...',
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_invisible_differences_are_none(text: str) -> None:
    assert normalised(text) == SAME["typed"]


@pytest.mark.parametrize("text", ["one\r\ntwo", "one\rtwo", "one \n two", "one\u2028two"])
def test_line_ends_are_one_line_feed(text: str) -> None:
    assert normalised(text) == "one\ntwo"


@pytest.mark.parametrize(
    "text",
    [
        "ikat.",
        "one\n\ntwo",
        "\u00abikat\u00bb",
        "5\u2033 wide",
        "caf\u00e9 \u84dd\u8272",
        "\U0001f469\u200d\U0001f3a8 \u2764\ufe0f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "50x50 #1f3a5f 'x' \"y\" a-b",
    ],
)
def test_what_may_mean_something_stays(text: str) -> None:
    """Case, punctuation, line breaks, guillemets, primes; joiners in emoji and in scripts that need them."""
    assert normalised(text) == text


odd = st.text(
    st.sampled_from(
        "ab'\u0301 \n\r\t\x85\u00a0\u00ad\u034f\u200b\u200c\u200d\u2019\u2013\u2026\u0645\u212a\ufeff\U0001f469"
    )
)


@given(odd | st.text(st.characters(codec="utf-8")))
def test_twice_is_once(text: str) -> None:
    """And the result is composed, without outer spaces."""
    once = normalised(text)
    assert normalised(once) == once == unicodedata.normalize("NFC", once).strip()
    assert visible_text(once) == visible_text(text)


def test_prompts_and_unchecked_selections_are_normalised_and_cells_are_not() -> None:
    """Cells are carried to the results as they are written."""
    row = checked_row("A,it\u2019s\u00a0 ikat,B\u00a0 C,11\u00a0oz,,", None).rows[0]
    assert (row.prompt, row.category, row.selections) == ("it's ikat", "B C", {"size": "11 oz"})
    assert row.cells[1:4] == ("it\u2019s\u00a0 ikat", "B\u00a0 C", "11\u00a0oz")


def test_offered_spellings_are_found_whatever_their_quotes() -> None:
    """In the file, or in the offer."""
    from patternmill.catalog.offer import Category, Offer, Option

    offer = Offer((Category("c", "Kid\u2019s mug", (Option("size", ("7\u20138 oz", '9" wide')),)),), None)
    for category, size in (
        ("kid's mug", "7-8 oz"),
        ("Kid\u2019s\u00a0mug", "7\u20138 oz"),
        ("Kid's mug", "9\u201d wide"),
    ):
        found = checked_row(f'A,b,{category},"{size.replace(chr(34), chr(34) * 2)}",,', offer)
        assert codes(found) == {}, found.problems
        assert found.rows[0].selections["size"] in ("7\u20138 oz", '9" wide')


def test_prompt_of_nothing_visible_is_empty() -> None:
    assert codes(checked_row("A,\u200d\u00ad\u2028,Mug,,,")) == {2: ["empty_prompt"]}
    assert HEADER.startswith("sku,prompt")
