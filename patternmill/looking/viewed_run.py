"""A run as a person looks at it: its rows as they are now, their pictures, takes and decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import Decision, last_decisions
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Approval, RunRecord
from patternmill.looking.kept_pictures import picture_name
from patternmill.looking.page import page
from patternmill.looking.pictures import Pictures
from patternmill.looking.takes import Take, takes_made
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.settings import Settings
from patternmill.states import Verdict


class ViewedRun:
    """The page of a run, whose decisions and approvals are read anew each time. It never writes."""

    def __init__(self, settings: Settings, record: RunRecord) -> None:
        self.record = record
        self._settings = settings
        profile = settings.service
        self.pictures = Pictures(
            settings.home, profile.url if profile is not None and not settings.embedded else None
        )
        with self.ledger() as ledger:
            file = input_file(ledger, record)
            self._rows: list[RowResult] = list(row_results(ledger, record, file, now=True))
            self._takes = takes_made(ledger, record.environment, record.catalog)
        #: What may be decided on: every take of the catalog.
        self.items = frozenset(self._takes)
        self._urls = {
            *(item.picture_url for row in self._rows for item in row.items[-2:]),
            *(take.picture_url for take in self._takes.values()),
        } - {None}
        self._names = {picture_name(url): url for url in self._urls if url is not None}

    def picture(self, name: str) -> Path | None:
        """Return the file of a picture of this run, where it is at hand."""
        return self.pictures.path(name) if name in self._names else None

    def ledger(self) -> AbstractContextManager[Ledger]:
        return open_ledger(self._settings, must_exist=True)

    def fetch_pictures(self, step: Callable[[str], None]) -> None:
        """Fetch every picture that is not at hand."""
        self.pictures.fetch(filter(None, self._urls), step)

    def digests(self) -> dict[ItemKey, str]:
        """Return the SHA-256 of each take's picture, by item, where it is at hand."""
        return self.pictures.digests(self._takes.values())

    def decisions(self) -> dict[ItemKey, Decision]:
        """The last one of each pattern of the run's catalog."""
        with self.ledger() as ledger:
            return last_decisions(ledger, self.record.environment, self.record.catalog)

    def waiting_approval(self) -> Approval | None:
        """The last plan of the catalog that waits for a person's decision."""
        record = self.record
        with self.ledger() as ledger:
            asked = ledger.approvals.find(record.environment, record.catalog)
        return next((one for one in reversed(asked) if one.verdict is Verdict.WAITING), None)

    def page(self, by: str) -> Iterator[bytes]:
        """The bytes of the page for who is signed in, with a plan that they may approve."""
        approval = self.waiting_approval()
        return page(
            self.record,
            self._rows,
            {url: f"pictures/{name}" for name, url in self._names.items()},
            known=self._known(),
            currency=self._settings.currency,
            approval=(
                {
                    "digest": approval.digest,
                    "items": approval.items,
                    "amount": approval.expected,
                    "currency": approval.currency,
                }
                if approval
                else None
            ),
            served=by,
        )

    def _known(self) -> dict[ItemKey, dict[str, Any]]:
        """By the pattern item of a row, what its page is told of it."""
        by_content = defaultdict[str, list[Take]](list)
        for take in sorted(self._takes.values(), key=lambda take: take.number):
            by_content[take.content].append(take)
        digests, decisions = self.digests(), self.decisions()
        prices = self._prices()

        def shown(take: Take, key: ItemKey) -> dict[str, Any]:
            digest, decision = digests.get(take.item, ""), decisions.get(take.item)
            # A decision on another picture than is there now is none: a new picture asks again.
            stands = decision is not None and decision.picture == digest
            return {
                "item": take.item,
                "take": take.number,
                "picture": take.picture_url,
                "digest": digest,
                "chosen": take.item == key,
                "decision": asdict(decision) | {"at": decision.at.isoformat()}
                if decision and stands
                else None,
            }

        known = {}
        for key in {row.pattern.key for row in self._rows if row.pattern is not None}:
            own = self._takes.get(key)
            known[key] = {
                "takes": [shown(take, key) for take in by_content[own.content]] if own else [],
                "price": prices.get(key),
            }
        return known

    def _prices(self) -> dict[ItemKey, int]:
        """What another take costs with its products, in minor units; empty without prices."""
        settings = self._settings
        if not settings.has_prices:
            return {}
        products = Counter(row.pattern.key for row in self._rows if row.pattern is not None)
        return {
            key: settings.pattern_price + count * settings.product_price for key, count in products.items()
        }
