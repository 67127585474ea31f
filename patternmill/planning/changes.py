"""Changes of a catalog: the rows of its source, compared by content with what the catalog has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from patternmill.identifiers import ItemKey, RunId
from patternmill.parameters import RowLimit
from patternmill.planning.normal_text import visible_text
from patternmill.planning.plan import TO_BUY, WITHOUT_PRODUCT, Reason
from patternmill.planning.rows import Content, sku_key
from patternmill.text import contrasted


class ChangeKind(StrEnum):
    """The difference between the source and the catalog under one sku."""

    ADDED = "added"  #: The catalog has no product for it.
    #: Other content than its product was made of: a new product, and with another prompt a new pattern.
    CHANGED = "changed"
    #: The same content; or other content whose takes wait for a choice or were rejected, so that the product stays.
    UNCHANGED = "unchanged"
    REMOVED = "removed"  #: In the catalog, and no longer in the source.
    #: Requested before with this content and not made: stays so until it is retried or edited.
    FAILED_BEFORE = "failed_before"
    REFUSED = "refused"  #: In the source, and refused: what the catalog has stays.


class ChangeVerdict(StrEnum):
    """The fate of a row that its source has no longer."""

    RETIRED = "retired"
    #: Waits for a person: it would be too many at once, or the source has a row whose sku cannot be read.
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """The row of a catalog under a sku: the product that was made for it last, and its content."""

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
    #: Where the service shows the product, or else what that shows; None also where nobody asked for it.
    picture_url: str | None = None


@dataclass(frozen=True, slots=True)
class RequestedRow:
    """The row of a source under a sku; `content` is None where it is refused."""

    sku: str
    content: Content | None = None
    product_key: ItemKey | None = None
    #: Why its product is in the plan; of a refused row None.
    reason: Reason | None = None
    #: An earlier run was asked for the same.
    was_requested: bool = False
    #: Of a refused row: whether it is known which sku it is about.
    has_sku: bool = True
    line: int = 0  #: Its number in the sheet.


@dataclass(frozen=True, slots=True)
class Change:
    """One sku and its change; `before` is what the catalog has until the new product exists."""

    sku: str
    kind: ChangeKind
    #: `prompt`, `category`, `option:<name>`: what differs from before.
    fields: tuple[str, ...] = ()
    before: CurrentRow | None = None
    verdict: ChangeVerdict | None = None  #: Of a removed row.
    now: Content | None = None  #: What the source requests.
    #: The sku of a removed row with the same content, whose new name this may be.
    renamed_from: str = ""
    is_bought: bool = False
    line: int = 0  #: The number of a refused row in the sheet, by which it is named where it has no sku.

    @property
    def replaces(self) -> bool:
        """Return whether it would buy a product in place of one that exists, without a decision that asked for it."""
        is_other = self.kind is ChangeKind.CHANGED and self.fields != ("take",)
        return self.is_bought and (is_other or bool(self.renamed_from))

    @property
    def always_asks(self) -> bool:
        """Return whether even one such change asks."""
        return self.has_other_id or self.became_checked

    @property
    def has_other_id(self) -> bool:
        """Return whether it would replace a product for nothing but another ID of the same category."""
        if not self.replaces or self.before is None or self.now is None or self.fields != ("category",):
            return False
        name = self.now.category_name
        return name is not None and self.before.content.category_name == name

    @property
    def became_checked(self) -> bool:
        """Return whether it would replace a product of a category or options that could not be read, and can now."""
        if not self.replaces or self.before is None or self.now is None:
            return False
        was, now = self.before.content, self.now
        is_listed_now = now.category_name is not None and was.category_name is None
        return is_listed_now or (now.is_checked and not was.is_checked)

    def old_and_new(self) -> dict[str, str]:
        """Return by field what was before and what is now, from where they begin to differ."""
        if self.before is None or self.now is None:
            return dict.fromkeys(self.fields, "")
        texts = old_and_new(self.before.content, self.now)
        return {field: texts.get(field, "") for field in self.fields}


#: Nothing is made for the row, as its item failed before or waits for a person.
_NOT_MADE = frozenset({Reason.FAILED_BEFORE, Reason.BLOCKED, Reason.HELD})

#: Every sku of a source and of its catalog, once: the source's in its order, then what it no longer has.
Changes = tuple[Change, ...]


def change_counts(changes: Changes) -> dict[str, int]:
    """Return how many there are of each kind, and of the removed ones of each verdict; zeros too."""
    counts = Counter(change.verdict or change.kind for change in changes)
    names = [*(kind for kind in ChangeKind if kind is not ChangeKind.REMOVED), *ChangeVerdict]
    return {name.value: counts[name] for name in names}


def noteworthy(changes: Changes) -> list[Change]:
    return [change for change in changes if change.kind is not ChangeKind.UNCHANGED]


def compare(
    catalog: Mapping[str, CurrentRow],
    source: Sequence[RequestedRow],
    limit: RowLimit | None = None,
    *,
    ceiling: int | None = None,
) -> Changes:
    """Return the changes that a source would make to its catalog: its rows by the keys of skus, with the retired ones.

    `limit`: how many rows may be retired that the source no longer has; None: the source is not the whole catalog.
    `ceiling`: how many a person allowed to be retired, in place of the limit: the first ones by sku. Unless a person
    decided, as many stay as the source has refused rows that may be about any sku.
    """
    changes = [_change(row, catalog.get(sku_key(row.sku))) for row in source]
    if limit is None:
        return tuple(changes)
    current = {key: row for key, row in catalog.items() if row.retired_at is None}
    missing = current.keys() - {sku_key(row.sku) for row in source}
    gone = sorted((current[key] for key in missing), key=lambda row: row.sku)
    allowed = len(gone) if limit.allows_retiring(len(gone), len(current)) else 0
    allowed = min(allowed, len(gone) - _without_own_sku(source)) if ceiling is None else ceiling
    verdicts = [ChangeVerdict.RETIRED] * max(0, allowed) + [ChangeVerdict.WITHHELD] * len(gone)
    removed = [
        Change(row.sku, ChangeKind.REMOVED, before=row, verdict=verdict)
        for row, verdict in zip(gone, verdicts, strict=False)
    ]
    return (*_renamed(changes, gone), *removed)


def _without_own_sku(source: Sequence[RequestedRow]) -> int:
    """Return how many refused rows may be of any sku: it cannot be read, or another refused row has the same."""
    refused = [row for row in source if row.content is None]
    return len(refused) - len({sku_key(row.sku) for row in refused if row.has_sku})


def _change(row: RequestedRow, before: CurrentRow | None) -> Change:
    current = before if before is not None and before.retired_at is None else None
    sku = before.sku if before is not None else row.sku
    if row.content is None:
        return Change(sku, ChangeKind.REFUSED, before=current, line=row.line)
    is_same = before is not None and before.product_key == row.product_key
    is_undecided = row.reason in WITHOUT_PRODUCT
    if (current is not None and (is_same or is_undecided)) or (is_undecided and row.was_requested):
        kind = ChangeKind.UNCHANGED
    elif row.reason in _NOT_MADE:
        kind = ChangeKind.FAILED_BEFORE
    else:
        kind = ChangeKind.ADDED if current is None else ChangeKind.CHANGED
    fields = () if before is None or is_same else tuple(old_and_new(before.content, row.content))
    return Change(sku, kind, fields, before, now=row.content, is_bought=row.reason in TO_BUY)


def _renamed(changes: Sequence[Change], gone: Sequence[CurrentRow]) -> Iterator[Change]:
    """Yield the changes; an added row with the content of a removed one names that as its possible earlier name."""
    by_content = defaultdict[object, list[str]](list)
    for row in reversed(gone):
        by_content[row.content.identity].append(row.sku)
    for change in changes:
        is_new = change.kind is ChangeKind.ADDED and change.before is None
        names = by_content.get(change.now.identity) if is_new and change.now is not None else None
        yield replace(change, renamed_from=names.pop()) if names else change


def replacements(changes: Changes, limit: RowLimit, products: int) -> Changes:
    """Return the changes that a person is asked about: all replacements of products where they are too many.

    Else they are those that always ask. `products`: how many products the catalog has.
    """
    replacing = tuple(change for change in changes if change.replaces)
    if limit.allows_replacing(len(replacing), products):
        return tuple(change for change in replacing if change.always_asks)
    return replacing


def old_and_new(before: Content, now: Content) -> dict[str, str]:
    """Return the fields in which a person sees two contents differ: prompt, category, then options by their names.

    Each with `` `old` -> `new` ``, from shortly before the first difference; of a take `1 -> 2`.
    """
    old, new = before.fields(), now.fields()
    differences = {}
    for name in sorted(old | new, key=lambda name: (name.startswith("option:"), name != "prompt", name)):
        pair = old.get(name, ""), new.get(name, "")
        if visible_text(pair[0]) != visible_text(pair[1]):
            differences[name] = " -> ".join(pair if name == "take" else contrasted(*pair))
    return differences
