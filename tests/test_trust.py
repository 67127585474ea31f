"""Is it the row, or is it us? How a stage stands, by its last events, as a table."""

import pytest

from patternmill.halt import Event, standing


def bad(*items, state="failed", code="", counts=1):
    return [event for item in items for event in (Event(item, "intended"), Event(item, state, code, counts))]


@pytest.mark.parametrize(
    ("name", "tail", "is_open", "room", "is_halted"),
    [
        ("nothing ever: four begin", [], False, 4, False),
        ("one is in flight", [Event("a", "intended")], False, 3, False),
        ("one has ended badly", bad("a"), False, 3, False),
        ("four bad ones are the halt", bad(*"abcd"), False, 0, True),
        ("an item counts once", bad("a", "a", "a", "a", "b"), False, 2, False),
        ("what was begun before the halt does not count", [Event(i, "failed") for i in "abcdef"], False, 4, False),
        ("what ends as it had before does not count", bad(*"abcdef", counts=0), False, 4, False),
        ("an open stage has room", bad(*"abcd"), True, None, False),
        ("five in a row", bad(*"abcde"), True, 0, True),
        ("five of different kinds", [*bad("a"), *bad("b", state="held"), *bad("c", "d", state="given_up"),
                                     *bad("e", state="rejected", code="x")], True, 0, True),
        ("three refused alike", bad(*"abc", state="rejected", code="quota"), True, 0, True),
        ("three refused, not alike", [*bad("a", "b", state="rejected", code="quota"),
                                      *bad("c", state="rejected", code="other")], True, None, False),
        ("an acceptance between", [*bad("a", "b", state="rejected", code="quota"), Event("x", "accepted"),
                                   *bad("c", state="rejected", code="quota")], True, None, False),
        ("an acceptance is no usable result", [*bad(*"ab"), Event("x", "accepted"), *bad(*"cde")], True, 0, True),
    ],
)  # fmt: skip
def test_how_a_stage_stands(name, tail, is_open, room, is_halted):
    found = standing(tail, is_open, accepted_here=False)
    assert (found.room, bool(found.problem)) == (room, is_halted), name


def test_refusals_that_name_their_row_are_about_the_row_once_something_was_accepted():
    tail = bad(*"abcdef", state="rejected", code="invalid_request")
    assert standing(tail, True, accepted_here=False).problem
    assert not standing(tail, True, accepted_here=True).problem
