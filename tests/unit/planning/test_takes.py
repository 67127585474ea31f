"""Takes: which one a row is built on, and which ones a remake is to make, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.planning.takes import KnownTake, built_on, picked, wanted_takes
from patternmill.states import UNWANTED, Decided

_VERDICTS = {
    "p": Decided.PICK,
    "x": Decided.REJECT,
    "a": Decided.AGAIN,
    "u": Decided.UNDECIDED,
    "l": Decided.LATER,
}


def known(text: str) -> list[KnownTake]:
    """`1 2x 3!`: take 1 is there, take 2 was rejected, take 3 could not be made; `p2` was picked second."""
    found = []
    for number, word in enumerate(text.split(), start=1):
        place = int(word[2:].rstrip("!") or 0) if word[1:2] == "p" else 0
        found.append(KnownTake(number, not word.endswith("!"), _VERDICTS.get(word[1:2]), place))
    return found


@pytest.mark.parametrize(
    ("own", "takes", "take"),
    [
        (None, "", 1),
        (None, "1", 1),
        (None, "1 2", None),
        (None, "1l 2u", None),
        (None, "1 2p", 2),
        (None, "1p2 2p1", 1),
        (None, "1x 2", 2),
        (None, "1x 2 3", None),
        (None, "1x 2a", 2),
        (None, "1x 2!", 1),
        (None, "1x 2p!", 1),
        (1, "1x 2 3p", 3),
        (1, "1a", 1),
        (2, "1p 2", 2),
        (2, "1p 2x", 1),
    ],
)
def test_row_is_built_on(own: int | None, takes: str, take: int | None) -> None:
    """Its own choice, unless that was decided against; else the last pick, or the only one that is left."""
    assert built_on(own, known(takes)) == take


@pytest.mark.parametrize(
    ("own", "takes", "count", "again", "wanted"),
    [
        (1, "1 2", 1, False, [2]),
        (2, "1 2", 1, False, [2]),
        (2, "1 2p", 1, False, [2]),
        (2, "1 2a", 1, False, [3]),
        (2, "1x 2x 3", 1, False, [3]),
        (1, "1 2 3", 1, True, [4]),
        (1, "1 2", 3, False, [2, 3, 4]),
        (1, "1 2x 3 4", 3, False, [3, 4, 5]),
        (1, "1 2x 3x 4x", 3, False, [5, 6, 7]),
        (0, "", 1, False, [1]),
        (0, "1x 2 3x", 1, False, [2]),
        (0, "1 2", 2, False, [1, 2]),
        (2, "1 2", 2, False, [2]),
        (2, "1 2x", 2, False, [3, 4]),
    ],
)
def test_remake_makes(own: int, takes: str, count: int, again: bool, wanted: list[int]) -> None:
    """The lowest takes above the row's own that nobody decided against; from take 2 on its own needs a decision."""
    assert wanted_takes(own, known(takes), count, again=again) == wanted


words = st.lists(st.sampled_from(["1", "1p1", "1p2", "1x", "1a", "1l", "1!"]), max_size=6).map(" ".join)


@given(own=st.integers(0, 7), takes=words, count=st.integers(1, 4))
def test_same_remake_twice_makes_the_same(own: int, takes: str, count: int) -> None:
    """What is pressed twice, or killed after any take, resumes; nothing that was decided against is wanted."""
    before = known(takes)
    own = min(own, len(before))
    wanted = wanted_takes(own, before, count)
    assert len(wanted) == count or wanted == [own]
    assert all(take.number not in wanted for take in before if take.verdict in UNWANTED)
    for made in range(len(before), max(wanted, default=0) + 1):
        now = [*before, *(KnownTake(number, True) for number in range(len(before) + 1, made + 1))]
        assert wanted_takes(wanted[0] if count == 1 and made >= wanted[0] > 1 else own, now, count) == wanted


@given(takes=words)
def test_nothing_is_built_on_what_was_decided_against(takes: str) -> None:
    """But where nothing else is left, which the plan refuses."""
    found = known(takes)
    take = built_on(None, found)
    if any(one.is_wanted for one in found) and take is not None:
        assert found[take - 1].is_wanted
    assert picked(found) in (None, take)
