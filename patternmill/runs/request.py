"""The options of a run, as a person, a schedule or a form sets them: each once, with type, bounds, unit and help.

The options of the command line and the forms of the flows are made of these models.
Loads nothing but pydantic, so that `--help` is quick.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from patternmill.parameters import (
    AmountText,
    CatalogName,
    Confirmation,
    Count,
    EnvironmentName,
    Lines,
    MaxFailures,
    OrderName,
    Place,
    Quantity,
    SourceName,
    Takes,
    WaitTime,
)
from patternmill.tables.row_filter import RowFilter


class RunRequest(BaseModel):
    """The options of every run; None: the settings' value, or no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: EnvironmentName | None = Field(
        None,
        description="staging, production, or another configured environment; each has its own catalogs and purchases.",
    )
    budget: AmountText | None = Field(
        None,
        description="The most that one run spends: €500, 500.00; without a currency, in the unit of the prices. "
        "Needs prices set. Default: no limit; 0 buys nothing.",
    )
    max_items: Count | None = Field(
        None, description="The most items to buy: patterns, refinements and products. Default: no limit."
    )
    max_failures: MaxFailures | None = Field(
        None,
        description="Begin nothing new once more items than this have failed: a count (25), or a share (10%).",
    )
    change_at_most: str | None = Field(
        None,
        description="Ask before the products of more rows than this are replaced: a count (20), a share (10%), or both "
        "(20,10%).",
    )
    confirm: Confirmation | None = Field(
        None,
        description="Confirm what was refused: the environment (a large purchase), changes, duplicates or ledger.",
    )
    plan_only: bool = Field(
        False, description="Show what would be made, why, and what it costs; nothing is written or bought."
    )


class SheetRequest(RunRequest):
    """The options of a run whose rows are read from a sheet."""

    mapping: Path | None = Field(
        None,
        description="The file that says what columns and words mean. Default: NAME.mapping.toml beside it, or in the "
        "home.",
    )
    check: bool = Field(False, description="Only check every row, and list what is wrong; nothing is bought.")


_OUT = (
    "Where the results go: a folder, or the address of a store (s3://…, gs://, az://, abfs://), below which they "
    "are copied to CATALOG/RUN. Default: results/CATALOG/RUN."
)


class ImportRequest(SheetRequest):
    """A file whose rows are to be made."""

    file: SourceName = Field(
        repr=False,
        description="The sheet with the rows: its path as the worker sees it, from the worker's folder or absolute; an "
        "address (https://, s3://, …); or a name of PATTERNMILL_SOURCES.",
    )
    catalog: str | None = Field(
        None, description="The catalog that the rows belong to. Default: named after the file."
    )
    whole: bool = Field(
        False,
        description="The file is the whole catalog: rows no longer in it are retired, as by a refresh.",
    )
    out: Place | None = Field(None, description=_OUT)
    takes: Takes = Field(
        1, description="How many takes of each pattern to make; products are made of the one that is picked."
    )


class RefreshRequest(SheetRequest):
    """A source that a catalog is to follow."""

    source: SourceName = Field(
        repr=False,
        description="The whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES.",
    )
    catalog: CatalogName | None = Field(
        None, description="The catalog to update. Default: the one that an import of the source has made."
    )
    retire_at_most: str | None = Field(
        None,
        description="Retire nothing if more rows than this are gone: a count (20), a share (10%), or both (20,10%).",
    )
    retire: Count | None = Field(
        None, description="This once, retire up to this many rows despite the limit above."
    )
    out: Place | None = Field(None, description=_OUT)


class RetryRequest(RunRequest, RowFilter):
    """The rows of an earlier run that did not succeed."""

    run: str = Field("latest", description="The run's ID or its beginning, from its summary; or `latest`.")
    catalog: str | None = Field(
        None, description="The catalog whose run to retry; needed if there are several."
    )
    out: Place | None = Field(None, description=_OUT)


class RemakeRequest(RunRequest):
    """Rows of a catalog whose pattern is to have another take."""

    sku: tuple[str, ...] = Field(
        (), description="The rows with these skus, and every row that shares their patterns."
    )
    picks: Path | None = Field(
        None,
        description="The rows of a file of decisions: decisions.csv, or a results.csv with its column `decision`.",
    )
    catalog: str | None = Field(None, description="The catalog; needed if there are several.")
    takes: Takes = Field(
        1, description="How many takes to make, to pick one of; a row keeps what it has until then."
    )
    take: Takes | None = Field(
        None, description="Have this earlier take again, which was paid for: no pattern is bought."
    )
    again: bool = Field(False, description="Make one more, although nobody decided against the last take.")


#: The requests that begin a run.
Request = ImportRequest | RefreshRequest | RetryRequest | RemakeRequest


class OrderRequest(RowFilter):
    """The products that a person picked, to be ordered: rows that fit a filter, or a file of picks."""

    catalog: str | None = Field(
        None, description="The catalog to order from; needed if several have the rows."
    )
    environment: EnvironmentName | None = Field(
        None, description="staging, production, or another configured environment."
    )
    quantity: Quantity = Field(1, description="How many of each product, unless its row names a quantity.")
    order: OrderName = Field(
        "samples", description="The order's name: under one name no product is ordered twice."
    )
    lines: Lines = Field(50, description="The most lines of one checkout; further ones make another.")
    wait: WaitTime | None = Field(
        None, description="How long to wait for the orders of paid checkouts: 30m, 2h. Default: do not wait."
    )
