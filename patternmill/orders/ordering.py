"""Makes an order: opens each of its checkouts once, and follows them until a person has paid."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

from patternmill.engine.item_attempts import Attempts
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason, paused
from patternmill.errors import BudgetReached, InputRefused, NotStarted, Paused, ServiceStopped
from patternmill.identifiers import RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import NewItem, OrderRecord
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus
from patternmill.orders.order_plan import Order, item_of, related_checkouts
from patternmill.planning.items import NOTHING_MADE, Scope, canonical_json
from patternmill.runs.approval import require_approval
from patternmill.runs.lease import LeaseHeartbeat, acquire_lease, release_lease
from patternmill.runs.plan_record import moment
from patternmill.runs.safeguards import refuse_other_service
from patternmill.service.jobs import Job
from patternmill.service.orders import KEY_REFUSED, checkout_address, without_addresses
from patternmill.service.outcomes import CreateEnd, Refusal
from patternmill.service.resend import CreateRequest
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import AttemptState, Outcome, Stage

T = TypeVar("T")
OnChange = Callable[[CheckoutRecord], None]

#: The first and the longest pause between two queries about an order that is being followed, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 30.0


class Ordering(AbstractAsyncContextManager["Ordering"]):
    """Plans, opens and follows the orders of one environment at its service."""

    def __init__(self, settings: Settings) -> None:
        """Raise ConfigurationError if the service's address or key, or a price that limits need, is missing.

        The same is raised if the environment's products are at another service.
        """
        refuse_other_service(settings)
        self.settings = settings
        self._options = RunOptions.from_settings(settings)
        self._api = StudioApi.from_settings(settings)
        self._halt = Halt()
        #: The writer, while this holds the lease of a catalog's orders.
        self._writer: LedgerWriter | None = None
        #: The addresses of checkouts opened just now: kept nowhere else, as whoever has one can pay.
        self._addresses: dict[str, str] = {}

    async def __aexit__(self, *_: object) -> None:
        await self._api.close()

    @property
    def waiting(self) -> str:
        """Return for people what is waited for, and since when; empty while all is well."""
        return self._api.waiting

    async def plan(self, order: Order) -> Order:
        """Ask the service what has been paid meanwhile, then plan an order. Raises InputRefused and ServiceStopped."""
        for record in await self._with_ledger(lambda ledger: related_checkouts(ledger, order)):
            if record.status is CheckoutStatus.OPEN:
                await self.refresh(record)
        return await self._with_ledger(order.planned)

    async def refuse_paused(self, order: Order) -> None:
        """Raise Paused if nothing of an order could be opened; call this before a person is asked about it."""
        scope = order.scope
        if pause := await self._with_ledger(
            lambda ledger: ledger.brake.pause_of(scope.environment, scope.catalog, now=True)
        ):
            raise Paused(pause.message)

    async def open(self, order: Order, on_open: Callable[[CheckoutRecord], Awaitable[None]]) -> Order:
        """Open each checkout of a planned order, or resume opening it; those open or ordered stay as they are.

        Raises Overlap, ApprovalNeeded if no approval covers the order, and InputRefused if it has changed since its
        plan was shown.
        """
        opened: list[CheckoutRecord] = []
        async with self._leased(order.scope) as writer:
            approval = await writer.write(lambda ledger: self._put_on_record(ledger, order))
            options = replace(self._options, limits=replace(self._options.limits, approval=approval))
            # Products were made at this address, so "not found" is about a product, and the others go on.
            self._api.known_to_work([Stage.CHECKOUT])
            assert writer.lease is not None, "it has the lease"
            attempts = Attempts(writer.lease, writer, options, self._halt)
            for record in order.checkouts:
                with suppress(BudgetReached, NotStarted):  # the halt has the reason
                    await self._request(record, writer, attempts)
                now = await writer.run(lambda ledger: related_checkouts(ledger, order))
                opened += [checkout for checkout in now if checkout.key == record.key]
                await on_open(opened[-1])
        return replace(order, checkouts=tuple(opened), halt=self._halt.reason)

    @asynccontextmanager
    async def _leased(self, scope: Scope) -> AsyncIterator[LedgerWriter]:
        """Hold the lease of a catalog's orders, and obey the brake meanwhile."""
        if self._writer is not None:
            yield self._writer
            return
        ledger = await asyncio.to_thread(open_ledger, self.settings)
        try:
            # This run ID only stands for the command, because an order is not a run of the catalog.
            lease = await acquire_lease(ledger, scope.environment, scope.catalog, _run_id(ledger))
        except BaseException:
            await asyncio.to_thread(ledger.close)
            raise
        writer = self._writer = LedgerWriter(ledger, lease)
        writer.heed(self._pause, lambda: self._api.is_quiet)
        heartbeat = LeaseHeartbeat(
            writer, lambda error: self._halt.begin(HaltReason(Outcome.FAILED, "ledger", str(error)))
        )
        try:
            # The first write reads the brake.
            await writer.write(lambda ledger: None)
            yield writer
        finally:
            self._writer = None
            await heartbeat.stop()
            await release_lease(writer)

    def _pause(self, pause: Pause) -> None:
        self._halt.begin(paused(pause))
        self._api.drain()

    async def _request(self, record: CheckoutRecord, writer: LedgerWriter, attempts: Attempts) -> None:
        """Send the request of a checkout, unless its outcome is known. Raises BudgetReached."""
        item = item_of(record)
        attempt, sent_ago = await attempts.begin(item, NOTHING_MADE, retried=True)
        if attempt.state is not AttemptState.INTENDED:
            return
        request = CreateRequest(Stage.CHECKOUT, attempt.body, age=sent_ago)
        end = await self._api.create(request, partial(self._may_send, writer))
        await attempts.record_create(item, attempt, self._without_address(end))

    async def _may_send(self, writer: LedgerWriter) -> bool:
        await writer.confirm_lease()
        return not self._halt.forbids_sending(Stage.CHECKOUT)

    async def refresh(self, record: CheckoutRecord) -> CheckoutRecord:
        """Ask once for the order of an open checkout, and record the answer. Raises ServiceStopped."""
        assert record.checkout_id is not None, "it is open"
        shown = await self._api.order(record.checkout_id)
        if shown is None:
            return record

        def put_on_record(ledger: Ledger) -> OrderRecord:
            with ledger.transaction():
                order = OrderRecord(**vars(shown))
                return ledger.purchases.record_order(_run_id(ledger), record.key, order)

        return replace(record, order=await self._with_ledger(put_on_record))

    async def follow(
        self,
        order: Order,
        limit: timedelta,
        on_change: OnChange = lambda record: None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Order:
        """Follow the checkouts until none is pending or time is up, and record what is seen.

        A query that fails is repeated later; a key that is refused ends the wait.
        """
        clock = asyncio.get_running_loop().time
        deadline, pause = clock() + limit.total_seconds(), _FIRST_PAUSE
        while True:
            now = [await self._refreshed(record) for record in order.checkouts]
            for record, before in zip(now, order.checkouts, strict=True):
                if record.order != before.order:
                    on_change(record)
            order = replace(order, checkouts=tuple(now), was_followed=True)
            left = deadline - clock()
            if not order.pending or left <= 0:
                return order
            await sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _refreshed(self, record: CheckoutRecord) -> CheckoutRecord:
        """Return a checkout as it is now, if the service answers. Raises ServiceStopped if the key is refused."""
        try:
            return await self.refresh(record) if record.status is CheckoutStatus.OPEN else record
        except ServiceStopped as stopped:
            if stopped.code in KEY_REFUSED.values():
                raise
            return record

    async def address(self, record: CheckoutRecord) -> str:
        """Return where a person pays, by sending the same request again, which has the same answer.

        The age of the request does not matter: if the service has forgotten it and opens another checkout, that one is
        refused here, and costs nothing because nobody pays it. Raises ServiceStopped if the service does not show the
        address, Paused, and Overlap.
        """
        assert record.checkout_id is not None and record.attempt is not None, "it is open"
        checkout_id = record.checkout_id
        if checkout_id in self._addresses:
            return self._addresses[checkout_id]
        async with self._leased(Scope(record.environment, record.scope)) as writer:
            body = record.attempt.body
            request = CreateRequest(Stage.CHECKOUT, body, known_job_id=checkout_id, age=timedelta(0))
            end = await self._api.create(request, partial(self._may_send, writer))
        if isinstance(end, Refusal) and (halt := self._halt.reason) and halt.outcome is Outcome.PAUSED:
            raise Paused(halt.message)
        if isinstance(end, Job) and (address := checkout_address(end.raw)):
            return address
        why = without_addresses(getattr(end, "message", ""))
        raise ServiceStopped(
            f"The service does not show the address of checkout {checkout_id} again. {why}".strip(),
            code="address_not_shown",
            remedy="Look for the checkout in the service's console; or order under another name (--order): a checkout "
            "that nobody pays costs nothing.",
        )

    def _without_address(self, end: CreateEnd) -> CreateEnd:
        """Return the part of an answer that is recorded, which never includes the address."""
        if isinstance(end, Refusal):
            return replace(end, message=without_addresses(end.message))
        if end.is_immediate:
            if address := checkout_address(end.raw):
                self._addresses[end.job_id] = address
            return end
        message = f"The service answered with job {end.job_id}, and not with a checkout."
        return Refusal(AttemptState.HELD, "no_checkout", message)

    def _put_on_record(self, ledger: Ledger, order: Order) -> str | None:
        """Record the checkouts; return the ID of the approval that covers the order, None if it needs none.

        Raises InputRefused if the order has changed since its plan was shown.
        """
        now = order.planned(ledger)
        shown, current = ({(line.sku, line.product_id) for line in plan.lines} for plan in (order, now))
        changed = sorted({sku for sku, _ in shown ^ current})
        news = [f"The products of {', '.join(changed)} have changed or are gone."] if changed else []
        news += [note for note in now.notes if note not in order.notes]
        if news:
            raise InputRefused(
                " ".join(("The order has changed since its plan was shown.", *news)),
                code="order_changed",
                remedy="Look at it again with --plan-only, or run the same command again. Nothing was sent.",
            )
        approved = require_approval(ledger, self.settings, order.proposal)
        for record in order.checkouts:
            item = item_of(record)
            new = NewItem(item.key, item.stage, canonical_json(item.content), picked=record.lines)
            ledger.purchases.add_items(record.environment, record.scope, [new])
        return approved.id if approved is not None else None

    async def _with_ledger(self, work: Callable[[Ledger], T]) -> T:
        def opened() -> T:
            with open_ledger(self.settings, must_exist=True) as ledger:
                return work(ledger)

        return await asyncio.to_thread(opened)


def _run_id(ledger: Ledger) -> RunId:
    return RunId(f"order-{moment(ledger):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
