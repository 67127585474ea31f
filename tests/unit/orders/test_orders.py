"""Orders: which rows and products they name; each checkout is opened once, and never again by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from cli import main
from patternmill.errors import ApprovalNeeded, ConfigurationError, InputRefused, ServiceStopped
from patternmill.identifiers import RunId
from patternmill.ledger.events import last_sequence
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import OrderRecord
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus, checkouts
from patternmill.ledger.reports.requests import find_request
from patternmill.looking.page import gallery
from patternmill.orders.order_plan import Order, checkout_lines
from patternmill.orders.ordering import Ordering
from patternmill.orders.picked_rows import plan_picked, read_order
from patternmill.runs.approval import approve
from patternmill.runs.request import OrderRequest
from patternmill.runs.results_files import rebuild
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.settings import in_environment, load_settings, read_settings
from patternmill.states import Decided, Outcome
from patternmill.tables.columns import run_cell
from tests.hostile.in_process import ANSWER_LOST, Service, _answer, failed
from tests.integrity import problems
from tests.unit.runs.conftest import home as home
from tests.unit.runs.conftest import service as service
from tests.unit.runs.conftest import shop as shop
from tests.unit.runs.workshop import Cells, Workshop, read_rows, write_rows

T = TypeVar("T")
ROWS = {sku: {"prompt": f"{sku} herons"} for sku in "abcde"}
CHANGED = ROWS | {"a": {"prompt": "red herons"}}


@pytest.fixture(autouse=True)
def _made(shop: Workshop) -> None:
    """Make five products."""
    shop.refresh(ROWS)


def asked(*skus: str, **options: Any) -> Order:
    return read_order(OrderRequest(sku=skus, **options))


def working(steps: Callable[[Ordering], Awaitable[T]]) -> T:
    """Take steps of an order, as a command of its own would."""

    async def main() -> T:
        async with Ordering(in_environment(read_settings(), "staging")) as work:
            return await steps(work)

    return asyncio.run(main())


def plan(*skus: str, **options: Any) -> Order:
    return working(lambda work: work.plan(asked(*skus, **options)))


async def show(record: CheckoutRecord) -> None:
    pass


def order(*skus: str, **options: Any) -> Order:
    async def steps(work: Ordering) -> Order:
        return await work.open(await work.plan(asked(*skus, **options)), show)

    return working(steps)


def address(record: CheckoutRecord) -> str:
    return working(lambda work: work.address(record))


def ordered(*skus: str, **options: Any) -> dict[str, str]:
    """Order, and return the products that the order names, by sku."""
    lines = [line for record in order(*skus, **options).checkouts for line in record.lines]
    return {line.sku: line.product_id for line in lines}


def catalog() -> dict[str, str]:
    with open_ledger(load_settings()) as ledger:
        return {row.sku: row.product_id for row in ledger.catalogs.rows("staging", "spring")}


def opened(service: Service) -> list[str]:
    return list(service.till.opened.values())


def refusal(*skus: str, **options: Any) -> str:
    """Return why nothing is ordered."""
    with pytest.raises(InputRefused) as refused:
        order(*skus, **options)
    return str(refused.value)


def picks(shop: Workshop, run: str, *skus: str, column: str = "picked", word: str = "yes") -> Path:
    """Write a run's results.csv in which a person has picked rows."""
    rows = read_rows(shop.folder / "results" / "spring" / run / "results.csv")
    picked = [row | {column: word if row["sku"] in skus else ""} for row in rows]
    return write_rows(shop.folder / f"{column}.csv", picked)


# -- which products


def test_older_results_are_not_ordered_after_a_refresh(shop: Workshop) -> None:
    """A message names the skus whose products the catalog has replaced; retired rows are not ordered either."""
    first, before = shop.last, catalog()
    shop.refresh({sku: cells for sku, cells in CHANGED.items() if sku != "e"})
    now = catalog()
    reason = refusal(picks=picks(shop, first, "a", "b"))
    assert f"`a` is picked as product {before['a']}, and the catalog has {now['a']}" in reason
    assert "`b`" not in reason
    assert "`e` was retired on" in refusal("e") and "has no product for `z`" in refusal("z")
    assert "one by one and in a file" in refusal("b", picks=picks(shop, first, "a"))
    assert ordered(picks=picks(shop, shop.last, "a", "b")) == {sku: now[sku] for sku in "ab"}


