"""The rules of a catalog, said once more and nothing else: what each sku has, and what may be bought for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

Cells = Mapping[str, str]
#: What is bought for a row: its prompt, the category's ID, and the side that is printed.
Content = tuple[str, str, str]
#: A sku, its content, and the take of its pattern.
Product = tuple[str, Content, int]
Pattern = tuple[str, int]
#: Folded, by the ID of a category: the sides that it offers; None: they could not be read.
Offered = Mapping[str, Collection[str] | None]


def folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


def folded_sku(text: str) -> str:
    return "".join(text.split()).casefold()


@dataclass(frozen=True)
class Facts:
    """What exists: of each prompt the takes that were requested, and whether each may exist; and products."""

    takes: Mapping[str, Mapping[int, bool]]
    made: Collection[Product]
    #: Made, or requested and without an end.
    exist: Collection[Product]
    failed: Collection[Product | Pattern]


@dataclass
class Model:
    offered: Offered | None = None
    #: A prompt, the number of a take, and the verdict; in their order.
    decided: list[tuple[str, int, str]] = field(default_factory=list)
    requested: dict[str, Content] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    has: dict[str, Product] = field(default_factory=dict)
    #: Everything that may have been bought.
    asked: set[Product | Pattern] = field(default_factory=set)

    def learn(self, now: Offered | None) -> None:
        """An offer that cannot be read is the last one that could be, category by category."""
        before = self.offered or {}
        if now is not None:
            self.offered = {name: before.get(name) if of is None else of for name, of in now.items()}

    def read(self, cells: Cells) -> Content | None:
        """Return the content of a row; None: it is refused."""
        prompt, written, side = (
            " ".join(cells["prompt"].split()),
            cells["category"].strip(),
            folded(cells["side"]),
        )
        if self.offered is None:
            return prompt, written, side
        category = {"tote bag": "cat_tote", "mug": "cat_mug"}.get(folded(written), written)
        sides = self.offered.get(category, ())
        return (prompt, category, side) if sides is None or (side in {"", *sides} and sides) else None

    def latest(self, prompt: str) -> dict[int, str]:
        """Return the latest verdict about each take of a prompt, in their order."""
        latest: dict[int, str] = {}
        for _, take, verdict in (one for one in self.decided if one[0] == prompt):
            latest.pop(take, None)
            latest[take] = verdict
        return latest

    def takes(self, prompt: str, facts: Facts, count: int = 1) -> tuple[list[int], int | None]:
        """Return the takes to make or to choose from, and the one that rows are built on, if it is certain."""
        made = {number for number, exists in facts.takes.get(prompt, {}).items() if exists}
        latest = self.latest(prompt)
        chosen = [
            take
            for take, verdict in latest.items()
            if verdict == "again" or (verdict == "pick" and take in made)
        ]
        if chosen and latest[chosen[-1]] == "pick":
            return [chosen[-1]], chosen[-1]
        last = max((take for take, verdict in latest.items() if verdict == "again"), default=0)
        above = {take for take in made if take > last}
        left = sorted(take for take in above if latest.get(take) != "reject")
        if above and not left:
            return [], None
        missing = [take for take in range(last + 1, last + count + 1) if take not in above]
        certain = last + 1 if not above else left[0] if len(left) == 1 else None
        return sorted([*left, *missing[: max(0, count - len(above))]]), certain

    def may_ask_again(self, prompt: str, facts: Facts) -> bool:
        """Return whether a remake may ask for another take that nobody asked for with --again."""
        return "again" not in self.latest(prompt).values() or self.takes(prompt, facts) == ([], None)

    def product(self, sku: str, content: Content, facts: Facts, count: int = 1) -> Product | None:
        """Return what is to be made for a sku; None: a person chooses first. It counts as asked for."""
        takes, certain = self.takes(content[0], facts, count)
        built_on = certain is not None and (len(takes) < 2 or (sku, content, certain) in facts.exist)
        self.asked |= (
            {(content[0], certain)} if built_on and certain else {(content[0], take) for take in takes}
        )
        if not built_on or certain is None:
            return None
        self.asked.add((sku, content, certain))
        return sku, content, certain

    def request(
        self, rows: Mapping[str, Content | None], before: Facts, count: int, *, retried: bool
    ) -> None:
        """A refused row, and one whose item failed, leaves what was requested of its sku."""
        for sku, content in rows.items():
            product = self.product(sku, content, before, count) if content else None
            fails = product and not retried and {product, (product[1][0], product[2])} & set(before.failed)
            if content and not (fails and sku in self.requested and sku not in self.gone):
                self.requested[sku] = content
            if content:
                self.gone.discard(sku)

    def leave(self, named: Collection[str], unreadable: int) -> list[str]:
        """Return the skus that are retired: not all of a catalog, nor those that an unreadable row may be about."""
        absent = sorted(self.has.keys() - set(named))
        allowed = 0 if len(absent) == len(self.has) else max(0, len(absent) - unreadable)
        self.gone |= self.requested.keys() - set(named) - set(absent[allowed:])
        return absent[:allowed]
