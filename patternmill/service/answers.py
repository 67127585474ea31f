"""What happened in one exchange with the service: an answer, nothing sent, or an answer lost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ExchangeResult(StrEnum):
    #: The whole answer was received, whatever its status.
    ANSWERED = "answered"
    #: Not one byte of the request left this machine: resending does no harm.
    NOT_SENT = "not_sent"
    #: The request may have been executed; its answer was lost, or cut.
    LOST = "lost"


class Trouble(StrEnum):
    """Why an exchange brought no usable answer."""

    NONE = "none"
    # Not sent.
    NAME_NOT_FOUND = "name_not_found"
    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    #: The certificate cannot be verified; HANDSHAKE: none was received.
    TLS = "tls"
    HANDSHAKE = "handshake"
    PROXY = "proxy"
    ADDRESS = "address"
    # Lost.
    RESET = "reset"
    TIMEOUT = "timeout"
    CUT_SHORT = "cut_short"
    TOO_LARGE = "too_large"
    BROKEN = "broken"
    # Answered, but not in JSON.
    NOT_JSON = "not_json"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Answer:
    """One exchange. `detail` is for people: cleaned, short, and free of addresses and keys."""

    exchange: ExchangeResult
    trouble: Trouble = Trouble.NONE
    detail: str = ""
    status: int | None = None
    #: The parsed JSON; None when it cannot be read (see `trouble`) or is `null`.
    body: Any = None
    #: Headers as they came: how long to wait, and the service's own time of day.
    retry_after: str | None = None
    date: str | None = None

    @property
    def usable(self) -> bool:
        """A success status with JSON in it."""
        return self.status in USABLE and self.trouble is Trouble.NONE

    @property
    def service_failed(self) -> bool:
        """The service or the network failed; this is not about the item."""
        if self.exchange is not ExchangeResult.ANSWERED or self.status is None:
            return True
        return self.status >= 500 or self.status == 408 or (self.status in SUCCESS and not self.usable)

    @property
    def overloaded(self) -> bool:
        """A sign that fewer requests should be made at once."""
        return self.status in {429, 503} or self.trouble in {Trouble.TIMEOUT, Trouble.CONNECT_TIMEOUT}


#: The success statuses that can carry a job.
USABLE = frozenset({200, 201, 202})
SUCCESS = range(200, 300)
