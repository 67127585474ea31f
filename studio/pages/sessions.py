"""Sessions of the console: opened with an API key, closed by logging out, by time, or when the key is revoked."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request

from studio.errors import Refusal
from studio.keys import Holder, Keys, sha256
from studio.store import Store
from studio.store.records import SessionRecord

LASTS = timedelta(hours=12)
#: It names the session. Not a cookie, which a browser sends to every port of the machine.
HEADER = "Studio-Session"


@dataclass(frozen=True)
class Session:
    """Who is logged in."""

    holder: Holder
    token_sha256: str


class Sessions:
    """Opens, finds and closes sessions; they are kept in the studio's file and named by a header."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._table = store.sessions
        self._keys = keys

    def open(self, key: str) -> str:
        """Log in, and return the token of the session. Raises Refusal (401) unless the key is valid."""
        key_sha256 = sha256(key.strip())
        self._keys.holder_of(key_sha256)
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        for session in self._table.all():
            if session.expires_at <= now:
                self._table.delete(sha256=session.sha256)
        session = SessionRecord(sha256=sha256(token), key_sha256=key_sha256, expires_at=now + LASTS)
        self._table.add(session)
        return token

    def find(self, request: Request) -> Session | None:
        """Return the session that a request names, while it lasts and its key is valid."""
        session = self._table.one(sha256=sha256(request.headers.get(HEADER, "")))
        if session is None or session.expires_at <= datetime.now(UTC):
            return None
        try:
            return Session(self._keys.holder_of(session.key_sha256), session.sha256)
        except Refusal:
            return None

    def close(self, session: Session) -> None:
        self._table.delete(sha256=session.token_sha256)
