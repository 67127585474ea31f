"""API keys: who may ask.

A key is 256 random bits and is kept as its SHA-256 alone: what cannot be guessed needs no slow hash. Keys of the key
file are not stored.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from studio.records import ApiKey
from studio.store import Store
from studio.wire import Refusal

#: The precision of "last used"; a finer one would need a write for each request.
USE_PRECISION = timedelta(minutes=1)


class Keys:
    """Creates, revokes and checks keys."""

    def __init__(self, store: Store, configured: Iterable[str] = ()) -> None:
        self._store = store
        self._configured = frozenset(map(_sha256, configured))

    def create(self, name: str) -> str:
        """Create a key, and return it: it is shown this once."""
        key, key_id = f"studio_{secrets.token_urlsafe(32)}", f"key_{secrets.token_hex(8)}"
        self._store.add(ApiKey(key_id=key_id, name=name, sha256=_sha256(key), created_at=datetime.now(UTC)))
        return key

    def revoke(self, key: ApiKey) -> None:
        """Make a key invalid from now on."""
        if key.revoked_at is None:
            self._store.change(key, revoked_at=datetime.now(UTC))

    def holder(self, authorization: str) -> ApiKey | None:
        """Return the stored key that this header carries, None for one of the key file. Raises Refusal (401)."""
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("missing_key", "An API key is needed: Authorization: Bearer <API_KEY>.")
        digest = _sha256(key.strip())
        if any([hmac.compare_digest(digest, one) for one in self._configured]):
            return None
        # The look-up compares digests, whose beginnings nobody can choose, so its time reveals nothing about a key.
        found = self._store.find(ApiKey, sha256=digest)
        if found is None or found.revoked_at is not None:
            raise _unauthorized("invalid_key", "The API key is not one of this studio's.")
        now = datetime.now(UTC)
        if found.used_at is None or now - found.used_at > USE_PRECISION:
            self._store.change(found, used_at=now)
        return found


def _sha256(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _unauthorized(code: str, message: str) -> Refusal:
    return Refusal(401, code, message, headers={"WWW-Authenticate": "Bearer"})
