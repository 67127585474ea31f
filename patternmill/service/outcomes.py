"""Results of exchanges with the service, and the ends of creates and jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from patternmill.service.jobs import Job
from patternmill.service.redaction import scrubbed
from patternmill.states import AttemptState

#: The largest body that is kept with a failure, in bytes.
LARGEST_KEPT = 2000


#: An exchange that made nothing, for a person or a report: `operation`; the HTTP `status`, 0 when no answer arrived;
#: `durationMs`; and `body`, without secrets, where it was JSON and not large.
FailedExchange = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The job succeeded or failed, as the service says; or the response to a poll shows another job."""

    job: Job
    #: The last poll of a job that did not succeed.
    exchange: FailedExchange | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A create without a job, or a job without an end: the service refused, failed to answer, or was not asked."""

    #: The attempt's new state; None: it stays open, and the next run resumes it.
    state: AttemptState | None
    code: str = ""
    message: str = ""
    #: Whether this run may begin no new item.
    stops: bool = False
    #: A text that is equal for different items that are refused in the same way.
    alike: str = field(default="", compare=False)
    #: The exchange that decided it, if one did.
    exchange: FailedExchange | None = field(default=None, compare=False)


#: How a create ends. With a job: the service has the request, and the job may have ended already.
CreateEnd = Job | Refusal
JobEnd = Ended | Refusal
#: The run was stopped, and the service never had this request.
NOT_BEGUN = Refusal(AttemptState.WITHDRAWN)
#: The job did not end in time.
GAVE_UP = Refusal(None, "gave_up_waiting")


class Trouble(StrEnum):
    """The reason why an exchange brought no usable answer."""

    NONE = "none"
    # Not one byte of the request left this machine.
    NAME_NOT_FOUND = "name_not_found"
    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    #: The certificate cannot be verified; HANDSHAKE: none was received.
    TLS = "tls"
    HANDSHAKE = "handshake"
    PROXY = "proxy"
    ADDRESS = "address"
    # The request may have been executed; its answer was lost, or cut.
    RESET = "reset"
    TIMEOUT = "timeout"
    CUT_SHORT = "cut_short"
    TOO_LARGE = "too_large"
    BROKEN = "broken"
    # Answered, but not in JSON.
    NOT_JSON = "not_json"
    HTML = "html"


_NOT_SENT = frozenset(
    {
        *(Trouble.NAME_NOT_FOUND, Trouble.CONNECT, Trouble.CONNECT_TIMEOUT),
        *(Trouble.TLS, Trouble.HANDSHAKE, Trouble.PROXY, Trouble.ADDRESS),
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One exchange. `detail` is for people: cleaned, short, and free of addresses and keys."""

    trouble: Trouble = Trouble.NONE
    detail: str = ""
    #: The HTTP status; None: no whole answer was received.
    status: int | None = None
    #: The parsed JSON; None when it cannot be read (see `trouble`) or is `null`.
    body: Any = None
    #: Headers as they came: how long to wait, and the service's own time of day.
    retry_after: str | None = None
    date: str | None = None

    @property
    def was_sent(self) -> bool:
        """Return whether any part of the request may have left this machine; else resending does no harm."""
        return self.trouble not in _NOT_SENT

    @property
    def usable(self) -> bool:
        """Return whether it is a success status with JSON in it."""
        return self.status in USABLE and self.trouble is Trouble.NONE

    @property
    def refused(self) -> bool:
        """Return whether the request is refused for what it is, not for the moment at which it came."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in _PASSING

    @property
    def service_failed(self) -> bool:
        """Return whether the service or the network failed: such an answer says nothing about the item."""
        if self.status is None:
            return True
        return self.status >= 500 or self.status == 408 or (self.status in SUCCESS and not self.usable)

    @property
    def overloaded(self) -> bool:
        """Return whether it calls for fewer requests."""
        return self.status == 503 or self.trouble in {Trouble.TIMEOUT, Trouble.CONNECT_TIMEOUT}


def failed_exchange(operation: str, answer: Answer, seconds: float) -> FailedExchange:
    """Return an exchange, which took this many seconds, in the form for a report."""
    milliseconds = round(max(seconds, 0.0) * 1000, 1)
    # The address at which a checkout is paid is a secret, whatever its field is called.
    body = None if operation.startswith("checkouts/") else _kept_body(answer.body)
    exchange = {"operation": operation, "status": answer.status or 0, "durationMs": milliseconds}
    return exchange if body is None else {**exchange, "body": body}


def _kept_body(body: Any) -> Any:
    try:
        return scrubbed(body) if len(orjson.dumps(body)) <= LARGEST_KEPT else None
    except (TypeError, ValueError):  # nested too deeply, or with half a surrogate pair
        return None


#: The success statuses that can carry a job.
USABLE = frozenset({200, 201, 202})
SUCCESS = range(200, 300)
#: Statuses below 500 that are not about the item: the same request may succeed later.
_PASSING = frozenset({408, 423, 425, 499})
