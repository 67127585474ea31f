"""Checkouts of picked rows: opened once, whatever is commanded again, and paid ones never opened anew by accident."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from patternmill.errors import ApprovalNeeded, ConfigurationError, InputRefused
from patternmill.identifiers import RunId
from patternmill.looking.page import gallery
from patternmill.orders.order_text import checkout_lines
from patternmill.orders.ordering import Ordering
from patternmill.results.results_files import rebuild
from patternmill.runs.approval import approve
from patternmill.runs.settlement import Decision, Settlement, requested, settle
from patternmill.states import Outcome
from tests.integration.orders.shop import CATALOG, Shop
from tests.integrity import problems


def test_picked_rows_become_one_checkout(shop: Shop) -> None:
    ending = shop.order("S-1", "S-3", quantity=2)
    assert ending.outcome is Outcome.COMPLETED
    (record,) = ending.checkouts
    assert [record.checkout_id] == shop.opened()
    assert [(line.sku, line.quantity) for line in record.lines] == [("S-1", 2), ("S-3", 2)]
    assert shop.address(str(record.checkout_id)).endswith(shop.page_of(str(record.checkout_id)))
    (note,) = shop.plan("S-1", "S-2").notes
    assert note == f"S-1 is in checkout {record.checkout_id} too, which is open: pay one of the two."


def test_same_rows_again_open_nothing(shop: Shop) -> None:
    """Checkouts are named after their rows by their skus, wherever a command or a file has them."""
    first = shop.order("S-5", "S-1", "S-2", "S-4", "S-3", lines=2)
    found = [[line.sku for line in record.lines] for record in first.checkouts]
    assert found == [["S-1", "S-2"], ["S-3", "S-4"], ["S-5"]]
    assert shop.order("S-3", "S-2", "S-1", "S-5", "S-4", lines=2).checkouts == first.checkouts
    assert len(shop.opened()) == 3


def test_paid_checkout_is_ordered_and_not_opened_again(shop: Shop) -> None:
    """The same command says so; a second order is made on purpose alone, and crash-safe as the first."""
    (first,) = shop.order("S-1", "S-2").checkouts
    order = shop.studio.pay(str(first.checkout_id))
    (known,) = shop.order("S-1", "S-2").checkouts
    assert known.order is not None and known.order.order_id == order and known.order.status is not None
    assert shop.opened() == [first.checkout_id]

    (second,) = shop.order("S-1", "S-2", order="samples-2").checkouts
    assert second.order_name == "samples-2"
    (same,) = shop.order("S-1", "S-2", order="samples-2").checkouts
    assert same.checkout_id == second.checkout_id
    assert shop.opened() == [first.checkout_id, second.checkout_id]


def test_edited_command_does_not_order_a_paid_product_again(shop: Shop) -> None:
    (first,) = shop.order("S-1", "S-2").checkouts
    shop.studio.pay(str(first.checkout_id))
    with pytest.raises(InputRefused, match="S-1") as refused:
        shop.order("S-1", "S-3")
    assert refused.value.code == "ordered_already"
    assert "S-3" not in refused.value.message and "--order" in refused.value.remedy
    assert shop.opened() == [first.checkout_id]
    (other,) = shop.order("S-1", "S-3", order="for the fair").checkouts
    assert shop.opened() == [first.checkout_id, other.checkout_id]


def test_cancelled_checkout_is_closed(shop: Shop) -> None:
    """It is not waited for, stands in nobody's way, and the same command says what to do."""
    (first,) = shop.order("S-1", "S-2").checkouts
    shop.studio.control("checkout/cancel", checkoutId=first.checkout_id)
    ending = shop.order("S-1", "S-2", wait=30)
    assert ending.sentence == "1 checkout: 0 paid, 0 open, 1 cancelled"
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES and not ending.pending
    assert "another --order" in next(checkout_lines(ending.checkouts[0]))
    assert shop.plan("S-1", "S-3").notes == ()
    (second,) = shop.order("S-1", "S-2", order="samples-2").checkouts
    assert second.is_unpaid and shop.opened() == [first.checkout_id, second.checkout_id]


def test_payment_that_is_known_is_not_forgotten_with_a_cancelled_order(shop: Shop) -> None:
    (first,) = shop.order("S-1").checkouts
    shop.studio.pay(str(first.checkout_id))
    (paid,) = shop.order("S-1").checkouts
    assert paid.order is not None
    gone = replace(paid.order, cancelled=True, paid=False)
    with shop.ledger() as ledger, ledger.transaction():
        ledger.purchases.record_order(RunId("order-1"), paid.key, gone)
    (known,) = shop.checkouts()
    assert known.is_paid and not known.is_cancelled and known.is_ordered


@pytest.mark.parametrize("is_paid", [False, True])
async def test_order_that_changed_since_it_was_planned_is_not_opened(shop: Shop, is_paid: bool) -> None:
    """Somebody else ordered one of its products while the plan waited for a person's answer."""
    async with Ordering(shop.spec("S-1", "S-2")) as work:
        plan = await work.plan()
        (other,) = (await asyncio.to_thread(shop.order, "S-1")).checkouts
        if is_paid:
            shop.studio.pay(str(other.checkout_id))
        with pytest.raises(InputRefused, match=f"S-1 is in checkout {other.checkout_id}") as refused:
            await work.begin(plan)
        assert refused.value.code == "order_changed"
    assert len(shop.opened()) == 1


