"""The invariants of a run, read from the service's own record: what was really bought, and for which row."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.hostile.plan import REFINE, UPLOAD, Plan
from tests.hostile.record import Line, lines_of
from tests.hostile.shop import categories_of

#: What a product is, whatever it was called: prompt, category ID, selections.
Goods = tuple[str, str, frozenset[tuple[str, str]]]


def goods_of(prompt: str, category_id: str, selections: Mapping[str, str]) -> Goods:
    return unicodedata.normalize("NFC", prompt).strip(), category_id, frozenset(selections.items())


@dataclass(frozen=True)
class ExpectedRow:
    """One row that went in. `category` is a name or an ID."""

    sku: str
    prompt: str
    category: str
    selections: Mapping[str, str] = field(default_factory=dict)
    #: Cells of the columns `reference` and `refine:<operation>`, the latter as JSON objects.
    extras: Mapping[str, str] = field(default_factory=dict)

    @property
    def pattern_text(self) -> str:
        """Return what its pattern is, with all that was done to it."""
        text = self.prompt + (GUIDED if self.extras.get("reference") else "")
        for column, cell in self.extras.items():
            if column.startswith("refine:") and cell:
                text = refined(text, column.replace(":", "/"), json.loads(cell))
        return text


GUIDED = " [guided]"


def refined(text: str, operation: str, parameters: Mapping[str, Any]) -> str:
    return f"{text} » {operation} {json.dumps(parameters, sort_keys=True)}"


@dataclass(frozen=True)
class Purchase:
    """One executed create: the money was spent at `at`."""

    stage: str
    content: str
    request_id: str
    job_id: str
    at: float
    prompt: str
    category_id: str = ""
    selections: tuple[tuple[str, str], ...] = ()
    ended: str | None = None
    ended_at: float | None = None
    #: What was made: patternId or productId.
    result_id: str | None = None

    @property
    def goods(self) -> Goods:
        return goods_of(self.prompt, self.category_id, dict(self.selections))

    def alive_at(self, at: float) -> bool:
        """Return whether it was running or had succeeded then, so that a second one is one too many."""
        return not (self.ended == "failed" and self.ended_at is not None and self.ended_at <= at)


@dataclass(frozen=True)
class Audit:
    purchases: tuple[Purchase, ...]
    #: Bought while another purchase of the same content stood: the money spent for nothing.
    double_purchases: tuple[Purchase, ...]
    faults: Counter[str]
    rules_fired: Counter[int]
    #: requestIds that came with more than one body.
    changed_bodies: tuple[str, ...]
    #: Requests that reached the second listener, and how many of them brought a key there.
    strayed: int
    keys_leaked: int
    #: What each row wants, by sku.
    wanted: Mapping[str, Goods]

    @property
    def requests_with_two_jobs(self) -> tuple[str, ...]:
        return tuple(name for name, n in Counter(p.request_id for p in self.purchases).items() if n > 1)

    @cached_property
    def products(self) -> dict[str, Purchase]:
        """Return every finished product, by productId."""
        return {p.result_id: p for p in self.purchases if p.stage == "product" and p.result_id}

    @cached_property
    def patterns(self) -> dict[str, Purchase]:
        return {p.result_id: p for p in self.purchases if p.stage == "pattern" and p.result_id}

    @property
    def unfinished(self) -> tuple[Purchase, ...]:
        return tuple(p for p in self.purchases if p.ended is None)

    def bought(self, stage: str) -> int:
        return sum(p.stage == stage for p in self.purchases)

    def wrong_products(self, products: Mapping[str, str]) -> list[str]:
        """Return, as sentences, which products (sku -> productId) of the results files do not belong to their rows."""
        faults = [f"{i} is in {n} rows" for i, n in Counter(products.values()).items() if n > 1]
        for sku, product_id in products.items():
            made = self.products.get(product_id)
            if made is None:
                faults.append(f"{sku}: the service never made {product_id}")
            elif self.wanted.get(sku) != made.goods:
                faults.append(f"{sku}: {product_id} was made for {made.content}")
        return faults

    def never_bought(self) -> Counter[Goods]:
        """Return what the rows want and was never begun, with the number missing."""
        return Counter(self.wanted.values()) - Counter(
            p.goods for p in self.purchases if p.stage == "product"
        )

    def unfired(self, plan: Plan) -> list[str]:
        """Return the rules of a plan that never fell on anything: the run proved nothing about them."""
        return [f"{r.operation} {r.fault}" for n, r in enumerate(plan.rules) if not self.rules_fired[n]]


def audit(record: Path, rows: Iterable[ExpectedRow] = (), plan: Plan | None = None) -> Audit:
    """Read a record. Rows with equal content may each buy their product once; a pattern may be bought once.

    `plan` names the categories, if they are not the default ones.
    """
    lines = list(lines_of(record))
    wanted = _wanted(rows, plan or Plan())
    purchases = _purchases(lines)
    asked = [line for line in lines if line["event"] == "request"]
    strayed = [line for line in lines if line["event"] == "strayed"]
    return Audit(
        purchases=purchases,
        double_purchases=_doubles(purchases, Counter(wanted.values())),
        faults=Counter(line["fault"] for line in asked if line["fault"]),
        rules_fired=Counter(index for line in asked for index in line["rules"]),
        changed_bodies=_changed_bodies(asked),
        strayed=len(strayed),
        keys_leaked=sum(line["authorization"] for line in strayed),
        wanted=wanted,
    )


def _wanted(rows: Iterable[ExpectedRow], plan: Plan) -> dict[str, Goods]:
    ids = {c.name.lower(): c.category_id for c in categories_of(plan)}
    return {
        row.sku: goods_of(
            row.pattern_text, ids.get(row.category.strip().lower(), row.category), row.selections
        )
        for row in rows
    }


def _purchases(lines: list[Line]) -> tuple[Purchase, ...]:
    ends = {line["jobId"]: line for line in lines if line["event"] == "ended"}
    prompts: dict[str, str] = {}
    purchases = []
    for line in lines:
        if line["event"] != "created":
            continue
        purchase = _purchase(line, ends.get(line["jobId"]), prompts)
        if purchase.stage == "pattern" and purchase.result_id:
            prompts[purchase.result_id] = purchase.prompt
        purchases.append(purchase)
    return tuple(purchases)


def _purchase(line: Line, end: Line | None, prompts: Mapping[str, str]) -> Purchase:
    body = line["body"]
    stage, prompt = _made_by(line["operation"], body, prompts)
    return Purchase(
        stage=stage, content=_content(stage, prompt, body), request_id=line["requestId"], job_id=line["jobId"],
        at=line["at"], prompt=prompt, category_id=body.get("categoryId", ""),
        selections=tuple(sorted(body.get("selections", {}).items())), ended=end["status"] if end else None,
        ended_at=end["at"] if end else None, result_id=end["resultId"] if end else None,
    )  # fmt: skip


def _made_by(operation: str, body: Mapping[str, Any], prompts: Mapping[str, str]) -> tuple[str, str]:
    """Return the stage of a purchase, and the text of its pattern."""
    if operation == "patterns/create":
        return "pattern", body["prompt"] + (GUIDED if body.get("referenceIds") else "")
    if operation == UPLOAD:
        return "reference", ""
    before = prompts.get(body["patternId"], "")
    if operation in REFINE:
        own = {name: value for name, value in body.items() if name not in ("requestId", "patternId")}
        return "pattern", refined(before, operation, own)
    return "product", before


def _content(stage: str, prompt: str, body: Mapping[str, Any]) -> str:
    if stage == "pattern" and "patternId" in body:
        about = {"text": prompt}
    elif stage != "product":
        about = {name: value for name, value in body.items() if name != "requestId"}
    else:
        about = {"prompt": prompt, "category": body["categoryId"], "selections": body["selections"]}
    return json.dumps([stage, about], sort_keys=True, ensure_ascii=False)


def _doubles(purchases: tuple[Purchase, ...], wanted: Counter[Goods]) -> tuple[Purchase, ...]:
    """Return the purchases made while there were as many of the same content already as rows to use them."""
    purchases_of: dict[str, list[Purchase]] = defaultdict(list)
    doubles = []
    for purchase in purchases:
        others = purchases_of[purchase.content]
        allowed = max(1, wanted[purchase.goods]) if purchase.stage == "product" else 1
        if sum(other.alive_at(purchase.at) for other in others) >= allowed:
            doubles.append(purchase)
        others.append(purchase)
    return tuple(doubles)


def _changed_bodies(asked: list[Line]) -> tuple[str, ...]:
    bodies: dict[str, set[str]] = defaultdict(set)
    for line in asked:
        if line["requestId"]:
            bodies[line["requestId"]].add(line["sha"])
    return tuple(name for name, shas in bodies.items() if len(shas) > 1)
