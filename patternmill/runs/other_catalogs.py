"""What exists of a plan's rows, and would be bought once more: in other catalogs, or with moved refinements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from patternmill.catalog.changes import same_refinements
from patternmill.catalog.normal_text import visible_text
from patternmill.catalog.offer import Offer
from patternmill.catalog.rows import Content, Row, sku_key
from patternmill.catalog.selections import resolved
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import Ledger
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.planning.recognition import EXISTING, Memory, folded
from patternmill.text import plural

#: So many rows may be alike by chance, or on purpose, without a confirmation.
_HANDFUL = 5
_FIRST_PURCHASES = frozenset({Reason.NEW, Reason.CHANGED})


def find_duplicates(
    ledger: Ledger, plan: Plan, memory: Memory, offer: Offer | None
) -> ConfigurationError | None:
    """What refuses a plan that would buy rows that exist: more than a handful in other catalogs, or with refinements
    in another order; None where nobody has to be asked.
    """
    bought = _first_purchases(plan)
    if moved := sum(_is_moved(plan, memory, row) for row in plan.to_do()):
        return _duplicates(
            f"{moved:,} of {plural(len(bought), 'row')} to buy differ from what their sku has in the order of its "
            "refinements alone, which is that of the columns: patterns and products would be bought once more.",
            "Put the columns back in their order, or add `--confirm duplicates` if the new one is meant.",
        )
    if len(bought) <= _HANDFUL:
        return None
    scope = plan.scope
    rows = ledger.catalogs.other_catalogs_rows(scope.environment, scope.catalog, bought.keys())
    found = {
        (catalog, sku)
        for catalog, sku, content in rows
        if _are_alike(content, Content.of(bought[sku]), offer)
    }
    skus = {sku for _, sku in found}
    if len(skus) <= _HANDFUL:
        return None
    ((most, _),) = Counter(catalog for catalog, _ in sorted(found)).most_common(1)
    return _duplicates(
        f"{len(skus):,} of {plural(len(bought), 'row')} to buy have the sku and the content of products that catalog "
        f"{most!r} has: they would be bought once more.",
        f"Add `--catalog {most}` if it is that catalog, or `--confirm duplicates` if the same products are wanted "
        "once more.",
    )


def _duplicates(message: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(message, code="duplicates", remedy=f"{remedy} Nothing was bought.")


def _first_purchases(plan: Plan) -> Mapping[str, Row]:
    """By sku, what is to be bought for the first time in this catalog; what is retried was decided before."""
    rows = [(row.entry.row, row.product) for row in plan.to_do()]
    return {
        sku_key(row.sku): row
        for row, product in rows
        if row is not None and product is not None and plan.items[product].reason in _FIRST_PURCHASES
    }


def _is_moved(plan: Plan, memory: Memory, planned: PlannedRow) -> bool:
    """Whether what its sku has exists, and differs from the row in the order of its refinements alone."""
    row, product = planned.entry.row, planned.product
    kept = memory.source_rows.get(sku_key(planned.sku))
    if row is None or product is None or kept is None or kept.content is None or len(row.refinements) < 2:
        return False
    last = memory.last_attempts.get(kept.product_key) if kept.product_key is not None else None
    if plan.items[product].reason is not Reason.CHANGED:
        return False
    if last is None or last.state not in EXISTING:
        return False
    theirs, ours = kept.content, Content.of(row)
    is_moved = sorted(map(str, theirs.refinements)) == sorted(map(str, ours.refinements))
    return theirs != ours and is_moved and replace(theirs, refinements=ours.refinements) == ours


def _are_alike(theirs: Content, ours: Content, offer: Offer | None) -> bool:
    """Whether both are the same product to a person, however much was known of the offer when theirs was bought."""
    if visible_text(theirs.prompt) != visible_text(ours.prompt):
        return False
    if (theirs.model, theirs.reference) != (ours.model, ours.reference):
        return False
    if not same_refinements(theirs.refinements, ours.refinements):
        return False
    if folded(theirs.category, theirs.selections) == folded(ours.category, ours.selections):
        return True
    if resolved(offer, theirs.category, theirs.selections) == (ours.category, ours.selections):
        return True
    blind = not any(ours.category == category.id for category in (offer.categories if offer else None) or ())
    return blind and folded("", theirs.selections) == folded("", ours.selections)
