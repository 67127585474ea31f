"""The filter of rows, which every verb that works on some rows of a run or a catalog shares.

Loads nothing but pydantic until rows are filtered, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from patternmill.errors import ConfigurationError
from patternmill.planning.rows import tidy
from patternmill.states import RowStatus

if TYPE_CHECKING:
    import pandas as pd

    from patternmill.planning.changes import CurrentRow
    from patternmill.tables.results import RunResults


def _listed(value: object) -> object:
    """Return the statuses in texts such as `failed,in-doubt`, of which there may be one or several."""
    if isinstance(value, RowStatus) or not isinstance(value, str | list | tuple):
        return value
    texts = [value] if isinstance(value, str) else value
    parts = [part for text in texts for part in str(text).split(",")]
    return [part.strip().lower().replace("-", "_") for part in parts if part.strip()]


#: A date, or a date and time (ISO 8601), in UTC where no zone is named.
Since = Annotated[datetime, AfterValidator(lambda at: at if at.tzinfo else at.replace(tzinfo=UTC))]
#: The statuses of rows, as a list or as one text with commas.
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

    def fitting(self, rows: pd.DataFrame) -> pd.Series:
        """Mark the rows of a frame that fit, by the columns of FILTERED.

        Raises ConfigurationError for a sku that no row has, and InputRefused for picks that cannot be read.
        """
        wanted = self.with_picks_read()
        skus = set(map(tidy, wanted.sku))
        if unknown := sorted(skus.difference(rows["sku"])):
            raise ConfigurationError(
                f"There is no row {', '.join(unknown[:5])} here.",
                remedy="Write the sku as its file does, several as --sku A --sku B.",
            )
        fits = rows["sku"].isin(skus) if skus else rows["sku"].notna()
        for name, values in (("status", self.status), ("error_code", self.code)):
            if values:
                fits &= rows[name].isin(values)
        if self.category:
            names = rows[["category", "category_id"]].map(_folded)
            fits &= names.isin(set(map(_folded, self.category))).any(axis=1)
        if self.changed_since is not None:
            fits &= rows["changed_at"].astype(float).ge(self.changed_since.timestamp())
        return fits


#: The columns by which a frame of rows is filtered; `changed_at` is in Unix seconds.
FILTERED = ("sku", "status", "error_code", "category", "category_id", "changed_at")


def lines_meant(runs: Iterable[RunResults], wanted: RowFilter) -> set[tuple[str, int]]:
    """Return run and row number of the rows of several runs that fit. Raises as `RowFilter.fitting` does."""
    import pandas as pd

    rows = pd.concat([run.rows.assign(run=run.run_id) for run in runs], ignore_index=True)
    return set(rows.loc[wanted.fitting(rows), ["run", "line"]].itertuples(index=False, name=None))


def catalog_rows_meant(rows: Iterable[CurrentRow], wanted: RowFilter) -> list[CurrentRow]:
    """Return the rows of a catalog that fit; all of them have succeeded. Raises as `RowFilter.fitting` does."""
    rows = list(rows)
    if wanted.is_empty:
        return rows
    import pandas as pd

    values = (
        (row.sku, RowStatus.SUCCEEDED, None, row.content.category, row.content.category_name or "", row.since)
        for row in rows
    )
    fits = wanted.fitting(pd.DataFrame(values, columns=list(FILTERED), dtype=object))
    return [row for row, is_meant in zip(rows, fits, strict=True) if is_meant]


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
