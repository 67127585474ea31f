"""The totals of a run as plain values: its counts, and the causes of what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patternmill.states import RowStatus


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The counts of a run. An item counts once, however many rows share it."""

    rows: int
    by_status: Mapping[RowStatus, int]
    products: int
    #: Refined patterns are counted as refinements.
    patterns: int
    refinements: int
    references: int
    #: Requests, first tries and further attempts alike.
    product_attempts: int
    pattern_attempts: int
    refinement_attempts: int
    reference_attempts: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Rows that failed alike: with one code, and one wrong word or messages that differ only in names and numbers."""

    code: str
    count: int
    #: The first ten, in the order of the file; `row 7` for a row without a sku.
    skus: tuple[str, ...]
    #: The message and the remedy of the first of these rows.
    message: str
    remedy: str
