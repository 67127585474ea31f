"""Work items: what is made by the service and paid for, under names that follow from what is bought.

No crash and no second run changes a name, and what may have been sent has exactly one body.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

from patternmill.catalog.normal_text import normalised
from patternmill.catalog.refinements import Refinement
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row, tidy
from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import UNPROMISED_STAGES, Stage
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
    take: int = 1,
) -> dict[str, Any]:
    """What is bought as a pattern; `reference` is a SHA-256. People choose between the takes of a pattern."""
    parameters: dict[str, Any] = {"model": model} if model else {}
    if reference:
        parameters["references"] = [reference]
    named = {"take": take} if take > 1 else {}
    return {"prompt": normalised(prompt), "parameters": parameters, **named}


def refinement_content(pattern: ItemKey, refinement: Refinement) -> dict[str, Any]:
    """What is bought as a refinement: this operation with these parameters, on this pattern or refinement."""
    parameters = dict(refinement.parameters)
    return {"pattern": pattern, "operation": refinement.operation, "parameters": parameters}


def product_content(
    sku: str, pattern: ItemKey, category_id: str, selections: Mapping[str, str]
) -> dict[str, Any]:
    """What is bought as a product: this sku's, of this pattern item, in this category, with these selections."""
    return {"sku": tidy(sku), "pattern": pattern, "category": category_id, "selections": selections}


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


#: The bytes of a picture, by its SHA-256.
PictureOf = Callable[[str], bytes]


def no_picture(sha256: str) -> bytes:
    raise LookupError(f"the picture {sha256} is not at hand")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be made, of one stage; every row that names the same content shares it.

    A reference is uploaded, a pattern generated, a refinement made of a pattern or of another refinement, a product
    built on one of these for a row's sku, and a checkout opened, which a person pays.
    """

    stage: Stage
    scope: Scope
    content: Mapping[str, Any]
    #: How it is asked for, where the interface does not say.
    unstated: Unstated = field(default=UNSTATED, compare=False, repr=False)
    picture_of: PictureOf = field(default=no_picture, compare=False, repr=False)
    key: ItemKey = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ItemKey(self._name()))

    def _name(self, *attempt: int) -> str:
        """Of the item whatever the attempt, or of one attempt."""
        what = ["v1", self.scope.environment, self.scope.catalog, self.stage.value, self.content, *attempt]
        return str(uuid5(NAMESPACE, canonical_json(what)))

    @property
    def sku(self) -> str | None:
        """Of the row that alone it is made for."""
        return self.content.get("sku")

    @property
    def take(self) -> int:
        """Of a pattern."""
        return int(self.content.get("take", 1))

    @property
    def pieces(self) -> int:
        """Of a checkout."""
        return sum(line["quantity"] for line in self.content["lines"])

    @property
    def operation(self) -> str | None:
        """What makes it, where that is not its stage's own operation."""
        if self.stage is Stage.REFERENCE:
            return self.unstated.upload
        return self.unstated.refine[self.content["operation"]] if self.stage is Stage.REFINEMENT else None

    @property
    def is_repeatable(self) -> bool:
        """Whether the service is known to make nothing twice when its request is sent again."""
        return self.stage not in UNPROMISED_STAGES or self.unstated.repeatable

    @property
    def given(self) -> frozenset[str]:
        """The fields of its request whose values are not the row's: our ID of it, and IDs that the service gave."""
        return frozenset({"requestId", "patternId", self.unstated.pattern, self.unstated.references})

    @property
    def parent_key(self) -> ItemKey | None:
        """The item that it is built on, which is made first."""
        if self.stage is Stage.PATTERN and (reference := reference_of(self.content)):
            return Item(Stage.REFERENCE, self.scope, reference_content(reference)).key
        return self.content.get("pattern")

    def request_id(self, attempt: int) -> RequestId:
        """The `requestId` of the n-th attempt (from 1)."""
        if attempt < 1:
            raise ValueError("attempts are counted from 1")
        return RequestId(self._name(attempt))

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        """The JSON of this attempt, the same bytes in every resend. `made`: IDs of what it is built on."""
        parent = made[self.parent_key] if self.parent_key is not None else ""
        return canonical_json({**self._fields(parent), "requestId": request_id}).encode()

    def _fields(self, parent: str) -> dict[str, Any]:
        """Of its request; `parent` is the ID of what it is built on."""
        content, unstated = self.content, self.unstated
        match self.stage:
            case Stage.REFERENCE:
                return {unstated.picture: base64.b64encode(self.picture_of(content["sha256"])).decode()}
            case Stage.PATTERN:
                model = content["parameters"].get("model")
                named = {unstated.model: model} if model is not None else {}
                references = {unstated.references: [parent]} if parent else {}
                return {"prompt": content["prompt"], **named, **references}
            case Stage.REFINEMENT:
                return {**unstated.named(content["parameters"]), unstated.pattern: parent}
            case Stage.PRODUCT:
                selections = content["selections"]
                return {"patternId": parent, "categoryId": content["category"], "selections": selections}
            case Stage.CHECKOUT:
                return {"lines": content["lines"]}

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        content = self.content
        match self.stage:
            case Stage.REFERENCE:
                return f"reference · {content['sha256'][:12]}"
            case Stage.PATTERN:
                named = f"pattern, take {self.take}" if self.take > 1 else "pattern"
                return f"{named} · {plain(' '.join(content['prompt'].split()))}"
            case Stage.REFINEMENT:
                return f"refinement · {plain(str(Refinement(content['operation'], content['parameters'])))}"
            case Stage.PRODUCT:
                return f"product · {plain(content['sku'], _MOST_OF_A_SKU)}"
            case Stage.CHECKOUT:
                return f"checkout · {plural(len(content['lines']), 'line')}, {plural(self.pieces, 'piece')}"


