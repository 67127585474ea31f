"""Takes of a pattern: which one a row is built on, and which ones a remake is to make. Decisions alone, no calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternmill.states import UNWANTED, Decided


@dataclass(frozen=True, slots=True)
class KnownTake:
    """A take that was requested before."""

    number: int
    #: The service has it, or may have.
    exists: bool
    #: A person's last decision on it, and its place in the order of all decisions.
    verdict: Decided | None = None
    decided: int = 0

    @property
    def is_wanted(self) -> bool:
        """It can be built on: nobody decided against it."""
        return self.exists and self.verdict not in UNWANTED


def picked(takes: Sequence[KnownTake]) -> int | None:
    """The take that was picked last."""
    picks = [take for take in takes if take.exists and take.verdict is Decided.PICK]
    return max(picks, key=lambda take: take.decided).number if picks else None


def built_on(own: int | None, takes: Sequence[KnownTake]) -> int | None:
    """The take that a row is built on; None: a person has to choose among several first.

    `own`: what was chosen for this row, or what it was built on before. Where a person decided against all, the last.
    """
    wanted = [take.number for take in takes if take.is_wanted]
    unwanted = [take.number for take in takes if take.verdict in UNWANTED]
    if own is not None and own not in unwanted:
        return own
    if (choice := picked(takes)) is not None:
        return choice
    if len(wanted) > 1:
        return None
    return (wanted or unwanted[-1:] or [1])[0]


def wanted_takes(own: int, takes: Sequence[KnownTake], count: int = 1, *, again: bool = False) -> list[int]:
    """The takes that a remake is to make: the `count` lowest above the row's own that nobody decided against.

    `own`: what the row is built on now; 0: nothing. A row on take 2 or later keeps it until a person decided against
    it, or wants one more (`again`): so the same command twice makes the same take.
    """
    unwanted = {take.number for take in takes if take.verdict in UNWANTED}
    latest = max((take.number for take in takes), default=0)
    if own > 1 and own not in unwanted and not again:
        return [own]
    above = max(own, latest) if again else own
    numbers = (number for number in range(above + 1, latest + own + count + 2) if number not in unwanted)
    return [number for number, _ in zip(numbers, range(count), strict=False)]
