"""The call of an operation: the studio's parts, the address that was asked, and what was created before."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from studio.pictures import Pictures
from studio.records import CreateRequest
from studio.requests import CreateBody, Page
from studio.store import LAST, Record, Store
from studio.wire import Refusal, unknown

Item = TypeVar("Item")


@dataclass(frozen=True)
class Studio:
    """The parts of a studio. `pace` is a name in `operations.jobs`."""

    store: Store
    pictures: Pictures
    environment: str = "staging"
    pace: str = "quick"
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class Call:
    """One call. `origin` is the address that was asked (`http://host:port`)."""

    studio: Studio
    origin: str = ""
    operation: str = ""

    @property
    def store(self) -> Store:
        return self.studio.store

    @property
    def now(self) -> datetime:
        return self.studio.now()

    def earlier(self, body: CreateBody) -> str | None:
        """Return what the same request created before. Raises Refusal (409) when its ID was used for another."""
        request = self.store.find(CreateRequest, request_id=body.requestId)
        if request is not None and request.digest != body.digest(self.operation):
            message = (
                f"The requestId {request.request_id!r} was already used for another request. "
                "Send the first body again to get its job, or take a new requestId."
            )
            raise Refusal(409, "request_id_conflict", message)
        return None if request is None else request.object_id

    def accept(self, body: CreateBody, object_id: str, created: Record) -> None:
        """Keep what a create request created, with the request."""
        digest = body.digest(self.operation)
        request = CreateRequest(request_id=body.requestId, digest=digest, object_id=object_id)
        self.store.add(created, request)


def identifier(prefix: str) -> str:
    """Return a new ID that cannot be guessed."""
    return f"{prefix}_{secrets.token_hex(10)}"


def address() -> str:
    """Return the part of an address that cannot be guessed: whoever knows it is allowed in."""
    return secrets.token_urlsafe(18)


def timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def part_of(page: Page, rows: Iterable[tuple[int, Item]]) -> tuple[list[Item], str | None]:
    """Return a page of what is listed, and the cursor of the next one; each row comes with its place."""
    found = list(islice(rows, page.limit + 1))
    shown = found[: page.limit]
    return [item for _, item in shown], str(shown[-1][0]) if len(found) > len(shown) else None


def place(page: Page) -> int:
    """Return the place before which a page begins. Raises Refusal (404)."""
    cursor = page.cursor
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise unknown("cursor", cursor)
    return int(cursor or LAST)