async def test_same_order_twice_at_once_is_one(shop: Shop) -> None:
    """Planned by both before either began."""
    async with Ordering(shop.spec("S-1", "S-2")) as work:
        plan = await work.plan()
        (other,) = (await asyncio.to_thread(shop.order, "S-1", "S-2")).checkouts
        await work.begin(plan)
        assert (await work.open(plan.checkouts[0][0])).checkout_id == other.checkout_id
    assert len(shop.opened()) == 1


def test_checkout_costs_nothing_of_a_spent_budget(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is paid on its page, by a person."""
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE spending SET amount = 1000")
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "50")
    monkeypatch.setenv("PATTERNMILL_PATTERN_PRICE", "40")
    assert len(shop.order("S-1").checkouts) == len(shop.opened()) == 1
    monkeypatch.delenv("PATTERNMILL_PATTERN_PRICE")
    with pytest.raises(ConfigurationError, match="no prices"):
        shop.plan("S-2")


def test_wait_follows_the_order(shop: Shop) -> None:
    def pay(record: object) -> None:
        shop.studio.pay(shop.opened()[-1])

    ending = shop.order("S-1", wait=30, on_open=pay)
    assert ending.outcome is Outcome.COMPLETED
    assert ending.checkouts[0].order is not None


def test_refused_checkout_is_final_and_others_go_on(shop: Shop) -> None:
    """As the service does not know one product any more, and be it in the first checkout ever."""
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET product_id = 'prd_gone' WHERE sku = 'S-2'")
    ending = shop.order("S-2", "S-1", "S-3", lines=1)
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    (failed,) = ending.failed
    assert failed.attempt is not None and failed.attempt.error is not None
    assert [line.sku for line in failed.lines] == ["S-2"]
    assert len(shop.opened()) == 2


def test_catalog_is_ordered_from_as_it_is_now(shop: Shop) -> None:
    """What was made anew since is ordered anew, what is retired is not."""
    (old,) = shop.order("S-1", order="first").checkouts
    shop.imported_now(CATALOG.replace("1 blue herons", "1 red herons"))
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET retired_at = 1 WHERE sku = 'S-2'")
    with pytest.raises(InputRefused, match="was retired on"):
        shop.order("S-2")
    (new,) = shop.order("S-1", order="new").checkouts
    assert new.lines[0].product_id != old.lines[0].product_id


def test_order_above_the_limit_waits_for_an_approval(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It covers what is left after a crash, and no other order; imports are not bound by it."""
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "2")
    with pytest.raises(ApprovalNeeded, match="3 pieces in 1 checkout"):
        shop.order("S-1", quantity=3)
    assert shop.opened() == []
    plan = shop.plan("S-1", quantity=3)
    decided = approve(shop.spec("S-1", quantity=3).settings, plan.proposal, "anna")
    assert (decided.catalog, decided.items, decided.most_purchases) == ("spring/orders", 3, 1)
    assert shop.order("S-1", quantity=3).outcome is Outcome.COMPLETED
    assert shop.order("S-1", quantity=3).outcome is Outcome.COMPLETED
    with pytest.raises(ApprovalNeeded):
        shop.order("S-2", quantity=3)
    with shop.ledger() as ledger:
        assert ledger.approvals.find("staging", "spring") == []
        assert list(problems(ledger)) == []
    assert len(shop.opened()) == 1


def test_request_too_long_in_doubt_is_for_a_person(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written off, the same command opens another checkout under another request ID."""
    lost = {"on": "checkouts/create", "effect": {"kind": "body", "form": "empty"}, "first": 20}
    shop.studio.faults.use(lost)
    with monkeypatch.context() as hurried:
        hurried.setenv("PATTERNMILL_CREATE_TIMEOUT", "PT0.1S")
        shop.order("S-1")
    shop.studio.faults.clear()
    monkeypatch.setenv("PATTERNMILL_IN_DOUBT_LIMIT", "PT0.001S")
    (doubtful,) = shop.order("S-1").failed
    assert doubtful.attempt is not None and doubtful.attempt.state == "intended"
    request = doubtful.attempt.request_id
    limit = timedelta(milliseconds=1)
    with shop.ledger() as ledger:
        item = requested(ledger, request)
        job = Settlement(Decision.JOB, "seen in the console", "anna", "chk_1")
        with pytest.raises(ConfigurationError, match="which no job makes"):
            asyncio.run(settle(ledger, [item], job, limit=limit))
        written_off = Settlement(Decision.WRITE_OFF, "gone", "anna")
        assert not asyncio.run(settle(ledger, [item], written_off, limit=limit))
    (record,) = shop.order("S-1").checkouts
    assert record.attempt is not None and record.attempt.attempt == 2
    assert record.checkout_id in shop.opened() and len(shop.opened()) == 2


def test_results_and_pages_show_the_order(shop: Shop) -> None:
    """A pure function of the ledger: before it is paid, nothing; afterwards when, and under which ID."""
    (record,) = shop.order("S-1", "S-3").checkouts
    out = shop.folder / "again"
    with shop.ledger() as ledger:
        run = ledger.runs.find()[0].run_id
        rebuild(ledger, run, out, gallery)
    assert "UTC, " not in (out / "gallery.html").read_text()
    order = shop.studio.pay(str(record.checkout_id))
    shop.order("S-1", "S-3")
    with shop.ledger() as ledger:
        rebuild(ledger, run, out, gallery)
    assert (out / "gallery.html").read_text().count(f'UTC, {order}"') == 2
