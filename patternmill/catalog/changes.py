"""The changes between a source and its catalog: added, changed, unchanged, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from patternmill.catalog.normal_text import visible_text
from patternmill.catalog.rows import Content, sku_key
from patternmill.identifiers import ItemKey, RunId
from patternmill.parameters import RetireLimit
from patternmill.text import contrasted


class ChangeKind(StrEnum):
    """How a sku of the source differs from the catalog."""

    #: The catalog has no product for it.
    ADDED = "added"
    #: Other content than its product was made of: a new product, and with another prompt a new pattern.
    CHANGED = "changed"
    #: The same content, made or waiting for a choice between its takes: no call.
    UNCHANGED = "unchanged"
    #: In the catalog, and no longer in the source.
    REMOVED = "removed"
    #: Requested before with this content and not made: stays so until it is retried or edited.
    FAILED_BEFORE = "failed_before"
    #: In the source, and refused: what the catalog has stays.
    REFUSED = "refused"


class ChangeVerdict(StrEnum):
    """What becomes of a removed row."""

    RETIRED = "retired"
    #: Waits for a person: it would be too many at once.
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """What a catalog has for a sku: the product that was made for it last, and of what."""

    sku: str
    content: Content
    product_key: ItemKey
    product_id: str
    pattern_id: str
    #: When it became what the catalog has, and by which run. Unix seconds.
    since: float
    run_id: RunId
    #: When the source had the sku no longer; None while it has.
    retired_at: float | None = None


@dataclass(frozen=True, slots=True)
class RequestedRow:
    """What a source requests under a sku; of a refused row no content. `kind`: it was requested and not made."""

    sku: str
    content: Content | None = None
    product_key: ItemKey | None = None
    kind: ChangeKind | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One sku and its change; `before` is what the catalog has until the new product exists."""

    sku: str
    kind: ChangeKind
    #: `prompt`, `category`, `option:<name>`: what differs from before.
    fields: tuple[str, ...] = ()
    before: CurrentRow | None = None
    #: Of a removed row.
    verdict: ChangeVerdict | None = None
    #: What the source requests.
    now: Content | None = None

    def old_and_new(self) -> dict[str, str]:
        """Return both by field, from where they begin to differ."""
        if self.before is None or self.now is None:
            return dict.fromkeys(self.fields, "")
        texts = old_and_new(self.before.content, self.now)
        return {field: texts.get(field, "") for field in self.fields}


#: Every sku of a source and of its catalog, once: the source's in its order, then what it no longer has.
Changes = tuple[Change, ...]


def change_counts(changes: Changes) -> dict[str, int]:
    """By kind, and the removed ones by verdict; zeros too."""
    found = Counter(change.verdict or change.kind for change in changes)
    names = [*(kind for kind in ChangeKind if kind is not ChangeKind.REMOVED), *ChangeVerdict]
    return {name.value: found[name] for name in names}


def noteworthy(changes: Changes) -> list[Change]:
    return [change for change in changes if change.kind is not ChangeKind.UNCHANGED]


def detect(
    catalog: Mapping[str, CurrentRow],
    source: Sequence[RequestedRow],
    limit: RetireLimit,
    *,
    ceiling: int | None = None,
) -> Changes:
    """The changes of a source against its catalog (by sku, with the retired ones).

    `ceiling` is a person's decision on how many may be retired, in place of the limit: the first so many by sku.
    """
    # Case and spaces do not make another sku: the catalog's spelling counts.
    spellings = {sku_key(sku): sku for sku in catalog}
    source = [
        row if row.sku in catalog else replace(row, sku=spellings.get(sku_key(row.sku), row.sku))
        for row in source
    ]
    changes = [_change(row, catalog.get(row.sku)) for row in source]
    return (*changes, *_removed(catalog, source, limit, ceiling))


def old_and_new(before: Content, now: Content) -> dict[str, str]:
    """The fields in which a person sees two contents differ: prompt, category, then options by their names.

    Each with `` `old` -> `new` ``, from shortly before the first difference; of a take `1 -> 2`.
    """
    old, new = before.fields(), now.fields()
    seen, sees = ({name: visible_text(text) for name, text in fields.items()} for fields in (old, new))
    names = sorted(old | new, key=lambda name: (name.startswith("option:"), name != "prompt", name))
    pairs = {
        name: (old.get(name, ""), new.get(name, "")) for name in names if seen.get(name) != sees.get(name)
    }
    return {name: " -> ".join(pair if name == "take" else contrasted(*pair)) for name, pair in pairs.items()}


def _change(row: RequestedRow, before: CurrentRow | None) -> Change:
    if row.content is None:
        is_retired = before is not None and before.retired_at is not None
        return Change(row.sku, ChangeKind.REFUSED, (), None if is_retired else before)
    is_same = before is not None and before.product_key == row.product_key
    fields = () if before is None or is_same else tuple(old_and_new(before.content, row.content))
    return Change(row.sku, _kind(row, before, is_same=is_same), fields, before, now=row.content)


def _kind(row: RequestedRow, before: CurrentRow | None, *, is_same: bool) -> ChangeKind:
    if before is not None and is_same:
        return ChangeKind.UNCHANGED if before.retired_at is None else ChangeKind.ADDED
    if row.kind is not None:
        return row.kind
    return ChangeKind.ADDED if before is None or before.retired_at is not None else ChangeKind.CHANGED


def _removed(
    catalog: Mapping[str, CurrentRow], source: Iterable[RequestedRow], limit: RetireLimit, ceiling: int | None
) -> Iterator[Change]:
    """What the catalog has and the source has not, with the verdict on it."""
    known = {sku: current for sku, current in catalog.items() if current.retired_at is None}
    gone = sorted(known.keys() - {row.sku for row in source})
    if ceiling is None:
        ceiling = len(gone) if limit.allows(len(gone), len(known)) else 0
    for number, sku in enumerate(gone):
        verdict = ChangeVerdict.RETIRED if number < ceiling else ChangeVerdict.WITHHELD
        yield Change(sku, ChangeKind.REMOVED, (), known[sku], verdict)
