"""The rules of a catalog, stated once more on their own: what may be bought, and what a sku may come to have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

#: The content that is bought for a row: its prompt, the category's ID, and the side that is printed.
Content = tuple[str, str, str]
#: The sides that each category offers, by its ID; None if they could not be read.
Offered = Mapping[str, Collection[str] | None]


def folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


@dataclass
class Model:
    offered: Offered | None = None
    asked: dict[str, set[Content]] = field(default_factory=lambda: defaultdict(set))
    #: The most takes that were requested at once, and by prompt the highest take with an `again`.
    most_takes: int = 1
    again: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    gone: set[str] = field(default_factory=set)

    def learn(self, now: Offered | None) -> None:
        """Learn an offer; where it cannot be read, the last one that could be stays, category by category."""
        before = self.offered or {}
        if now is not None:
            self.offered = {name: before.get(name) if of is None else of for name, of in now.items()}

    def read(self, cells: Mapping[str, str]) -> Content | None:
        """Return the content of a row; None if the row is refused."""
        prompt, written, side = " ".join(cells["prompt"].split()), cells["category"].strip(), cells["side"]
        if self.offered is None:
            return prompt, written, folded(side)
        category = {"tote bag": "cat_tote", "mug": "cat_mug"}.get(folded(written), written)
        sides = self.offered.get(category, ())
        is_offered = sides is None or (sides and folded(side) in {"", *map(folded, sides)})
        return (prompt, category, folded(side)) if is_offered else None

    def may_be_bought(self, sku: str | None, content: Content, take: int) -> bool:
        """Return whether a product, or a pattern (without a sku), was asked for: by a sheet, and on this take."""
        prompts = {each[0] for contents in self.asked.values() for each in contents}
        was_asked = content in self.asked[sku] if sku else content[0] in prompts
        return was_asked and take <= self.again[content[0]] + self.most_takes