def test_failed_row_is_ordered_as_the_catalog_has_it(shop: Workshop) -> None:
    """The earlier product is ordered, and a note says so."""
    product = catalog()["a"]
    shop.service.on_follow["a"] = [failed()]
    shop.refresh(CHANGED)
    file = picks(shop, shop.last, "a")
    note = "a has an earlier product: what was requested since has not been made."
    assert plan(picks=file).notes == (note,)
    assert ordered(picks=file) == {"a": product}


def test_remade_take_replaces_the_one_in_a_file(shop: Workshop) -> None:
    """The file picks it as a product, or by a decision about take 1, and the catalog has take 2 by now."""
    decided = picks(shop, shop.last, "a", column="decision", word="pick")
    picked, before = picks(shop, shop.last, "a"), catalog()["a"]
    assert [line.sku for line in plan(picks=decided).lines] == ["a"]
    shop.remake("a")
    assert before in refusal(picks=picked)
    assert "left so: a" in refusal(picks=decided)
    with open_ledger(load_settings()) as ledger:
        cell = run_cell(RunId(shop.last), last_sequence(ledger, "staging", "spring"))
    decided.write_text(f"run,sku,take,decision,note\n{cell},a,1,pick,\n")
    why = "the pattern that is picked for `a` is not the one that its product shows"
    assert why in refusal(picks=decided)
    assert ordered("a") == {"a": catalog()["a"]} != {"a": before}


def test_rows_that_no_take_is_chosen_for_are_left_out(shop: Workshop) -> None:
    """They are left out however they are named; without names, a row is ordered if its product shows the pick."""
    shop.decide(Decided.REJECT, "a herons")
    shop.remake("c", takes=2)
    shop.load_source(ROWS | {"f": {"prompt": "f herons"}}, takes=2)
    left = plan("a", "b", "c", "f")
    assert [line.sku for line in left.lines] == ["b"] and list(left.left_out) == ["a", "c", "f"]
    assert "f: its pattern has several takes" in refusal("f") and "rejected" in refusal("a")
    shop.decide(Decided.UNDECIDED, "a herons")
    assert [line.sku for line in plan("a").lines] == ["a"]
    # Nobody picked the take that was made after the pick; then take 2 is picked, and take 1 again.
    for sku in "bd":
        shop.decide(Decided.PICK, f"{sku} herons")
    shop.remake("d", again=True)
    assert [line.sku for line in plan().lines] == ["b"] and not plan().left_out
    shop.decide(Decided.PICK, "d herons", 2)
    shop.decide(Decided.PICK, "d herons")
    assert [line.sku for line in plan().lines] == ["b"]
    assert plan().left_out["d"].startswith("its product still shows another take than 1")


def test_catalog_is_the_one_that_has_the_rows(shop: Workshop) -> None:
    """Rows are named, or in a file; if several catalogs have them, a message lists the options that choose one."""
    autumn: dict[str, Cells] = {sku: {"prompt": "green ferns"} for sku in ("A-1", "A-2", "a")}
    for name, rows in (("autumn", autumn), ("winter", {"W-1": {"prompt": "green ferns"}})):
        shop.load(shop.write(rows, f"{name}.csv"))
    file = shop.folder / "picks.csv"
    for skus, expected in (("A-1", "autumn"), ("a A-2", "autumn"), ("b a", "spring")):
        file.write_text("sku,picked\n" + "".join(f"{sku},yes\n" for sku in skus.split()))
        assert asked(picks=file).catalog.catalog == asked(*skus.split()).catalog.catalog == expected
    file.write_text("sku,picked\na,yes\n")
    for ask in (lambda: asked(picks=file), lambda: asked("a"), lambda: asked("A-1", "b")):
        with pytest.raises(ConfigurationError) as refused:
            ask()
        assert [line for line in str(refused.value).splitlines() if line.startswith("  ")] == [
            "  --catalog autumn --environment staging",
            "  --catalog spring --environment staging",
        ]
    with pytest.raises(ConfigurationError, match="Several catalogs here"):
        asked()


