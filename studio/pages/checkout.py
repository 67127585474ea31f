"""The hosted checkout page: what is to be paid, pay and cancel, and the order that comes of it.

Whoever has the address may pay, as with any payment link: it cannot be guessed, and needs no login.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal, unknown
from studio.operations.checkouts import checkout_body, order_body, status_of
from studio.operations.context import Answer, Caller
from studio.pages.forms import FormTokens
from studio.pages.rendering import page, redirect
from studio.service import Service
from studio.store import Checkout, Order

STEPS = ("paid", "in_production", "shipped", "delivered")


class CheckoutPages:
    """Every address under `/checkout/{page_id}`. Each form is answered with a redirect or says why not."""

    def __init__(self, service: Service, tokens: FormTokens) -> None:
        self._service = service
        self._checkouts = service.checkouts
        self._tokens = tokens

    async def show(self, request: Request) -> Response:
        checkout = self._find(request)
        if status_of(checkout) == "paid":
            return redirect(request, _order_path(checkout))
        return self._page("checkout.html", request, checkout)

    async def pay(self, request: Request) -> Response:
        """However often and from wherever it is sent, one order."""
        checkout = await self._of_form(request)
        try:
            self._checkouts.pay(checkout)
        except Refusal as refusal:
            return self._page("checkout.html", request, self._find(request), refusal)
        return _closed(request, _order_path(checkout), checkout)

    async def cancel(self, request: Request) -> Response:
        checkout = await self._of_form(request)
        try:
            self._checkouts.cancel(checkout)
        except Refusal as refusal:
            return self._order_page(request, checkout, refusal)
        return _closed(request, _path(checkout), checkout)

    async def show_order(self, request: Request) -> Response:
        checkout = self._find(request)
        if self._order(checkout) is None:
            return redirect(request, _path(checkout))
        return self._order_page(request, checkout)

    async def cancel_order(self, request: Request) -> Response:
        checkout = await self._of_form(request)
        order = self._order(checkout)
        if order is not None:
            try:
                self._checkouts.cancel_order(order)
            except Refusal as refusal:
                return self._order_page(request, checkout, refusal)
        return redirect(request, _order_path(checkout))

    def _find(self, request: Request) -> Checkout:
        """Raises Refusal (404)."""
        page_id = str(request.path_params["page_id"])
        checkout = self._service.store.checkouts.of_page(page_id)
        if checkout is None:
            raise unknown("checkout", page_id)
        return checkout

    async def _of_form(self, request: Request) -> Checkout:
        checkout = self._find(request)
        await self._tokens.read(request, _purpose(checkout))
        return checkout

    def _order(self, checkout: Checkout) -> Order | None:
        return self._service.store.checkouts.order(checkout.account, checkout.checkout_id)

    def _order_page(self, request: Request, checkout: Checkout, refusal: Refusal | None = None) -> Response:
        order = self._order(checkout)
        assert order is not None
        body = order_body(order, checkout, self._service.now())
        return self._page("order.html", request, checkout, refusal, order=body, steps=STEPS)

    def _page(
        self,
        template: str,
        request: Request,
        checkout: Checkout,
        refusal: Refusal | None = None,
        **values: object,
    ) -> Response:
        return page(
            template,
            request,
            200 if refusal is None else refusal.status,
            checkout=checkout_body(checkout, Caller(checkout.account, "")),
            pictures=self._pictures(checkout),
            refusal=refusal,
            address=_path(checkout),
            form_token=self._tokens.token(_purpose(checkout)),
            **values,
        )

    def _pictures(self, checkout: Checkout) -> Answer:
        """Picture addresses by product."""
        products = {line.product_id for line in checkout.lines}
        jobs = (self._service.store.jobs.of_result(checkout.account, "product", one) for one in products)
        return {job.result_id: f"/pictures/{job.picture_id}.png?width=256" for job in jobs if job is not None}


def _closed(request: Request, target: str, checkout: Checkout) -> Response:
    """Continue at this path, so that the back button asks again: no browser restores a page whose cookies changed."""
    answer = redirect(request, target)
    path = request.scope.get("root_path", "") + _path(checkout)
    answer.set_cookie("checkout", "closed", max_age=3600, path=path, httponly=True, samesite="strict")
    return answer


def _purpose(checkout: Checkout) -> str:
    return f"checkout {checkout.page_id}"


def _path(checkout: Checkout) -> str:
    return f"/checkout/{checkout.page_id}"


def _order_path(checkout: Checkout) -> str:
    return f"{_path(checkout)}/order"
