"""What earlier runs left of a catalog, as far as a plan depends on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from patternmill.identifiers import ItemKey
from patternmill.states import AttemptState


class LastAttempt(Protocol):
    @property
    def state(self) -> AttemptState: ...


@dataclass(frozen=True)
class Memory:
    last_attempts: Mapping[ItemKey, LastAttempt] = field(default_factory=dict)
    #: The product that each sku last requested.
    products_by_sku: Mapping[str, ItemKey] = field(default_factory=dict)
    #: Failed items that have attempts left, so that the next one follows without a person.
    trying: Collection[ItemKey] = frozenset()
