"""Orders against the double: one checkout a name, whatever crashes; with other lines the name is refused."""

import asyncio

import pytest

from cli.main import run as command
from patternmill.errors import Refusal
from patternmill.ledger.brake import pause
from patternmill.ledger.database import Database
from patternmill.orders import place_order, plan_order
from patternmill.service.client import Client
from patternmill.settings import read_settings
from tests.double import Weather
from tests.spine import refuses
from tests.test_remake import in_ledger, say
from tests.test_runs import double, row, run, sheet  # noqa: F401


def order(name="samples", quantities=None, quantity=1):
    async def placed():
        database = Database("home/ledger.sqlite3")
        try:
            plan = plan_order(database, "production", "spring", quantities, quantity)
            return plan, await place_order(database, read_settings(), name, plan)
        finally:
            await database.close()

    return asyncio.run(placed())


def checkouts(double):  # noqa: F811
    return [job for job in double.jobs.values() if job.stage == "checkout"]


def test_the_same_order_again_is_the_same_checkout_and_later_its_order(double):  # noqa: F811
    sheet(row(1), row(2), row(3))
    run()
    plan, first = order(quantities={"a-1": 2, "A-3": 1})
    assert (plan.pieces, plan.words) == (3, "2 products, 3 pieces")
    (job,) = checkouts(double)
    assert job.body["lines"] == [
        {"productId": line.product_id, "quantity": line.quantity}
        for line in sorted(plan.lines, key=lambda line: line.product_id)
    ]
    assert first.address == f"https://pay.example/{job.result}"
    assert order(quantities={"A-3": 1, "A-1": 2})[1] == first
    double.paid.add(job.result)
    assert order(quantities={"A-1": 2, "A-3": 1})[1].order == f"ord_{job.result} in production"
    assert len(checkouts(double)) == 1


def test_an_answer_without_the_number_of_an_order_is_none(double, monkeypatch):  # noqa: F811
    """It read `ordered, pending` of a checkout that nobody had paid."""
    sheet(row(1))
    run()
    read = Client.read

    async def unpaid(self, operation, question):
        is_order = operation == "orders/get"
        return {"orderId": None, "status": "pending"} if is_order else await read(self, operation, question)

    monkeypatch.setattr(Client, "read", unpaid)
    assert "to be paid" in order(quantities={"A-1": 1})[1].words


def test_other_lines_under_a_name_are_refused_and_another_name_is_another_checkout(double):  # noqa: F811
    sheet(row(1), row(2))
    run()
    order(quantities={"A-1": 1})
    with refuses("order_exists"):
        order(quantities={"A-1": 2})
    order("more", quantities={"A-1": 2})
    assert len(checkouts(double)) == 2


def test_what_is_picked_is_ordered_and_what_is_rejected_or_not_made_is_left_out(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "ferns"), row(3, "moss"), row(4, size="huge"))
    run()
    with refuses("nothing_to_order"):
        order()
    say("pick")
    plan, checkout = order(quantity=3)
    assert ([line.sku for line in plan.lines], checkout.pieces) == (["A-1"], 3)
    say("reject")
    said = r"A-1 is left out: its pattern is rejected\. A-4 is left out: it has no product\."
    with pytest.raises(Refusal, match=said):
        order("other", quantities={"A-1": 1, "A-4": 1})
    with pytest.raises(Refusal, match="no sku A-22"):
        order("other", quantities={"A-22": 1})


def test_a_lost_answer_makes_no_second_checkout(double):  # noqa: F811
    sheet(row(1))
    run()
    double.weather = Weather(latency=0.001, faults={"lost": 0.7})
    assert order(quantities={"A-1": 1})[1].checkout_id == checkouts(double)[0].result
    assert len(checkouts(double)) == 1


def test_a_refused_checkout_leaves_its_name_for_other_lines(double, monkeypatch):  # noqa: F811
    sheet(row(1), row(2))
    run()
    with monkeypatch.context() as patch, refuses("no_checkout"):
        patch.setattr(double, "_refusal", lambda *asked: double._refused("lines", "No such product."))
        order(quantities={"A-1": 1})
    assert order(quantities={"A-2": 1})[1].pieces == 1
    assert len(checkouts(double)) == 1


def test_an_order_for_an_environment_that_is_not_configured_is_refused(double, capfd):  # noqa: F811
    sheet(row(1))
    run()
    asked = ["order", "spring", "--sku", "A-1", "--name", "samples", "--yes", "--environment", "staging"]
    assert command(asked) == 2
    assert "staging is not configured" in capfd.readouterr().err
    assert not checkouts(double)


def test_a_checkout_that_a_person_must_decide_about_is_not_said_to_be_refused(double, capfd):  # noqa: F811
    sheet(row(1))
    run()
    double.weather = Weather(latency=0.001, faults={"no_content": 1.0})
    assert command(["order", "spring", "--sku", "A-1", "--name", "samples", "--yes"]) == 3
    assert "The checkout of samples is held" in capfd.readouterr().err


def test_a_pause_of_the_catalog_holds_its_orders_too(double):  # noqa: F811
    sheet(row(1))
    run()
    in_ledger(lambda database: asyncio.run(pause(database, "production/spring", "stock", patience=1.0)))
    with refuses("paused"):
        order(quantities={"A-1": 1})
    assert not checkouts(double)


def test_the_name_alone_shows_its_checkout_and_later_its_order(double, capfd):  # noqa: F811
    sheet(row(1))
    run()
    for name, catalog in (("samples", "spring"), ("samples", "winter")):
        assert command(["order", catalog, "--name", name]) == 2
        assert f"{catalog} has no checkout {name} yet." in capfd.readouterr().err
    order(quantities={"A-1": 2})
    (job,) = checkouts(double)
    assert command(["order", "spring", "--name", "samples"]) == 0
    assert f"2 pieces to be paid. https://pay.example/{job.result}" in capfd.readouterr().out
    double.paid.add(job.result)
    assert command(["order", "spring", "--name", "samples"]) == 0
    assert f"ordered, ord_{job.result} in production." in capfd.readouterr().out
    assert len(checkouts(double)) == 1
