"""Items: what the service makes and is paid for, under names that follow from what is bought.

No crash and no second run changes a name, and a request that may have been sent has exactly one body.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.normal_text import normalised
from patternmill.planning.refinements import Refinement
from patternmill.planning.rows import Row, sku_key
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import UNPROMISED_STAGES, Stage
from patternmill.text import plain, plural

#: The root of every ID. Golden tests pin it, the "v1" and the shape of the JSON for ever.
NAMESPACE = UUID("6f1c2c1e-6a53-5d0b-9c3e-5b7f2a1d4e80")
_ROOT = NAMESPACE.bytes
_MOST_OF_A_SKU = 200
#: No name of a catalog contains it, so that a catalog's orders have a lease and approvals of their own.
_ORDERS = "/orders"
#: Returns the one spelling of a JSON value: sorted keys, no spaces, characters as they are.
canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

#: The service's ID of what was made for each item.
Made = Mapping[ItemKey, str]
NOTHING_MADE: Made = {}
#: Returns the bytes of a picture by its SHA-256.
PictureOf = Callable[[str], bytes]


def canonical_texts(value: object) -> bytes:
    """Return what `canonical_json` returns, in UTF-8 and ten times as fast, for a value without decimals."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _uuid5(name: bytes) -> str:
    """Return what `str(uuid.uuid5(NAMESPACE, name))` returns, in a third of the time: plans have 200,000 of them."""
    digest = bytearray(hashlib.sha1(_ROOT + name, usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def pattern_content(
    prompt: str, *, model: str | None = None, reference: str | None = None, take: int = 1
) -> dict[str, Any]:
    """Return what is bought as a pattern, without what is not named; `reference` is the SHA-256 of a picture."""
    parameters: dict[str, Any] = {"model": model} if model else {}
    if reference:
        parameters["references"] = [reference]
    content = {"prompt": normalised(prompt), "parameters": parameters or _NO_PARAMETERS}
    return content | {"take": take} if take > 1 else content


#: One object for nearly all patterns, which have no parameters.
_NO_PARAMETERS: dict[str, Any] = {}


@dataclass(frozen=True)
class Scope:
    """A catalog in an environment, to which items belong: two scopes never share a request ID."""

    environment: str
    catalog: str

    @property
    def of_orders(self) -> Scope:
        """Return the scope of a catalog's checkouts, so that orders and imports do not wait for each other."""
        return Scope(self.environment, f"{self.catalog}{_ORDERS}")


def catalog_of(scope: str) -> str:
    """Return the catalog that the name of a scope belongs to: the catalog's own scope, or that of its orders."""
    return scope.removesuffix(_ORDERS)


def no_picture(sha256: str) -> bytes:
    raise LookupError(f"the picture {sha256} is not at hand")


class Spelling(NamedTuple):
    """The spelling of a product that people read and the service expects."""

    sku: str
    selections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be made, of one stage. All rows that name the same content share it.

    A reference is uploaded, a pattern is generated, a refinement is made of a pattern or of another refinement, a
    product is built on one of these for a row's sku, and a checkout is opened for a person to pay.
    """

    stage: Stage
    scope: Scope
    content: Mapping[str, Any]
    #: Set for products only.
    spelling: Spelling | None = field(default=None, compare=False, repr=False)
    #: The names that a request needs and that the interface leaves open.
    unstated: Unstated = field(default=UNSTATED, compare=False, repr=False)
    picture_of: PictureOf = field(default=no_picture, compare=False, repr=False)
    key: ItemKey = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ItemKey(self._name()))

    def _name(self, *attempt: int) -> str:
        """Return the UUIDv5 of the item, or of one attempt at it."""
        what = ["v1", self.scope.environment, self.scope.catalog, self.stage.value, self.content, *attempt]
        return _uuid5(self._spelled(what))

    def _spelled(self, value: object) -> bytes:
        """Return the canonical JSON of a value that holds the item's content; only refinements have decimals."""
        return canonical_json(value).encode() if self.stage is Stage.REFINEMENT else canonical_texts(value)

    @property
    def content_text(self) -> str:
        """Return the content as canonical JSON."""
        return self._spelled(self.content).decode()

    @property
    def sku(self) -> str | None:
        """Return the sku of a product's row, as it is written; None for other stages."""
        return self.spelling.sku if self.spelling is not None else self.content.get("sku")

    @property
    def take(self) -> int:
        """Return the number of a pattern's take."""
        return int(self.content.get("take", 1))

    @property
    def pieces(self) -> int:
        """Return how many products a checkout is for."""
        return sum(line["quantity"] for line in self.content["lines"])

    @property
    def operation(self) -> str | None:
        """Return the operation that makes the item, where it is not its stage's usual one."""
        if self.stage is Stage.REFERENCE:
            return self.unstated.upload
        return self.unstated.refine[self.content["operation"]] if self.stage is Stage.REFINEMENT else None

    @property
    def is_repeatable(self) -> bool:
        """Return whether the service is known to make nothing twice when its request is sent again."""
        return self.stage not in UNPROMISED_STAGES or self.unstated.repeatable

    @property
    def given(self) -> frozenset[str]:
        """Return the fields of the request whose values are not the row's: our request ID, and the service's IDs."""
        return frozenset({"requestId", "patternId", self.unstated.pattern, self.unstated.references})

    @property
    def parent_key(self) -> ItemKey | None:
        """Return the key of the item that this one is built on, which is made first."""
        references = self.content.get("parameters", {}).get("references")
        if self.stage is Stage.PATTERN and references:
            return Item(Stage.REFERENCE, self.scope, {"sha256": references[0]}).key
        return self.content.get("pattern")

    def request_id(self, attempt: int) -> RequestId:
        """Return the `requestId` of the n-th attempt (from 1)."""
        if attempt < 1:
            raise ValueError("attempts are counted from 1")
        return RequestId(self._name(attempt))

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        """Return the JSON that an attempt sends, the same bytes each time. `made` has the ID of what it is built on."""
        parent = made[self.parent_key] if self.parent_key is not None else ""
        return canonical_json({**self._fields(parent), "requestId": request_id}).encode()

    def _fields(self, parent: str) -> dict[str, Any]:
        """Return the fields of the request; `parent` is the ID of what the item is built on."""
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
                chosen = self.spelling.selections if self.spelling is not None else content["selections"]
                return {"patternId": parent, "categoryId": content["category"], "selections": chosen}
            case Stage.CHECKOUT:
                return {"lines": content["lines"]}

    def describe(self) -> str:
        """Return a short name for people, for the task run and log lines."""
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
                return f"product · {plain(self.sku or '', _MOST_OF_A_SKU)}"
            case Stage.CHECKOUT:
                return f"checkout · {plural(len(content['lines']), 'line')}, {plural(self.pieces, 'piece')}"


def checkout_item(scope: Scope, order: str, lines: Iterable[tuple[str, int]]) -> Item:
    """Return the checkout of product IDs and quantities; the same lines in another order are another checkout."""
    wire = [{"productId": product_id, "quantity": quantity} for product_id, quantity in lines]
    return Item(Stage.CHECKOUT, scope, {"order": order, "lines": wire})


class ItemMaker:
    """Makes items from the content of rows. Those with the same prompt, model, reference and take share a pattern."""

    def __init__(
        self, scope: Scope, *, picture_of: PictureOf = no_picture, unstated: Unstated = UNSTATED
    ) -> None:
        self.scope = scope
        self._picture_of, self._unstated = picture_of, unstated
        self._patterns: dict[tuple[str | int | None, ...], Item] = {}

    def chain(self, row: Row, take: int = 1) -> tuple[Item, ...]:
        """Return the items of a row on a take of its pattern, each built on the one before it; the last is the product.

        A product's content has the keys of options and of their values, so that another spelling is no other product.
        """
        chain = [self._item(Stage.REFERENCE, {"sha256": row.reference})] if row.reference else []
        chain.append(self.pattern(row, take))
        for refinement in row.refinements:
            refined = {"pattern": chain[-1].key, "operation": refinement.operation}
            content = {**refined, "parameters": dict(refinement.parameters)}
            chain.append(self._item(Stage.REFINEMENT, content))
        content = {
            "sku": sku_key(row.sku),
            "pattern": chain[-1].key,
            "category": row.category,
            "selections": row.selection_keys,
        }
        return (*chain, self._item(Stage.PRODUCT, content, Spelling(row.sku, row.selections)))

    def pattern(self, row: Row, take: int = 1) -> Item:
        """Return the pattern item of a row's prompt, model and reference in this take."""
        what = (row.prompt, row.model, row.reference, take)
        pattern = self._patterns.get(what)
        if pattern is None:
            content = pattern_content(row.prompt, model=row.model, reference=row.reference, take=take)
            pattern = self._patterns[what] = self._item(Stage.PATTERN, content)
        return pattern

    def _item(self, stage: Stage, content: Mapping[str, Any], spelling: Spelling | None = None) -> Item:
        return Item(stage, self.scope, content, spelling, self._unstated, self._picture_of)