# -- once


def test_same_rows_again_open_nothing(service: Service) -> None:
    """Rows are divided into checkouts in the order of their skus, in whatever order a command names them."""
    first = order("e", "a", "b", "d", "c", lines=2, quantity=2)
    lines = [[(line.sku, line.quantity) for line in record.lines] for record in first.checkouts]
    assert lines == [[("a", 2), ("b", 2)], [("c", 2), ("d", 2)], [("e", 2)]]
    assert order("c", "b", "a", "e", "d", lines=2, quantity=2).checkouts == first.checkouts
    assert [record.checkout_id for record in first.checkouts] == opened(service)
    assert plan("e").notes == ("e is in checkout chk-3 too, which is open: pay one of the two.",)
    assert address(first.checkouts[0]) == "https://pay.example/chk-1"
    assert service.till.sent[-1] == service.till.sent[0], "the address is asked for by the same request"


def test_what_is_ordered_is_not_ordered_again_by_accident(service: Service) -> None:
    """An edited command does not either; a second order needs another name. An order is not yet a payment."""
    (first,) = order("a", "b").checkouts
    service.till.order("chk-1", status="confirmed")
    assert "order ord-chk-1, confirmed" in refusal("a", "c")
    (shown,) = order("a", "b").checkouts
    assert shown.status is CheckoutStatus.OPEN and shown.is_ordered
    service.till.order("chk-1")
    (paid,) = order("a", "b").checkouts
    assert (paid.status, paid.key) == (CheckoutStatus.PAID, first.key)
    reason = refusal("a", "c")
    assert "  a: order ord-chk-1" in reason and "c:" not in reason and "--order" in reason
    assert len(opened(service)) == 1
    (second,) = order("a", "c", order="for the fair").checkouts
    assert opened(service) == ["chk-1", second.checkout_id]


@pytest.mark.parametrize("by", ["an order", "a refresh"])
def test_order_that_changed_since_it_was_planned_is_not_opened(
    shop: Workshop, service: Service, by: str
) -> None:
    """Somebody else ordered one of its products, or replaced it, while the plan waited for a person."""
    planned = plan("a", "b")
    if by == "an order":
        order("a")
    else:
        shop.refresh(CHANGED)
    before = opened(service)
    with pytest.raises(InputRefused, match=r"\ba\b") as refused:
        working(lambda work: work.open(planned, show))
    assert refused.value.code == "order_changed" and opened(service) == before


def test_same_order_planned_twice_before_either_began_is_one(service: Service) -> None:
    planned = plan("a", "b")
    first = order("a", "b")
    second = working(lambda work: work.open(planned, show))
    assert [record.checkout_id for record in second.checkouts] == ["chk-1"] == opened(service)
    assert first.checkouts[0].key == second.checkouts[0].key


def test_everything_picked_leaves_out_what_was_ordered(shop: Workshop, service: Service) -> None:
    """The page plans what the command does, with the same digest; rows that nobody named are left out quietly."""
    settings, scope = in_environment(read_settings(), "staging"), ("spring", "staging")
    assert plan_picked(settings, *scope) is None
    for sku in "ab":
        shop.decide(Decided.PICK, f"{sku} herons")
    planned, proposal = plan_picked(settings, *scope), plan().proposal
    assert planned is not None and (planned.digest, planned.sum) == (proposal.digest, str(proposal))
    order()
    service.till.order("chk-1")
    shop.decide(Decided.PICK, "c herons")
    left = plan()
    assert [line.sku for line in left.lines] == ["c"] and set(left.left_out) == {"a", "b"}
    order()
    service.till.order("chk-2")
    assert plan_picked(settings, *scope) is None
    assert opened(service) == ["chk-1", "chk-2"]


