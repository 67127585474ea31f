"""A run as a person looks at it: its rows as they are now, their pictures, takes, doubts and decisions."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import Decision, last_decisions, made_patterns
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Approval, RunRecord
from patternmill.looking.kept_pictures import picture_name
from patternmill.looking.looks import Looks, digests, doubts
from patternmill.looking.page import page
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.settings import Settings
from patternmill.states import Verdict


class ViewedRun:
    """The page of a run; reads the ledger anew for each page, and never writes."""

    def __init__(self, settings: Settings, record: RunRecord) -> None:
        self.record = record
        self._settings = settings
        profile = settings.service
        self.looks = Looks(
            settings.home, profile.url if profile is not None and not settings.embedded else None
        )
        with self.ledger() as ledger:
            self._rows: list[RowResult] = list(
                row_results(ledger, record, input_file(ledger, record), now=True)
            )
            self._patterns = _patterns(ledger, record)
            self._old = dict(_replaced(ledger, record, self._rows, self._patterns))
        self.items = frozenset(self._patterns) | {
            row.pattern.key for row in self._rows if row.pattern is not None and row.pattern.result_id
        }

    def ledger(self) -> AbstractContextManager[Ledger]:
        return open_ledger(self._settings, must_exist=True)

    def take_looks(self, step: Callable[[str], None]) -> None:
        """Look at every picture that was not looked at before, of patterns and products; fetch what is not at hand."""
        items = [item for row in self._rows for item in row.items[-2:]]
        urls = [item.picture_url for item in items] + [
            pattern["picture"] for pattern in self._patterns.values()
        ]
        self.looks.take(filter(None, urls), step)

    def digests(self) -> dict[ItemKey, str]:
        found = digests(self._rows, self.looks)
        for key, pattern in self._patterns.items():
            look = self.looks.of(pattern["picture"])
            if look is not None:
                found[key] = look.digest
        return found

    def decisions(self) -> dict[ItemKey, Decision]:
        """The last one of each pattern of the run's catalog."""
        with self.ledger() as ledger:
            return last_decisions(ledger, self.record.environment, self.record.catalog)

    def waiting_approval(self) -> Approval | None:
        """The last plan of the catalog that waits for a person's decision."""
        record = self.record
        with self.ledger() as ledger:
            asked = ledger.approvals(environment=record.environment, catalog=record.catalog)
        return next((one for one in reversed(asked) if one.verdict is Verdict.WAITING), None)

    def page(self, by: str, approval: Approval | None) -> Iterator[bytes]:
        """The bytes of the page for who is signed in, with a plan that they may approve."""
        known = self.digests()
        decisions = {key: as_posted(one) for key, one in self.decisions().items()}
        urls = [item.picture_url for row in self._rows for item in row.items[-2:]]
        urls += [pattern["picture"] for pattern in self._patterns.values()]
        settings = self._settings
        return page(
            self.record,
            self._rows,
            {url: f"pictures/{picture_name(url)}" for url in urls if url is not None},
            digests=known,
            doubts=doubts(self._rows, self.looks),
            decisions=decisions,
            takes=self._takes(known),
            old={
                key: pattern | {"digest": known.get(pattern["item"], "")}
                for key, pattern in self._old.items()
            },
            prices=self._prices(),
            currency=settings.currency,
            approval=None
            if approval is None
            else {"digest": approval.digest, "items": approval.items, "amount": approval.expected},
            served=by,
        )

    def _takes(self, known: Mapping[ItemKey, str]) -> dict[ItemKey, list[dict[str, Any]]]:
        """By the pattern item of a row, every take of the same pattern."""
        by_content = defaultdict[str, list[ItemKey]](list)
        for key, pattern in self._patterns.items():
            by_content[pattern["same"]].append(key)
        found = {}
        for row in self._rows:
            mine = self._patterns.get(row.pattern.key) if row.pattern is not None else None
            if mine is None or row.pattern is None:
                continue
            takes = sorted(by_content[mine["same"]], key=lambda key: int(self._patterns[key]["take"]))
            found[row.pattern.key] = [
                {
                    "item": key,
                    "take": self._patterns[key]["take"],
                    "picture": self._patterns[key]["picture"],
                    "digest": known.get(key, ""),
                    "chosen": key == row.pattern.key,
                }
                for key in takes
            ]
        return found

    def _prices(self) -> dict[ItemKey, int]:
        """What another take costs, with its products, in minor units."""
        settings = self._settings
        if not settings.has_prices:
            return {}
        products = Counter(row.pattern.key for row in self._rows if row.pattern is not None)
        return {
            key: settings.pattern_price + count * settings.product_price for key, count in products.items()
        }


def as_posted(decision: Decision) -> dict[str, Any]:
    """A decision as the page sends it and reads it."""
    return {
        "id": decision.id,
        "item": decision.item,
        "picture": decision.picture,
        "verdict": decision.verdict.value,
        "note": decision.note,
        "by": decision.by,
        "at": decision.at.isoformat(),
    }


def _patterns(ledger: Ledger, record: RunRecord) -> dict[ItemKey, dict[str, Any]]:
    """The patterns that a catalog has, by item: which take of what, its ID, and its picture."""
    found = {}
    for key, content, result, picture in made_patterns(ledger, record.environment, record.catalog):
        parts = json.loads(content)
        take = parts.pop("take", 1)
        found[key] = {
            "take": take,
            "same": json.dumps(parts, sort_keys=True),
            "prompt": parts.get("prompt", ""),
            "id": result,
            "picture": picture,
        }
    return found


def _replaced(
    ledger: Ledger, record: RunRecord, rows: list[RowResult], patterns: Mapping[ItemKey, dict[str, Any]]
) -> Iterator[tuple[ItemKey, dict[str, Any]]]:
    """By the pattern item of a row, the pattern that it had before its source changed."""
    before = {
        change.sku: change.pattern_id for change in ledger.changes_of(record.run_id) if change.pattern_id
    }
    by_id = {pattern["id"]: key for key, pattern in patterns.items()}
    for row in rows:
        old = by_id.get(before.get(row.sku))
        if row.pattern is not None and old is not None and old != row.pattern.key:
            pattern = patterns[old]
            yield row.pattern.key, {"item": old, "picture": pattern["picture"], "prompt": pattern["prompt"]}
