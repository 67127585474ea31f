"""What a source asks for, held against what its catalog has: added, changed, unchanged, removed; and who may retire."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from patternmill.catalog.problems import contrasted
from patternmill.catalog.rows import Row, sku_key
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey, RunId


class ChangeKind(StrEnum):
    """What a source says of a sku, against the catalog."""

    #: The catalog has no product for it.
    ADDED = "added"
    #: Other content than its product was made of: a new product, and with another prompt a new pattern.
    CHANGED = "changed"
    #: The same content: no call.
    UNCHANGED = "unchanged"
    #: In the catalog, and no longer in the source.
    REMOVED = "removed"
    #: Asked for before with this content and not made: stays so until it is retried or edited.
    FAILED_BEFORE = "failed_before"
    #: In the source, and refused there: what the catalog has stays.
    REFUSED = "refused"


class ChangeVerdict(StrEnum):
    """What becomes of a removed row."""

    RETIRED = "retired"
    #: Waits for a person: it would be too many at once.
    WITHHELD = "withheld"


#: Content that is the same, bought once more under an edition's name.
EDITION = "edition"


@dataclass(frozen=True, slots=True)
class Content:
    """What is bought for a row, as the run that bought it understood it."""

    prompt: str
    #: The environment's ID for it.
    category: str
    selections: Mapping[str, str]

    @classmethod
    def of(cls, row: Row) -> Content:
        return cls(row.prompt, row.category_id or row.category, row.selections)


@dataclass(frozen=True, slots=True)
class CurrentRow:
    """What a catalog has for a sku: the product that was made for it last, and of what."""

    sku: str
    content: Content
    product_key: ItemKey
    pattern_key: ItemKey
    product_id: str
    pattern_id: str
    #: When it became what the catalog has, and by which run. Unix seconds.
    since: float
    run_id: RunId
    #: When the source had the sku no longer; None while it has.
    retired_at: float | None = None


@dataclass(frozen=True, slots=True)
class RequestedRow:
    """What a source asks for under a sku. Without content where its row is refused."""

    sku: str
    content: Content | None = None
    product_key: ItemKey | None = None
    failed_before: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One sku and what has happened to it; `before` is what the catalog has until the new product is there."""

    sku: str
    kind: ChangeKind
    #: `prompt`, `category`, `option:<name>`: what differs from before.
    fields: tuple[str, ...] = ()
    before: CurrentRow | None = None
    #: Of a removed row.
    verdict: ChangeVerdict | None = None
    #: What the source asks for.
    now: Content | None = None

    def old_and_new(self) -> Iterator[str]:
        """Each field that differs, before and now, so that a person sees the difference."""
        if self.before is not None and self.now is not None:
            yield from described(self.before.content, self.now)


@dataclass(frozen=True)
class RetireLimit:
    """How many rows may be retired without a person's word: neither the count nor the share may be passed."""

    count: int = 20
    #: Of the rows that the catalog has. One row is never too many.
    share: float = 0.1

    @classmethod
    def parse(cls, text: str | None) -> RetireLimit:
        """Read `20`, `10%` or `20,10%`; what is not named stays as it is by default. Raises ConfigurationError."""
        limit = cls()
        for word in re.split(r"[\s,;]+|\band\b", text.strip()) if text else ():
            limit = cls._with(limit, word) if word else limit
        return limit

    @classmethod
    def _with(cls, limit: RetireLimit, word: str) -> RetireLimit:
        if re.fullmatch(r"\d{1,9}", word):
            return cls(int(word), limit.share)
        if re.fullmatch(r"(\d{1,2}(\.\d+)?|100)%", word):
            return cls(limit.count, float(word[:-1]) / 100)
        raise ConfigurationError(
            f"{word!r} does not say how many rows may be retired.",
            remedy="Write a count, a percentage, or both: 20,10%.",
        )

    def allows(self, removed: int, known: int) -> bool:
        """Whether so many of so many rows may be retired. Not all of them: an empty source is a mistake first."""
        if removed == known:
            return removed == 0
        return removed <= min(self.count, max(1, math.floor(self.share * known + 1e-9)))


