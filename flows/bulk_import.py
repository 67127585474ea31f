"""The flow that turns a sheet into products."""

from typing import Any

from prefect import State, flow

from patternmill.files import code_version
from patternmill.request import Count, Request
from tasks.make import carry_out_shown


@flow(
    name="bulk-import", flow_run_name="import {file}", version=code_version(), retries=0, persist_result=False
)
async def bulk_import(
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
    """Turn a sheet of prompts and category selections into products.

    Run it again, after whatever: nothing is bought twice. The state's data is a `Summary`; where rows were refused or
    failed it is `RowsFailed`, which awaiting this flow raises.

    Args:
        file: The sheet, a CSV file or a workbook.
        catalog: The catalog; without it, the one that the file's name or its column `run` says.
        environment: The environment whose service is asked; without it, that of the settings.
        mapping: What columns and words mean; without it, NAME.mapping.toml beside the sheet.
        out: The folder of the results; without it, results/CATALOG/RUN.
        max_items: The most patterns and products that this run buys.
        budget: The most that this run spends, such as 500.00.
        change: How many rows may get another product; without it, as the settings say.
        retire: Not used here; for `catalog-refresh`.
        rename: How many rows that look renamed are bought again.
        plan_only: Say what would be made, and make nothing.
    """
    return await carry_out_shown(Request(verb="import", **locals()))
