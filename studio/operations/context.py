"""What every operation works with: the store, the clock, the pace, and who calls."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from studio.errors import request_id_conflict, unknown
from studio.instruments.fates import FateOf, usual_fate
from studio.pace import Pace
from studio.requests import CreateBody, Page
from studio.store import Account, CreateRequest, RecordLine, RequestId, Store, Verdict
from studio.wire import as_sent, digest

Clock = Callable[[], datetime]
Answer = dict[str, object]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Caller:
    """Whose key was sent, and the address that was asked: `http://host:port`."""

    account: Account
    origin: str


@dataclass(frozen=True)
class Context:
    """A studio's parts. `home` is where pictures are kept."""

    store: Store
    home: Path
    environment: str
    pace: Pace
    clock: Clock
    fate_of: FateOf = usual_fate


@dataclass(frozen=True)
class Creation:
    """One create request, which makes one object however often it is sent."""

    context: Context
    operation: str
    body: CreateBody
    caller: Caller

    def earlier(self) -> str | None:
        """What the same request created before. Raises Refusal (409) when its ID was used for another."""
        known = self.context.store.requests.find(self.caller.account, self.body.requestId)
        if known is None:
            return None
        same = known.digest == digest(self.operation, self.body)
        self.context.store.requests.note(self._line("repeated" if same else "conflict", known.object_id))
        if not same:
            raise request_id_conflict(known.request_id)
        return known.object_id

    def accept(self, object_id: str) -> None:
        """Keep the request; call it in the transaction that keeps the object."""
        account, request_id = self.caller.account, RequestId(self.body.requestId)
        request = CreateRequest(
            account, request_id, self.operation, digest(self.operation, self.body), object_id
        )
        self.context.store.requests.add(request, self._line("accepted", object_id))

    def _line(self, verdict: Verdict, object_id: str) -> RecordLine:
        return RecordLine(
            self.context.clock(),
            self.operation,
            verdict,
            RequestId(self.body.requestId),
            object_id,
            recorded(self.body),
            self.caller.account,
        )


def recorded(body: CreateBody) -> dict[str, object]:
    """The body as the record keeps it: of an uploaded picture, only how long it was."""
    sent = as_sent(body)
    data = sent.get("data")
    return {**sent, "data": f"{len(data)} characters"} if isinstance(data, str) else sent


def identifier(prefix: str) -> str:
    """A new ID that cannot be guessed."""
    return f"{prefix}_{secrets.token_hex(10)}"


def address() -> str:
    """The part of an address that cannot be guessed: knowing it is being allowed."""
    return secrets.token_urlsafe(18)


def timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def listing(
    name: str,
    page: Page,
    read: Callable[[int | None, int], Sequence[tuple[int, Item]]],
    body_of: Callable[[Item], Answer],
) -> Answer:
    """One page of a list; `read` has the items older than a place, newest first, each with its place."""
    found = read(_place(page.cursor), page.limit + 1)
    shown = found[: page.limit]
    cursor = _cursor(shown[-1][0]) if len(found) > len(shown) else None
    return {name: [body_of(item) for _, item in shown], "nextCursor": cursor}


def _cursor(place: int) -> str:
    return base64.urlsafe_b64encode(str(place).encode()).decode().rstrip("=")


def _place(cursor: str) -> int | None:
    if not cursor:
        return None
    try:
        place = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, UnicodeError):
        place = ""
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        raise unknown("cursor", cursor)
    return int(place)
