"""Checkouts of picked rows: opened once, whatever is commanded again, and paid ones never opened anew by accident."""

from __future__ import annotations

import pytest

from patternmill.errors import InputRefused
from patternmill.ledger.reports.integrity import problems
from patternmill.states import Outcome
from tests.integration.orders.shop import Shop


def test_picked_rows_become_one_checkout(shop: Shop) -> None:
    ending = shop.order("S-1", "S-3", quantity=2)
    assert ending.outcome is Outcome.COMPLETED
    (record,) = ending.checkouts
    assert [record.checkout_id] == shop.opened()
    assert [(line.sku, line.quantity) for line in record.lines] == [("S-1", 2), ("S-3", 2)]
    assert shop.address(str(record.checkout_id)).endswith(shop.page_of(str(record.checkout_id)))


def test_same_command_again_opens_nothing(shop: Shop) -> None:
    first, again = shop.order("S-1"), shop.order("S-1")
    assert again.checkouts == first.checkouts
    assert len(shop.opened()) == 1


def test_many_lines_are_split_in_their_order(shop: Shop) -> None:
    ending = shop.order("S-5", "S-1", "S-2", "S-4", "S-3", lines=2)
    found = [[line.sku for line in record.lines] for record in ending.checkouts]
    assert found == [["S-5", "S-1"], ["S-2", "S-4"], ["S-3"]]
    assert len(shop.opened()) == 3


def test_paid_checkout_is_ordered_and_not_opened_again(shop: Shop) -> None:
    """The same command says so; a second order is made on purpose alone, and crash-safe as the first."""
    (first,) = shop.order("S-1", "S-2").checkouts
    order = shop.studio.pay(str(first.checkout_id))
    (known,) = shop.order("S-1", "S-2").checkouts
    assert known.order is not None and known.order.order_id == order and known.order.status is not None
    assert shop.opened() == [first.checkout_id]

    (second,) = shop.order("S-1", "S-2", again=True).checkouts
    assert second.order_name == "samples-2"
    (same,) = shop.order("S-1", "S-2", again=True).checkouts
    assert same.checkout_id == second.checkout_id
    assert shop.opened() == [first.checkout_id, second.checkout_id]


def test_edited_command_does_not_order_a_paid_product_again(shop: Shop) -> None:
    (first,) = shop.order("S-1", "S-2").checkouts
    shop.studio.pay(str(first.checkout_id))
    with pytest.raises(InputRefused, match="S-1") as refused:
        shop.order("S-1", "S-3")
    assert refused.value.code == "ordered_already"
    assert "S-3" not in refused.value.message and "--again" in refused.value.remedy
    assert shop.opened() == [first.checkout_id]
    (other,) = shop.order("S-1", "S-3", order="for the fair").checkouts
    assert shop.opened() == [first.checkout_id, other.checkout_id]


def test_person_is_told_of_another_open_checkout(shop: Shop) -> None:
    (first,) = shop.order("S-1").checkouts
    (note,) = shop.plan("S-1", "S-2").notes
    assert note == f"S-1 is in checkout {first.checkout_id} too, which is open: pay one of the two."


def test_wait_follows_the_order_to_a_status(shop: Shop) -> None:
    def pay(record: object) -> None:
        shop.studio.pay(shop.opened()[-1])

    ending = shop.order("S-1", wait=30, until="delivered", on_open=pay)
    assert ending.outcome is Outcome.COMPLETED
    assert ending.checkouts[0].order is not None


def test_wait_ends_at_its_time(shop: Shop) -> None:
    ending = shop.order("S-1", wait=0.2)
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert ending.sentence == "1 checkout: 0 ordered, 1 open"


def test_refused_checkout_is_final_and_others_go_on(shop: Shop) -> None:
    """As the service does not know one product any more."""
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET product_id = 'prd_gone' WHERE sku = 'S-2'")
    ending = shop.order("S-1", "S-2", "S-3", lines=1)
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    (failed,) = ending.failed
    assert failed.attempt is not None and failed.attempt.error is not None
    assert [line.sku for line in failed.lines] == ["S-2"]
    assert len(shop.opened()) == 2


def test_ledger_agrees_with_itself(shop: Shop) -> None:
    (record, _) = shop.order("S-1", "S-2", lines=1).checkouts
    shop.studio.pay(str(record.checkout_id))
    shop.order("S-1", "S-2", lines=1)
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []
