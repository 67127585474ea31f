"""Work items: what is made by the service and paid for, under names that follow from what is bought.

No crash and no second run changes a name, and what may have been sent has exactly one body.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID, uuid5

from patternmill.catalog.normal_text import normalised
from patternmill.catalog.refinements import Refinement
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row, tidy
from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import Stage
from patternmill.text import plain, plural

#: The root of every ID. It, the "v1" and the shape of the JSON are pinned for ever by golden tests.
NAMESPACE = UUID("6f1c2c1e-6a53-5d0b-9c3e-5b7f2a1d4e80")


#: The one spelling of a JSON value: sorted keys, no spaces, characters as they are.
canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def reference_content(sha256: str) -> dict[str, Any]:
    """What is uploaded as a reference: these very bytes, by their SHA-256 in hexadecimal."""
    return {"sha256": sha256}


def pattern_content(
    prompt: str,
    *,
    model: str | None = None,
    reference: str | None = None,
    edition: str | None = None,
    take: int = 1,
) -> dict[str, Any]:
    """What is bought as a pattern; `reference` is a SHA-256.

    With an `edition` the same thing is bought again; people choose between the takes of a pattern.
    """
    parameters: dict[str, Any] = {"model": model} if model else {}
    if reference:
        parameters["references"] = [reference]
    content: dict[str, Any] = {"prompt": normalised(prompt), "parameters": parameters}
    if take > 1:
        content["take"] = take
    return content | {"edition": edition} if edition else content


def refinement_content(
    pattern: ItemKey, refinement: Refinement, *, edition: str | None = None
) -> dict[str, Any]:
    """What is bought as a refinement: this operation with these parameters, on this pattern or refinement."""
    content: dict[str, Any] = {
        "pattern": pattern,
        "operation": refinement.operation,
        "parameters": dict(refinement.parameters),
    }
    return content | {"edition": edition} if edition else content


def product_content(
    sku: str, pattern: ItemKey, category_id: str, selections: Mapping[str, str], *, edition: str | None = None
) -> dict[str, Any]:
    """What is bought as a product: this sku's, of this pattern item, in this category, with these selections."""
    content: dict[str, Any] = {
        "sku": tidy(sku),
        "pattern": pattern,
        "category": category_id,
        "selections": selections,
    }
    return content | {"edition": edition} if edition else content


def checkout_content(order: str, lines: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """What is opened as a checkout: product IDs with their quantities; in another order it is another checkout."""
    wire = [{"productId": product_id, "quantity": quantity} for product_id, quantity in lines]
    return {"order": order, "lines": wire}


def item_key(environment: str, catalog: str, stage: Stage, content: Mapping[str, Any]) -> ItemKey:
    """The name of an item, whatever the attempt."""
    return ItemKey(_name(environment, catalog, stage, content))


def request_id(
    environment: str, catalog: str, stage: Stage, content: Mapping[str, Any], attempt: int
) -> RequestId:
    """The `requestId` of the n-th attempt (from 1) at an item."""
    if attempt < 1:
        raise ValueError("attempts are counted from 1")
    return RequestId(_name(environment, catalog, stage, content, attempt))


def _name(environment: str, catalog: str, stage: Stage, content: Mapping[str, Any], *attempt: int) -> str:
    return str(uuid5(NAMESPACE, canonical_json(["v1", environment, catalog, stage.value, content, *attempt])))


_MOST_OF_A_SKU = 200


#: By item, the IDs under which the service has what was made.
Made = Mapping[ItemKey, str]
NOTHING_MADE: Made = {}


#: No catalog has it in its name, so that the orders of a catalog have a lease and approvals of their own.
_ORDERS = "/orders"


@dataclass(frozen=True)
class Scope:
    """Whose items these are: no request ID is ever shared between two scopes."""

    environment: str
    catalog: str

    @property
    def of_orders(self) -> Scope:
        """Of a catalog's checkouts: whoever orders keeps no import waiting, nor is kept waiting by one."""
        return Scope(self.environment, f"{self.catalog}{_ORDERS}")


def catalog_of(scope: str) -> str:
    """The catalog that the name of a scope stands for, be it the catalog's own or that of its orders."""
    return scope.removesuffix(_ORDERS)


@dataclass(frozen=True, slots=True)
class _WorkItem:
    """What all kinds of items have: a scope, what is bought, and the names that follow from the two."""

    scope: Scope
    content: Mapping[str, Any]
    #: How it is asked for, where the interface does not say.
    unstated: Unstated = field(default=UNSTATED, compare=False, repr=False)
    key: ItemKey = field(init=False, compare=False, repr=False)
    stage: ClassVar[Stage]

    def __post_init__(self) -> None:
        key = item_key(self.scope.environment, self.scope.catalog, self.stage, self.content)
        object.__setattr__(self, "key", key)

    @property
    def sku(self) -> str | None:
        """Of the row that alone it is made for."""
        return None

    @property
    def operation(self) -> str | None:
        """What makes it, where that is not its stage's own operation."""
        return None

    @property
    def is_repeatable(self) -> bool:
        """Whether the service is known to make nothing twice when its request is sent again."""
        return True

    @property
    def parent_key(self) -> ItemKey | None:
        """The item that it is built on, which is made first."""
        return None

    def request_id(self, attempt: int) -> RequestId:
        return request_id(self.scope.environment, self.scope.catalog, self.stage, self.content, attempt)


#: The bytes of a picture, by its SHA-256.
PictureOf = Callable[[str], bytes]


def no_picture(sha256: str) -> bytes:
    raise LookupError(f"the picture {sha256} is not at hand")


@dataclass(frozen=True, slots=True)
class ReferenceItem(_WorkItem):
    """One picture to be uploaded; every pattern that it guides shares it."""

    stage = Stage.REFERENCE
    picture_of: PictureOf = field(default=no_picture, compare=False, repr=False)

    @property
    def sha256(self) -> str:
        return str(self.content["sha256"])

    @property
    def operation(self) -> str:
        return self.unstated.upload

    @property
    def is_repeatable(self) -> bool:
        return self.unstated.repeatable

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        picture = base64.b64encode(self.picture_of(self.sha256)).decode()
        return canonical_json({"requestId": request_id, self.unstated.picture: picture}).encode()

    def describe(self) -> str:
        return f"reference · {self.sha256[:12]}"


class PatternItem(_WorkItem):
    """One pattern to be generated; every row with this prompt, model and reference shares it."""

    __slots__ = ()
    stage = Stage.PATTERN

    @property
    def prompt(self) -> str:
        return str(self.content["prompt"])

    @property
    def take(self) -> int:
        return int(self.content.get("take", 1))

    @property
    def parent_key(self) -> ItemKey | None:
        reference = reference_of(self.content)
        if reference is None:
            return None
        scope = self.scope
        return item_key(scope.environment, scope.catalog, Stage.REFERENCE, reference_content(reference))

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        """The JSON of this attempt, the same bytes in every resend. `made`: IDs of what it is built on."""
        body: dict[str, Any] = {"requestId": request_id, "prompt": self.prompt}
        model = self.content["parameters"].get("model")
        if model is not None:
            body[self.unstated.model] = model
        if self.parent_key is not None:
            body[self.unstated.references] = [made[self.parent_key]]
        return canonical_json(body).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        named = f"pattern, take {self.take}" if self.take > 1 else "pattern"
        return f"{named} · {plain(' '.join(self.prompt.split()))}"


def reference_of(pattern_content: Mapping[str, Any]) -> str | None:
    """The SHA-256 of the picture that guides a pattern."""
    references: list[str] = pattern_content.get("parameters", {}).get("references", [])
    return references[0] if references else None


class RefinementItem(_WorkItem):
    """One pattern made of another; every row with this pattern and the same refinements so far shares it."""

    __slots__ = ()
    stage = Stage.REFINEMENT

    @property
    def refinement(self) -> Refinement:
        return Refinement(self.content["operation"], self.content["parameters"])

    @property
    def parent_key(self) -> ItemKey:
        return ItemKey(self.content["pattern"])

    @property
    def operation(self) -> str:
        return self.unstated.refine[self.content["operation"]]

    @property
    def is_repeatable(self) -> bool:
        return self.unstated.repeatable

    def body(self, request_id: RequestId, made: Made) -> bytes:
        parameters = self.unstated.named(self.content["parameters"])
        own = {"requestId": request_id, self.unstated.pattern: made[self.parent_key]}
        return canonical_json(parameters | own).encode()

    def describe(self) -> str:
        return f"refinement · {plain(str(self.refinement))}"


class ProductItem(_WorkItem):
    """One product to be built: one row's sku, on one pattern, in one category with its selections."""

    __slots__ = ()
    stage = Stage.PRODUCT

    @property
    def sku(self) -> str:
        return str(self.content["sku"])

    @property
    def parent_key(self) -> ItemKey:
        return ItemKey(self.content["pattern"])

    def body(self, request_id: RequestId, made: Made) -> bytes:
        body = {
            "requestId": request_id,
            "patternId": made[self.parent_key],
            "categoryId": self.content["category"],
            "selections": self.content["selections"],
        }
        return canonical_json(body).encode()

    def describe(self) -> str:
        return f"product · {plain(self.sku, _MOST_OF_A_SKU)}"


class CheckoutItem(_WorkItem):
    """One checkout to be opened, which a person pays: of these products, under the name of an order."""

    __slots__ = ()
    stage = Stage.CHECKOUT

    @property
    def pieces(self) -> int:
        return sum(line["quantity"] for line in self.content["lines"])

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        return canonical_json({"requestId": request_id, "lines": self.content["lines"]}).encode()

    def describe(self) -> str:
        return f"checkout · {plural(len(self.content['lines']), 'line')}, {plural(self.pieces, 'piece')}"


Item = ReferenceItem | PatternItem | RefinementItem | ProductItem


@dataclass(frozen=True, slots=True)
class Chain:
    """The items of one row, each built on the one before it."""

    #: What its pattern is built on: a reference; of refinements the first pattern and all but the last.
    before: tuple[Item, ...]
    #: What the product is built on: the pattern, or its last refinement.
    pattern: PatternItem | RefinementItem
    product: ProductItem
    #: Takes of its pattern that are made for a person to choose from.
    candidates: tuple[PatternItem, ...] = ()
    #: Its product waits until a person has chosen.
    is_undecided: bool = False


class ContentItems:
    """Makes the items of rows by their content alone."""

    def __init__(
        self,
        scope: Scope,
        *,
        edition: str | None = None,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        self.scope, self.edition = scope, edition
        self._picture_of, self._unstated = picture_of, unstated
        self._patterns: dict[tuple[str | int | None, ...], PatternItem] = {}

    def of(self, entry: Entry) -> tuple[Entry, Chain] | None:
        """A row as its items name it, and these; None where it is refused."""
        return (entry, self.chain(entry.row, self.edition)) if entry.row is not None else None

    def chain(self, row: Row, edition: str | None) -> Chain:
        first = self.pattern(row, edition)
        patterns: list[PatternItem | RefinementItem] = [first]
        for refinement in row.refinements:
            content = refinement_content(patterns[-1].key, refinement, edition=edition)
            patterns.append(RefinementItem(self.scope, content, self._unstated))
        category = row.category_id or row.category
        content = product_content(row.sku, patterns[-1].key, category, row.selections, edition=edition)
        before = (*self._reference(first), *patterns[:-1])
        return Chain(before, patterns[-1], ProductItem(self.scope, content))

    def pattern(self, row: Row, edition: str | None, take: int | None = None) -> PatternItem:
        """One item for a prompt with its model, reference and take; `take`: another one than the row's."""
        take = take or row.take or 1
        what = (row.prompt, row.model, row.reference, edition, take)
        if what not in self._patterns:
            content = pattern_content(
                row.prompt, model=row.model, reference=row.reference, edition=edition, take=take
            )
            self._patterns[what] = PatternItem(self.scope, content, self._unstated)
        return self._patterns[what]

    def _reference(self, pattern: PatternItem) -> list[ReferenceItem]:
        sha256 = reference_of(pattern.content)
        if sha256 is None:
            return []
        return [ReferenceItem(self.scope, reference_content(sha256), self._unstated, self._picture_of)]
