"""The catalog refresh: a catalog follows its source, and makes only what has changed in it."""

from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.parameters import (
    Attempts,
    CatalogName,
    Confirmation,
    Count,
    EnvironmentName,
    MaxFailures,
    Parts,
    SourceName,
    Window,
)
from patternmill.runs.request import RefreshRequest
from tasks.run_steps import requested


@flow(name="catalog-refresh", flow_run_name="refresh {catalog}", persist_result=False)
async def catalog_refresh(
    source: SourceName,
    catalog: CatalogName,
    environment: EnvironmentName | None = None,
    retire_at_most: str | None = None,
    retire: Count | None = None,
    budget: Count | None = None,
    max_patterns: Count | None = None,
    max_products: Count | None = None,
    max_failures: MaxFailures = None,
    confirm: Confirmation | None = None,
    attempts: Attempts | None = None,
    max_in_flight: Window | None = None,
    spread: Parts | None = None,
    edition: str | None = None,
    encoding: str | None = None,
    out: str | None = None,
) -> State[Any]:
    """Hold the source against the catalog, make what was added or changed, mark what is gone as retired.

    Args:
        source: The whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES.
        catalog: The catalog that follows it.
        environment: staging, production, or another name that your addresses have; scopes all identity.
        retire_at_most: When more rows than this are gone, they wait: a count (20), a share (10%), or both (20,10%).
        retire: Lets at most so many rows go this once, whatever the limit above says.
        budget: The most to spend, in minor units (50000: €500.00); none: no limit. Needs prices in the settings.
        max_patterns: The most patterns to buy; none: no limit.
        max_products: The most products to buy; none: no limit.
        max_failures: Begins nothing new when more items than this have failed: a count (25), or a share (10%).
        confirm: Says that a large purchase in production, or another catalog's products once more, is meant.
        attempts: How often an item is tried when the service says that its job failed; none: as set (2).
        max_in_flight: The most jobs in flight at once; none: as set (200).
        spread: In how many parts, for as many workers; none: this run drives all rows itself.
        edition: A name under which everything is bought again, on purpose.
        encoding: Of the source, when it is not UTF-8 or UTF-16: cp1252, for instance.
        out: Where the results go: a folder, or an address; none: results/<catalog>/<run>.
    """
    return await import_rows(requested(RefreshRequest(**locals())))
