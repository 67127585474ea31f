"""The context of an operation: store, clock, pace, caller, and what was created before."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from studio.errors import Refusal, unknown
from studio.pace import Pace
from studio.requests import CreateBody, Page
from studio.store import Store
from studio.store.records import Account, CreateRequest, RecordLine, Verdict
from studio.wire import as_sent, digest

Clock = Callable[[], datetime]
Answer = dict[str, object]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Caller:
    """The account whose key was sent, the address that was asked (`http://host:port`), and the operation."""

    account: Account
    origin: str = ""
    operation: str = ""


@dataclass(frozen=True)
class Fate:
    """`failure`: the reason why a job is going to fail; `takes`: how long it runs. None: as usual."""

    failure: str | None = None
    takes: timedelta | None = None


#: Decides how the job that a new create request starts will end.
FateOf = Callable[[CreateBody, Caller], Fate]


@dataclass(frozen=True)
class Context:
    """A studio's parts. `home` is where pictures are kept."""

    store: Store
    home: Path
    environment: str
    pace: Pace
    clock: Clock
    fate_of: FateOf

    def earlier(self, body: CreateBody, caller: Caller) -> str | None:
        """Return what the same request created before. Raises Refusal (409) when its ID was used for another."""
        request = self.store.requests.one(account=caller.account, request_id=body.requestId)
        if request is None:
            return None
        same = request.digest == digest(caller.operation, body)
        self._note("repeated" if same else "conflict", body, caller, request.object_id)
        if not same:
            message = (
                f"The requestId {request.request_id!r} was already used for another request. "
                "Send the first body again to get its job, or take a new requestId."
            )
            raise Refusal(409, "request_id_conflict", message)
        return request.object_id

    def accept(self, body: CreateBody, caller: Caller, object_id: str) -> None:
        """Keep a create request; call it in the transaction that keeps what it created."""
        self.store.requests.add(
            CreateRequest(
                account=caller.account,
                request_id=body.requestId,
                operation=caller.operation,
                digest=digest(caller.operation, body),
                object_id=object_id,
            )
        )
        self._note("accepted", body, caller, object_id)

    def _note(self, verdict: Verdict, body: CreateBody, caller: Caller, object_id: str) -> None:
        line = RecordLine(
            at=self.clock(),
            operation=caller.operation,
            verdict=verdict,
            request_id=body.requestId,
            job_id=object_id,
            body=_recorded(body),
            account=caller.account,
        )
        self.store.record.add(line)


def _recorded(body: CreateBody) -> dict[str, object]:
    """Return the body as the record keeps it: of an uploaded picture, only how long it was."""
    sent = as_sent(body)
    data = sent.get("data")
    return {**sent, "data": f"{len(data)} characters"} if isinstance(data, str) else sent


def identifier(prefix: str) -> str:
    """Return a new ID that cannot be guessed."""
    return f"{prefix}_{secrets.token_hex(10)}"


def address() -> str:
    """Return the part of an address that cannot be guessed: whoever knows it is allowed in."""
    return secrets.token_urlsafe(18)


def timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def listing(
    name: str,
    page: Page,
    read: Callable[[int | None, int], Sequence[tuple[int, Item]]],
    body_of: Callable[[Item], Answer],
) -> Answer:
    """Return one page of a list; `read` has the items older than a place, newest first, each with its place."""
    rows = read(_place(page.cursor), page.limit + 1)
    shown = rows[: page.limit]
    cursor = str(shown[-1][0]) if len(rows) > len(shown) else None
    return {name: [body_of(item) for _, item in shown], "nextCursor": cursor}


def _place(cursor: str) -> int | None:
    """Return the place that a cursor names. Raises Refusal (404)."""
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise unknown("cursor", cursor)
    return int(cursor) if cursor else None
