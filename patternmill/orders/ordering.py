"""One order of samples, step by step: its checkouts are opened, each once, and followed until a person has paid."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self, TypeVar

from patternmill.engine.item_attempts import Attempts
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason
from patternmill.errors import (
    BudgetReached,
    ConfigurationError,
    InputRefused,
    PatternmillError,
    ServiceStopped,
)
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Attempt, Lease, NewItem, OrderRecord, PickedLine, RunRecord
from patternmill.ledger.reports.order_report import (
    CheckoutRecord,
    checkout_called,
    checkouts,
    checkouts_of_products,
)
from patternmill.orders.checkout_addresses import CheckoutAddresses
from patternmill.orders.order_plan import OrderPlan, OrderSpec, PlannedCheckout, checkouts_of, plan_order
from patternmill.orders.picks import picked_lines
from patternmill.planning.checkout_items import catalog_of
from patternmill.planning.items import NOTHING_MADE, canonical_json
from patternmill.runs.approval import require_approval
from patternmill.runs.lease import LeaseHeartbeat, acquire_lease, release_lease
from patternmill.runs.plan_record import moment
from patternmill.runs.safeguards import refuse_known_other_service
from patternmill.service import outcomes
from patternmill.service.orders import KEY_REFUSED, ShownOrder, checkout_address, without_addresses
from patternmill.service.studio_api import StudioApi
from patternmill.settings import in_environment, read_settings
from patternmill.states import AttemptState, Outcome, Stage
from patternmill.text import plural, shown

T = TypeVar("T")

#: How often orders are asked for while they are waited for.
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=30)
#: So many orders are asked for again when a person wants to know what has become of them.
_LATEST = 20


@dataclass(frozen=True)
class OrderEnding:
    """What an order came to."""

    plan: OrderPlan
    checkouts: tuple[CheckoutRecord, ...]
    #: Why not every checkout was opened, where that is about all of them.
    halted: HaltReason | None = None
    #: Whether the orders were waited for.
    waited: bool = False

    @property
    def failed(self) -> tuple[CheckoutRecord, ...]:
        """Neither open nor ordered."""
        return tuple(record for record in self.checkouts if record.checkout_id is None)

    @property
    def pending(self) -> tuple[CheckoutRecord, ...]:
        """Open, and not paid."""
        return tuple(record for record in self.checkouts if record.checkout_id and not record.is_paid)

    @property
    def outcome(self) -> Outcome:
        if self.halted is not None and self.failed:
            return self.halted.outcome
        if self.failed and len(self.failed) == len(self.checkouts):
            return Outcome.FAILED
        is_whole = not self.failed and not (self.waited and self.pending)
        return Outcome.COMPLETED if is_whole else Outcome.COMPLETED_WITH_FAILURES

    @property
    def sentence(self) -> str:
        paid = sum(record.is_paid for record in self.checkouts)
        is_open = sum(record.is_unpaid for record in self.checkouts)
        parts = [f"{plural(len(self.checkouts), 'checkout')}: {paid} paid, {is_open} open"]
        if self.failed:
            parts.append(f"{len(self.failed)} not opened")
        text = ", ".join(parts)
        return f"{text}. {self.halted.message}" if self.halted is not None and self.failed else text


def _shown(record: CheckoutRecord) -> tuple[str | None, bool] | None:
    return (record.order.status, record.order.paid) if record.order is not None else None


class Ordering:
    """The steps of one order: `plan`, an approval if one is needed, `begin`, `open` each checkout, `close`, `wait`."""

    def __init__(self, spec: OrderSpec) -> None:
        """Raises ConfigurationError when the service's address or key are missing."""
        self.spec = spec
        self._api = StudioApi.from_settings(spec.settings)
        self._addresses = CheckoutAddresses(spec.settings.home)
        self._opening: _Opening | None = None

    async def __aenter__(self) -> Self:
        """Raises ConfigurationError when the environment's products are at another service."""
        try:
            if not self.spec.settings.embedded:
                await asyncio.to_thread(refuse_known_other_service, self.spec.settings)
        except BaseException:
            await self._api.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self._api.close()

    @property
    def waiting(self) -> str:
        """For people: that the service is waited for, and since when; empty while all is well."""
        return self._api.waiting

    async def plan(self) -> OrderPlan:
        """What would be ordered, after a look at what was paid meanwhile. Raises InputRefused and ServiceStopped."""
        lines = await asyncio.to_thread(self._read, self._lines)
        of_products = await asyncio.to_thread(
            self._read,
            lambda ledger: checkouts_of_products(ledger, [line.product_key for line in lines]),
        )
        unpaid = {record.key: record for found in of_products.values() for record in found}
        for record in unpaid.values():
            if record.is_unpaid and record.environment == self.spec.settings.environment:
                await self.refresh(record)
        return await asyncio.to_thread(self._read, lambda ledger: plan_order(ledger, self.spec, lines))

    async def begin(self, plan: OrderPlan) -> None:
        """Acquire the lease of the catalog's orders, and put the checkouts on record.

        Raises Overlap, and ApprovalNeeded when no approval covers the order.
        """
        self._opening = await _Opening.begin(self.spec, plan, self._api, self._addresses)

    async def open(self, checkout: PlannedCheckout) -> CheckoutRecord:
        """Open one checkout, or resume that; what is open or ordered stays as it is."""
        assert self._opening is not None, "begun before checkouts are opened"
        return await self._opening.open(checkout)

    async def close(self) -> None:
        """Release the lease."""
        if self._opening is not None:
            await self._opening.close()

    async def ending(self, plan: OrderPlan) -> OrderEnding:
        """As the ledger has it now."""
        keys = [checkout.item.key for checkout in plan.checkouts]
        known = await asyncio.to_thread(self._read, lambda ledger: checkouts_of(ledger, self.spec))
        by_key = {record.key: record for record in known}
        halted = self._opening.halt.reason if self._opening is not None else None
        return OrderEnding(plan, tuple(by_key[key] for key in keys if key in by_key), halted)

    async def refresh(self, record: CheckoutRecord) -> CheckoutRecord:
        """Ask for the order of an open checkout once, and record what is shown. Raises ServiceStopped."""
        assert record.checkout_id is not None and record.attempt is not None, "it is open"
        found = await self._api.order(record.checkout_id)
        if found is None:
            return record
        order = await asyncio.to_thread(self._record_order, record, found)
        if order.paid:
            self._addresses.forget(record.attempt.request_id)
        return replace(record, order=order)

    async def wait(
        self,
        ending: OrderEnding,
        limit: timedelta,
        *,
        on_change: Callable[[CheckoutRecord], None] = lambda record: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> OrderEnding:
        """Follow the orders until all have come, or the time is over; what was seen is on record all the while."""
        now = clock or asyncio.get_running_loop().time
        deadline, pause = now() + limit.total_seconds(), _FIRST_PAUSE.total_seconds()
        ending = replace(ending, waited=True)
        while ending.pending:
            found = [await self._followed(record, on_change) for record in ending.checkouts]
            ending = replace(ending, checkouts=tuple(found))
            left = deadline - now()
            if not ending.pending or left <= 0:
                break
            await sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE.total_seconds())
        return ending

    async def address(self, record: CheckoutRecord) -> str:
        """Where a person pays: kept on this machine, or asked for by the same request once more.

        Raises ConfigurationError and ServiceStopped when it cannot be had.
        """
        assert record.checkout_id is not None and record.attempt is not None, "it is open"
        # The embedded studio has another address each time.
        is_lasting = not self.spec.settings.embedded
        kept = self._addresses.find(record.attempt.request_id, record.checkout_id) if is_lasting else None
        return kept or await self._asked_again(record.checkout_id, record.attempt)

    async def _asked_again(self, checkout_id: str, attempt: Attempt) -> str:
        age = await asyncio.to_thread(self._read, lambda ledger: ledger.age_of(attempt))
        if age is None or age > self.spec.options.in_doubt_limit:
            raise ConfigurationError(
                f"The address of checkout {checkout_id} is not on this machine, and its request is too old to be "
                "sent again.",
                code="address_gone",
                remedy="Ask on the machine that opened it, or in the service's console; or order under another name "
                "(--order): a checkout that nobody pays costs nothing.",
            )
        end = await self._api.create(Stage.CHECKOUT, attempt.body, known_job_id=checkout_id, age=age)
        if isinstance(end, outcomes.Accepted):
            address = checkout_address(end.job.raw)
            if address is not None:
                await asyncio.to_thread(self._addresses.keep, attempt.request_id, checkout_id, address)
                return address
        why = without_addresses(getattr(end, "message", ""))
        raise ServiceStopped(
            f"The service does not show the address of checkout {checkout_id} again. {why}".strip(),
            code="address_not_shown",
            remedy="Look for the checkout in the service's console.",
        )

    async def _followed(
        self, record: CheckoutRecord, on_change: Callable[[CheckoutRecord], None]
    ) -> CheckoutRecord:
        """A question that fails is asked again later; a key that is refused ends the wait."""
        if record.checkout_id is None or record.is_paid:
            return record
        try:
            found = await self.refresh(record)
        except ServiceStopped as stopped:
            if stopped.code in KEY_REFUSED.values():
                raise
            return record
        if found.order is not None and _shown(found) != _shown(record):
            on_change(found)
        return found

    def _lines(self, ledger: Ledger) -> tuple[PickedLine, ...]:
        spec = self.spec
        return picked_lines(ledger, spec.settings.environment, spec.catalog, spec.listed, spec.picks)

    def _record_order(self, record: CheckoutRecord, found: ShownOrder) -> OrderRecord:
        with open_ledger(self.spec.settings) as ledger, ledger.transaction():
            order = OrderRecord(found.order_id, found.status, found.paid, found.answer)
            return ledger.record_order(_run_id(ledger), record.key, order)

    def _read(self, work: Callable[[Ledger], T]) -> T:
        with open_ledger(self.spec.settings, must_exist=True) as ledger:
            return work(ledger)


