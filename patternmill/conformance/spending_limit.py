"""What the checks may have bought: never more than a person allowed, whatever the service does."""

from __future__ import annotations

from patternmill.conformance.check_results import Skipped, SkipReason


class SpendingLimit:
    """Counts patterns and products. A request that might make one is reserved before it is sent."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._reserved = 0

    @property
    def used(self) -> int:
        """What was made, or may have been: a request whose answer was lost counts."""
        return self._reserved

    @property
    def left(self) -> int:
        return self.limit - self._reserved

    def reserve(self, count: int) -> None:
        """Raises Skipped when the limit does not cover it."""
        if count > self.left:
            detail = f"could buy {count} at worst, and {self.left} of --spend {self.limit} are left"
            raise Skipped(SkipReason.COSTS, detail)
        self._reserved += count

    def give_back(self, count: int) -> None:
        """The service's answer showed that these were not made."""
        self._reserved -= count
