"""The catalog as the last look found it, in versions, so that a page is sent only what has changed."""

import contextlib
import json
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from patternmill.contract import Contract
from patternmill.errors import Refusal
from patternmill.ledger.attempts import made_by
from patternmill.ledger.brake import brakes_on
from patternmill.ledger.catalogs import catalog_rows, shared_elsewhere
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Take, decisions_of, takes_of
from patternmill.ledger.reports import last_run, living_run
from patternmill.looking.cards import Card, as_json, cards_of, counts_of
from patternmill.remake import is_due
from patternmill.states import CatalogRow


class View:
    """The cards of one catalog. Each has the version with which it became what it is; the first version is 1."""

    def __init__(self, database: Database, environment: str, catalog: str) -> None:
        self.database, self.environment, self.catalog = database, environment, catalog
        self._rows: list[CatalogRow] = []
        self._cards: dict[str, Card] = {}
        self._sent: dict[str, tuple[int, str]] = {}
        self._version = self._ordered = 0
        self._pulse: Any = None
        #: How long the page waits before it asks again, in seconds: a look at a large catalog takes CPU from a run.
        self._pause = 1.0
        self._lock = threading.Lock()

    def since(self, version: int, about: Mapping[str, Any]) -> str:
        """Return what has changed since a version, as JSON, with what is said of the whole catalog."""
        with self._lock:
            self._look()
            changed = [text for at, text in self._sent.values() if at > version]
            whole = {**self._whole(), **about, "version": self._version}
            if self._ordered > version:
                whole["order"] = list(self._sent)
        return f'{json.dumps(whole, ensure_ascii=False)[:-1]}, "cards": [{",".join(changed)}]}}'

    def takes_of(self, card_id: str, contract: Contract) -> list[Take]:
        """Return the takes of a card's pattern. Raises Refusal where the catalog has no such card any more."""
        with self._lock:
            self._look()
            card = self._cards.get(card_id)
            row = next((row for row in self._rows if card and row.key == card.rows[0].key), None)
        if not card or not row or not row.pattern:
            raise Refusal("no_pattern", "The catalog has no such pattern any more.")
        said = json.loads(row.content)
        pattern, extras = partial(contract.pattern, self.environment, said["prompt"]), said.get("extras", {})
        items = [contract.refined(pattern(extras, take), extras) for take in range(1, card.newest + 1)]
        return takes_of(self.database, self.environment, items)

    def _look(self) -> None:
        place = self.database, self.environment
        if (pulse := self.database.pulse()) == self._pulse:
            return
        began = time.perf_counter()
        self._rows = [row for row in catalog_rows(*place, self.catalog) if row.retired is None]
        found = cards_of(self._rows, decisions_of(*place), shared_elsewhere(*place, self.catalog))
        self._pulse, self._cards = pulse, {card.id: card for card in found}
        texts = {card.id: as_json(card) for card in found}
        before, self._version = self._sent, self._version + 1
        self._sent = {
            name: before[name] if name in before and before[name][1] == text else (self._version, text)
            for name, text in texts.items()
        }
        if list(before) != list(self._sent):
            self._ordered = self._version
        self._pause = min(max(1.0, 5 * (time.perf_counter() - began)), 15.0)

    def _whole(self) -> dict[str, Any]:
        """Return what is said of the catalog: its counts, whether it is paused, and the run that goes on."""
        place = self.database, self.environment, self.catalog
        run, is_dead = living_run(*place), False
        with contextlib.suppress(Refusal):  # there was none
            is_dead = not run and not last_run(*place).outcome
        return {
            "pause": self._pause,
            "counts": counts_of(self._rows),
            "marked": len({row.pattern for row in self._rows if row.pattern and is_due(row)}),
            "paused": brakes_on(*place),
            "dead": is_dead,
            "run": {"id": run, "made": made_by(self.database, run)} if run else None,
        }
