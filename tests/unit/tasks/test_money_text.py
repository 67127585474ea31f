"""Money on a run's page: an amount where prices are set, and none where costs are not counted."""

from __future__ import annotations

from collections import Counter

import pytest

from patternmill.ledger.reports.overview import Spent
from patternmill.planning.proposal import Cost
from patternmill.runs.run import money_text
from patternmill.states import Stage


@pytest.mark.parametrize(
    ("spent", "cost", "has_prices", "text"),
    [
        (
            Spent(Counter({Stage.PATTERN: 2, Stage.PRODUCT: 2})),
            Cost(0, 0),
            False,
            "not counted, as no prices are set; 2 patterns and 2 products bought",
        ),
        (
            Spent(Counter({Stage.PATTERN: 2, Stage.PRODUCT: 2}), 500),
            Cost(500, 1000, "EUR"),
            True,
            "€5.00 spent; expected at least €5.00, at most €10.00 if jobs fail; 2 patterns and 2 products bought",
        ),
        # A resumed run expected nothing new, and tried one item again.
        (
            Spent(Counter({Stage.PATTERN: 1}), 50),
            Cost(0, 0, "EUR"),
            True,
            "€0.50 spent; 1 pattern and 0 products bought",
        ),
        (Spent(), Cost(0, 0, "EUR"), True, "€0.00 spent; 0 patterns and 0 products bought"),
    ],
)
def test_money_is_an_amount_only_where_it_is_counted(
    spent: Spent, cost: Cost, has_prices: bool, text: str
) -> None:
    assert money_text(spent, cost, has_prices=has_prices) == text
