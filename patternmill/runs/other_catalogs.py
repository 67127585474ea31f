"""Products that other catalogs of the environment have, or are making, and that a plan would buy once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from patternmill.catalog.rows import Row, sku_key
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import Ledger
from patternmill.planning.items import ContentItems, Scope
from patternmill.planning.plan import Plan, Reason
from patternmill.text import plural

_FIRST_PURCHASES = frozenset({Reason.NEW, Reason.CHANGED})


def find_duplicates(ledger: Ledger, plan: Plan) -> ConfigurationError | None:
    """Return what refuses a plan that would buy the sku and the content of another catalog's product; else None.

    It is final where it is called within the transaction that records the plan: of two such plans one is the first.
    """
    bought, environment = _first_purchases(plan), plan.scope.environment
    items_in = cache(lambda catalog: ContentItems(Scope(environment, catalog)))
    # The same content under the other catalog's name is the key of the other catalog's item.
    found = [
        (catalog, sku_key(sku))
        for catalog, sku, key in ledger.catalogs.products_of_others(environment, plan.scope.catalog)
        if (row := bought.get(sku_key(sku))) is not None
        and items_in(catalog).chain(replace(row, sku=sku)).product.key == key
    ]
    if not found:
        return None
    ((most, _),) = Counter(catalog for catalog, _ in sorted(found)).most_common(1)
    return ConfigurationError(
        f"{len({sku for _, sku in found}):,} of {plural(len(bought), 'row')} to buy have the sku and the content of "
        f"products that catalog {most!r} has, had or is making: they would be bought once more.",
        code="duplicates",
        remedy=f"Add `--catalog {most}` if it is that catalog, or `--confirm duplicates` if the same products are "
        "wanted once more. Nothing was bought.",
    )


def _first_purchases(plan: Plan) -> Mapping[str, Row]:
    """Return by sku the rows whose product is bought for the first time; retries were decided before."""
    rows = [(row.entry.row, row.product) for row in plan.to_do()]
    return {
        sku_key(row.sku): row
        for row, product in rows
        if row is not None and product is not None and plan.items[product].reason in _FIRST_PURCHASES
    }
