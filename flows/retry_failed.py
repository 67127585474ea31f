"""The flow that retries the rows of a catalog that did not end well."""

from typing import Any

from prefect import State, flow

from patternmill.files import code_version
from patternmill.request import Count, Request
from patternmill.states import Status
from tasks.make import carry_out_shown


@flow(
    name="retry-failed",
    flow_run_name="retry {catalog}",
    version=code_version(),
    retries=0,
    persist_result=False,
)
async def retry_failed(
    catalog: str,
    environment: str | None = None,
    out: str | None = None,
    max_items: Count | None = None,
    budget: str | None = None,
    change: Count | None = None,
    retire: Count | None = None,
    rename: Count | None = None,
    plan_only: bool = False,
    sku: list[str] = [],  # noqa: B006
    status: list[Status] = [],  # noqa: B006
    code: list[str] = [],  # noqa: B006
) -> State[Any]:
    """Make again what did not end well, with one more attempt for each row.

    Args:
        catalog: The catalog.
        environment: The environment whose service is asked; without it, that of the settings.
        out: The folder of the results; without it, results/CATALOG/RUN.
        max_items: The most patterns and products that this run buys.
        budget: The most that this run spends, such as 500.00.
        change: Not used here.
        retire: Not used here.
        rename: Not used here.
        plan_only: Say what would be made, and make nothing.
        sku: Only these skus.
        status: Only rows with these statuses, such as `failed`.
        code: Only rows with these error codes, such as `job_failed`.
    """
    return await carry_out_shown(Request(verb="retry", **locals()))
