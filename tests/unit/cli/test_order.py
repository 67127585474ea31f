"""The verb `order` without a service: what it refuses before anything is asked, and what it shows of a plan."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cli.main import run
from patternmill.errors import InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.records import PickedLine
from patternmill.ledger.reports.order_report import CheckoutRecord
from patternmill.orders.order_plan import OrderPlan
from patternmill.orders.order_text import plan_lines
from patternmill.orders.picked_lines import picked_lines
from patternmill.parameters import wait_time
from patternmill.planning.items import Scope, checkout_item
from patternmill.results.picks import Pick, Picks
from tests.unit.cli.ledgers import Past


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "There is no ledger"),
        (("--sku", "A", "--wait", "soon"), "--wait must be a number and its unit"),
        (("--sku", "A", "--quantity", "0"), "0 is not in the range"),
        (("--sku", "A", "--order", "a/b"), "--order must have letters"),
        (("--refresh", "--sku", "A"), "order nothing"),
        (("--address", "chk_1"), "There is no ledger"),
        (("--picks", "none.csv"), "There is no file none.csv"),
    ],
)
def test_refused_before_anything_is_asked(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert run(("order", *words)) == 2
    assert message in capsys.readouterr().err
    assert not home.exists()


def test_unknown_checkout_and_none_at_all(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("order", "--address", "chk_1")) == 2
    assert "no checkout" in capsys.readouterr().err
    assert run(("order", "--refresh")) == 0
    assert capsys.readouterr().out == "There is no checkout.\n"


def test_plan_shows_rows_notes_and_digest() -> None:
    scope = Scope("staging", "spring").of_orders
    line = PickedLine("S-1", ItemKey("k"), "prd_1", 2, "for Anna")
    item = checkout_item(scope, "fair", [("prd_1", 2)])
    known = CheckoutRecord(item.key, scope.environment, scope.catalog, "fair", (line,))
    plan = OrderPlan(scope, "fair", ((item, known),), ("S-1 was ordered before.",))
    assert list(plan_lines(plan)) == [
        "Order 'fair' from catalog spring (staging): 1 checkout",
        "checkout · 1 line, 2 pieces: new",
        "  S-1  × 2  for Anna",
        "Note: S-1 was ordered before.",
        "What it costs is shown on the page of each checkout, before anybody pays.",
        f"Digest: {plan.proposal.digest[:12]}",
    ]


def test_times_to_wait() -> None:
    found = [wait_time(text) for text in ("5s", "30m", "2h", "1d")]
    assert found == [timedelta(seconds=5), timedelta(minutes=30), timedelta(hours=2), timedelta(days=1)]


def test_list_of_skus_is_refused_with_the_right_form(past: Past) -> None:
    """A comma may be part of a sku."""
    listed = Picks((Pick("S-1,S-2", 1, "--sku S-1,S-2"),))
    with pytest.raises(InputRefused, match="name several as --sku A --sku B"):
        picked_lines(past.ledger, "staging", "spring", listed)


@pytest.mark.parametrize(
    ("file", "heading"),
    [(None, "The order cannot be made:"), ("picks.csv", "The picks in picks.csv cannot be used:")],
)
def test_row_without_a_product_is_refused_with_the_command_that_says_why(
    file: str | None, heading: str, past: Past
) -> None:
    with pytest.raises(InputRefused) as refused:
        picked_lines(past.ledger, "staging", "spring", Picks((Pick("S 1", 1, "--sku S 1"),), file=file))
    first, problem, *_ = str(refused.value).splitlines()
    assert first == heading and problem.endswith("; see `patternmill explain 'S 1'`")
