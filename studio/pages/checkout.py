"""The hosted checkout page: what is to be paid, pay and cancel, and the order that comes of it.

Whoever has the address may pay, as with any payment link: it cannot be guessed, and needs no login.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from studio.errors import Refusal, unknown
from studio.operations.checkouts import STEPS, checkout_body
from studio.operations.context import Caller
from studio.pages.rendering import page, redirect
from studio.service import Service
from studio.store.records import Checkout
from studio.wire import read_form


class CheckoutPages:
    """Every address under `/checkout/{page_id}`. Each form is answered with a redirect or says why not."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._checkouts = service.checkouts

    def routes(self) -> list[Route]:
        root = "/checkout/{page_id}"
        forms = {
            "pay": self._checkouts.pay,
            "cancel": self._checkouts.cancel,
            "order/cancel": self._cancel_order,
        }
        return [
            *(Route(f"{root}/{name}", self._form(act), methods=["POST"]) for name, act in forms.items()),
            Route(root, self.show),
            # Also at the address of a form: a refusal was shown there, and a person may reload it.
            Route(f"{root}/{{form:path}}", self.show),
        ]

    async def show(self, request: Request) -> Response:
        checkout = self._find(request)
        path = _path(checkout)
        return self._page(request, checkout) if request.url.path == path else redirect(path)

    def _form(self, act: Callable[[Checkout], object]) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a form. A checkout makes one order, however often and from wherever it is sent."""

        async def answer(request: Request) -> Response:
            await read_form(request)
            try:
                act(self._find(request))
            except Refusal as refusal:
                return self._page(request, self._find(request), refusal)
            return _closed(self._find(request))

        return answer

    def _cancel_order(self, checkout: Checkout) -> None:
        order = self._checkouts.order(checkout)
        if order is not None:
            self._service.orders.cancel(order)

    def _find(self, request: Request) -> Checkout:
        """Return the checkout of the page's address. Raises Refusal (404)."""
        page_id = request.path_params["page_id"]
        checkout = self._service.store.checkouts.one(page_id=page_id)
        if checkout is None:
            raise unknown("checkout", page_id)
        return checkout

    def _page(self, request: Request, checkout: Checkout, refusal: Refusal | None = None) -> Response:
        """Return the page of an order, or of a checkout that is not paid."""
        order = self._checkouts.order(checkout)
        return page(
            "checkout.html" if order is None else "order.html",
            request,
            refusal,
            checkout=checkout_body(checkout, Caller(checkout.account)),
            order=order and self._service.orders.answer(order),
            steps=STEPS,
            pictures=self._pictures(checkout),
            address=f"/checkout/{checkout.page_id}",
        )

    def _pictures(self, checkout: Checkout) -> dict[str, str]:
        """Return picture addresses by product."""
        jobs = (self._service.store.jobs.one(result_id=line["productId"]) for line in checkout.lines)
        return {job.result_id: f"/pictures/{job.picture_id}.png?width=256" for job in jobs if job is not None}


def _closed(checkout: Checkout) -> Response:
    """Continue at its page, so that the back button asks again: no browser restores a page whose cookies changed."""
    answer = redirect(_path(checkout))
    path = f"/checkout/{checkout.page_id}"
    answer.set_cookie("checkout", "closed", max_age=3600, path=path, httponly=True, samesite="strict")
    return answer


def _path(checkout: Checkout) -> str:
    return f"/checkout/{checkout.page_id}" + ("/order" if checkout.paid_at is not None else "")
