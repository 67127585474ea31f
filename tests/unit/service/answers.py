"""Answers of a service, and a client that gives them as scripted, in virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from patternmill.service.client import Look
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from tests.unit.service import virtual

JOB: dict[str, Any] = {"jobId": "job-1", "kind": "pattern", "status": "running", "result": None}
DONE = {**JOB, "status": "succeeded", "result": {"patternId": "p-1"}}


def answered(status: int, body: Any = None, trouble: Trouble = Trouble.NONE, **more: Any) -> Answer:
    """Return a whole answer."""
    return Answer(trouble, status=status, body=body, **more)


def not_sent(trouble: Trouble = Trouble.CONNECT) -> Answer:
    """Return an exchange of which nothing left this machine."""
    return Answer(trouble)


def lost(trouble: Trouble = Trouble.RESET) -> Answer:
    """Return an exchange whose answer did not come whole."""
    return Answer(trouble)


class Script:
    """Answers each operation with its script, the last line for ever, and writes down what it was sent."""

    def __init__(self, answers: dict[str, list[Answer]], latency: float = 0.05) -> None:
        self.answers, self.latency = answers, latency
        self.sent: list[tuple[float, str, bytes]] = []
        self.closed = False

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        if look is not None:
            await look()
        self.sent.append((virtual.clock(), operation, body))
        await asyncio.sleep(self.latency)
        return self.answer(operation, json.loads(body))

    def answer(self, operation: str, question: Any) -> Answer:
        left = self.answers[operation]
        return left.pop(0) if len(left) > 1 else left[0]

    async def close(self) -> None:
        self.closed = True

    def bodies(self, operation: str) -> list[bytes]:
        return [body for _, name, body in self.sent if name == operation]

    def api(self, uptime: Any = virtual.clock, **policy: Any) -> StudioApi:
        policies = ResendPolicy(jitter=lambda: 0.5, **policy)
        return StudioApi(self, policy=policies, clock=virtual.clock, uptime=uptime)  # type: ignore[arg-type]
