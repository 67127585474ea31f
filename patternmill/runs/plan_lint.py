"""The money lint of a plan: what it would buy, looked at by its rows and by what other catalogs have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from patternmill.catalog.lint import Lint, PatternPrice, find_lint
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import Row, sku_key
from patternmill.engine.options import RunOptions
from patternmill.ledger.ledger import Ledger
from patternmill.planning.plan import TO_BUY, Plan
from patternmill.states import Stage
from patternmill.text import plain, plural

#: Fewer rows may have the skus of another catalog by chance.
_LEAST_ROWS = 6
#: Of the rows, in percent.
_MOST_OF_THEM = 90


def pattern_price(options: RunOptions) -> PatternPrice:
    return PatternPrice(options.prices.get(Stage.PATTERN, 0), options.currency)


def plan_lint(
    ledger: Ledger | None, plan: Plan, checked: CheckedCatalog, options: RunOptions
) -> tuple[Lint, ...]:
    """Of what the plan would buy. Writes nothing."""
    rows = [(row.entry.record.line, row) for row in plan.rows if row.product is not None]
    buying = {line for line, row in rows if plan.items[plan.first_pattern(row)].reason in TO_BUY}
    making = {line for line, row in rows if row.product and plan.items[row.product].reason in TO_BUY}
    found = (
        find_lint(
            checked,
            pattern_price(options),
            lambda row: row.line in buying,
            lambda row: row.line in making,
        )
        if buying or making
        else ()
    )
    return (*(_other_catalog(ledger, plan) if ledger is not None else ()), *found)


def _other_catalog(ledger: Ledger, plan: Plan) -> Iterator[Lint]:
    """Where another catalog has the skus of nearly all rows, and this one has none of them."""
    rows: list[Row] = [row.entry.row for row in plan.rows if row.entry.row is not None]
    scope = plan.scope
    skus = {sku_key(row.sku) for row in rows}
    if len(skus) < _LEAST_ROWS or not skus.isdisjoint(
        map(sku_key, ledger.latest_products(scope.environment, scope.catalog))
    ):
        return
    others = ledger.other_catalogs_skus(scope.environment, scope.catalog)
    counts = Counter(catalog for catalog, sku in others if sku_key(sku) in skus)
    for catalog, count in counts.most_common(1):
        if count * 100 >= len(skus) * _MOST_OF_THEM:
            own, other = plain(scope.catalog), plain(catalog)
            what = f"{count:,} of {plural(len(skus), 'sku')} of this file are in catalog {other}, and none in {own}."
            yield Lint(what, f"Is it the right file? If it is a file of {other}, add `--catalog {other}`.")
