"""A run as a person looks at it: its rows as they are now, with their pictures, takes and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager
from pathlib import Path

from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Approval, RunRecord
from patternmill.looking.page import page, pattern_facts
from patternmill.looking.pictures import FOLDER, Pictures, Source, is_drawn, picture_name, picture_urls
from patternmill.planning.plan import Cost
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.runs.recorded_rows import run_results
from patternmill.settings import Settings
from patternmill.states import Verdict
from patternmill.tables.columns import run_cell
from patternmill.text import plural


class ViewedRun:
    """The page of a run, which is read again each time that it is opened."""

    def __init__(self, settings: Settings, record: RunRecord, source: Source = lambda url: b"") -> None:
        """Look at a run; `source` has the pictures that the home lacks."""
        self.record = record
        self._settings = settings
        self._pictures = Pictures(settings.home, source)
        self._read()

    def _read(self) -> None:
        with self.ledger() as ledger:
            self._results = run_results(ledger, self.record, now=True).read()
            self._catalog = CatalogTakes(ledger, self.record.environment, self.record.catalog)
        rows = self._results.lines
        self._takes = self._catalog.as_shown(rows)
        self._names = {picture_name(url): url for url in picture_urls(rows, self._takes.values())}

    def ledger(self) -> AbstractContextManager[Ledger]:
        return open_ledger(self._settings, must_exist=True)

    @property
    def items(self) -> Set[ItemKey]:
        """Return what can be decided on: every take of the catalog that was made."""
        return self._takes.keys()

    def picture(self, name: str) -> tuple[Path, str] | None:
        """Return a picture of this run with its digest, fetched if need be; None if it is not available."""
        path = self._pictures.get(self._names[name]) if name in self._names else None
        return (path, self._pictures.digest(self._names[name])) if path is not None else None

    def digest(self, item: ItemKey) -> str:
        """Return the SHA-256 of a take's picture; "" if it is not here yet."""
        take = self._takes.get(item)
        return self._pictures.digest(take.picture_url) if take is not None else ""

    def fill(self) -> None:
        """Start fetching every picture, and put those of an embedded studio next to the gallery of its results."""
        folder = Path("results") / self.record.catalog / self.record.run_id
        self._pictures.fill(
            self._names.values(), folder if is_drawn(self.record) and folder.is_dir() else None
        )

    def approve(self, digest: str, who: str) -> str:
        """Approve the plan that waits, and return a sentence about it. Raises InputRefused if it is another plan."""
        with self.ledger() as ledger, ledger.transaction():
            waiting = self._waiting(ledger)
            if waiting is None or waiting.digest != digest:
                raise InputRefused("No such plan waits for approval.", remedy="Load the page again.")
            ledger.approvals.decide(waiting.id, Verdict.APPROVED, who=who, note="while looking")
        return f"Plan {waiting.short} is approved."

    def _waiting(self, ledger: Ledger) -> Approval | None:
        """Return the last plan of the catalog that waits for a person's decision."""
        asked = ledger.approvals.find(self.record.environment, self.record.catalog)
        return next((plan for plan in reversed(asked) if plan.verdict is Verdict.WAITING), None)

    def page(self, actions: Sequence[str] = ()) -> Iterator[bytes]:
        """Return the bytes of the page; `actions` are the names of its commands."""
        self._read()
        scope = self.record.environment, self.record.catalog
        with self.ledger() as ledger:
            waiting = self._waiting(ledger) if actions else None
            pauses = [pause for pause in ledger.brake.pauses() if pause.covers(*scope)]
        decided = (self._takes[item] for item in self._catalog.decisions.keys() & self._takes.keys())
        return page(
            self.record,
            self._results,
            {url: f"{FOLDER}/{name}" for name, url in self._names.items()},
            patterns=pattern_facts(self._catalog, self._results.lines, self._pictures.digests(decided)),
            facts={
                "cell": run_cell(self.record.run_id, self._catalog.last_sequence),
                "actions": actions,
                "approval": _approval(waiting) if waiting else None,
                "paused": " ".join(pause.message for pause in pauses),
            },
            served=True,
        )


def _approval(plan: Approval) -> dict[str, str]:
    """Return what the page needs to know of a plan that waits for approval."""
    cost = f" for {Cost(plan.expected, plan.worst, plan.currency or None)}" if plan.worst else ""
    return {"digest": plan.digest, "text": f"{plural(plan.items, 'item')}{cost}"}
