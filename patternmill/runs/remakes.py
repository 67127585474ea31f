"""Remakes: which rows of a catalog, as it is now, are to have another take of their pattern, by which decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.ledger.events import Decision, decided_by_open_runs, last_decisions, not_overtaken
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.planning.items import ItemMaker, Scope
from patternmill.planning.memory import ItemChooser
from patternmill.planning.rows import Row, sku_key, tidy
from patternmill.planning.takes import Take, needs_again
from patternmill.runs.decision_files import decided_run, read_decisions, user
from patternmill.runs.recorded_rows import recorded_row, remember, rows_of_catalog
from patternmill.runs.request import RemakeRequest
from patternmill.states import MAY_EXIST, OPEN_STATES, Decided, RowStatus
from patternmill.tables.picks import skus_picked
from patternmill.text import more, shortened

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_MOST_ROWS = 40
_MOST_NAMED = 5
_NAMESPACE = UUID("8c1f8a1e-6d1c-5f53-9a39-7a0c2f1f6a55")


@dataclass(frozen=True)
class Remake:
    """The rows that a remake works on, and the decisions that it records as it begins."""

    environment: str
    catalog: str
    checked: Checked = field(repr=False)
    #: What becomes of each sku: `take 2 in place of take 1`.
    takes: Mapping[str, str]
    decisions: tuple[Decision, ...] = ()
    #: Why nothing is made for a row, by sku.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: The skus that were not named but go along, as they share the pattern of one that was.
    sharing: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the rows that go along first, then each row with the take that it is to have."""
        yield f"Remake in catalog {self.catalog} ({self.environment})"
        if self.sharing:
            named = ", ".join(self.sharing[:_MOST_NAMED]) + (" …" if len(self.sharing) > _MOST_NAMED else "")
            yield f"  also {named}: they share these patterns"
        for sku, why in list(self.left_out.items())[:_MOST_ROWS]:
            yield f"  {sku}: left out: {why}"
        yield from more(len(self.left_out), _MOST_ROWS)
        for row in self.checked.accepted[:_MOST_ROWS]:
            yield f"  {row.sku}: {self.takes[row.sku]}  {shortened(row.prompt, 60)}"
        yield from more(len(self.checked.rows), _MOST_ROWS)


def requested_remake(ledger: Ledger, request: RemakeRequest, options: RunOptions) -> Remake:
    """Return what a request asks for, by the catalog as it is now and the decisions of its file. Writes nothing.

    Raises ConfigurationError, also where nothing is left to remake, and InputRefused for a file that cannot be read.
    """
    skus, given = request.sku, None
    if request.picks is not None and (run_id := decided_run(request.picks)) is not None:
        record = find_run(ledger, run_id)
        file = read_decisions(ledger, record, request.picks)
        skus += file.decided(Decided.REJECT, Decided.AGAIN, Decided.PICK)
        given = file.decisions
    else:
        record = find_run(ledger, LATEST, catalog=request.catalog, environment=request.environment)
        skus += skus_picked(request.picks) if request.picks is not None else ()
    scope = Scope(record.environment, record.catalog)
    recorded = ledger.catalogs.requested_rows(scope.environment, scope.catalog)
    rows = {key: recorded_row(row.content, row.sku) for key, row in recorded.items()}
    named = {sku_key(tidy(sku)): sku for sku in skus}
    if unknown := [sku for key, sku in named.items() if key not in rows]:
        raise ConfigurationError(
            f"There is no row {', '.join(unknown[:_MOST_NAMED])} to remake in catalog {scope.catalog}.",
            remedy="Write the sku as its file does; a row that was refused is corrected first.",
        )
    selection = _Selection(ledger, scope, options, rows, request, given or ())
    sharing: list[str] = []
    if given is not None or not named:
        chosen = [key for key in rows if selection.is_decided(key) and (given is None or key in named)]
    else:
        chosen, sharing = list(named), selection.sharing(named)
        selection.decide(chosen)
    takes, left_out = selection.outcomes([*chosen, *sharing])
    if not takes:
        why = "; ".join(f"{sku}: {text}" for sku, text in islice(left_out.items(), _MOST_NAMED))
        raise ConfigurationError(
            f"Nothing to remake in {scope.catalog}: "
            f"{why or 'no row waits for another take, and each has the one that was picked.'}",
            code="nothing_to_remake",
            remedy="Name rows with --sku, or decide about them with `patternmill look`.",
        )
    return Remake(
        scope.environment,
        scope.catalog,
        rows_of_catalog(ledger, scope.catalog, [row for row in recorded.values() if row.sku in takes]),
        takes,
        tuple(selection.decisions.values()),
        left_out,
        tuple(rows[key].sku for key in sharing if rows[key].sku in takes),
    )


