"""What a sheet has otherwise than its catalog, and how much of it may change without a person. Pure functions."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from patternmill.text import key, normal

#: Up to so many changes never need a person.
_FEW = 5


@dataclass(frozen=True)
class RowLimit:
    """A limit such as `20`, `10%` or `20,10%`, none of whose parts may be passed."""

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> "RowLimit":
        """Return a limit that the settings have found well formed."""
        parts = [part.strip() for part in text.split(",")]
        count = next((int(part) for part in parts if not part.endswith("%")), None)
        share = next((int(part.rstrip("% ")) / 100 for part in parts if part.endswith("%")), None)
        return cls(count, share)

    def allows(self, number: int, total: int) -> bool:
        """Return whether so many of all may change: a few always, and never all of them."""
        few = number <= _FEW and number < total
        within = (self.count is None or number <= self.count) and (
            self.share is None or number <= self.share * total
        )
        return number == 0 or few or (within and number < total)


class Known(NamedTuple):
    """A row that the catalog has: the item that it wants, and the product that it has."""

    key: str
    sku: str
    wants: str
    likeness: str
    content: str
    retired: float | None
    product_id: str


class Wanted(NamedTuple):
    """A row of the sheet that is fit to be made. `is_new`: its product would be bought."""

    number: int
    product: str
    likeness: str
    is_new: bool


@dataclass(frozen=True)
class Changes:
    """Keys of rows by what happens to them; all others are unchanged."""

    total: int = 0
    added: frozenset[str] = frozenset()
    #: Rows whose content is another, those of them whose product is replaced, and those with another category ID alone.
    changed: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    recategorized: frozenset[str] = frozenset()
    #: Rows that the sheet no longer has.
    gone: frozenset[str] = frozenset()
    #: By the number of a new row: the sku that had just this content, and is no longer named.
    renamed: Mapping[int, str] = field(default_factory=dict)


def compare(
    known: Iterable[Known],
    wanted: Mapping[str, Wanted],
    refused: Collection[str],
    unsold: Collection[str],
    retired_elsewhere: Mapping[str, str],
    content_of: Callable[[int], str],
) -> Changes:
    """Compare a catalog with a sheet, both by folded sku.

    `refused`: the keys of refused rows. `unsold`: the likenesses of rows that are refused for their sku alone: a gone
    sku of that likeness may be theirs. `retired_elsewhere`: skus of retired products by likeness, which no row names.
    `content_of`: what tells the content of a row of the sheet by its number.
    """
    all_known = {row.key: row for row in known}
    living = {name: row for name, row in all_known.items() if row.retired is None}
    named = {name for name in living if name in wanted or name in refused}
    changed = {name for name in named if name in wanted and living[name].wants != wanted[name].product}
    changed = {name for name in changed if living[name].wants or living[name].product_id}
    gone = {
        name for name, row in living.items()
        if name not in named and not name.startswith("#") and row.likeness not in unsold
    }  # fmt: skip
    added = {name for name in wanted if name not in living}
    left = defaultdict(list)
    for row in all_known.values():
        if row.product_id and (row.key in gone or row.retired is not None) and row.key not in wanted:
            left[row.likeness].append(row.sku)
    for likeness, sku in retired_elsewhere.items():
        left[likeness].append(sku)
    renamed = {}
    for name in sorted(added, key=lambda name: wanted[name].number):
        row_wanted = wanted[name]
        if row_wanted.is_new and left[row_wanted.likeness]:
            renamed[row_wanted.number] = left[row_wanted.likeness].pop(0)
    return Changes(
        total=len(living),
        added=frozenset(added),
        changed=frozenset(changed),
        replaced=frozenset(name for name in changed if living[name].product_id),
        recategorized=frozenset(
            name
            for name in changed
            if _is_recategorized(living[name].content, content_of(wanted[name].number))
        ),
        gone=frozenset(gone),
        renamed=renamed,
    )


def _is_recategorized(before: str, after: str) -> bool:
    """Return whether two contents differ in the category's ID alone, under the same name."""
    old, new = (json.loads(text or "{}") for text in (before, after))
    if not old or old["category_id"] == new["category_id"]:
        return False
    folded = [
        (
            normal(one["prompt"]),
            key(one["category"]),
            {key(name): key(text) for name, text in one["selections"].items()},
        )
        for one in (old, new)
    ]
    return folded[0] == folded[1]
