"""The catalog refresh: updates a catalog from its source; makes only what has changed."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.parameters import (
    CatalogName,
    Confirmation,
    Count,
    EditionName,
    EnvironmentName,
    MaxFailures,
    SourceName,
)
from patternmill.runs.request import RefreshRequest
from tasks.run_steps import refresh_name, requested


@flow(name="catalog-refresh", flow_run_name=refresh_name, persist_result=False)
async def catalog_refresh(
    source: SourceName,
    catalog: CatalogName | None = None,
    environment: EnvironmentName | None = None,
    retire_at_most: str | None = None,
    retire: Count | None = None,
    budget: Count | None = None,
    max_items: Count | None = None,
    max_failures: MaxFailures = None,
    confirm: Confirmation | None = None,
    edition: EditionName | None = None,
    mapping: Path | None = None,
    out: str | None = None,
) -> State[Any]:
    """Compare the source with the catalog, make what was added or changed, retire what is gone.

    Args:
        source: The whole catalog: a path, an address (https://, s3://, …), or a name of PATTERNMILL_SOURCES.
        catalog: The catalog to update. Default: the one that an import of the source has made.
        environment: staging, production, or another configured environment; each has its own catalogs and purchases.
        retire_at_most: Retire nothing if more rows than this are gone: a count (20), a share (10%), or both (20,10%).
        retire: This once, retire up to this many rows despite the limit above.
        budget: The most that one run spends, in minor units (50000 is €500.00); needs prices set. Default: no limit.
        max_items: The most items to buy: patterns, refinements and products. Default: no limit.
        max_failures: Begin nothing new once more items than this have failed: a count (25), or a share (10%).
        confirm: Confirm what is asked: the environment's name (a large purchase), duplicates, or new-ledger.
        edition: Buy everything again, on purpose, under this edition's name.
        mapping: What its columns and words mean. Default: NAME.mapping.toml beside the file, or in the home.
        out: Where the results go: a folder or an address. Default: results/CATALOG/RUN.
    """
    return await import_rows(requested(RefreshRequest(**locals())))
