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
    #: Its product was made of other content: it gets a new product, and with another prompt a new pattern.
    CHANGED = "changed"
    #: The same content; or other content whose takes wait for a choice or were rejected, so that the product stays.
    UNCHANGED = "unchanged"
    REMOVED = "removed"  #: In the catalog, and no longer in the source.
    #: Requested before with this content and not made; it stays so until it is retried or edited.
    FAILED_BEFORE = "failed_before"
    REFUSED = "refused"  #: In the source, and refused; what the catalog has stays.


class ChangeVerdict(StrEnum):
    """The fate of a row that its source no longer has."""

    RETIRED = "retired"
    #: Waits for a person: too many would be retired at once, or the source has a row whose sku cannot be read.
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """The row of a catalog under a sku: the product that was made for it last, and its content."""

    sku: str
    content: Content
    product_key: ItemKey
    product_id: str
    pattern_id: str
    #: When it became what the catalog has, in Unix seconds, and the run that made it so.
    since: float
    run_id: RunId
    #: When the source no longer had the sku, in Unix seconds; None while it has it.
    retired_at: float | None = None
    #: Where the service shows the product, or else the pattern on it; None also where nobody asked for it.
    picture_url: str | None = None


@dataclass(frozen=True, slots=True)
class RequestedRow:
    """The row of a source under a sku; `content` is None where it is refused."""

    sku: str
    content: Content | None = None
    product_key: ItemKey | None = None
    #: Why its product is in the plan; None for a refused row.
    reason: Reason | None = None
    #: Whether an earlier run was asked for the same.
    was_requested: bool = False
    #: Whether it is known which sku the row is about; a refused row may not tell.
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
    verdict: ChangeVerdict | None = None  #: Set for removed rows only.
    now: Content | None = None  #: What the source requests.
    #: The sku of a removed row with the same content, whose new name this may be.
    renamed_from: str = ""
    is_bought: bool = False
    line: int = 0  #: The number of a refused row in the sheet, which names it where it has no sku.

    @property
    def replaces(self) -> bool:
        """Return whether it would buy a product in place of one that exists, without a decision that asked for it."""
        is_other = self.kind is ChangeKind.CHANGED and self.fields != ("take",)
        return self.is_bought and (is_other or bool(self.renamed_from))

    @property
    def always_asks(self) -> bool:
        """Return whether a person is asked even about a single change of this kind."""
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
        """Return the old and the new text of each changed field, from where they begin to differ."""
        if self.before is None or self.now is None:
            return dict.fromkeys(self.fields, "")
        texts = old_and_new(self.before.content, self.now)
        return {field: texts.get(field, "") for field in self.fields}


#: Nothing is made for the row, as its item failed before or waits for a person.
_NOT_MADE = frozenset({Reason.FAILED_BEFORE, Reason.BLOCKED, Reason.HELD})

#: Every sku of a source and of its catalog, once: the source's in its order, then what it no longer has.
Changes = tuple[Change, ...]


def change_counts(changes: Changes) -> dict[str, int]:
    """Return the number of changes of each kind, with removed rows counted by verdict; zeros are included."""
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
    """Return the changes that a source would make to its catalog, whose rows are by sku key, retired ones included.

    `limit`: how many rows that the source no longer has may be retired; None: the source is not the whole catalog.
    `ceiling`: how many a person allowed to be retired, the first ones by sku, in place of the limit. Unless a person
    decided, one row stays for each refused row of the source that may be about any sku.
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
    """Return how many refused rows may be about any sku: theirs cannot be read, or another refused row has it too."""
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

    Otherwise only those that always ask. `products`: how many products the catalog has.
    """
    replacing = tuple(change for change in changes if change.replaces)
    if limit.allows_replacing(len(replacing), products):
        return tuple(change for change in replacing if change.always_asks)
    return replacing


def old_and_new(before: Content, now: Content) -> dict[str, str]:
    """Return the fields in which a person sees two contents differ: prompt, category, then options by their names.

    Each is `` `old` -> `new` ``, from shortly before the first difference; for a take it is `1 -> 2`.
    """
    old, new = before.fields(), now.fields()
    differences = {}
    for name in sorted(old | new, key=lambda name: (name.startswith("option:"), name != "prompt", name)):
        pair = old.get(name, ""), new.get(name, "")
        if visible_text(pair[0]) != visible_text(pair[1]):
            differences[name] = " -> ".join(pair if name == "take" else contrasted(*pair))
    return differences
