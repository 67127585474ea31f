"""Orders at a service of our own making that answers in other shapes: nothing is guessed, nothing is opened twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from patternmill.errors import InputRefused
from patternmill.ledger.reports.checkouts import CheckoutStatus
from patternmill.states import Outcome
from tests.integration.orders.shop import Shop

Reply = tuple[int, Any]


@dataclass
class Other:
    """Answers of one operation after the other, the last one for ever; and every body that was sent."""

    creates: list[Reply]
    orders: list[Reply]
    sent: list[tuple[str, bytes]] = field(default_factory=list)

    def answer(self, operation: str, body: bytes) -> Reply:
        self.sent.append((operation, body))
        replies = self.creates if operation == "checkouts/create" else self.orders
        return replies.pop(0) if len(replies) > 1 else replies[0]

    @property
    def created(self) -> list[bytes]:
        return [body for operation, body in self.sent if operation == "checkouts/create"]


@pytest.fixture
def other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Other]:
    """It is where the catalog's products are, as far as the settings say."""
    made = Other([], [])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = made.answer(self.path.removeprefix("/v1/"), body)
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.delenv("PATTERNMILL_STUDIO_URL")
    monkeypatch.delenv("PATTERNMILL_API_KEY")
    profile = {"url": url, "key": shop.studio.key, "formerly": [shop.studio.base_url]}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
    monkeypatch.setenv("PATTERNMILL_CREATE_TIMEOUT", "PT0.3S")
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


OPEN = {"checkoutId": "C-1", "checkoutUrl": "https://pay.example/C-1?t=secret", "expires": {"in": 3600}}


def test_unknown_fields_and_a_wrapped_order(shop: Shop, other: Other) -> None:
    """Unpaid is 402 there, and an order comes in a wrapper."""
    other.creates = [(201, OPEN)]
    other.orders = [(402, {"detail": "pay at https://pay.example/C-1?t=secret"})]
    (record,) = shop.order("S-1").checkouts
    assert record.checkout_id == "C-1" and shop.address("C-1") == OPEN["checkoutUrl"]
    assert shop.order("S-1").checkouts == (record,)
    other.orders = [(200, {"order": {"orderId": "O-1", "status": "confirmed", "pay": OPEN["checkoutUrl"]}})]
    (shown,) = shop.order("S-1").checkouts
    assert shown.order is not None and (shown.order.order_id, shown.order.status) == ("O-1", "confirmed")
    assert shown.status is CheckoutStatus.OPEN and shop.address("C-1") == OPEN["checkoutUrl"], (
        "an order is no payment"
    )
    with pytest.raises(InputRefused, match="order O-1, confirmed"):
        shop.order("S-1", "S-2")
    other.orders = [(200, {"order": {"orderId": "O-1", "status": "confirmed", "paidAt": "2027-01-15"}})]
    (paid,) = shop.order("S-1").checkouts
    assert paid.status is CheckoutStatus.PAID
    assert len(set(other.created)) == 1, "the address is asked for by the same request"


def test_checkout_of_another_shape_is_in_doubt(shop: Shop, other: Other) -> None:
    """The same request is sent until it is known what came of it, and the next command goes on with it."""
    other.creates, other.orders = [(200, {"checkout": OPEN})], [(404, {})]
    ending = shop.order("S-1")
    assert ending.outcome is not Outcome.COMPLETED
    (failed,) = ending.failed
    assert failed.attempt is not None and failed.attempt.state == "intended"
    other.creates = [(200, OPEN)]
    assert shop.order("S-1").outcome is Outcome.COMPLETED
    assert len(set(other.created)) == 1


def test_checkout_without_an_address_is_open(shop: Shop, other: Other) -> None:
    other.creates, other.orders = [(200, {"checkoutId": "C-1", "checkoutUrl": "javascript:x"})], [(404, {})]
    assert shop.order("S-1").outcome is Outcome.COMPLETED
    with pytest.raises(Exception, match="does not show the address of checkout C-1 again"):
        shop.address("C-1")


def test_repeated_request_that_is_refused_is_for_a_person(shop: Shop, other: Other) -> None:
    """A service that answers 409 to what it has: it was opened, and nobody knows as what; the text has no address."""
    conflict = {"message": "requestId was used already: https://pay.example/C-1?t=secret"}
    other.creates, other.orders = [(503, {}), (409, conflict)], [(404, {})]
    (held,) = shop.order("S-1").failed
    assert held.attempt is not None and held.attempt.state == "held"
    assert held.attempt.error_code == "repeated_request" and "secret" not in str(held.attempt.error)
    assert len(set(other.created)) == 1


def test_another_checkout_for_the_same_request_stops(shop: Shop, other: Other) -> None:
    """Asked for the address once more, the service must name the same checkout."""
    other.creates, other.orders = [(200, OPEN)], [(404, {})]
    shop.order("S-1")
    other.creates = [(200, OPEN | {"checkoutId": "C-2"})]
    with pytest.raises(Exception, match="named job C-1 and then job C-2"):
        shop.address("C-1")
    assert [record.checkout_id for record in shop.checkouts()] == ["C-1"]


def test_one_checkout_for_two_requests_is_held(shop: Shop, other: Other) -> None:
    other.creates, other.orders = [(200, OPEN)], [(404, {})]
    ending = shop.order("S-1", "S-2", lines=1)
    assert ending.outcome is Outcome.FAILED
    states = [record.attempt.state for record in ending.checkouts if record.attempt is not None]
    assert states == ["succeeded", "held"]
