"""The catalog refresh: a catalog follows its source, and makes only what has changed in it."""

from typing import Annotated, Any

from prefect import State, flow
from prefect.runtime import deployment
from pydantic import Field

from flows.bulk_import import import_rows
from patternmill.runs.refresh import refresh_spec
from patternmill.settings import Confirmation
from prefect_host.stop_signals import stop_on_signals


@flow(name="catalog-refresh", flow_run_name="refresh {catalog}", persist_result=False)
async def catalog_refresh(
    source: Annotated[str, Field(min_length=1)],
    catalog: Annotated[str, Field(pattern=r"^\w[\w .-]{0,62}$", max_length=63)],
    environment: Annotated[str | None, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")] = None,
    retire_at_most: str | None = None,
    retire: Annotated[int | None, Field(ge=0)] = None,
    budget: Annotated[int | None, Field(ge=0)] = None,
    max_patterns: Annotated[int | None, Field(ge=0)] = None,
    max_products: Annotated[int | None, Field(ge=0)] = None,
    # Refused by the form and the server; elsewhere the reading of it says more about what is wrong.
    max_failures: Annotated[
        str | None, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)$"})
    ] = None,
    confirm: Confirmation | None = None,
    attempts: Annotated[int | None, Field(ge=1, le=10)] = None,
    max_in_flight: Annotated[int | None, Field(ge=1, le=5000)] = None,
    spread: Annotated[int | None, Field(ge=1, le=64)] = None,
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
    spec = refresh_spec(
        source,
        catalog,
        environment=environment,
        retire=retire,
        retire_at_most=retire_at_most,
        out=out,
        encoding=encoding,
        max_in_flight=max_in_flight,
        attempts=attempts,
        edition=edition,
        max_failures=max_failures,
        max_patterns=max_patterns,
        max_products=max_products,
        budget=budget,
        confirm=confirm,
        spread=spread,
        by_deployment=deployment.id is not None,
    )
    with stop_on_signals() as stopping:
        return await import_rows(spec, stopping)