class _Selection:
    """The rows of a catalog, with the decisions that a remake adds."""

    def __init__(
        self,
        ledger: Ledger,
        scope: Scope,
        options: RunOptions,
        rows: Mapping[str, Row],
        request: RemakeRequest,
        given: Sequence[Decision],
    ) -> None:
        self._rows, self._request, self._maker = rows, request, ItemMaker(scope)
        last = last_decisions(ledger, scope.environment, scope.catalog)
        self.decisions = {decision.item: decision for decision in not_overtaken(given, last)}
        self._unended = decided_by_open_runs(ledger, scope.environment, scope.catalog)
        self._left_out: dict[str, str] = {}
        self._remember = partial(remember, ledger, scope, options, decisions=self.decisions.values())
        self._apply_decisions()

    def _apply_decisions(self) -> None:
        self._memory = self._remember()
        self._chooser = ItemChooser(self._maker, self._memory, self._request.takes)

    def is_decided(self, key: str) -> bool:
        """Return whether a decision, or a remake that was cut short, asks for something that is not made yet."""
        takes = self._chooser.takes_of(self._rows[key])
        is_about = len(takes) > 1 or any(take.verdict is not None for take in takes)
        return is_about and self._is_remade(key)

    def _is_remade(self, key: str) -> bool:
        """Return whether something is made for a row, or a decision on its pattern is new."""
        row = self._rows[key]
        takes = self._chooser.takes_of(row)
        is_decided_anew = any(self._maker.pattern(row, take.number).key in self.decisions for take in takes)
        return is_decided_anew or self._is_to_make(key)

    def _is_to_make(self, key: str) -> bool:
        """Return whether a row is to have something that it does not have yet."""
        items = self._chooser.choose(self._rows[key])
        if items.status is RowStatus.DISCARDED:
            return False
        if items.status is RowStatus.TO_CHOOSE:
            states = map(self._memory.state, [item.key for item in items.candidates])
            return any(state in OPEN_STATES or state not in MAY_EXIST for state in states)
        return self._memory.products.get(key) != items.chain[-1].key

    def sharing(self, keys: Collection[str]) -> list[str]:
        """Return the other rows that share a pattern with these."""
        patterns = {self._maker.pattern(self._rows[key]).key for key in keys}
        return [
            key
            for key, row in self._rows.items()
            if key not in keys and self._maker.pattern(row).key in patterns
        ]

    def decide(self, keys: Collection[str]) -> None:
        """Record for each pattern of the rows what the request decides about it, in memory."""
        for key in keys:
            row, number, verdict = self._rows[key], self._request.take, Decided.PICK
            takes = self._chooser.takes_of(row)
            if number is None:
                number, verdict = needs_again(takes, more=self._asks_for_more(key, takes)), Decided.AGAIN
            elif not any(take.number == number and take.is_made for take in takes):
                self._left_out[row.sku] = f"there is no take {number} of its pattern"
                continue
            last = max((take.sequence for take in takes), default=0)
            counts = [take.number for take in takes if take.verdict is Decided.PICK and take.sequence == last]
            if number is None or (verdict is Decided.PICK and number in counts):
                continue
            item = self._maker.pattern(row, number).key
            # The same command, run again after a crash, records the same decision.
            id = str(uuid5(_NAMESPACE, f"{item} {verdict} {last}"))
            self.decisions[item] = Decision(id, item, "", verdict, "", user(), datetime.now(UTC), last)
        self._apply_decisions()

    def _asks_for_more(self, key: str, takes: list[Take]) -> bool:
        """Return whether one more take is asked for; not while the one that an earlier remake asked for is not made.

        What that remake was making when its process ended is resumed.
        """
        if not self._request.again:
            return False
        asked = [take.number for take in takes if take.verdict is Decided.AGAIN]
        last = self._maker.pattern(self._rows[key], max(asked)).key if asked else None
        return last is None or not (last in self._unended or self._is_to_make(key))

    def outcomes(self, keys: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return by sku what is made for each row, and why nothing is made for others."""
        made, left_out = dict[str, str](), dict(self._left_out)
        for key in keys:
            if (sku := self._rows[key].sku) not in left_out:
                is_made = self._is_remade(key)
                (made if is_made else left_out)[sku] = self._outcome(key, is_made=is_made)
        return made, left_out

    def _outcome(self, key: str, *, is_made: bool) -> str:
        """Return what becomes of a row, or why nothing is made for it."""
        row, product = self._rows[key], self._memory.products.get(key)
        items = self._chooser.choose(row)
        number, numbers = items.row.take or 1, [str(item.take) for item in items.candidates]
        # The take that the catalog's product is built on; 0: it has none of this pattern.
        takes = [take.number for take in self._chooser.takes_of(row)]
        own = next((take for take in takes if self._maker.chain(row, take)[-1].key == product), 0)
        if items.status is RowStatus.DISCARDED:
            return "discarded, as its takes were rejected" if is_made else "its takes were rejected"
        if items.status is not None and not is_made:
            return f"takes {' and '.join(numbers)} wait for a decision: pick one, or reject them"
        if items.status is not None:
            return f"takes {', '.join(numbers)}{f' after take {own}' if own else ''}"
        if not is_made:
            return f"it has take {number} already; --again makes one more"
        if number == own:
            return f"take {number}, as it has"
        return f"take {number}{f' in place of take {own}' if own else ''}"
