"""The control interface: what a test does to the studio itself, apart from the service's own operations.

POST and JSON under /control, only for callers on the same machine, with a key of its own.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from studio.errors import FieldFault, Refusal, invalid_fields
from studio.instruments.clock import ManualClock
from studio.instruments.fates import NEVER
from studio.instruments.fault_plan import FaultPlan
from studio.instruments.instrument_set import Instruments
from studio.instruments.meter import read_meter
from studio.operations.context import Answer, Caller, timestamp
from studio.service import Service
from studio.store import DATABASE, DEFAULT_ACCOUNT, Account
from studio.wire import read_body


class ControlBody(BaseModel):
    """Fields that there are not are refused: a setting that is misspelt sets nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoFields(ControlBody):
    pass


class Advance(ControlBody):
    seconds: Annotated[float, Field(ge=0, le=3e9, allow_inf_nan=False)]


class SetFeedback(ControlBody):
    on: bool


class CheckoutChoice(ControlBody):
    checkoutId: str
    account: str = DEFAULT_ACCOUNT


@dataclass(frozen=True)
class Command:
    """What can be asked under one name."""

    body: type[BaseModel]
    perform: Callable[[Any], Answer | Awaitable[Answer]]


class Control:
    """All commands on one studio. `key` is the control interface's own."""

    def __init__(self, service: Service, instruments: Instruments, home: Path, key: str) -> None:
        self._service = service
        self._instruments = instruments
        self._home = home
        self._key = key
        self._commands = {
            "state": Command(NoFields, lambda body: self._state()),
            "reset": Command(NoFields, self._reset),
            "clock/advance": Command(Advance, self._advance),
            "clock/next-job-end": Command(NoFields, self._next_job_end),
            "faults": Command(NoFields, lambda body: self._faults()),
            "faults/set": Command(FaultPlan, self._set_faults),
            "feedback/set": Command(SetFeedback, self._set_feedback),
            "meter": Command(NoFields, self._meter),
            "checkout/pay": Command(CheckoutChoice, self._pay),
            "checkout/cancel": Command(CheckoutChoice, self._cancel),
        }

    def check(self, client: str, authorization: str) -> None:
        """Raises Refusal (401, 403) unless the caller is on this machine and has the key."""
        if not client or not ipaddress.ip_address(client).is_loopback:
            raise Refusal(403, "not_local", "The control interface is for this machine alone.")
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._key}".encode()):
            raise Refusal(401, "invalid_key", "The control interface has a key of its own.")

    async def perform(self, name: str, raw: bytes) -> Answer:
        """The answer, with the studio's time. Raises Refusal."""
        command = self._commands.get(name)
        if command is None:
            known = ", ".join(self._commands)
            raise Refusal(404, "unknown_command", f"There is no command {name!r}; there are: {known}.")
        found = command.perform(read_body(command.body, raw or b"{}"))
        answer = await found if isawaitable(found) else found
        return {**answer, "clock": timestamp(self._instruments.now())}

    def _state(self) -> Answer:
        return {"clockIsManual": self._instruments.clock.manual, **self._faults()}

    def _reset(self, body: NoFields) -> Answer:
        self._service.store.reset()
        self._instruments.reload()
        return {"reset": True}

    def _advance(self, body: Advance) -> Answer:
        try:
            self._clock().advance(timedelta(seconds=body.seconds))
        except OverflowError:
            raise invalid_fields((FieldFault("seconds", "lead beyond the year 9999"),)) from None
        return {}

    def _next_job_end(self, body: NoFields) -> Answer:
        """Jobs that never end are none."""
        clock = self._clock()
        end = self._service.store.jobs.next_end(clock(), clock() + NEVER / 2)
        if end is not None:
            clock.advance(end - clock())
        return {"moved": end is not None}

    def _clock(self) -> ManualClock:
        clock = self._instruments.clock
        if not isinstance(clock, ManualClock):
            raise Refusal(409, "real_clock", "The studio has the real clock: start it with --clock manual.")
        return clock

    def _faults(self) -> Answer:
        faults = self._instruments.faults
        return {"faults": faults.report(), "unfired": faults.unfired()}

    def _set_faults(self, body: FaultPlan) -> Answer:
        self._instruments.faults.use(body)
        return self._faults()

    def _set_feedback(self, body: SetFeedback) -> Answer:
        self._service.feedback.switch(on=body.on)
        return {"on": body.on}

    async def _meter(self, body: NoFields) -> Answer:
        """Read from the file by a thread: a long record keeps nobody waiting."""
        return await asyncio.to_thread(read_meter, self._home / DATABASE, self._instruments.now())

    def _pay(self, body: CheckoutChoice) -> Answer:
        checkouts = self._service.checkouts
        order = checkouts.pay(checkouts.find(body.checkoutId, Caller(Account(body.account), "")))
        return {"orderId": order.order_id}

    def _cancel(self, body: CheckoutChoice) -> Answer:
        checkouts = self._service.checkouts
        checkouts.cancel(checkouts.find(body.checkoutId, Caller(Account(body.account), "")))
        return {"checkoutId": body.checkoutId}
