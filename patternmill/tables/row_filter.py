"""The filter of rows, one for every verb that works on some of the rows of a run or a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from patternmill.errors import ConfigurationError
from patternmill.planning.rows import tidy
from patternmill.states import RowStatus

if TYPE_CHECKING:
    from patternmill.planning.changes import CurrentRow
    from patternmill.tables.results import ResultLine, RunResults


def _listed(value: object) -> object:
    """Return the statuses of `failed,in-doubt`, alone or as one of several texts."""
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
        """Return whether every row fits."""
        return not any(getattr(self, name) for name in RowFilter.model_fields)

    def with_picks_read(self) -> Self:
        """Return the filter with the skus of its sheet of picks. Raises InputRefused where that cannot be read."""
        if self.picks is None:
            return self
        from patternmill.tables.picks import skus_picked

        if self.sku:
            raise ConfigurationError(
                "Rows are named one by one and in a sheet.", remedy="Use either --sku or --picks."
            )
        return self.model_copy(update={"sku": skus_picked(self.picks), "picks": None})

    def matcher(self, skus: Iterable[str]) -> Callable[[RowFacts | ResultLine], bool]:
        """Return a function that tells of a row whether it fits; `skus` are those of all rows.

        Raises ConfigurationError for a sku that no row has, and InputRefused for picks that cannot be read.
        """
        wanted = set(map(tidy, self.with_picks_read().sku))
        if unknown := sorted(wanted.difference(skus)):
            raise ConfigurationError(
                f"There is no row {', '.join(unknown[:5])} here.",
                remedy="Write the sku as its file does, several as --sku A --sku B.",
            )
        categories = set(map(_folded, self.category))
        since = self.changed_since.timestamp() if self.changed_since is not None else None

        def fits(row: RowFacts | ResultLine) -> bool:
            return (
                (not wanted or row.sku in wanted)
                and (not self.status or row.status in self.status)
                and (not self.code or row.error_code in self.code)
                and (
                    not categories
                    or not categories.isdisjoint({_folded(row.category), _folded(row.category_id)})
                )
                and (since is None or (row.changed_at is not None and row.changed_at >= since))
            )

        return fits


class RowFacts(NamedTuple):
    """What a row is filtered by."""

    sku: str
    status: RowStatus
    error_code: str | None
    category: str
    category_id: str
    #: In Unix seconds; None: nothing was ever requested or made for it.
    changed_at: float | None


def lines_meant(runs: Sequence[RunResults], wanted: RowFilter) -> set[tuple[str, int]]:
    """Return by run and row number the rows of several runs that fit. Raises as `RowFilter.matcher` does."""
    fits = wanted.matcher(row.sku for run in runs for row in run.rows)
    return {(run.run_id, row.line) for run in runs for row in run.rows if fits(row)}


def catalog_rows_meant(rows: Iterable[CurrentRow], wanted: RowFilter) -> list[CurrentRow]:
    """Return the rows of a catalog that fit; all of them have succeeded. Raises as `RowFilter.matcher` does."""
    rows = list(rows)
    fits = wanted.matcher(row.sku for row in rows)
    return [row for row in rows if fits(_facts(row))]


def _facts(row: CurrentRow) -> RowFacts:
    content = row.content
    return RowFacts(
        row.sku, RowStatus.SUCCEEDED, None, content.category, content.category_name or "", row.since
    )


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