def checkout_item(scope: Scope, order: str, lines: Iterable[tuple[str, int]]) -> Item:
    """A checkout of product IDs with their quantities; in another order it is another checkout."""
    wire = [{"productId": product_id, "quantity": quantity} for product_id, quantity in lines]
    return Item(Stage.CHECKOUT, scope, {"order": order, "lines": wire})


def reference_of(content: Mapping[str, Any]) -> str | None:
    """The SHA-256 of the picture that guides a pattern."""
    references: list[str] = content.get("parameters", {}).get("references", [])
    return references[0] if references else None


@dataclass(frozen=True, slots=True)
class Chain:
    """The items of one row, each built on the one before it."""

    #: What its pattern is built on: a reference; of refinements the first pattern and all but the last.
    before: tuple[Item, ...]
    #: What the product is built on: the pattern, or its last refinement.
    pattern: Item
    product: Item
    #: Takes of its pattern that are made for a person to choose from.
    candidates: tuple[Item, ...] = ()
    #: Its product waits until a person has chosen.
    is_undecided: bool = False


class ContentItems:
    """Makes the items of rows by their content alone."""

    def __init__(
        self,
        scope: Scope,
        *,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        self.scope = scope
        self._picture_of, self._unstated = picture_of, unstated
        self._patterns: dict[tuple[str | int | None, ...], Item] = {}

    def of(self, entry: Entry) -> tuple[Entry, Chain] | None:
        """A row as its items name it, and these; None where it is refused."""
        return (entry, self.chain(entry.row)) if entry.row is not None else None

    def chain(self, row: Row) -> Chain:
        first = self.pattern(row)
        patterns = [first]
        for refinement in row.refinements:
            content = refinement_content(patterns[-1].key, refinement)
            patterns.append(self._item(Stage.REFINEMENT, content))
        content = product_content(row.sku, patterns[-1].key, row.category, row.selections)
        reference = reference_of(first.content)
        before = [self._item(Stage.REFERENCE, reference_content(reference))] if reference else []
        return Chain((*before, *patterns[:-1]), patterns[-1], self._item(Stage.PRODUCT, content))

    def pattern(self, row: Row, take: int | None = None) -> Item:
        """One item for a prompt with its model, reference and take; `take`: another one than the row's."""
        take = take or row.take or 1
        what = (row.prompt, row.model, row.reference, take)
        if what not in self._patterns:
            content = pattern_content(row.prompt, model=row.model, reference=row.reference, take=take)
            self._patterns[what] = self._item(Stage.PATTERN, content)
        return self._patterns[what]

    def _item(self, stage: Stage, content: Mapping[str, Any]) -> Item:
        return Item(stage, self.scope, content, self._unstated, self._picture_of)
