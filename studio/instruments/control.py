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
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from studio.errors import FieldFault, Refusal, invalid_fields
from studio.instruments.answer_shapes import Shapes
from studio.instruments.clock import ManualClock
from studio.instruments.fates import NEVER
from studio.instruments.fault_plan import FaultPlan
from studio.instruments.instrument_set import Instruments
from studio.instruments.limit_profiles import PROFILES, read_known_limit
from studio.instruments.meter import read_meter
from studio.instruments.snapshots import Snapshots
from studio.limits import Limit
from studio.operations.context import Answer, Caller, timestamp
from studio.service import Service
from studio.store import DATABASE, DEFAULT_ACCOUNT, Account
from studio.wire import read_body


class ControlBody(BaseModel):
    """Fields that there are not are refused: a setting that is misspelt sets nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoFields(ControlBody):
    pass


class SnapshotPlace(ControlBody):
    """A name in the studio's home, or an absolute path."""

    name: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.name is None) == (self.file is None):
            raise ValueError("'name' or 'file' has to be there, and not both")
        if self.file is not None and not self.file.is_absolute():
            raise ValueError("'file' has to be an absolute path")
        return self


class Advance(ControlBody):
    seconds: Annotated[float, Field(ge=0, le=3e9, allow_inf_nan=False)]


class SetLimits(ControlBody):
    """The name of a profile, and limits besides, written as for --limit."""

    like: str = "unlimited"
    limits: tuple[str, ...] = ()

    def read(self) -> list[Limit]:
        """Raises Refusal (400)."""
        if self.like not in PROFILES:
            raise invalid_fields((FieldFault("like", f"has to be one of {', '.join(PROFILES)}"),))
        try:
            return [*PROFILES[self.like], *(read_known_limit(text) for text in self.limits)]
        except ValueError as error:
            raise invalid_fields((FieldFault("limits", str(error)),)) from None


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
        self._snapshots = Snapshots(service.store, home)
        self._commands = {
            "state": Command(NoFields, lambda body: self._state()),
            "reset": Command(NoFields, self._reset),
            "snapshot": Command(SnapshotPlace, self._snapshot),
            "restore": Command(SnapshotPlace, self._restore),
            "clock/advance": Command(Advance, self._advance),
            "clock/next-job-end": Command(NoFields, self._next_job_end),
            "faults": Command(NoFields, lambda body: self._faults()),
            "faults/set": Command(FaultPlan, self._set_faults),
            "shapes/set": Command(Shapes, self._set_shapes),
            "limits/set": Command(SetLimits, self._set_limits),
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
        instruments = self._instruments
        return {
            "clockIsManual": instruments.clock.manual,
            "shapes": instruments.shapes.model_dump(),
            "limits": [vars(limit) for limit in instruments.held],
            **self._faults(),
        }

    def _reset(self, body: NoFields) -> Answer:
        self._snapshots.reset()
        self._instruments.reload()
        return {"reset": True}

    def _snapshot(self, body: SnapshotPlace) -> Answer:
        path = self._path(body)
        self._snapshots.take(path)
        return {"file": str(path)}

    def _restore(self, body: SnapshotPlace) -> Answer:
        path = self._path(body)
        self._snapshots.restore(path)
        self._instruments.reload()
        return {"file": str(path)}

    def _path(self, body: SnapshotPlace) -> Path:
        return body.file or self._snapshots.path(str(body.name)).absolute()

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

    def _set_shapes(self, body: Shapes) -> Answer:
        """Those that are not named stay as they are."""
        held, named = self._instruments.shapes, body.model_dump(exclude_unset=True)
        self._instruments.use_shapes(held.model_copy(update=named))
        return {"shapes": self._instruments.shapes.model_dump()}

    def _set_limits(self, body: SetLimits) -> Answer:
        self._instruments.use_limits(body.read())
        return {"limits": [vars(limit) for limit in self._instruments.held]}

    def _set_feedback(self, body: SetFeedback) -> Answer:
        self._service.feedback.switch(on=body.on)
        return {"on": body.on}

    async def _meter(self, body: NoFields) -> Answer:
        """Read from the file by a thread: a long record keeps nobody waiting."""
        found = await asyncio.to_thread(read_meter, self._home / DATABASE, self._instruments.now())
        return {**found}

    def _pay(self, body: CheckoutChoice) -> Answer:
        checkouts = self._service.checkouts
        order = checkouts.pay(checkouts.find(body.checkoutId, Caller(Account(body.account), "")))
        return {"orderId": order.order_id}

    def _cancel(self, body: CheckoutChoice) -> Answer:
        checkouts = self._service.checkouts
        checkouts.cancel(checkouts.find(body.checkoutId, Caller(Account(body.account), "")))
        return {"checkoutId": body.checkoutId}
