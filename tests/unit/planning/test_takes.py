"""Takes: which one a row is built on, and which ones a remake is to make, as tables."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.planning.takes import Take, choose_take, needs_again, takes_to_make
from patternmill.states import AttemptState, Decided, RowStatus

#: The takes of a pattern, and what follows: the take that is built on, the takes that `--takes 1` and `--takes 3`
#: make, and the take against which `remake` and `remake --again` record an `again`.
CASES = {
    "nothing was made yet": ("", 1, [1], [1, 2, 3], None, None),
    "one take, undecided": ("1", 1, [1], [1, 2, 3], 1, 1),
    "again on take 1": ("1a1", 2, [2], [2, 3, 4], None, 1),
    "again on take 1 of three": ("1a1 2 3", "choose", [2, 3], [2, 3, 4], None, 3),
    "again on take 1, and take 2 is made": ("1a1 2", 2, [2], [2, 3, 4], None, 2),
    "again on take 1, and take 2 is rejected": ("1a1 2x2", "discarded", [], [], 2, 2),
    "the same, and a remake has recorded its again": ("1a1 2a3", 3, [3], [3, 4, 5], None, 2),
    "remake --takes 3 has made its takes": ("1a1 2 3 4", "choose", [2, 3, 4], [2, 3, 4], None, 4),
    "remake --takes 3 was stopped after one take": ("1a1 2", 2, [2], [2, 3, 4], None, 2),
    "remake --takes 3 was stopped while two are made": ("1a1 2o 3o", "choose", [2, 3], [2, 3, 4], None, None),
    "one of the three takes of a remake is rejected": ("1a1 2x2 3 4", "choose", [3, 4], [3, 4], None, 4),
    "all three takes of a remake are rejected": ("1a1 2x2 3x3 4x4", "discarded", [], [], 4, 4),
    "the first take is still being made": ("1o", 1, [1], [1, 2, 3], None, None),
    "three takes, undecided": ("1 2 3", "choose", [1, 2, 3], [1, 2, 3], 3, 3),
    "later and undecided change nothing": ("1l1 2u2 3l3", "choose", [1, 2, 3], [1, 2, 3], 3, 3),
    "two of three rejected": ("1x1 2 3x2", 2, [2], [2], 3, 3),
    "all rejected": ("1x1 2x2 3x3", "discarded", [], [], 3, 3),
    "one take, rejected, also where three rows share it": ("1x1", "discarded", [], [], 1, 1),
    "a rejected take that was taken back": ("1u2", 1, [1], [1, 2, 3], 1, 1),
    "one picked of three": ("1 2p1 3", 2, [], [], 3, 3),
    "picked, then another picked": ("1p2 2p1", 1, [], [], 2, 2),
    "picked, and rejected since": ("1x2 2", 2, [2], [2, 3], 2, 2),
    "picked, then again": ("1 2p1 3a2", 4, [4], [4, 5, 6], None, 3),
    "picked, then again on the same take": ("1 2a2", 3, [3], [3, 4, 5], None, 2),
    "again, then an earlier take is picked": ("1p2 2a1", 1, [], [], None, 2),
    "again, then its take is picked": ("1a1 2p2", 2, [], [], None, 2),
    "again, then a pick that was rejected since": ("1x3 2a1", 3, [3], [3, 4, 5], None, 2),
    "again twice": ("1a1 2a2", 3, [3], [3, 4, 5], None, 2),
    "again, taken back": ("1u2 2", "choose", [1, 2], [1, 2, 3], 2, 2),
    "an older again that arrives late": ("1a3 2a1 3", 3, [3], [3, 4, 5], None, 3),
    "an older again that arrives after a pick": ("1a3 2p2", 2, [2], [2, 3, 4], None, 2),
    "a take that another row made": ("1 2", "choose", [1, 2], [1, 2, 3], 2, 2),
    "take 1 of three, as --take 1 records it": ("1p4 2a1 3", 1, [], [], None, 3),
    "a take that failed is not made": ("1!", 1, [1], [1, 2, 3], None, None),
    "a failed take of a remake": ("1a1 2!", 2, [2], [2, 3, 4], None, 1),
    "a failed take, and the one after it is made": ("1! 2", 2, [2], [1, 2, 3], 2, 2),
    "a failed take of three": ("1 2! 3", "choose", [1, 3], [1, 2, 3], 3, 3),
    "a failed take and a rejected one": ("1x1 2!", "discarded", [], [], 1, 1),
    "a pick of a take that is not made": ("1 2!p1", 1, [1], [1, 2, 3], 1, 1),
}


def takes(text: str) -> list[Take]:
    """Return takes as they are written: `1 2x1 3! 4o` has take 2 rejected first, take 3 failed, take 4 open."""
    return [_take(word) for word in text.split()]


def _take(word: str) -> Take:
    match = re.fullmatch(r"(\d+)(!?)(o?)(?:([pxaul])(\d+))?", word)
    assert match is not None, word
    number, failed, is_open, verdict, sequence = match.groups()
    state = AttemptState.FAILED if failed else AttemptState.INTENDED if is_open else AttemptState.SUCCEEDED
    return Take(int(number), state, _VERDICTS[verdict] if verdict else None, int(sequence or 0))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_decisions_about_takes(
    case: tuple[str, int | str, list[int], list[int], int | None, int | None],
) -> None:
    text, choice, one, three, against, against_more = case
    pattern = takes(text)
    statuses = {"choose": RowStatus.TO_CHOOSE, "discarded": RowStatus.DISCARDED}
    assert choose_take(pattern) == (statuses[choice] if isinstance(choice, str) else choice)
    assert [list(takes_to_make(pattern, count)) for count in (1, 3)] == [one, three]
    assert [needs_again(pattern, more=more) for more in (False, True)] == [against, against_more]


some_takes = st.lists(
    st.tuples(st.sampled_from(["", "!", "o"]), st.sampled_from([None, *"pxaul"])), max_size=6
).flatmap(
    lambda words: st.permutations(range(1, len(words) + 1)).map(
        lambda places: " ".join(
            f"{number}{state}{verdict}{place}" if verdict else f"{number}{state}"
            for number, ((state, verdict), place) in enumerate(zip(words, places, strict=True), start=1)
        )
    )
)


@given(text=some_takes, count=st.integers(1, 4))
def test_same_remake_twice_counts_once(text: str, count: int) -> None:
    """Whatever was decided before, and wherever the first remake is killed, the second makes the same takes."""
    known = takes(text)
    against = needs_again(known)
    if against is not None:
        known = [_decide(take, Decided.AGAIN, 99) if take.number == against else take for take in known]
    wanted = takes_to_make(known, count)
    for stopped_after in range(len(wanted) + 1):
        new = [Take(number, AttemptState.SUCCEEDED) for number in wanted[:stopped_after]]
        numbers = {take.number for take in new}
        now = [take for take in known if take.number not in numbers or take.is_made]
        now += [take for take in new if take.number not in {take.number for take in now}]
        assert needs_again(now) is None or against is None
        assert takes_to_make(now, count) == wanted


@given(text=some_takes, count=st.integers(1, 4))
def test_nothing_is_built_on_or_made_of_a_rejected_take(text: str, count: int) -> None:
    known = takes(text)
    rejected = {take.number for take in known if take.is_made and take.verdict is Decided.REJECT}
    wanted, choice = takes_to_make(known, count), choose_take(known)
    assert not rejected.intersection(wanted)
    assert choice not in rejected
    if wanted and not isinstance(choice, RowStatus):
        assert choice in wanted


@given(text=some_takes, count=st.integers(1, 4), rejected=st.integers(0, 5))
def test_rejecting_a_take_makes_no_other(text: str, count: int, rejected: int) -> None:
    """Neither by a refresh every night nor by the same command: who wants another take says `again`."""
    known = takes(text)
    before = takes_to_make(known, count)
    now = [_decide(take, Decided.REJECT, 99) if take.number in before[:rejected] else take for take in known]
    assert set(takes_to_make(now, count)) <= set(before)


def _decide(take: Take, verdict: Decided, sequence: int) -> Take:
    return replace(take, verdict=verdict, sequence=sequence)


_VERDICTS = {
    "p": Decided.PICK,
    "x": Decided.REJECT,
    "a": Decided.AGAIN,
    "u": Decided.UNDECIDED,
    "l": Decided.LATER,
}
