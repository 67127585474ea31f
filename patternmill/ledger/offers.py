"""The last offer that could be read: identity must not change when a later one cannot."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from pydantic import TypeAdapter

from patternmill.catalog.offer import Offer
from patternmill.ledger.tables import Tables
from patternmill.text import moment


class OfferTable(Tables):
    """One offer for each environment."""

    def remember_offer(self, environment: str, offer: Offer) -> None:
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
        found = self._row(
            "SELECT offer, read_at FROM offers WHERE environment = :environment", environment=environment
        )
        if found is None:
            return None
        return replace(TypeAdapter(Offer).validate_json(found[0]), read_on=f"{moment(found[1])} UTC")
