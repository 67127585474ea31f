"""The hosted checkout page, where a buyer pays or cancels, and sees what has become of the order.

Whoever knows its address may; that address cannot be guessed, and needs no login.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from studio.operations import checkouts
from studio.operations.call import Call, Studio
from studio.pages.rendering import page, redirect
from studio.pictures import PAGE_WIDTH
from studio.records import Checkout, Job
from studio.wire import Refusal, read_form, unknown

ROOT = "/checkout/{page_id}"
Act = Callable[[Call, Checkout], None]
FORMS: dict[str, Act] = {
    "pay": checkouts.pay,
    "cancel": checkouts.cancel,
    "order/cancel": checkouts.cancel_order,
}


def checkout_routes(studio: Studio) -> list[Route]:
    """Return every address under `/checkout/{page_id}`."""
    call = Call(studio)

    async def show(request: Request) -> Response:
        checkout = _find(call, request)
        path = _path(checkout)
        return _page(call, request, checkout) if request.url.path == path else redirect(path)

    def form(name: str, act: Act) -> Route:
        """Return the address of a form, which is answered with a redirect or says why not."""

        async def answer(request: Request) -> Response:
            await read_form(request)
            try:
                act(call, _find(call, request))
            except Refusal as refusal:
                return _page(call, request, _find(call, request), refusal)
            return redirect(_path(_find(call, request)))

        return Route(f"{ROOT}/{name}", answer, methods=["POST"])

    return [
        *(form(name, act) for name, act in FORMS.items()),
        Route(ROOT, show),
        # Also at the address of a form: a refusal was shown there, and a person may reload it.
        Route(f"{ROOT}/{{form:path}}", show),
    ]


def _find(call: Call, request: Request) -> Checkout:
    """Return the checkout of the page's address. Raises Refusal (404)."""
    page_id = request.path_params["page_id"]
    checkout = call.store.find(Checkout, page_id=page_id)
    if checkout is None:
        raise unknown("checkout", page_id)
    return checkout


def _page(call: Call, request: Request, checkout: Checkout, refusal: Refusal | None = None) -> Response:
    """Return the page of an order, or of a checkout that is not paid."""
    order = checkouts.find_order(call, checkout)
    jobs = (call.store.find(Job, result_id=line["productId"]) for line in checkout.lines)
    return page(
        "checkout.html" if order is None else "order.html",
        request,
        refusal,
        checkout=checkouts.answer(call, checkout),
        order=order and checkouts.order_answer(call, order),
        steps=checkouts.STEPS,
        pictures={job.result_id: f"/pictures/{job.picture_id}.png?width={PAGE_WIDTH}" for job in jobs if job},
        address=f"/checkout/{checkout.page_id}",
    )


def _path(checkout: Checkout) -> str:
    return f"/checkout/{checkout.page_id}" + ("/order" if checkout.status == "paid" else "")
