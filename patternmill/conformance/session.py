"""One run of the suite: whom it asks, what it may spend, and what its checks found out for one another."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from patternmill.conformance.check_results import Skipped, SkipReason
from patternmill.conformance.probe import Key, Probe
from patternmill.service.outcomes import Answer

T = TypeVar("T")

#: An operation and an identifier that no service has.
NO_OPERATION = "conformance/no-such-operation"
UNKNOWN_ID = "conformance-unknown-id"
#: How services answer for an operation that they do not have.
_NOT_THERE = frozenset({404, 405, 501})
_VOLATILE = re.compile(r"[0-9a-f-]{8,}|\d+")


@dataclass
class SpendingLimit:
    """Counts patterns and products. A request that might make one is reserved before it is sent."""

    limit: int
    #: What was made, or may have been: a request whose answer was lost counts.
    used: int = 0

    def reserve(self, count: int) -> None:
        """Raises Skipped when the limit does not cover it."""
        left = self.limit - self.used
        if count > left:
            detail = f"could buy {count} at worst, and {left} of --spend {self.limit} are left"
            raise Skipped(SkipReason.COSTS, detail)
        self.used += count

    def give_back(self, count: int) -> None:
        """The service's answer showed that these were not made."""
        self.used -= count


@dataclass
class Session:
    probe: Probe
    #: The address that is checked, with its version.
    base_url: str
    spending: SpendingLimit = field(default_factory=lambda: SpendingLimit(0))
    #: Whether reports may be sent to the service's operators.
    feedback: bool = False
    job_timeout: timedelta = timedelta(minutes=30)
    _token: str = field(default_factory=lambda: secrets.token_hex(8))
    _known: dict[str, Any] = field(default_factory=dict)

    def request_id(self, name: str) -> str:
        """New in each run, and the same within it."""
        return f"conformance-{self._token}-{name}"

    async def once(self, name: str, find: Callable[[], Awaitable[T]]) -> T:
        """What `find` finds, looked for by the first check that needs it; its Skipped is kept too."""
        if name not in self._known:
            try:
                self._known[name] = await find()
            except Skipped as skipped:
                self._known[name] = skipped
        found = self._known[name]
        if isinstance(found, Skipped):
            raise found
        return found  # type: ignore[no-any-return]

    async def asked(self, operation: str, body: object) -> Answer:
        """The answer to a free request, which is sent once a run."""
        return await self.once(f"{operation} {body!r}", lambda: self.probe.ask(operation, body))

    async def lacks(self, operation: str) -> bool:
        """Whether the service answers an empty request to a free operation as to one that cannot exist."""
        return await self.is_missing(operation, await self.asked(operation, {}))

    async def is_missing(self, operation: str, answer: Answer) -> bool:
        other = await self.asked(NO_OPERATION, {})
        if answer.status not in _NOT_THERE or answer.status != other.status:
            return False
        return _comparable(answer, operation) == _comparable(other, NO_OPERATION)

    async def require(self, operation: str) -> None:
        """Raises Skipped when the service does not have the operation."""
        if await self.lacks(operation):
            raise Skipped(SkipReason.NOT_THERE, "the operation is not there")

    async def try_create(self, operation: str, body: object, *, key: Key = Key.OWN) -> Answer:
        """Send a request that may buy one thing, within the limit. Raises Skipped."""
        self.spending.reserve(1)
        try:
            answer = await self.probe.ask(operation, body, key=key, resend=False)
        except Skipped as skipped:
            if skipped.reason is SkipReason.RATE_LIMITED:
                self.spending.give_back(1)
            raise
        if is_refusal(answer):
            self.spending.give_back(1)
        return answer


def is_refusal(answer: Answer) -> bool:
    """Nothing was executed; after a 5xx that is unknown."""
    return answer.status is not None and 400 <= answer.status < 500


def _comparable(answer: Answer, operation: str) -> str:
    return _VOLATILE.sub("#", answer.detail.replace(operation, "")).replace(operation.split("/")[-1], "")