@dataclass(frozen=True)
class Changes:
    """Every sku of a source and of its catalog, once: the source's in its order, then what it no longer has."""

    all: tuple[Change, ...]

    def counts(self) -> dict[str, int]:
        """By kind; the removed ones by what becomes of them. Every word is there, also with 0."""
        found = Counter(change.verdict or change.kind for change in self.all)
        words = [*(kind for kind in ChangeKind if kind is not ChangeKind.REMOVED), *ChangeVerdict]
        return {word.value: found[word] for word in words}

    def told(self) -> Iterator[Change]:
        """Those that are worth a line."""
        return (change for change in self.all if change.kind is not ChangeKind.UNCHANGED)


def detect(
    catalog: Mapping[str, CurrentRow],
    source: Sequence[RequestedRow],
    limit: RetireLimit,
    *,
    ceiling: int | None = None,
) -> Changes:
    """Hold a source against its catalog (by sku, with the retired ones).

    `ceiling` is a person's word on how many may be retired, in place of the limit: the first so many by sku go.
    """
    spellings = {sku_key(sku): sku for sku in catalog}
    source = [asked if asked.sku in catalog else _respelled(asked, spellings) for asked in source]
    rows = [_change(asked, catalog.get(asked.sku)) for asked in source]
    return Changes((*rows, *_removed(catalog, source, limit, ceiling)))


def _respelled(asked: RequestedRow, spellings: Mapping[str, str]) -> RequestedRow:
    """Under the catalog's own spelling of its sku: case and spaces do not tell skus apart."""
    return replace(asked, sku=spellings.get(sku_key(asked.sku), asked.sku))


def differing(before: Content, now: Content) -> tuple[str, ...]:
    """The fields in which two contents differ, options by their names."""
    names = sorted(before.selections.keys() | now.selections.keys())
    return (
        *(["prompt"] if before.prompt != now.prompt else []),
        *(["category"] if before.category != now.category else []),
        *(f"option:{name}" for name in names if before.selections.get(name) != now.selections.get(name)),
    )


def described(before: Content, now: Content) -> Iterator[str]:
    """Each field in which two contents differ, as it was and as it is."""
    for field in differing(before, now):
        old, new = contrasted(_value(before, field), _value(now, field))
        yield f"{field}: {old} -> {new}"


def _value(content: Content, field: str) -> str:
    values = {"prompt": content.prompt, "category": content.category}
    return values.get(field) or content.selections.get(field.removeprefix("option:"), "")


def _change(asked: RequestedRow, before: CurrentRow | None) -> Change:
    if before is not None and before.retired_at is not None and asked.content is None:
        before = None
    if asked.content is None:
        return Change(asked.sku, ChangeKind.REFUSED, (), before)
    fields = _fields(asked, asked.content, before)
    return Change(asked.sku, _kind(asked, before, fields), fields, before, now=asked.content)


def _fields(asked: RequestedRow, content: Content, before: CurrentRow | None) -> tuple[str, ...]:
    if before is None or before.product_key == asked.product_key:
        return ()
    return differing(before.content, content) or (EDITION,)


def _kind(asked: RequestedRow, before: CurrentRow | None, fields: tuple[str, ...]) -> ChangeKind:
    if before is not None and not fields:
        return ChangeKind.UNCHANGED if before.retired_at is None else ChangeKind.ADDED
    if asked.failed_before:
        return ChangeKind.FAILED_BEFORE
    return ChangeKind.ADDED if before is None or before.retired_at is not None else ChangeKind.CHANGED


def _removed(
    catalog: Mapping[str, CurrentRow], source: Iterable[RequestedRow], limit: RetireLimit, ceiling: int | None
) -> Iterator[Change]:
    """What the catalog has and the source has not, with what becomes of it."""
    known = {sku: current for sku, current in catalog.items() if current.retired_at is None}
    gone = sorted(known.keys() - {asked.sku for asked in source})
    if ceiling is None:
        ceiling = len(gone) if limit.allows(len(gone), len(known)) else 0
    for number, sku in enumerate(gone):
        verdict = ChangeVerdict.RETIRED if number < ceiling else ChangeVerdict.WITHHELD
        yield Change(sku, ChangeKind.REMOVED, (), known[sku], verdict)
