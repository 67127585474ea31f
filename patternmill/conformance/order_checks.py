"""Checkouts and orders, as far as they go without a payment."""

from __future__ import annotations

from patternmill.addresses import is_web_address
from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Needs,
    Skipped,
    SkipReason,
    by_faults,
    conformant,
    deviates,
    form_of,
    unspecified,
)
from patternmill.conformance.job_checks import Body, followed, missing_fields
from patternmill.conformance.job_rules import text_at
from patternmill.conformance.session import UNKNOWN_ID, Session, is_refusal
from patternmill.service.outcomes import SUCCESS, Answer

CHECKOUT = "checkouts/create"
SECTION = "2, 4 checkouts"
ORDERS = "4 orders"


async def _created(session: Session) -> tuple[Body, Answer]:
    async def create() -> tuple[Body, Answer]:
        product_id = (await followed(session, "product")).result_id
        if product_id is None:
            raise Skipped(SkipReason.NO_OCCASION, "there is no product to order")
        lines = [{"productId": product_id, "quantity": 1}]
        body: Body = {"requestId": session.request_id("checkout"), "lines": lines}
        return body, await session.probe.ask(CHECKOUT, body, resend=False)

    return await session.once("create checkout", create)


async def checkout_id(session: Session) -> CheckResult:
    _, answer = await _created(session)
    form = form_of(CHECKOUT, answer)
    if answer.status not in SUCCESS:
        return deviates(f"a valid request is answered {answer.status}", form)
    faults = [] if text_at(answer.body, "checkoutId") else ["checkoutId is no text"]
    return by_faults(faults, "checkoutId is there", form)


async def checkout_url(session: Session) -> CheckResult:
    _, answer = await _accepted(session)
    url = text_at(answer.body, "checkoutUrl") or ""
    faults = [] if is_web_address(url) else ["checkoutUrl is no absolute address"]
    return by_faults(faults, "checkoutUrl is an absolute address", form_of(CHECKOUT, answer))


async def _accepted(session: Session) -> tuple[Body, Answer]:
    body, answer = await _created(session)
    if answer.status not in SUCCESS:
        raise Skipped(SkipReason.NO_OCCASION, "no checkout was made")
    return body, answer


async def checkout_repeat(session: Session) -> CheckResult:
    body, first = await _accepted(session)
    answer = await session.probe.ask(CHECKOUT, body, resend=False)
    form = form_of("the same request again", answer)
    if is_refusal(answer):
        return unspecified(f"refused with {answer.status}: no second checkout", form)
    same = answer.status in SUCCESS and text_at(answer.body, "checkoutId") == text_at(
        first.body, "checkoutId"
    )
    outcome = conformant if same else deviates
    return outcome(f"answers {answer.status} with {'the same' if same else 'another'} checkout", form)


async def checkout_required(session: Session) -> CheckResult:
    body, _ = await _accepted(session)
    return await missing_fields(session, CHECKOUT, body)


async def order_unknown(session: Session) -> CheckResult:
    answer = await session.asked("orders/get", {"checkoutId": UNKNOWN_ID})
    form = form_of("unknown checkoutId", answer)
    if await session.lacks("orders/get"):
        return deviates("the operation is not there", form)
    return unspecified(f"answers {answer.status}", form)


async def order_unpaid(session: Session) -> CheckResult:
    await session.require("orders/get")
    _, made = await _accepted(session)
    answer = await session.asked("orders/get", {"checkoutId": text_at(made.body, "checkoutId")})
    return unspecified(f"answers {answer.status}", form_of("unpaid checkoutId", answer))


async def order_paid(session: Session) -> CheckResult:
    raise Skipped(SkipReason.PAID_ORDER, "needs a checkout that a person has paid")


CHECKS = (
    Check("orders-unknown", ORDERS, "orders/get is there; an unknown checkout is left open.", order_unknown),
    Check("orders-paid", ORDERS, "orders/get answers with the order of a paid checkout.", order_paid),
)
CHECKOUT_CHECKS = (
    Check("checkouts-id", SECTION, "checkouts/create answers with checkoutId.", checkout_id, Needs.SPENDING),
    Check("checkouts-url", SECTION, "checkoutUrl is an address to open.", checkout_url, Needs.SPENDING),
    Check(
        "checkouts-repeat", SECTION, "The same request again makes no other.", checkout_repeat, Needs.SPENDING
    ),
    Check("checkouts-required-fields", SECTION, "Each field is required.", checkout_required, Needs.SPENDING),
    Check(
        "orders-unpaid", ORDERS, "The order of an unpaid checkout is left open.", order_unpaid, Needs.SPENDING
    ),
)
