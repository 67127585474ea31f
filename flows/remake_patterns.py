"""The flow that makes other takes of a catalog's patterns."""

from typing import Annotated, Any

from prefect import State, flow
from pydantic import Field

from patternmill.files import code_version
from patternmill.request import Count, Request
from patternmill.states import Status
from tasks.make import carry_out_shown


@flow(
    name="remake-patterns",
    flow_run_name="remake {catalog}",
    version=code_version(),
    retries=0,
    persist_result=False,
)
async def remake_patterns(
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
    take: Annotated[int, Field(ge=1)] | None = None,
) -> State[Any]:
    """Make another take of the patterns that are marked `again`, or of those of the named rows, and its products.

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
        sku: Only the patterns of these skus.
        status: Only the patterns of rows with these statuses, such as `failed`.
        code: Only the patterns of rows with these error codes.
        take: Go to this take of the named rows' patterns.
    """
    return await carry_out_shown(Request(verb="remake", **locals()))
