"""Which rows a person means: one filter for every verb that works on some of the rows of a run or a catalog.

Loads nothing but pydantic until rows are filtered, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from patternmill.errors import ConfigurationError
from patternmill.states import RowStatus

if TYPE_CHECKING:
    from patternmill.catalog.changes import CurrentRow
    from patternmill.ledger.ledger import Ledger
    from patternmill.results.row_results import RowResult


def _listed(value: object) -> object:
    """`failed,in-doubt`, alone or as one of several, is two statuses."""
    if isinstance(value, RowStatus) or not isinstance(value, str | list | tuple):
        return value
    texts = [value] if isinstance(value, str) else value
    parts = [part for text in texts for part in str(text).split(",")]
    return [part.strip().lower().replace("-", "_") for part in parts if part.strip()]


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


#: A date, or a date and time (ISO 8601), in UTC where no zone is named.
Since = Annotated[datetime, AfterValidator(_utc)]


#: Of rows, as a list or as one text with commas.
Statuses = Annotated[tuple[RowStatus, ...], BeforeValidator(_listed)]


class RowFilter(BaseModel):
    """The rows that fit every field that is given. Requests of a verb inherit these fields as their options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sku: tuple[str, ...] = Field((), description="Only the rows with these skus.")
    status: Statuses = Field(
        (), description="Only rows with one of these statuses: failed, in_doubt, held, ..."
    )
    code: tuple[str, ...] = Field((), description="Only rows with these error codes, as in failures.csv.")
    category: tuple[str, ...] = Field(
        (), description="Only rows of these categories, as the file names them or by their IDs."
    )
    changed_since: Since | None = Field(
        None, description="Only rows for which something was requested or made since this date or time (UTC)."
    )
    picks: Path | None = Field(
        None, description="Only the rows that this sheet has with yes in its column `picked`, by their sku."
    )

    @property
    def is_empty(self) -> bool:
        """Whether every row fits."""
        return not any(getattr(self, name) for name in RowFilter.model_fields)

    def with_picks_read(self) -> Self:
        """The same with the skus of the sheet of picks. Raises InputRefused for a sheet that cannot be read."""
        if self.picks is None:
            return self
        from patternmill.results.picks import skus_picked

        if self.sku:
            raise ConfigurationError(
                "Rows are named one by one and in a sheet.", remedy="Use either --sku or --picks."
            )
        return self.model_copy(update={"sku": skus_picked(self.picks), "picks": None})

    def fits(
        self,
        sku: str,
        status: RowStatus,
        code: str | None,
        categories: Iterable[str],
        changed_at: float | None,
    ) -> bool:
        """Whether the row that has these values is meant; its picks have been read.

        `categories` are the names of its one category, `changed_at` is in Unix seconds.
        """
        assert self.picks is None, "its picks have been read"
        since = self.changed_since
        return (
            (not self.sku or sku in self.sku)
            and (not self.status or status in self.status)
            and (not self.code or code in self.code)
            and (not self.category or not _folded(self.category).isdisjoint(_folded(categories)))
            and (since is None or (changed_at is not None and changed_at >= since.timestamp()))
        )


def rows_meant(rows: Iterable[RowResult], wanted: RowFilter) -> list[RowResult]:
    """The rows that fit, in their order.

    Raises ConfigurationError for a sku that no row has, and InputRefused for picks that cannot be read.
    """
    rows = list(rows)
    wanted = _with_skus(wanted, {row.sku for row in rows})
    return [
        row
        for row in rows
        if wanted.fits(row.sku, row.status, row.error_code, (row.category, row.category_id), row.changed_at)
    ]


def catalog_rows_meant(ledger: Ledger, environment: str, catalog: str, wanted: RowFilter) -> list[CurrentRow]:
    """Of what a catalog has, the rows that fit; all of them have succeeded. Raises as `rows_meant` does."""
    from patternmill.catalog.rows import sku_key

    rows = list(ledger.catalogs.rows(environment, catalog))
    if wanted.is_empty:
        return rows
    wanted = _with_skus(wanted, {row.sku for row in rows})
    source = ledger.catalogs.source_rows(environment, catalog)
    fitting = []
    for row in rows:
        answered = source[key].answered if (key := sku_key(row.sku)) in source else {}
        categories = (row.content.category, answered.get("category", ""))
        if wanted.fits(row.sku, RowStatus.SUCCEEDED, None, categories, row.since):
            fitting.append(row)
    return fitting


def _with_skus(wanted: RowFilter, present: Collection[str]) -> RowFilter:
    """With its picks read. Raises ConfigurationError for a sku that is not present."""
    from patternmill.catalog.rows import tidy

    wanted = wanted.with_picks_read()
    wanted = wanted.model_copy(update={"sku": tuple(map(tidy, wanted.sku))})
    if unknown := sorted(set(wanted.sku) - set(present)):
        raise ConfigurationError(
            f"There is no row {', '.join(unknown[:5])} here.",
            remedy="Write the sku as its file does, several as --sku A --sku B.",
        )
    return wanted


def _folded(names: Iterable[str]) -> set[str]:
    return {" ".join(name.split()).casefold() for name in names}
