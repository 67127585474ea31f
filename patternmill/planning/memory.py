"""What earlier runs left of a catalog, as far as a plan depends on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from patternmill.identifiers import ItemKey
from patternmill.states import AttemptState


class LastAttempt(Protocol):
    """The last attempt at an item, as the ledger knows it."""

    @property
    def state(self) -> AttemptState: ...


@dataclass(frozen=True)
class Memory:
    """What earlier runs left: the last attempt at each item, and the product that each sku last requested."""

    last_attempts: Mapping[ItemKey, LastAttempt] = field(default_factory=dict)
    products_by_sku: Mapping[str, ItemKey] = field(default_factory=dict)
    #: Failed items that have attempts left, so that nobody has to request the next one.
    trying: Collection[ItemKey] = frozenset()
