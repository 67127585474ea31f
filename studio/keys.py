"""API keys: who may ask, and for which account.

A key is 256 random bits and is kept as its SHA-256 alone: what cannot be guessed needs no slow hash. Keys of the key
file and the environment are not stored; they belong to the account `default`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from studio.errors import Refusal
from studio.store import DEFAULT_ACCOUNT, Account, ApiKey, Store

PREFIX = "studio_"
#: How exactly "last used" is kept; more would be a write for each request.
USE_PRECISION = timedelta(minutes=1)


@dataclass(frozen=True)
class Holder:
    """Who has a valid key. Keys that are not stored have no ID."""

    account: Account
    key_id: str | None = None


CONFIGURED = Holder(DEFAULT_ACCOUNT)


class Keys:
    """Creates, lists, revokes and checks keys; other processes may do so on the same file."""

    def __init__(self, store: Store, configured: Iterable[str] = ()) -> None:
        self._table = store.keys
        self._configured = frozenset(sha256(key) for key in configured)

    def create(self, name: str, account: Account, now: datetime) -> tuple[ApiKey, str]:
        """A new key's record and the key itself, which is shown this once."""
        key = f"{PREFIX}{secrets.token_urlsafe(32)}"
        record = ApiKey(f"key_{secrets.token_hex(8)}", account, name, sha256(key), now)
        self._table.add(record)
        return record, key

    def list(self) -> list[ApiKey]:
        """Oldest first, the revoked ones too."""
        return self._table.all()

    def revoke(self, key_id: str, now: datetime) -> bool:
        """From now on it is invalid. False: there is no such key, or it was revoked before."""
        return self._table.revoke(key_id, now)

    def account(self, authorization: str) -> Account:
        """Whose key this header carries. Raises Refusal (401) unless it is a valid one."""
        return self.holder(authorization).account

    def holder(self, authorization: str) -> Holder:
        """Who sends this header. Raises Refusal (401) unless its key is a valid one."""
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("missing_key", "An API key is needed: Authorization: Bearer <API_KEY>.")
        return self.holder_of(sha256(key.strip()))

    def holder_of(self, digest: str) -> Holder:
        """Whose key has this SHA-256. Raises Refusal (401) when it is not, or no longer, a valid one."""
        if any([hmac.compare_digest(digest, one) for one in self._configured]):
            return CONFIGURED
        return self._stored(digest)

    def _stored(self, digest: str) -> Holder:
        # The look-up compares digests, of which nobody can choose the beginning: its time shows nothing of a key.
        key = self._table.find(digest)
        if key is None or key.revoked_at is not None:
            raise _unauthorized("invalid_key", "The API key is not one of this studio's.")
        now = datetime.now(UTC)
        if key.used_at is None or now - key.used_at > USE_PRECISION:
            self._table.mark_used(key.key_id, now)
        return Holder(key.account, key.key_id)


def sha256(key: str) -> str:
    """As it is stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _unauthorized(code: str, message: str) -> Refusal:
    return Refusal(401, code, message, headers={"WWW-Authenticate": "Bearer"})
