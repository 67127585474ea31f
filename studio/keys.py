"""API keys: who may ask, and for which account.

A key is 256 random bits and is kept as its SHA-256 alone: what cannot be guessed needs no slow hash. Keys of the key
file are not stored; they belong to the account `default`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from studio.errors import Refusal
from studio.store import Store
from studio.store.records import DEFAULT_ACCOUNT, Account, ApiKey

PREFIX = "studio_"
#: The precision of "last used"; a finer one would need a write for each request.
USE_PRECISION = timedelta(minutes=1)


@dataclass(frozen=True)
class Holder:
    """The holder of a valid key. Keys that are not stored have no ID."""

    account: Account
    key_id: str | None = None


CONFIGURED = Holder(DEFAULT_ACCOUNT)


class Keys:
    """Creates, revokes and checks keys; other processes may do so on the same file."""

    def __init__(self, store: Store, configured: Iterable[str] = ()) -> None:
        self._table = store.keys
        self._configured = frozenset(sha256(key) for key in configured)

    def create(self, name: str, account: Account) -> tuple[ApiKey, str]:
        """Create a key; return its record and the key itself, which is shown this once."""
        key = f"{PREFIX}{secrets.token_urlsafe(32)}"
        record = ApiKey(
            key_id=f"key_{secrets.token_hex(8)}",
            account=account,
            name=name,
            sha256=sha256(key),
            created_at=datetime.now(UTC),
        )
        self._table.add(record)
        return record, key

    def revoke(self, key_id: str) -> bool:
        """Make a key invalid from now on. Return False when there is no such key, or it was revoked before."""
        revoked = {"revoked_at": datetime.now(UTC)}
        return self._table.update(revoked, key_id=key_id, revoked_at=None) == 1

    def of_account(self, account: Account) -> list[ApiKey]:
        """Return the account's stored keys, newest first, the revoked ones too."""
        return [key for key in reversed(self._table.all()) if key.account == account]

    def account(self, authorization: str) -> Account:
        """Return whose key this header carries. Raises Refusal (401) unless it is a valid one."""
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("missing_key", "An API key is needed: Authorization: Bearer <API_KEY>.")
        return self.holder_of(sha256(key.strip())).account

    def holder_of(self, digest: str) -> Holder:
        """Return whose key has this SHA-256. Raises Refusal (401) when it is not, or no longer, a valid one."""
        if any([hmac.compare_digest(digest, one) for one in self._configured]):
            return CONFIGURED
        # The look-up compares digests, whose beginnings nobody can choose, so its time reveals nothing about a key.
        key = self._table.one(sha256=digest)
        if key is None or key.revoked_at is not None:
            raise _unauthorized("invalid_key", "The API key is not one of this studio's.")
        now = datetime.now(UTC)
        if key.used_at is None or now - key.used_at > USE_PRECISION:
            self._table.update({"used_at": now}, key_id=key.key_id)
        return Holder(key.account, key.key_id)


def sha256(key: str) -> str:
    """Return the SHA-256 of a key, which is what is stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _unauthorized(code: str, message: str) -> Refusal:
    return Refusal(401, code, message, headers={"WWW-Authenticate": "Bearer"})
