"""The ledger: what was asked of the service, under which request ID, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from patternmill.ledger.attempts import AttemptBook
from patternmill.ledger.offers import OfferBook
from patternmill.ledger.parts import PartBook
from patternmill.ledger.records import Intent, Lease, NewItem, RunRow, SpendingLimits
from patternmill.ledger.runs import RunBook

__all__ = ["Intent", "Lease", "Ledger", "NewItem", "RunRow", "SpendingLimits"]


class Ledger(AttemptBook, OfferBook, RunBook, PartBook):
    """The operations on one database. Each is to be called inside `transaction()`.

    Not safe for several threads at once: writes belong to one (see `writer.py`), reads to a ledger of their own.
    """

    @contextmanager
    def transaction(self, hold: Lease | None = None) -> Iterator[None]:
        """All or nothing. With `hold`, raises LeaseLost when another run took the catalog over."""
        with self.database.transaction():
            if hold is not None:
                self.check_fence(hold)
            yield
