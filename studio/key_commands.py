"""`python -m studio keys create|list|revoke`: API keys from the command line, also while the studio runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from studio.keys import Keys
from studio.store import DATABASE, DEFAULT_ACCOUNT, Account, ApiKey, Store


def main(argv: Sequence[str], command: str = "python -m studio keys") -> int:
    """0: done; 1: there is no such key. `command` is what was typed before the arguments."""
    parser = argparse.ArgumentParser(prog=command, description="API keys of a studio.")
    parser.add_argument("--home", type=Path, default=Path(".studio"), help="the studio's home")
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="make a key and show it, this once")
    create.add_argument("name", help="what the key is for")
    create.add_argument("--account", default=DEFAULT_ACCOUNT, help="whose objects it reaches")
    commands.add_parser("list", help="show all keys but not their secrets")
    commands.add_parser("revoke", help="make a key invalid").add_argument("key_id")
    options = parser.parse_args(argv)
    with _keys(options.home) as keys:
        if options.command == "create":
            return _create(keys, options.name, Account(options.account))
        return _list(keys) if options.command == "list" else _revoke(keys, options.key_id)


@contextmanager
def _keys(home: Path) -> Iterator[Keys]:
    home.mkdir(parents=True, exist_ok=True)
    store = Store(home / DATABASE)
    try:
        yield Keys(store)
    finally:
        store.close()


def _create(keys: Keys, name: str, account: Account) -> int:
    """The key alone on standard output, so that it can be piped into a file."""
    record, key = keys.create(name, account, datetime.now(UTC))
    print(f"{record.key_id}, for the account {account!r}. It is not shown again:", file=sys.stderr)
    print(key)
    return 0


def _list(keys: Keys) -> int:
    for key in keys.list():
        print(f"{key.key_id}  {key.account:<12}  {key.name:<24}  {_state(key)}")
    return 0


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M}"
    return "never used" if key.used_at is None else f"last used {key.used_at:%Y-%m-%d %H:%M}"


def _revoke(keys: Keys, key_id: str) -> int:
    if keys.revoke(key_id, datetime.now(UTC)):
        return 0
    print(f"studio: there is no key {key_id!r} that is not revoked.", file=sys.stderr)
    return 1
