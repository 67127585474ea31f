"""The control interface: what a test does to the studio itself, apart from the service's own operations.

POST and JSON under /control, only for callers on the same machine, with a key of its own.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from studio.design import Value
from studio.errors import FieldFault, Refusal, invalid_fields
from studio.instruments.fault_plan import FaultPlan
from studio.instruments.faults import NEVER
from studio.instruments.instruments import Instruments
from studio.instruments.meter import read_meter
from studio.operations.context import Answer, Caller, timestamp
from studio.service import Service
from studio.store import DATABASE
from studio.store.records import DEFAULT_ACCOUNT, Account, Checkout
from studio.wire import read_body

#: The file in the home with the address and key of the control interface; only its owner can read it.
CONTROL_FILE = "control.json"


class Advance(Value):
    seconds: Annotated[float, Field(ge=0, le=3e9, allow_inf_nan=False)]


class CheckoutChoice(Value):
    checkoutId: str
    account: str = DEFAULT_ACCOUNT


class Control:
    """All commands on one studio. `key` is the control interface's own."""

    def __init__(self, service: Service, instruments: Instruments, home: Path, key: str) -> None:
        self._service = service
        self._instruments = instruments
        self._home = home
        self._key = key
        #: Misspelt fields are refused: they would set nothing.
        self._commands: dict[str, tuple[type[Value], Callable[[Any], Answer]]] = {
            "reset": (Value, self._reset),
            "clock/advance": (Advance, self._advance),
            "clock/next-job-end": (Value, self._next_job_end),
            "faults": (Value, self._faults),
            "faults/set": (FaultPlan, self._set_faults),
            "meter": (Value, self._meter),
            "checkout/pay": (CheckoutChoice, self._pay),
            "checkout/cancel": (CheckoutChoice, self._cancel),
        }

    def check(self, client: str, authorization: str) -> None:
        """Raise Refusal (401, 403) unless the caller is on this machine and has the key."""
        if not client or not ipaddress.ip_address(client).is_loopback:
            raise Refusal(403, "not_local", "The control interface is for this machine alone.")
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._key}".encode()):
            raise Refusal(401, "invalid_key", "The control interface has a key of its own.")

    def perform(self, name: str, raw: bytes) -> Answer:
        """Return the answer, with the studio's time. Raises Refusal."""
        if name not in self._commands:
            known = ", ".join(self._commands)
            raise Refusal(404, "unknown_command", f"There is no command {name!r}; there are: {known}.")
        model, command = self._commands[name]
        return {**command(read_body(model, raw or b"{}")), "clock": timestamp(self._instruments.clock())}

    def _reset(self, body: Value) -> Answer:
        self._service.store.reset()
        self._instruments.reload()
        return {"reset": True}

    def _advance(self, body: Advance) -> Answer:
        self._check_clock()
        try:
            self._instruments.clock.advance(timedelta(seconds=body.seconds))
        except OverflowError:
            raise invalid_fields((FieldFault("seconds", "lead beyond the year 9999"),)) from None
        return {}

    def _next_job_end(self, body: Value) -> Answer:
        """Move the clock to the next end of a job, leaving out jobs that never end; return whether it moved."""
        self._check_clock()
        clock = self._instruments.clock
        end = self._service.store.jobs.next_end(clock(), clock() + NEVER / 2)
        if end is not None:
            clock.advance(end - clock())
        return {"moved": end is not None}

    def _check_clock(self) -> None:
        if not self._instruments.clock.is_manual:
            raise Refusal(409, "real_clock", "The studio has the real clock: start it with --clock manual.")

    def _faults(self, body: object) -> Answer:
        faults = self._instruments.faults
        return {"faults": faults.report(), "unfired": faults.unfired()}

    def _set_faults(self, body: FaultPlan) -> Answer:
        self._instruments.faults.use(body)
        return self._faults(body)

    def _meter(self, body: Value) -> Answer:
        return read_meter(self._home / DATABASE, self._instruments.clock())

    def _pay(self, body: CheckoutChoice) -> Answer:
        return {"orderId": self._service.checkouts.pay(self._checkout(body)).order_id}

    def _cancel(self, body: CheckoutChoice) -> Answer:
        self._service.checkouts.cancel(self._checkout(body))
        return {"checkoutId": body.checkoutId}

    def _checkout(self, body: CheckoutChoice) -> Checkout:
        return self._service.checkouts.find(body.checkoutId, Caller(Account(body.account)))


def write_control_file(home: Path, url: str) -> str:
    """Write where the control interface is; return its key, which is made once for each home."""
    path = home / CONTROL_FILE
    key = f"control_{secrets.token_urlsafe(32)}"
    if path.exists():
        key = str(json.loads(path.read_text("utf-8"))["key"])
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps({"url": url, "key": key}), "utf-8")
    part.replace(path)
    return key