class _Opening:
    """Checkouts being opened, under the lease of the catalog's orders."""

    def __init__(
        self,
        spec: OrderSpec,
        record: RunRecord,
        options: RunOptions,
        writer: LedgerWriter,
        api: StudioApi,
        addresses: CheckoutAddresses,
    ) -> None:
        self.halt = Halt()
        self._spec, self._writer, self._api, self._addresses = spec, writer, api, addresses
        self._attempts = Attempts(record, writer, options, self.halt)
        self._heartbeat = LeaseHeartbeat(writer, self._lost)
        self._heartbeat.start()
        self._is_closed = False

    @classmethod
    async def begin(
        cls, spec: OrderSpec, plan: OrderPlan, api: StudioApi, addresses: CheckoutAddresses
    ) -> _Opening:
        ledger = await asyncio.to_thread(open_ledger, spec.settings)
        try:
            record = _record(spec, ledger)
            scope = spec.scope
            lease = await acquire_lease(ledger, scope.environment, scope.catalog, record.run_id)
        except BaseException:
            await asyncio.to_thread(ledger.close)
            raise
        writer = LedgerWriter(ledger, lease)
        try:
            options = await writer.run(lambda ledger: _put_on_record(ledger, spec, plan, lease))
        except BaseException:
            await release_lease(writer, lease)
            raise
        # Products were made at this address, so that "not found" is about a product, and others go on.
        api.known_to_work([Stage.CHECKOUT])
        return cls(spec, record, options, writer, api, addresses)

    async def open(self, checkout: PlannedCheckout) -> CheckoutRecord:
        item = checkout.item
        with suppress(BudgetReached):  # the halt has the reason
            attempt, sent_ago = await self._attempts.begin(item, NOTHING_MADE, retried=True)
            if attempt.state is AttemptState.INTENDED:
                end = await self._api.create(
                    Stage.CHECKOUT,
                    attempt.body,
                    age=sent_ago,
                    stopping=lambda: self.halt.forbids_sending(Stage.CHECKOUT),
                    permitted=self._writer.confirm_lease,
                )
                await self._attempts.record_create(item, attempt, await self._private(attempt, end))
        found = await self._writer.run(lambda ledger: checkouts_of(ledger, self._spec))
        return next(record for record in found if record.key == item.key)

    async def close(self) -> None:
        """Release the lease; once."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._heartbeat.stop()
        assert self._writer.lease is not None, "it has the lease"
        await release_lease(self._writer, self._writer.lease)

    async def _private(self, attempt: Attempt, end: outcomes.CreateEnd) -> outcomes.CreateEnd:
        """What goes on record: the address of a checkout is kept apart, before the checkout counts as open."""
        if not isinstance(end, outcomes.Accepted):
            return replace(end, message=without_addresses(end.message))
        if not end.job.is_immediate:
            message = f"The service answered with job {end.job.job_id}, and not with a checkout."
            return outcomes.No(AttemptState.HELD, "no_checkout", message)
        address = checkout_address(end.job.raw)
        if address is not None:
            await asyncio.to_thread(self._addresses.keep, attempt.request_id, end.job.job_id, address)
        return end

    def _lost(self, error: PatternmillError) -> None:
        self.halt.begin(HaltReason(Outcome.FAILED, "ledger", str(error)))


def _record(spec: OrderSpec, ledger: Ledger) -> RunRecord:
    """What requests and events of an order are recorded under; it is no run of the catalog."""
    return RunRecord(
        run_id=_run_id(ledger),
        catalog=spec.scope.catalog,
        environment=spec.scope.environment,
        source=spec.name,
        input_sha256="",
        input_encoding=None,
        studio_url="" if spec.settings.embedded else spec.settings.studio_url or "",
        started_at=moment(ledger),
    )


def _run_id(ledger: Ledger) -> RunId:
    return RunId(f"order-{moment(ledger):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")


def _put_on_record(ledger: Ledger, spec: OrderSpec, plan: OrderPlan, lease: Lease) -> RunOptions:
    """The options within the approval that the order rests on."""
    scope = spec.scope
    with ledger.transaction(lease):
        _refuse_changed(plan, plan_order(ledger, spec, plan.lines))
        approved = require_approval(ledger, spec, plan.proposal)
        for checkout in plan.checkouts:
            item = checkout.item
            new = NewItem(item.key, item.stage, canonical_json(item.content))
            ledger.add_items(scope.environment, scope.catalog, [new])
            ledger.add_checkout_lines(item.key, checkout.lines)
    if approved is None:
        return spec.options
    return replace(spec.options, limits=replace(spec.options.limits, approval=approved.id))


def _refuse_changed(shown: OrderPlan, current: OrderPlan) -> None:
    """Raise InputRefused where others have ordered some of it since the plan was shown."""
    news = [note for note in current.notes if note not in shown.notes]
    if news:
        raise InputRefused(
            " ".join(("The order has changed since its plan was shown.", *news)),
            code="order_changed",
            remedy="Look at it again with --plan-only, or run the same command again. Nothing was sent.",
        )


def called_checkout(environment: str | None, checkout_id: str) -> CheckoutRecord:
    """The checkout of this ledger. Raises ConfigurationError."""
    with open_ledger(in_environment(read_settings(), environment), must_exist=True) as ledger:
        found = checkout_called(ledger, checkout_id)
    if found is None or found.attempt is None:
        raise ConfigurationError(
            f"There is no checkout {shown(checkout_id)} in this ledger.", remedy="See `patternmill status`."
        )
    return found


def current_checkouts(environment: str | None, catalog: str | None) -> list[CheckoutRecord]:
    """Those that are not known to be paid, and the latest orders; of one catalog, or of all."""
    with open_ledger(in_environment(read_settings(), environment), must_exist=True) as ledger:
        found = [
            record
            for record in checkouts(ledger, environment=environment)
            if record.checkout_id is not None and catalog in (None, catalog_of(record.scope))
        ]
    paid = [record for record in found if record.is_paid]
    return [record for record in found if record.is_unpaid or record in paid[-_LATEST:]]
