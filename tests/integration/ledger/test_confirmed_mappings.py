"""What a person confirmed of a catalog's columns, on both databases."""

from __future__ import annotations

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import ConfirmedMapping

COLUMNS = {"art.-nr.": "sku", "größe": "option:size"}


def test_last_confirmation_counts_until_it_is_forgotten(ledger: Ledger) -> None:
    """Of its catalog alone, with its time."""
    with ledger.transaction():
        ledger.confirm_mapping("spring", ConfirmedMapping({"nr": "sku"}, {}, "ada@desk"))
        ledger.confirm_mapping("spring", ConfirmedMapping(COLUMNS, {"header_row": 3}, "bob@desk"))
    known = ledger.confirmed_mapping("spring")
    assert known is not None
    assert (known.columns, known.reading, known.confirmed_by) == (COLUMNS, {"header_row": 3}, "bob@desk")
    assert 0 < known.confirmed_at <= ledger.now()
    assert ledger.confirmed_mapping("summer") is None
    with ledger.transaction():
        assert (ledger.forget_mapping("spring"), ledger.forget_mapping("spring")) == (True, False)
    assert ledger.confirmed_mapping("spring") is None
