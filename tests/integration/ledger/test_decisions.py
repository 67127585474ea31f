"""The contract of the ledger on each database: decisions are added once, and the last one of an item counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import Decision, last_decisions, record_decisions
from patternmill.ledger.ledger import Ledger
from patternmill.states import Decided

from .conftest import OpenLedger
from .samples import CATALOG, RUN, STAGING, begin

PATTERN = ItemKey("herons")

AT = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def decision(name: str, key: ItemKey, verdict: Decided) -> Decision:
    return Decision(name, key, "ab" * 32, verdict, "too dark", "anna", AT)


def test_last_decision_of_an_item_counts_and_a_repeated_event_changes_nothing(
    ledger: Ledger, open_ledger: OpenLedger
) -> None:
    begin(ledger, PATTERN)
    picked, rejected = (
        decision(name, PATTERN, verdict) for name, verdict in (("1", Decided.PICK), ("2", Decided.REJECT))
    )
    with ledger.transaction():
        assert record_decisions(ledger, RUN, [picked, rejected]) == ["1", "2"]
    with ledger.transaction():
        assert record_decisions(ledger, RUN, [picked]) == []
    assert last_decisions(open_ledger(), STAGING, CATALOG) == {PATTERN: rejected}
    assert last_decisions(ledger, STAGING, "another") == {}


def test_decision_on_an_unknown_item_is_refused_with_all_of_its_transaction(ledger: Ledger) -> None:
    begin(ledger, PATTERN)
    unknown = decision("2", ItemKey("nobody"), Decided.PICK)
    with pytest.raises(LedgerError), ledger.transaction():
        record_decisions(ledger, RUN, [decision("1", PATTERN, Decided.PICK), unknown])
    assert last_decisions(ledger, STAGING, CATALOG) == {}