def test_cancelled_checkout_is_closed(service: Service) -> None:
    """It is not waited for and blocks no other; the same command says what to do. A payment stays a payment."""
    order("a", "b")
    service.till.order("chk-1", status="cancelled")
    ending = order("a", "b")
    assert ending.sentence == "1 checkout: 0 paid, 0 open, 1 cancelled"
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES and not ending.pending
    assert "another --order" in next(checkout_lines(ending.checkouts[0]))
    assert plan("a", "c").notes == ()
    (second,) = order("a", "b", order="samples-2").checkouts
    assert second.status is CheckoutStatus.OPEN
    service.till.order("chk-2")
    (paid,) = order("a", "b", order="samples-2").checkouts
    with open_ledger(load_settings()) as ledger, ledger.transaction():
        gone = OrderRecord("ord-chk-2", "cancelled", paid=False, cancelled=True)
        ledger.purchases.record_order(RunId("order-1"), paid.key, gone)
        assert checkouts(ledger)[1].status is CheckoutStatus.PAID


def test_checkout_is_followed_until_it_is_paid(service: Service) -> None:
    """The wait goes on after answers that say nothing, and ends when the key is refused."""
    begun, orders = order("a", "b", lines=1), service.till.orders
    now = iter([("chk-1", 503), ("chk-1", 200), ("chk-2", 200), ("chk-2", 401)])
    seen: list[str | None] = []

    async def sleep(seconds: float) -> None:
        checkout_id, status = next(now)
        orders[checkout_id] = _answer(status, {"orderId": "ord", "paid": True})

    def see(record: CheckoutRecord) -> None:
        seen.append(record.checkout_id)

    def follow() -> Order:
        return working(lambda work: work.follow(begun, timedelta(hours=2), see, sleep=sleep))

    assert follow().outcome is Outcome.COMPLETED and seen == ["chk-1", "chk-2"]
    orders.clear()
    with pytest.raises(ServiceStopped):
        follow()


# -- limits, the brake, and what a service may answer


def test_checkout_costs_nothing_of_a_spent_budget(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout spends nothing: a person pays on its page."""
    with open_ledger(load_settings()) as ledger, ledger.transaction():
        ledger.database.execute("UPDATE spending SET amount = 1000")
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "50")
    monkeypatch.setenv("PATTERNMILL_PATTERN_PRICE", "40")
    assert len(order("a").checkouts) == len(opened(service)) == 1
    monkeypatch.delenv("PATTERNMILL_PATTERN_PRICE")
    with pytest.raises(ConfigurationError, match="no prices"):
        plan("b")


def test_order_above_the_limit_waits_for_an_approval(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The approval covers this order and no other."""
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "2")
    with pytest.raises(ApprovalNeeded, match="3 pieces in 1 checkout"):
        order("a", quantity=3)
    assert opened(service) == []
    decided = approve(in_environment(read_settings(), "staging"), plan("a", quantity=3).proposal, "anna")
    assert (decided.catalog, decided.items, decided.most_purchases) == ("spring/orders", 3, 1)
    for _ in range(2):
        assert order("a", quantity=3).outcome is Outcome.COMPLETED
    with pytest.raises(ApprovalNeeded):
        order("b", quantity=3)
    with open_ledger(load_settings()) as ledger:
        assert ledger.approvals.find("staging", "spring") == [] and list(problems(ledger)) == []
    assert len(opened(service)) == 1


