"""The rows of a run that a retry works on, from the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.catalogs import RETRY_OF, TAKES
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import find_run
from patternmill.ledger.row_outcomes import RowOutcome, is_retriable
from patternmill.planning.rows import sku_key
from patternmill.runs.catalog_takes import takes_without_product
from patternmill.runs.recorded_rows import rows_of_run, run_results, without_rows
from patternmill.runs.request import RetryRequest
from patternmill.states import RETRIABLE, RowStatus
from patternmill.text import more, plural

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_REMEDIES = {
    RowStatus.SUCCEEDED: "They are made; `patternmill remake` makes another take of them.",
    RowStatus.REFUSED: "Correct them in failures.csv and import that.",
    RowStatus.HELD: "Decide about them with `patternmill settle`.",
    RowStatus.TO_CHOOSE: "Pick a take of each with `patternmill look`, and import them again.",
    RowStatus.DISCARDED: "Take a rejection back with `patternmill look`, or make another take with `remake --sku`.",
}


@dataclass(frozen=True)
class RetrySelection:
    """The rows of a run that a retry works on; all others stay as they are."""

    record: RunRecord
    #: The run's rows as it understood them, without those that a later run has superseded.
    checked: Checked = field(repr=False)
    #: The rows to retry, by sku, in the order of the file.
    rows: Mapping[str, RowOutcome]
    #: Why rows that would fit are left out because of later runs, by sku.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: The number of other rows, by status.
    others: Mapping[RowStatus, int] = field(default_factory=dict)

    @property
    def takes(self) -> int:
        """Return how many takes of a pattern the run was to make, of which the retry makes those that are missing."""
        return int(self.record.options.get(TAKES, 1))

    @property
    def nothing_to_retry(self) -> str:
        """Return what can be done about the rows where none can be retried."""
        remedies = (
            f"{plural(self.others[status], 'row')} {status.words}. {_REMEDIES[status]}"
            for status in (RowStatus.REFUSED, RowStatus.HELD, RowStatus.TO_CHOOSE)
            if self.others.get(status)
        )
        return " ".join(("Nothing to retry.", *remedies))

    def left_out_lines(self, most: int) -> Iterator[str]:
        """Yield which rows are left out and why, up to a number."""
        if self.left_out:
            yield f"Left out, because of later runs: {plural(len(self.left_out), 'row')}"
        yield from (f"  {sku}: {why}" for sku, why in islice(self.left_out.items(), most))
        yield from more(len(self.left_out), most)


def select_rows(ledger: Ledger, request: RetryRequest) -> RetrySelection:
    """Return the rows of a run that fit, in the order of its file, without those that a later run superseded.

    Superseded rows are not rows of the retry at all, so that its results name what the catalog has.

    Raises ConfigurationError for a run or a sku that is not known, and for a status that no retry can change.
    """
    record = find_run(ledger, request.run, catalog=request.catalog, environment=request.environment)
    for status in request.status:
        if status not in RETRIABLE:
            raise ConfigurationError(
                f"Rows that are {status.words} cannot be retried.", remedy=_REMEDIES[status]
            )
    checked = rows_of_run(ledger, record)
    results = run_results(ledger, record, checked.catalog, now=True).read()
    rows, wanted = results.rows, request.model_copy(update={"status": request.status or tuple(RETRIABLE)})
    without_product = takes_without_product(ledger, record.environment, record.catalog)
    meant = rows[wanted.fitting(rows)]
    lines = zip(meant["sku"], meant["line"], strict=True)
    outcomes = {sku: RowOutcome.parse(results.retriable[line]) for sku, line in lines}
    fitting = {sku: row for sku, row in outcomes.items() if is_retriable(row, without_product)}
    superseded = _superseded(ledger, record, dict(zip(rows["sku"], rows["product_key"], strict=True)))
    left_out = set(rows["line"][rows["sku"].isin(superseded)])
    return RetrySelection(
        record,
        without_rows(checked, left_out) if left_out else checked,
        {sku: row for sku, row in fitting.items() if sku not in superseded},
        {sku: superseded[sku] for sku in fitting if sku in superseded},
        Counter(rows["status"][~rows["sku"].isin(fitting)]),
    )


def has_rows_to_retry(ledger: Ledger, record: RunRecord) -> bool:
    """Return whether a retry of a run would do something for at least one of its rows."""
    if not any(ledger.runs.rows_by_status(record).get(status) for status in RETRIABLE):
        return False
    without_product = takes_without_product(ledger, record.environment, record.catalog)
    rows = ledger.runs.rows_with_outcomes(record)
    return any(is_retriable(outcome, without_product) for _, outcome in rows)


def _superseded(
    ledger: Ledger, record: RunRecord, products: Mapping[str, ItemKey | None]
) -> Mapping[str, str]:
    """Return, by sku, why rows are not retried for which a later run has something else.

    `products`: the run's own product items by sku; None where the row was refused.
    """
    scope = {"catalog": record.catalog, "environment": record.environment}
    retries = {run.run_id for run in ledger.runs.find(**scope) if RETRY_OF in run.options}
    original = record
    # Retries change no content, so later means: after the run that was retried first.
    while (earlier := ledger.runs.get(RunId(original.options.get(RETRY_OF, "")))) is not None:
        original = earlier
    later = {sku: key for sku, key, run_id in ledger.runs.later_requests(original) if run_id not in retries}
    gone = ledger.catalogs.gone_skus(record.environment, record.catalog)
    superseded = {}
    for sku, product in products.items():
        key = sku_key(sku)
        if key in gone:
            superseded[sku] = "gone from the source"
        elif later.get(key, product) == product:
            continue
        elif later[key] is None:
            superseded[sku] = "refused since, with other content"
        else:
            superseded[sku] = "requested since with other content"
    return superseded
