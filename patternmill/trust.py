"""Is it the row, or is it us? Whether more of a stage is begun, by its last events on record."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ALIKE, _IN_A_ROW, _PROBES = 3, 5, 4
_ENDS = frozenset({"failed", "rejected", "held", "given_up"})
REMEDY = (
    "If that is about these rows, correct them; if it is about the account or the service, mend that. "
    "Then run the same command again: it begins with four, and goes on once one has ended well."
)


class Event(NamedTuple):
    """A change of an item on record. `counts` is false where it ended as it had before."""

    item_id: str
    state: str
    code: str = ""
    counts: int = 1


@dataclass(frozen=True)
class Standing:
    """Whether more of a stage may be begun: `room` items (None: any number), unless there is a `problem`."""

    room: int | None = None
    problem: str = ""


def standing(tail: Sequence[Event], is_open: bool, accepted_here: bool) -> Standing:
    """Return how a stage stands after the events since its last good end, or its last halt if that is later.

    `is_open`: there was a good end, and no halt since; else the stage begins with four items, and four bad ends halt
    it. An open stage is halted by three refused alike without an acceptance between, or by five items in a row that
    ended without a usable result. An item counts once. `accepted_here`: the running run has had a request accepted, so
    that refusals that name their row are about the row.
    """
    begun = set[str]()
    for event in tail:
        if event.state == "intended":
            begun.add(event.item_id)
    bad: dict[str, str] = {}
    ended, refused = set[str](), dict[str, str]()
    for event in tail:
        if event.state == "accepted":
            refused.clear()
        if event.state not in _ENDS:
            continue
        ended.add(event.item_id)
        is_row = event.code == "invalid_request" and accepted_here
        if event.counts and not is_row and (is_open or event.item_id in begun):
            bad[event.item_id] = event.state
            if event.state == "rejected":
                refused[event.item_id] = event.code
    alike = max(Counter(refused.values()).values(), default=0)
    if is_open and alike >= _ALIKE:
        return Standing(0, f"{alike} were refused alike, and none was accepted between")
    if len(bad) >= (_IN_A_ROW if is_open else _PROBES):
        return Standing(0, f"{len(bad)} in a row ended without a usable result")
    return Standing(None if is_open else max(_PROBES - len(bad) - len(begun - ended), 0))
