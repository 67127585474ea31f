"""Failures are gathered by what caused them, not by how their messages happen to be worded."""

from __future__ import annotations

import pytest

from patternmill.results.row_results import RowResult
from patternmill.results.summary import SKUS_SHOWN, failures_by_cause, signature
from patternmill.states import RowStatus

from .builders import refused, row


def failed(sku: str, error: str, code: str = "job_failed") -> RowResult:
    return row(sku, RowStatus.FAILED, error_code=code, error=error)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("unknown value `Linnen` for option `fabric`", "unknown value `Silc` for option `fabric`"),
        ("job job_12ab failed", "job job_9f0c failed"),
        ("waited 30.5 s", "waited 2 s"),
        ('prompt "a" is refused', 'prompt "b c" is refused'),
        (
            "request 0b8e3a3e-5c1c-5a52-9f6a-0e5b4f1c2d3e is unknown",
            "request 7c9f3a3e-aaaa-5a52-9f6a-0e5b4f1c2dff is unknown",
        ),
        ("too long\nby far", "too  long by far"),
    ],
)
def test_quoted_names_and_numbers_do_not_separate_causes(one: str, other: str) -> None:
    """Quoted values, identifiers, numbers and spacing."""
    assert signature(one) == signature(other)


def test_most_frequent_cause_is_first() -> None:
    """With its first row's message, and its skus in the order of the file, capped."""
    many = [failed(f"F{n}", f"no ink in job-{n}") for n in range(SKUS_SHOWN + 5)]
    causes = failures_by_cause([refused("R"), *many])
    assert [(cause.code, cause.count) for cause in causes] == [("job_failed", 15), ("unknown_value", 1)]
    assert causes[0].skus == tuple(f"F{n}" for n in range(SKUS_SHOWN))
    assert causes[0].message == "no ink in job-0"
    assert causes[1].remedy == "Write `linen`."


def test_same_message_under_two_codes_is_two_causes() -> None:
    """The remedies may differ."""
    rows = [failed("A", "refused", "job_failed"), failed("B", "refused", "rejected")]
    assert len(failures_by_cause(rows)) == 2


def test_each_wrong_word_of_a_file_is_a_cause() -> None:
    """A count next to a value is of that value alone."""
    words = ("Cusion", "Cusion", "Pillow")
    rows = [
        refused(str(number), error_code="unknown_category", error=f"unknown category `{word}`")
        for number, word in enumerate(words)
    ]
    assert [(cause.count, cause.message) for cause in failures_by_cause(rows)] == [
        (2, "unknown category `Cusion`"),
        (1, "unknown category `Pillow`"),
    ]
