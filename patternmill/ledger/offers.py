"""The last offer that could be read: identity must not change when a later one cannot."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from pydantic import TypeAdapter

from patternmill.catalog.offer import Offer
from patternmill.ledger.book import Book
from patternmill.text import moment


class OfferBook(Book):
    """One offer an environment."""

    def remember_offer(self, environment: str, offer: Offer) -> None:
        """Keep an offer, in place of the one before."""
        self.database.execute(
            "INSERT INTO offers (environment, offer, read_at) VALUES (:environment, :offer, :now) "
            "ON CONFLICT (environment) DO UPDATE SET offer = excluded.offer, read_at = excluded.read_at",
            {
                "environment": environment,
                "offer": json.dumps(asdict(offer), ensure_ascii=False),
                "now": self.now(),
            },
        )

    def last_offer(self, environment: str) -> Offer | None:
        """The offer that was read last in this environment, if any was."""
        rows = self.database.rows(
            "SELECT offer, read_at FROM offers WHERE environment = :environment", {"environment": environment}
        )
        if not rows:
            return None
        text, read_at = rows[0]
        return replace(TypeAdapter(Offer).validate_json(text), read_on=f"{moment(read_at)} UTC")
