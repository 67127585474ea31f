"""Failures are gathered by what caused them, not by how their messages happen to be worded."""

from __future__ import annotations

import pytest

from patternmill.results.summary import SKUS_SHOWN, failures_by_cause, signature

from .builders import refused


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("unknown value `Linnen` of `fabric`", "unknown value `Silc` of `fabric`"),
        ('job job_12ab of "a" failed', 'job job_9f0c of "b c" failed'),
        ("waited 30.5 s,\nby far", "waited 2 s,  by far"),
        ("0b8e3a3e-5c1c-5a52-9f6a-0e5b4f1c2d3e?", "7c9f3a3e-aaaa-5a52-9f6a-0e5b4f1c2dff?"),
    ],
)
def test_quoted_names_and_numbers_do_not_separate_causes(one: str, other: str) -> None:
    assert signature(one) == signature(other)


def test_most_frequent_cause_is_first() -> None:
    """Its skus are capped. Codes separate causes, and so do wrong words, but no repeated skus."""
    many = [refused(f"F{n}", error_code="job_failed", error=f"no ink in job-{n}") for n in range(15)]
    twice = [refused(f"S{n}", error_code="duplicate_sku", error=error) for n, error in enumerate("ab")]
    words = [refused(f"W{n}", error_code="unknown_category", error=f"no `{n}`") for n in range(2)]
    rejected = refused("R", error_code="rejected", error="no ink in job-1")
    causes = failures_by_cause([*words, rejected, *twice, *many])
    assert [(cause.code, cause.count, cause.message) for cause in causes] == [
        ("job_failed", 15, "no ink in job-0"),
        ("duplicate_sku", 2, "a"),
        ("rejected", 1, "no ink in job-1"),
        ("unknown_category", 1, "no `0`"),
        ("unknown_category", 1, "no `1`"),
    ]
    assert causes[0].skus == tuple(f"F{n}" for n in range(SKUS_SHOWN))
    assert causes[2].remedy == "Write `linen`."
