"""Rows whose products another catalog of the environment has already: they would be bought once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from patternmill.catalog.changes import Content
from patternmill.catalog.offer import Offer
from patternmill.catalog.rows import sku_key
from patternmill.catalog.selections import resolved
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.parameters import DUPLICATES
from patternmill.planning.plan import Plan, Reason
from patternmill.planning.recognition import folded, visible_text
from patternmill.runs.spec import RunSpec
from patternmill.text import plural

#: So many rows may be alike by chance, or on purpose, without a confirmation.
_HANDFUL = 5
_FIRST_PURCHASES = frozenset({Reason.NEW, Reason.CHANGED})


@dataclass(frozen=True)
class Duplicates:
    """More than a handful of rows to buy that other catalogs have, with the same sku and content."""

    rows: int
    of: int
    #: The catalog that has most of them.
    catalog: str

    def sentence(self) -> str:
        return (
            f"{self.rows:,} of {plural(self.of, 'row')} to buy have the sku and the content of products that catalog "
            f"{self.catalog!r} has: they would be bought once more."
        )


def known_duplicates(spec: RunSpec, plan: Plan, offer: Offer | None) -> Duplicates | None:
    """By a connection of its own; None where there is no ledger yet. `offer`: what the rows were checked against."""
    with ledger_if_any(spec.settings) as ledger:
        return find_duplicates(ledger, plan, offer) if ledger is not None else None


def find_duplicates(ledger: Ledger, plan: Plan, offer: Offer | None) -> Duplicates | None:
    """None up to a handful."""
    bought = _first_purchases(plan)
    if len(bought) <= _HANDFUL:
        return None
    scope = plan.scope
    rows = ledger.other_catalogs_rows(scope.environment, scope.catalog, bought.keys())
    found = {(catalog, sku) for catalog, sku, content in rows if _are_alike(content, bought[sku], offer)}
    skus = {sku for _, sku in found}
    if len(skus) <= _HANDFUL:
        return None
    ((most, _),) = Counter(catalog for catalog, _ in sorted(found)).most_common(1)
    return Duplicates(len(skus), len(bought), most)


def refuse_duplicates(spec: RunSpec, duplicates: Duplicates | None) -> None:
    """Raise ConfigurationError when another catalog's products would be bought again without confirmation.

    Not for a plan that a person has approved.
    """
    if duplicates is not None and not spec.settings.confirms(DUPLICATES):
        raise ConfigurationError(
            duplicates.sentence(),
            code="duplicates",
            remedy=f"Add `--catalog {duplicates.catalog}` if it is that catalog, or `--confirm duplicates` if the "
            "same products are wanted once more. Nothing was bought.",
        )


def _first_purchases(plan: Plan) -> Mapping[str, Content]:
    """By sku, what is to be bought for the first time in this catalog; what is retried was decided before."""
    rows = [(row.entry.row, row.product) for row in plan.to_do()]
    return {
        sku_key(row.sku): Content.of(row)
        for row, product in rows
        if row is not None and product is not None and plan.products[product].reason in _FIRST_PURCHASES
    }


def _are_alike(theirs: Content, ours: Content, offer: Offer | None) -> bool:
    """Whether both are the same product to a person, however much was known of the offer when theirs was bought."""
    if visible_text(theirs.prompt) != visible_text(ours.prompt):
        return False
    if folded(theirs.category, theirs.selections) == folded(ours.category, ours.selections):
        return True
    if resolved(offer, theirs.category, theirs.selections) == (ours.category, ours.selections):
        return True
    blind = not any(ours.category == category.id for category in (offer.categories if offer else None) or ())
    return blind and folded("", theirs.selections) == folded("", ours.selections)
