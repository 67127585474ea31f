"""What a person, a schedule or a form asks for: each option once, with its type, bounds, unit and help.

The options of the command line are made of these models, and the parameters of the flows are held against them.
Loads nothing but pydantic, so that `--help` is quick.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from patternmill.parameters import (
    Attempts,
    CatalogName,
    Confirmation,
    Count,
    EnvironmentName,
    MaxFailures,
    Parts,
    RetriableStatus,
    SourceName,
    Window,
)


class RunRequest(BaseModel):
    """What every run may be asked for; None: as the settings have it, or no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: EnvironmentName | None = Field(
        None,
        description="staging, production, or another name that your addresses have; scopes all identity.",
    )
    budget: Count | None = Field(
        None,
        description="The most to spend, in minor units (50000: €500.00); none: no limit. Needs prices in the settings.",
    )
    max_patterns: Count | None = Field(None, description="The most patterns to buy; none: no limit.")
    max_products: Count | None = Field(None, description="The most products to buy; none: no limit.")
    max_failures: MaxFailures = Field(
        None,
        description="Begins nothing new when more items than this have failed: a count (25), or a share (10%).",
    )
    confirm: Confirmation | None = Field(
        None,
        description="Says that a large purchase in production, or another catalog's products once more, is meant.",
    )
    attempts: Attempts | None = Field(
        None,
        description="How often an item is tried when the service says that its job failed; none: as set (2).",
    )
    max_in_flight: Window | None = Field(
        None, description="The most jobs in flight at once; none: as set (200)."
    )
    spread: Parts | None = Field(
        None,
        description="In how many parts, for as many workers; none: this run drives all rows itself.",
    )


class ImportRequest(RunRequest):
    """A file whose rows are to be made."""

    file: Path = Field(
        description="The CSV, as the worker sees its path: from the project's folder, or absolute."
    )
    catalog: str | None = Field(
        None, description="The catalog that the rows belong to; none: named after the file."
    )
    edition: str | None = Field(
        None, description="A name under which everything is bought again, on purpose."
    )
    encoding: str | None = Field(
        None, description="Of the file, when it is not UTF-8 or UTF-16: cp1252, for instance."
    )
    out: Path | None = Field(None, description="Where the results go; none: results/<catalog>/<run>.")


class RefreshRequest(RunRequest):
    """A source that a catalog is to follow."""

    source: SourceName = Field(
        repr=False,
        description="The whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES.",
    )
    catalog: CatalogName = Field(description="The catalog that follows it.")
    retire_at_most: str | None = Field(
        None,
        description="When more rows than this are gone, they wait: a count (20), a share (10%), or both (20,10%).",
    )
    retire: Count | None = Field(
        None, description="Lets at most so many rows go this once, whatever the limit above says."
    )
    edition: str | None = Field(
        None, description="A name under which everything is bought again, on purpose."
    )
    encoding: str | None = Field(
        None, description="Of the source, when it is not UTF-8 or UTF-16: cp1252, for instance."
    )
    out: str | None = Field(
        None,
        repr=False,
        description="Where the results go: a folder, or an address; none: results/<catalog>/<run>.",
    )


class RetryRequest(RunRequest):
    """The rows of an earlier run that did not succeed."""

    run: str = Field(
        "latest", description="The run's ID or its beginning, as its summary has it; or `latest`."
    )
    catalog: str | None = Field(
        None, description="The catalog whose run is meant; needed where there are several."
    )
    status: tuple[RetriableStatus, ...] = Field(
        (), description="Only rows that have one of these statuses; none: all of these."
    )
    category: tuple[str, ...] = Field(
        (), description="Only rows of these categories, as the file writes them; none: all."
    )
    code: tuple[str, ...] = Field(
        (), description="Only rows with these error codes, as in failures.csv; none: all."
    )
    sku: tuple[str, ...] = Field((), description="Only these rows; none: all.")
    out: Path | None = Field(None, description="Where the results go; none: results/<catalog>/<run>.")
