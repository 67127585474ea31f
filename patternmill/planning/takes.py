"""Decides which take of a pattern its rows are built on, and which takes are to be made, in pure functions.

A pattern's takes are numbered from 1. A decision is about a take, and so about all rows that share the pattern; only
the latest decision about a take counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternmill.states import MAY_EXIST, OPEN_STATES, AttemptState, Decided, RowStatus


@dataclass(frozen=True, slots=True)
class Take:
    """A take of a pattern that was requested."""

    number: int
    #: The state of the last attempt at it.
    state: AttemptState
    #: The latest decision about it.
    verdict: Decided | None = None
    #: The place of that decision in the ledger; 0 if there is none.
    sequence: int = 0

    @property
    def is_made(self) -> bool:
        """Return whether the service has it, or may have it; a take whose job failed is not made."""
        return self.state in MAY_EXIST

    @property
    def is_open(self) -> bool:
        """Return whether it was begun and has not ended, so that nobody has looked at it."""
        return self.state in OPEN_STATES

    @property
    def can_be_used(self) -> bool:
        """Return whether rows may be built on it."""
        return self.is_made and self.verdict is not Decided.REJECT


def choose_take(takes: Sequence[Take]) -> int | RowStatus:
    """Return the take that a pattern's rows are built on, or TO_CHOOSE or DISCARDED where there is none."""
    if (pick := _last_pick(takes)) is not None:
        return pick
    last_again = _last_again(takes)
    made = [take for take in takes if take.is_made and take.number > last_again]
    usable = [take.number for take in made if take.can_be_used]
    if not made:
        return last_again + 1
    if not usable:
        return RowStatus.DISCARDED
    return usable[0] if len(usable) == 1 else RowStatus.TO_CHOOSE


def takes_to_make(takes: Sequence[Take], count: int) -> tuple[int, ...]:
    """Return the takes to choose from: those that exist, and those that are missing of the `count` to be made.

    Only an `again` has another take made. So the same command given once more buys nothing, whichever takes were
    rejected since; and where one was picked, or all were rejected, nothing is to be made.
    """
    if _last_pick(takes) is not None or choose_take(takes) is RowStatus.DISCARDED:
        return ()
    last_again = _last_again(takes)
    made = {take.number: take for take in takes if take.is_made and take.number > last_again}
    missing = [number for number in range(last_again + 1, last_again + count + 1) if number not in made]
    usable = [number for number, take in made.items() if take.can_be_used]
    return tuple(sorted([*usable, *missing[: max(0, count - len(made))]]))


def needs_again(takes: Sequence[Take], *, more: bool = False) -> int | None:
    """Return the take against which a remake records an `again`, the highest one made; None if it records none.

    Without `more`, a pattern that was remade before is remade again only once its newer takes have been rejected. What
    is still being made is resumed first. So the same remake counts once when it is repeated, also after a crash.
    """
    made = [take for take in takes if take.is_made]
    last_again = _last_again(takes)
    newer = [take for take in made if take.number > last_again]
    if not made or any(take.is_open for take in newer):
        return None
    was_decided_against = bool(newer) and not any(take.can_be_used for take in newer)
    return max(take.number for take in made) if more or not last_again or was_decided_against else None


def _last_pick(takes: Sequence[Take]) -> int | None:
    """Return the take that was picked, unless an `again` came after it."""
    choices = [
        take
        for take in takes
        if take.verdict is Decided.AGAIN or (take.verdict is Decided.PICK and take.is_made)
    ]
    last = max(choices, key=lambda take: take.sequence, default=None)
    return last.number if last is not None and last.verdict is Decided.PICK else None


def _last_again(takes: Sequence[Take]) -> int:
    """Return the highest take whose latest decision is `again`; 0 if there is none."""
    return max((take.number for take in takes if take.verdict is Decided.AGAIN), default=0)
