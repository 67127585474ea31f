"""Sessions of the console: opened with an API key, closed by logging out, by time, or when the key is revoked."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal
from studio.keys import Holder, Keys, sha256
from studio.operations.context import Caller
from studio.store import Store

LASTS = timedelta(hours=12)
PATH = "/console"


@dataclass(frozen=True)
class Session:
    """Who is logged in. `purpose` is that of its forms' tokens."""

    holder: Holder
    caller: Caller
    token_sha256: str

    @property
    def purpose(self) -> str:
        return f"session {self.token_sha256}"


class Sessions:
    """Opens, finds and closes sessions; they are kept in the studio's file and carried by a cookie."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._table = store.sessions
        self._keys = keys

    def open(self, key: str, request: Request, answer: Response) -> None:
        """Log in. Raises Refusal (401) unless the key is valid."""
        self._keys.holder(f"Bearer {key}")
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        self._table.add(sha256(token), sha256(key.strip()), now, now + LASTS)
        answer.set_cookie(
            _cookie(request),
            token,
            max_age=int(LASTS.total_seconds()),
            path=_path(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def find(self, request: Request, origin: str) -> Session | None:
        """The session of this browser, while it lasts and its key is valid."""
        digest = sha256(request.cookies.get(_cookie(request), ""))
        key = self._table.key_of(digest, datetime.now(UTC))
        if key is None:
            return None
        try:
            holder = self._keys.holder_of(key)
        except Refusal:
            return None
        return Session(holder, Caller(holder.account, origin), digest)

    def close(self, session: Session, request: Request, answer: Response) -> None:
        self._table.delete(session.token_sha256)
        answer.delete_cookie(_cookie(request), path=_path(request))


def _cookie(request: Request) -> str:
    """Browsers do not tell ports of a host apart: two studios would log one another out."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"studio_session_{port if port.isascii() and port.isdigit() else 'default'}"


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}{PATH}"
