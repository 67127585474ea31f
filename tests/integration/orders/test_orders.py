"""Checkouts of picked rows: opened once, whatever is commanded again, and paid ones never opened anew by accident."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from cli import main
from patternmill.errors import ApprovalNeeded, ConfigurationError, InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus
from patternmill.ledger.reports.requests import find_request
from patternmill.looking.page import gallery
from patternmill.orders.order_text import checkout_lines
from patternmill.orders.ordering import Ordering
from patternmill.orders.picked_rows import plan_picked
from patternmill.runs.approval import approve
from patternmill.runs.results_files import rebuild
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.states import Decided, Outcome
from tests.integration.orders.shop import CATALOG, Shop
from tests.integrity import problems


async def show(record: CheckoutRecord) -> None:
    pass


def test_same_rows_again_open_nothing(shop: Shop) -> None:
    """Checkouts are named after their rows by their skus, wherever a command or a file has them."""
    first = shop.order("S-5", "S-1", "S-2", "S-4", "S-3", lines=2, quantity=2)
    lines = [[(line.sku, line.quantity) for line in record.lines] for record in first.checkouts]
    assert lines == [[("S-1", 2), ("S-2", 2)], [("S-3", 2), ("S-4", 2)], [("S-5", 2)]]
    assert shop.order("S-3", "S-2", "S-1", "S-5", "S-4", lines=2, quantity=2).checkouts == first.checkouts
    opened = shop.opened()
    assert [record.checkout_id for record in first.checkouts] == opened
    assert shop.address(opened[0]).endswith(shop.page_of(opened[0]))
    (note,) = shop.plan("S-5").notes
    assert note == f"S-5 is in checkout {opened[2]} too, which is open: pay one of the two."


def test_paid_checkout_is_ordered_and_not_opened_again(shop: Shop) -> None:
    """It is waited for; then the same command shows its order, and a second one is made on purpose alone."""
    ending = shop.order("S-1", "S-2", wait=30, on_open=lambda record: shop.studio.pay(shop.opened()[-1]))
    (first,) = ending.checkouts
    assert ending.outcome is Outcome.COMPLETED and first.order is not None
    assert first.order.order_id in shop.orders() and first.order.status is not None
    assert shop.order("S-1", "S-2").checkouts == (first,)
    (second,) = shop.order("S-1", "S-2", order="samples-2").checkouts
    assert shop.opened() == [first.checkout_id, second.checkout_id]


@pytest.mark.parametrize("by", ["an order", "a refresh"])
async def test_order_that_changed_since_it_was_planned_is_not_opened(shop: Shop, by: str) -> None:
    """Somebody else ordered one of its products, or replaced it, while the plan waited for a person's answer."""
    async with Ordering(shop.settings) as work:
        plan = await work.plan(shop.asked("S-1", "S-2"))
        if by == "an order":
            await asyncio.to_thread(shop.order, "S-1")
        else:
            await shop.imported(CATALOG.replace("1 blue herons", "1 red herons"))
        opened = shop.opened()
        with pytest.raises(InputRefused, match="S-1") as refused:
            await work.open(plan, show)
        assert refused.value.code == "order_changed"
    assert shop.opened() == opened


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


def test_everything_picked_leaves_out_what_was_ordered(shop: Shop) -> None:
    """The page's plan is the command's, digest and all; rows that nobody named are no mistake."""
    assert plan_picked(shop.settings, "spring", "staging") is None
    for sku in ("S-1", "S-2"):
        shop.decide(sku, Decided.PICK)
    planned = plan_picked(shop.settings, "spring", "staging")
    order = shop.plan(catalog="spring", environment="staging")
    assert planned is not None
    assert (planned.digest, planned.sum) == (order.proposal.digest, str(order.proposal))
    (first,) = shop.order(catalog="spring", environment="staging").checkouts
    shop.studio.pay(str(first.checkout_id))
    shop.decide("S-3", Decided.PICK)
    left = shop.plan(catalog="spring", environment="staging")
    assert [line.sku for line in left.lines] == ["S-3"] and set(left.left_out) == {"S-1", "S-2"}
    (second,) = shop.order(catalog="spring", environment="staging").checkouts
    shop.studio.pay(str(second.checkout_id))
    assert plan_picked(shop.settings, "spring", "staging") is None
    assert len(shop.opened()) == 2


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
    assert second.status is CheckoutStatus.OPEN and shop.opened() == [first.checkout_id, second.checkout_id]


