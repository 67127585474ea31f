"""What a sheet has otherwise than its catalog, and how much of it may change without a person. Pure functions."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from patternmill.items import Row, likeness_of
from patternmill.text import key, normal

#: What the keys of rows without a usable sku begin with, as no folded sku does: it has no spaces.
NO_SKU = "# "
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
        count, share = re.search(r"(\d+)\s*(?![\d\s]*%)", text), re.search(r"(\d+)\s*%", text)
        return cls(int(count[1]) if count else None, int(share[1]) / 100 if share else None)

    def allows(self, number: int, total: int) -> bool:
        """Return whether so many of all may change: a few always, and never all of them."""
        parts = self.count, None if self.share is None else self.share * total
        most = min((part for part in parts if part is not None), default=total)
        return number == 0 or (number < total and number <= max(_FEW, most))


class Known(NamedTuple):
    """A row that the catalog has: the item that it wants, and the product that it has."""

    key: str
    sku: str
    wants: str
    likeness: str
    content: str
    retired: float | None
    product_id: str
    pattern: str = ""
    take: int = 1
    refusal: str = ""


@dataclass(frozen=True)
class Changes:
    """Keys of rows by what happens to them; all others are unchanged."""

    total: int = 0
    added: frozenset[str] = frozenset()
    #: Rows that want another item; those of them whose product is replaced, unless by a person's choice of a take; and
    #: those with another category ID alone.
    changed: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    recategorized: frozenset[str] = frozenset()
    #: Rows that the sheet no longer has.
    gone: frozenset[str] = frozenset()
    #: By the number of a new row: the sku that had just this content, and is no longer named.
    renamed: Mapping[int, str] = field(default_factory=dict)


def compare(
    known: Collection[Known],
    wanted: Mapping[str, Row],
    refused: Collection[str],
    unsold: Collection[str],
    retired_elsewhere: Mapping[str, str],
    is_bought: Callable[[Row], bool],
    content_of: Callable[[Row], str],
) -> Changes:
    """Compare a catalog with the rows of a sheet, both by folded sku.

    `refused`: the keys of refused rows. `unsold`: the likenesses of rows that are refused for their sku alone: a gone
    sku of that likeness may be theirs. `retired_elsewhere`: skus of retired products by likeness, which no row names.
    """
    all_known = {row.key: row for row in known}
    living = {name: row for name, row in all_known.items() if row.retired is None}
    changed = [
        name for name, row in living.items()
        if name in wanted and row.wants != wanted[name].product.id and (row.wants or row.product_id)
    ]  # fmt: skip
    gone = {
        name for name, row in living.items()
        if not (name in wanted or name in refused or name.startswith(NO_SKU) or row.likeness in unsold)
    }  # fmt: skip
    added = wanted.keys() - living.keys()
    # What was refused is new as well, and a rename stays one where a sheet names both skus.
    new = {name for name in wanted if name in added or not (living[name].wants or living[name].product_id)}
    codes = {name: json.loads(living[name].refusal or "{}").get("code") for name in new - added}
    doubted = {likeness_of(wanted[name].product) for name, code in codes.items() if code == "rename"}
    left = defaultdict(list, {likeness: [sku] for likeness, sku in retired_elsewhere.items()})
    for row in all_known.values():
        is_unnamed = (row.key in gone or row.retired is not None) and row.key not in wanted
        if row.product_id and (is_unnamed or row.likeness in doubted):
            left[row.likeness].append(row.sku)
    made = [name for name in changed if living[name].product_id]
    return Changes(
        total=len(living),
        added=frozenset(added),
        changed=frozenset(changed),
        replaced=frozenset(one for one in made if not _is_decided(living[one], wanted[one], content_of)),
        recategorized=frozenset(
            name for name in changed if _recategorizes(living[name].content, content_of(wanted[name]))
        ),
        gone=frozenset(gone),
        renamed=_renamed([wanted[name] for name in new], left, is_bought) if left else {},
    )


def _renamed(
    added: Iterable[Row], left: Mapping[str, list[str]], is_bought: Callable[[Row], bool]
) -> dict[int, str]:
    """Return the sku that each new row probably had, by the row's number; each product was renamed once at most."""
    found = {}
    for row in sorted(added, key=lambda row: row.number):
        if is_bought(row) and (skus := left.get(likeness_of(row.product))):
            found[row.number] = skus.pop(0)
    return found


def _is_decided(known: Known, row: Row, content_of: Callable[[Row], str]) -> bool:
    """Return whether a row is another one only because a person decided on another take of its pattern."""
    if not (row.decided and known.content) or known.pattern != row.pattern or known.take == row.take:
        return False
    new = content_of(row)
    return _folded(known.content) == _folded(new) and not _recategorizes(known.content, new)


def _recategorizes(before: str, after: str) -> bool:
    """Return whether two contents differ in the category's ID alone, under the same name."""
    if not before or json.loads(before)["category_id"] == json.loads(after)["category_id"]:
        return False
    return _folded(before) == _folded(after)


def _folded(content: str) -> dict[str, Any]:
    """Return what a row says, as far as it is not spelling and not the category's ID."""
    said = json.loads(content)
    selections = {key(name): key(text) for name, text in said["selections"].items()}
    folded = {"prompt": normal(said["prompt"]), "category": key(said["category"]), "selections": selections}
    return {**said, **folded, "category_id": ""}
