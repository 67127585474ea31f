"""Sessions of the console: opened with an API key, closed by logging out, by time, or when the key is revoked."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request

from studio.errors import Refusal
from studio.keys import Holder, Keys, sha256
from studio.operations.context import Caller
from studio.store import Store

LASTS = timedelta(hours=12)
PATH = "/console"
#: It names the session. Not a cookie, which a browser sends to every port of the machine.
HEADER = "Studio-Session"


@dataclass(frozen=True)
class Session:
    """Who is logged in."""

    holder: Holder
    caller: Caller
    token_sha256: str


class Sessions:
    """Opens, finds and closes sessions; they are kept in the studio's file and named by a header."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._table = store.sessions
        self._keys = keys

    def open(self, key: str) -> str:
        """Log in, and return the token of the session. Raises Refusal (401) unless the key is valid."""
        self._keys.holder(f"Bearer {key}")
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        self._table.add(sha256(token), sha256(key.strip()), now, now + LASTS)
        return token

    def find(self, request: Request, origin: str) -> Session | None:
        """The session that a request names, while it lasts and its key is valid."""
        digest = sha256(request.headers.get(HEADER, ""))
        key = self._table.key_of(digest, datetime.now(UTC))
        if key is None:
            return None
        try:
            holder = self._keys.holder_of(key)
        except Refusal:
            return None
        return Session(holder, Caller(holder.account, origin), digest)

    def close(self, session: Session) -> None:
        self._table.delete(session.token_sha256)