def test_payment_that_is_known_is_not_forgotten_with_a_cancelled_order(shop: Shop) -> None:
    (first,) = shop.order("S-1").checkouts
    shop.studio.pay(str(first.checkout_id))
    (paid,) = shop.order("S-1").checkouts
    assert paid.order is not None
    gone = replace(paid.order, cancelled=True, paid=False)
    with shop.ledger() as ledger, ledger.transaction():
        ledger.purchases.record_order(RunId("order-1"), paid.key, gone)
    (record,) = shop.checkouts()
    assert record.status is CheckoutStatus.PAID and record.is_ordered


async def test_same_order_twice_at_once_is_one(shop: Shop) -> None:
    """Planned by both before either began."""
    async with Ordering(shop.settings) as work:
        plan = await work.plan(shop.asked("S-1", "S-2"))
        (other,) = (await asyncio.to_thread(shop.order, "S-1", "S-2")).checkouts
        (same,) = (await work.open(plan, show)).checkouts
        assert same.checkout_id == other.checkout_id
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


def test_order_above_the_limit_waits_for_an_approval(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It covers what is left after a crash, and no other order; imports are not bound by it."""
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "2")
    with pytest.raises(ApprovalNeeded, match="3 pieces in 1 checkout"):
        shop.order("S-1", quantity=3)
    assert shop.opened() == []
    plan = shop.plan("S-1", quantity=3)
    decided = approve(shop.settings, plan.proposal, "anna")
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
        item = find_request(ledger, request)
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


def test_catalog_is_the_one_that_has_the_rows(shop: Shop) -> None:
    """Be they named or in a file; of several that have them, a message lists these with the options that choose."""
    header = CATALOG.splitlines()[0]
    rows = [f"{sku},green ferns,Cushion,50x50,linen" for sku in ("A-1", "A-2", "S-1")]
    shop.imported_now("\n".join((header, *rows)) + "\n", "autumn")
    shop.imported_now("\n".join((header, rows[0].replace("A-1", "W-1"))) + "\n", "winter")
    picks = shop.folder / "picks.csv"
    for skus, catalog in (("A-1", "autumn"), ("S-1 A-2", "autumn"), ("S-2 S-1", "spring")):
        picks.write_text("sku,picked\n" + "".join(f"{sku},yes\n" for sku in skus.split()))
        assert shop.asked(picks=picks).catalog.catalog == shop.asked(*skus.split()).catalog.catalog == catalog
    picks.write_text("sku,picked\nS-1,yes\n")
    for ask in (lambda: shop.asked(picks=picks), lambda: shop.asked("S-1"), lambda: shop.asked("A-1", "S-2")):
        with pytest.raises(ConfigurationError) as refused:
            ask()
        assert refused.value.code == "which_catalog"
        assert [line for line in str(refused.value).splitlines() if line.startswith("  ")] == [
            "  --catalog autumn --environment staging",
            "  --catalog spring --environment staging",
        ]
    with pytest.raises(ConfigurationError, match="Several catalogs here"):
        shop.asked()
    with pytest.raises(InputRefused, match="no product for `A-9`"):
        shop.plan("A-1", "A-9")


def test_brake_keeps_checkouts_from_being_opened_and_asked_for_again(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the address of one that is open, which the same create asks for; a paid one is still seen."""
    (first,) = shop.order("S-1").checkouts
    opened = shop.opened()
    assert main.run(["pause", "--catalog", "spring", "--reason", "not before the fair"]) == 0
    assert "Paused (catalog 'spring') since" in capsys.readouterr().out

    order = shop.order("S-2")
    assert order.outcome is Outcome.PAUSED and "not before the fair" in order.sentence
    assert (
        main.run(["order", "--sku", "S-2"]) == main.run(["order", "--address", str(first.checkout_id)]) == 3
    )
    assert capsys.readouterr().err.count("not before the fair") == 2
    assert shop.opened() == opened

    assert main.run(["unpause", "--catalog", "autumn"]) == 2
    assert main.run(["unpause", "--catalog", "spring"]) == 0
    assert shop.order("S-2").outcome is Outcome.COMPLETED
    assert main.run(["order", "--address", str(first.checkout_id)]) == 0
