"""A limit of what may be bought: one value for the plan, which is cut to it, and for the transaction of each intent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patternmill.states import Stage


@dataclass(frozen=True, eq=False)
class Limit:
    """One limit: its name, what raises it, and what is left of it."""

    code: str
    name: str
    remedy: str
    left: int
    #: What a purchase of each stage takes of what is left: 1 where items are counted, else the price.
    takes: Mapping[Stage, int]
    #: `left` is minor units.
    is_money: bool = False

    def covers(self, purchases: Mapping[Stage, int], more: int = 0) -> bool:
        """Whether it covers these purchases, and so much more."""
        return amount_of(purchases, self.takes) + more <= self.left


def amount_of(counts: Mapping[Stage, int], prices: Mapping[Stage, int]) -> int:
    return sum(count * prices.get(stage, 0) for stage, count in counts.items())
