"""The flow that makes a catalog what its source says."""

from typing import Any

from prefect import State, flow

from patternmill.files import code_version
from patternmill.request import Count, Request
from tasks.make import carry_out_shown


@flow(
    name="catalog-refresh",
    flow_run_name="refresh {file}",
    version=code_version(),
    retries=0,
    persist_result=False,
)
async def catalog_refresh(
    file: str,
    catalog: str | None = None,
    environment: str | None = None,
    mapping: str | None = None,
    out: str | None = None,
    max_items: Count | None = None,
    budget: str | None = None,
    change: Count | None = None,
    retire: Count | None = None,
    rename: Count | None = None,
    plan_only: bool = False,
) -> State[Any]:
    """Make what was added to a sheet or changed in it, and retire what is gone from it.

    Args:
        file: The whole catalog, a CSV file or a workbook.
        catalog: The catalog; without it, the one that the file's name says.
        environment: The environment whose service is asked; without it, that of the settings.
        mapping: What columns and words mean; without it, NAME.mapping.toml beside the sheet.
        out: The folder of the results; without it, results/CATALOG/RUN.
        max_items: The most patterns and products that this run buys.
        budget: The most that this run spends, such as 500.00.
        change: How many rows may get another product; without it, as the settings say.
        retire: How many rows may be retired; without it, as the settings say.
        rename: How many rows that look renamed are bought again.
        plan_only: Say what would be made and retired, and do nothing.
    """
    return await carry_out_shown(Request(verb="refresh", **locals()))