def test_brake_keeps_checkouts_from_being_opened_and_asked_for_again(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address of an open one is not asked for either, as that repeats its create."""
    order("a")
    assert main.run(["pause", "--catalog", "spring", "--reason", "not before the fair"]) == 0
    halted = order("b")
    assert halted.outcome is Outcome.PAUSED and "not before the fair" in halted.sentence
    assert main.run(["order", "--sku", "b"]) == main.run(["order", "--address", "chk-1"]) == 3
    assert capsys.readouterr().err.count("not before the fair") == 2
    assert len(service.till.sent) == 1
    assert main.run(["unpause", "--catalog", "spring"]) == 0
    assert order("b").outcome is Outcome.COMPLETED
    assert main.run(["order", "--address", "chk-1"]) == 0


def test_refused_checkout_is_final_and_others_go_on(service: Service) -> None:
    """The service no longer knows a product, even in the first checkout of all."""
    service.till.on_create = [_answer(404, {"error": "no product prd_gone"})]
    ending = order("b", "a", "c", lines=1)
    assert ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    (lost,) = ending.failed
    assert lost.attempt is not None and "prd_gone" in str(lost.attempt.error)
    assert [line.sku for line in lost.lines] == ["a"] and len(opened(service)) == 2


def test_request_too_long_in_doubt_is_for_a_person(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the same request is sent; once it is written off, a checkout is opened under another request ID."""
    service.till.on_create = [ANSWER_LOST, ANSWER_LOST]
    for _ in range(2):
        ending = order("a")
        (doubtful,) = ending.failed
        assert (ending.outcome, doubtful.status) == (Outcome.FAILED, CheckoutStatus.IN_DOUBT)
    assert len(set(service.till.sent)) == 1
    monkeypatch.setenv("PATTERNMILL_IN_DOUBT_LIMIT", "PT0.001S")
    (doubtful,) = order("a").failed
    assert len(service.till.sent) == 2 and doubtful.attempt is not None
    with open_ledger(load_settings()) as ledger:
        item = find_request(ledger, doubtful.attempt.request_id)
        job = Settlement(Resolution.JOB, "seen in the console", "anna", "chk-1")
        limit = load_settings().in_doubt_limit
        with pytest.raises(ConfigurationError, match="which no job makes"):
            asyncio.run(settle(ledger, [item], job, limit=limit))
        written_off = Settlement(Resolution.WRITE_OFF, "gone", "anna")
        assert not asyncio.run(settle(ledger, [item], written_off, limit=limit))
    (record,) = order("a").checkouts
    assert record.attempt is not None and record.attempt.attempt == 2
    assert opened(service) == ["chk-1", "chk-2"] and record.checkout_id == "chk-2"


PAY = "https://pay.example/C-1?t=secret"
OPEN = {"checkoutId": "C-1", "checkoutUrl": PAY}


def test_checkout_of_another_shape_is_sent_again(service: Service) -> None:
    """The same request is sent until it is known what came of it; unknown fields are ignored."""
    expiring = OPEN | {"expires": {"in": 3600}}
    service.till.on_create = [_answer(200, {"checkout": OPEN}), _answer(201, expiring)]
    (record,) = order("a").checkouts
    assert record.checkout_id == "C-1"
    assert len(service.till.sent) == 2 and len(set(service.till.sent)) == 1


def test_address_that_is_not_shown_again_is_refused(service: Service) -> None:
    """The service shows no address, or another checkout for the same request."""
    service.till.on_create = [_answer(200, OPEN | {"checkoutUrl": "javascript:x"})] * 2
    (record,) = order("a").checkouts
    assert record.status is CheckoutStatus.OPEN
    with pytest.raises(ServiceStopped, match="does not show the address of checkout C-1 again"):
        address(record)
    service.till.on_create = [_answer(200, OPEN | {"checkoutId": "C-2"})]
    with pytest.raises(ServiceStopped, match="named job C-1 and then job C-2"):
        address(record)
    with open_ledger(load_settings()) as ledger:
        assert [record.checkout_id for record in checkouts(ledger)] == ["C-1"]


def test_answers_that_contradict_are_for_a_person(service: Service) -> None:
    """One refuses a request in doubt, and its text loses its address; two name one checkout for two requests."""
    conflict = {"message": f"requestId was used already: {PAY}"}
    service.till.on_create = [_answer(503, {}), _answer(409, conflict)]
    (held,) = order("a").failed
    assert held.attempt is not None
    assert (held.attempt.state, held.attempt.error_code) == ("held", "repeated_request")
    assert "secret" not in str(held.attempt.error)
    service.till.on_create = [_answer(200, OPEN)] * 2
    ending = order("b", "c", lines=1)
    states = [record.attempt.state for record in ending.checkouts if record.attempt is not None]
    assert ending.outcome is Outcome.FAILED and states == ["succeeded", "held"]


def test_results_and_pages_show_the_order(shop: Workshop, service: Service) -> None:
    """They follow from the ledger alone: nothing before it is paid; afterwards when, and under which ID."""
    order("a", "c")
    out = shop.folder / "again"
    for count in (0, 2):
        with open_ledger(load_settings()) as ledger:
            rebuild(ledger, shop.work.record, out, gallery)
        assert (out / "gallery.html").read_text().count('UTC, ord-chk-1"') == count
        service.till.order("chk-1")
        order("a", "c")
