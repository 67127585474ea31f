"""One order of samples, step by step: its checkouts are opened, each once, and followed until a person has paid."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Self, TypeVar

from patternmill.engine.item_attempts import Attempts
from patternmill.engine.options import RunOptions
from patternmill.engine.progress import Halt, HaltReason
from patternmill.engine.refused_alike import RefusedAlike
from patternmill.errors import (
    BudgetReached,
    ConfigurationError,
    InputRefused,
    PatternmillError,
    ServiceStopped,
)
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_ledger
from patternmill.ledger.records import Lease, NewItem, OrderRecord, RunRecord
from patternmill.ledger.reports.order_report import (
    CheckoutRecord,
    checkout_called,
    checkouts,
    checkouts_of_products,
)
from patternmill.orders.order_plan import OrderPlan, OrderSpec, checkouts_of, plan_order
from patternmill.orders.picked_lines import picked_lines
from patternmill.planning.items import NOTHING_MADE, Item, canonical_json, catalog_of
from patternmill.runs.approval import require_approval
from patternmill.runs.lease import LeaseHeartbeat, acquire_lease, release_lease
from patternmill.runs.plan_record import moment
from patternmill.runs.safeguards import refuse_other_service
from patternmill.service import outcomes
from patternmill.service.jobs import Job
from patternmill.service.orders import KEY_REFUSED, checkout_address, without_addresses
from patternmill.service.studio_api import StudioApi
from patternmill.settings import in_environment, read_settings
from patternmill.states import AttemptState, Outcome, Stage
from patternmill.text import plural, shown

T = TypeVar("T")

#: How often orders are asked for while they are waited for, in seconds: at first, and at last.
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 30.0
#: So many orders are asked for again when a person wants to know what has become of them.
_LATEST = 20


class Ordering:
    """The steps of one order: `plan`, an approval if one is needed, `begin`, `open` each checkout, `close`, `wait`.

    And what it came to.
    """

    def __init__(self, spec: OrderSpec) -> None:
        """Raises ConfigurationError when the service's address or key are missing, or prices that limits need."""
        self.spec = spec
        self._options = RunOptions.from_settings(spec.settings)
        self._api = StudioApi.from_settings(spec.settings)
        self._halt = Halt()
        #: Of the checkouts that were opened just now; whoever has one can pay, so that nothing else keeps it.
        self._addresses: dict[str, str] = {}
        #: As the ledger has them, in the order in which they were opened.
        self._opened: dict[ItemKey, CheckoutRecord] = {}
        self._waited = False
        self._writer: LedgerWriter | None = None
        self._attempts: Attempts | None = None
        self._heartbeat: LeaseHeartbeat | None = None

    async def __aenter__(self) -> Self:
        """Raises ConfigurationError when the environment's products are at another service."""
        try:
            await asyncio.to_thread(refuse_other_service, self.spec.settings)
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
        spec, environment = self.spec, self.spec.settings.environment
        lines = await self._read(lambda ledger: picked_lines(ledger, environment, spec.catalog, spec.picks))
        of_products = await self._read(
            lambda ledger: checkouts_of_products(ledger, [line.product_key for line in lines])
        )
        for record in {record.key: record for found in of_products.values() for record in found}.values():
            if record.is_unpaid and record.environment == environment:
                await self.refresh(record)
        return await self._read(lambda ledger: plan_order(ledger, spec, lines))

    async def begin(self, plan: OrderPlan) -> None:
        """Acquire the lease of the catalog's orders, and put the checkouts on record.

        Raises Overlap, and ApprovalNeeded when no approval covers the order.
        """
        ledger = await asyncio.to_thread(open_ledger, self.spec.settings)
        scope = self.spec.scope
        try:
            record = _record(self.spec, ledger)
            lease = await acquire_lease(ledger, scope.environment, scope.catalog, record.run_id)
        except BaseException:
            await asyncio.to_thread(ledger.close)
            raise
        self._writer = LedgerWriter(ledger, lease)
        approval = await self._writer.run(lambda ledger: _put_on_record(ledger, self.spec, plan, lease))
        options = replace(self._options, limits=replace(self._options.limits, approval=approval))
        # Products were made at this address, so that "not found" is about a product, and others go on.
        self._api.known_to_work([Stage.CHECKOUT])
        self._attempts = Attempts(record, self._writer, options, self._halt, RefusedAlike(self._halt))
        self._heartbeat = LeaseHeartbeat(self._writer, self._lost)
        self._heartbeat.start()

    async def open(self, item: Item) -> CheckoutRecord:
        """Open one checkout, or resume that; what is open or ordered stays as it is."""
        assert self._writer is not None and self._attempts is not None, "begun before checkouts are opened"
        with suppress(BudgetReached):  # the halt has the reason
            attempt, sent_ago = await self._attempts.begin(item, NOTHING_MADE, retried=True)
            if attempt.state is AttemptState.INTENDED:
                end = await self._api.create(
                    Stage.CHECKOUT,
                    attempt.body,
                    age=sent_ago,
                    stopping=lambda: self._halt.forbids_sending(Stage.CHECKOUT),
                    permitted=self._writer.confirm_lease,
                )
                await self._attempts.record_create(item, attempt, self._without_address(end))
        found = await self._writer.run(lambda ledger: checkouts_of(ledger, self.spec))
        self._opened[item.key] = next(record for record in found if record.key == item.key)
        return self._opened[item.key]

    async def close(self) -> None:
        """Release the lease."""
        if self._heartbeat is not None:
            await self._heartbeat.stop()
        writer, self._writer, self._heartbeat = self._writer, None, None
        if writer is not None:
            await release_lease(writer)

    @property
    def checkouts(self) -> tuple[CheckoutRecord, ...]:
        """Those that were opened, or were to be."""
        return tuple(self._opened.values())

    @property
    def failed(self) -> list[CheckoutRecord]:
        """Neither open nor ordered."""
        return [record for record in self.checkouts if record.checkout_id is None]

    @property
    def pending(self) -> list[CheckoutRecord]:
        """Open, and not paid."""
        return [record for record in self.checkouts if record.is_unpaid]

    @property
    def outcome(self) -> Outcome:
        failed, halted = self.failed, self._halt.reason
        if halted is not None and failed:
            return halted.outcome
        if failed and len(failed) == len(self._opened):
            return Outcome.FAILED
        is_closed = any(record.is_cancelled for record in self.checkouts)
        is_whole = not failed and not is_closed and not (self._waited and self.pending)
        return Outcome.COMPLETED if is_whole else Outcome.COMPLETED_WITH_FAILURES

    @property
    def sentence(self) -> str:
        paid, cancelled = (
            sum(getattr(record, name) for record in self.checkouts) for name in ("is_paid", "is_cancelled")
        )
        text = f"{plural(len(self._opened), 'checkout')}: {paid} paid, {len(self.pending)} open"
        text += f", {cancelled} cancelled" if cancelled else ""
        if not self.failed:
            return text
        text += f", {len(self.failed)} not opened"
        return f"{text}. {self._halt.reason.message}" if self._halt.reason is not None else text

    async def refresh(self, record: CheckoutRecord) -> CheckoutRecord:
        """Ask for the order of an open checkout once, and record what is shown. Raises ServiceStopped."""
        assert record.checkout_id is not None, "it is open"
        found = await self._api.order(record.checkout_id)
        if found is None:
            return record
        order = OrderRecord(*found)

        def put_on_record(ledger: Ledger) -> OrderRecord:
            with ledger.transaction():
                return ledger.purchases.record_order(_run_id(ledger), record.key, order)

        return replace(record, order=await self._read(put_on_record))

    async def wait(
        self,
        limit: timedelta,
        *,
        on_change: Callable[[CheckoutRecord], None] = lambda record: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Follow the orders until all have come, or the time is over; what was seen is on record all the while.

        A question that fails is asked again later; a key that is refused ends the wait.
        """
        clock = asyncio.get_running_loop().time
        deadline, pause = clock() + limit.total_seconds(), _FIRST_PAUSE
        self._waited = True
        while True:
            for record in self.pending:
                try:
                    self._opened[record.key] = found = await self.refresh(record)
                except ServiceStopped as stopped:
                    if stopped.code in KEY_REFUSED.values():
                        raise
                else:
                    if _status_shown(found) != _status_shown(record):
                        on_change(found)
            left = deadline - clock()
            if not self.pending or left <= 0:
                return
            await sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def address(self, record: CheckoutRecord) -> str:
        """Where a person pays: the same request once more has the same answer.

        Raises ServiceStopped where the service does not show it. At any age of the request: should the service have
        forgotten it, the checkout that it opens anew is refused here, and costs nothing as nobody pays it.
        """
        assert record.checkout_id is not None and record.attempt is not None, "it is open"
        body, checkout_id = record.attempt.body, record.checkout_id
        if checkout_id in self._addresses:
            return self._addresses[checkout_id]
        end = await self._api.create(Stage.CHECKOUT, body, known_job_id=checkout_id, age=timedelta(0))
        if isinstance(end, Job) and (address := checkout_address(end.raw)):
            return address
        why = without_addresses(getattr(end, "message", ""))
        raise ServiceStopped(
            f"The service does not show the address of checkout {checkout_id} again. {why}".strip(),
            code="address_not_shown",
            remedy="Look for the checkout in the service's console; or order under another name (--order): a checkout "
            "that nobody pays costs nothing.",
        )

    def _without_address(self, end: outcomes.CreateEnd) -> outcomes.CreateEnd:
        """What goes on record of an answer."""
        if isinstance(end, outcomes.No):
            return replace(end, message=without_addresses(end.message))
        if end.is_immediate:
            if address := checkout_address(end.raw):
                self._addresses[end.job_id] = address
            return end
        message = f"The service answered with job {end.job_id}, and not with a checkout."
        return outcomes.No(AttemptState.HELD, "no_checkout", message)

    def _lost(self, error: PatternmillError) -> None:
        self._halt.begin(HaltReason(Outcome.FAILED, "ledger", str(error)))

    async def _read(self, work: Callable[[Ledger], T]) -> T:
        def opened() -> T:
            with open_ledger(self.spec.settings, must_exist=True) as ledger:
                return work(ledger)

        return await asyncio.to_thread(opened)


def _status_shown(record: CheckoutRecord) -> tuple[str | None, bool] | None:
    return (record.order.status, record.order.paid) if record.order is not None else None


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


def _put_on_record(ledger: Ledger, spec: OrderSpec, plan: OrderPlan, lease: Lease) -> str | None:
    """The ID of the approval that the order rests on; None: it needs none.

    Raises InputRefused where others have ordered some of it since the plan was shown.
    """
    scope = spec.scope
    with ledger.transaction(lease):
        notes = plan_order(ledger, spec, plan.lines).notes
        if news := [note for note in notes if note not in plan.notes]:
            raise InputRefused(
                " ".join(("The order has changed since its plan was shown.", *news)),
                code="order_changed",
                remedy="Look at it again with --plan-only, or run the same command again. Nothing was sent.",
            )
        approved = require_approval(ledger, spec.settings, plan.proposal)
        for item, known in plan.checkouts:
            new = NewItem(item.key, item.stage, canonical_json(item.content), picked=known.lines)
            ledger.purchases.add_items(scope.environment, scope.catalog, [new])
    return approved.id if approved is not None else None


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
    """Those that can be paid, and the latest that were; of one catalog, or of all."""
    with open_ledger(in_environment(read_settings(), environment), must_exist=True) as ledger:
        found = [
            record
            for record in checkouts(ledger, environment=environment)
            if record.checkout_id is not None and catalog in (None, catalog_of(record.scope))
        ]
    paid = [record for record in found if record.is_paid]
    return [record for record in found if record.is_unpaid or record in paid[-_LATEST:]]
