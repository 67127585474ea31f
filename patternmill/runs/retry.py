"""Which rows of a run a retry works on, and what that would cost, from the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.rows import Row, sku_key
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import unwanted_patterns
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import find_run
from patternmill.ledger.row_outcomes import is_retriable
from patternmill.limits import amount_of
from patternmill.planning.plan import Cost
from patternmill.results.row_filter import rows_meant
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.runs.request import RetryRequest
from patternmill.states import RETRIABLE, AttemptState, RowStatus, Stage
from patternmill.text import more, plural

_REMEDIES = {
    RowStatus.SUCCEEDED: "They are made; `patternmill remake` makes another take of them.",
    RowStatus.REFUSED: "Correct them in failures.csv and import that.",
    RowStatus.HELD: "Decide about them with `patternmill settle`.",
}
_OPEN = (AttemptState.INTENDED, AttemptState.ACCEPTED)


@dataclass(frozen=True)
class RetrySelection:
    """The rows of a run that a retry works on; all others stay as they are."""

    record: RunRecord
    #: The run's input, from the bytes that the ledger kept.
    file: CatalogFile = field(repr=False)
    rows: tuple[RowResult, ...]
    #: Rows that would fit, by sku, and what a later run has made of each.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: How many other rows have which status.
    others: Mapping[RowStatus, int] = field(default_factory=dict)

    @property
    def by_status(self) -> Mapping[RowStatus, int]:
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in RowStatus if found[status]}

    @property
    def nothing_to_retry(self) -> str:
        """What is said where no row is chosen: what may be done about the others."""
        remedies = (
            f"{plural(self.others[status], 'row')} {status}. {_REMEDIES[status]}"
            for status in (RowStatus.REFUSED, RowStatus.HELD)
            if self.others.get(status)
        )
        return " ".join(("Nothing to retry.", *remedies))

    def left_out_lines(self, most: int) -> Iterator[str]:
        """What is left out and why, at most so many rows."""
        if self.left_out:
            yield f"Left out, because of later runs: {plural(len(self.left_out), 'row')}"
        yield from (f"  {sku}: {why}" for sku, why in islice(self.left_out.items(), most))
        yield from more(len(self.left_out), most)

    @cached_property
    def _skus(self) -> frozenset[str]:
        return frozenset(row.sku for row in self.rows)

    def chooses(self, row: Row) -> bool:
        return row.sku in self._skus


def select_rows(ledger: Ledger, request: RetryRequest) -> RetrySelection:
    """The rows of a run that fit, in the order of its file, without those that a later run has superseded.

    Raises ConfigurationError for a run or a sku that is not known, and for a status that no retry can change.
    """
    record = find_run(ledger, request.run, catalog=request.catalog, environment=request.environment)
    for status in request.status:
        if status not in RETRIABLE:
            raise ConfigurationError(f"Rows that are {status} cannot be retried.", remedy=_REMEDIES[status])
    file = input_file(ledger, record)
    present = list(row_results(ledger, record, file, now=True))
    wanted = request.model_copy(update={"status": request.status or tuple(RETRIABLE)})
    unwanted = unwanted_patterns(ledger, record.environment, record.catalog)
    fitting = {row.sku: row for row in rows_meant(present, wanted) if is_retriable(row.outcome, unwanted)}
    superseded = _superseded(ledger, record, {sku: row.product_key for sku, row in fitting.items()})
    return RetrySelection(
        record,
        file,
        tuple(row for sku, row in fitting.items() if sku not in superseded),
        {sku: superseded[sku] for sku in fitting if sku in superseded},
        Counter(row.status for row in present if row.sku not in fitting),
    )


def has_rows_to_retry(ledger: Ledger, record: RunRecord) -> bool:
    """Return whether a retry of a run would do something for one of its rows at least."""
    if not any(ledger.runs.rows_by_status(record).get(status) for status in RETRIABLE):
        return False
    unwanted = unwanted_patterns(ledger, record.environment, record.catalog)
    rows = ledger.runs.rows_with_outcomes(record)
    return any(is_retriable(outcome, unwanted) for _, outcome in rows)


def _superseded(
    ledger: Ledger, record: RunRecord, products: Mapping[str, ItemKey | None]
) -> Mapping[str, str]:
    """Why, by sku, where the catalog has something else for it now."""
    kept = ledger.catalogs.source_rows(record.environment, record.catalog)
    found = {}
    for sku, product in products.items():
        row = kept.get(sku_key(sku))
        if row is not None and row.is_gone:
            found[sku] = "gone from the source"
        elif row is not None and row.product_key is None:
            found[sku] = "refused since, with other content"
        elif row is not None and row.product_key != product:
            found[sku] = "requested since with other content"
    return found


def cost(rows: Iterable[RowResult], options: RunOptions) -> tuple[Counter[Stage], Cost]:
    """What retrying these rows would buy; an item that is paid, or shared, is counted once or not at all.

    At least, when each next attempt succeeds; at most, when only the last that is allowed does.
    """
    bought, most = Counter[Stage](), Counter[Stage]()
    attempts = options.attempts
    for item in {item.key: item for row in rows for item in row.items}.values():
        if item.state in _OPEN:
            most[item.stage] += max(0, attempts - item.attempts)
        elif item.state is not AttemptState.SUCCEEDED:
            bought[item.stage] += 1
            most[item.stage] += attempts
    expected, worst = (amount_of(counts, options.prices) for counts in (bought, most))
    return bought, Cost(expected, worst, options.currency)
