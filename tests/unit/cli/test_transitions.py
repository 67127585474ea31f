"""Each transition of an item is one log line, once it is durable, with what it is about in fields."""

from __future__ import annotations

import logging

import pytest

from patternmill.ledger.records import Intent, SpendingLimits
from patternmill.states import AttemptState
from tests.unit.cli.ledgers import HERON, Past

FIELDS = ("event", "stage", "sku", "request_id", "job_id", "error_code", "run", "catalog", "environment")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[object, ...]]:
    """Return the fields of the lines so far, and forget them."""
    found = [tuple(getattr(record, name) for name in FIELDS) for record in caplog.records]
    caplog.clear()
    return found


def test_transitions_are_logged_with_their_fields(past: Past, caplog: pytest.LogCaptureFixture) -> None:
    """Those of a transaction that is taken back are not, and the same change again is none."""
    caplog.set_level(logging.INFO, logger="patternmill.ledger.purchases")
    begun = past.begin(HERON)
    pattern, product = begun.pattern("H-1"), begun.product("H-1")
    begun.attempt(pattern, AttemptState.SUCCEEDED)
    first, second = pattern.request_id(1), product.request_id(1)
    where, job = ("run-1", "spring", "staging"), f"job-{first[:8]}"
    assert lines(caplog) == [
        ("intended", "pattern", None, first, None, None, *where),
        ("accepted", "pattern", None, first, job, None, *where),
        ("succeeded", "pattern", None, first, job, None, *where),
    ]
    begun.attempt(product, AttemptState.REJECTED)
    assert [line[:6] for line in lines(caplog)] == [
        ("intended", "product", "H-1", second, None, None),
        ("rejected", "product", "H-1", second, None, "invalid"),
    ]
    intent = Intent(product.request_id(2), product.key, product.stage, 2, b"{}")
    with pytest.raises(RuntimeError), past.ledger.transaction():
        past.ledger.purchases.intend(begun.record.run_id, "staging", intent, SpendingLimits())
        raise RuntimeError("the disk is full")
    begun.attempt(pattern, AttemptState.SUCCEEDED)
    assert lines(caplog) == []
