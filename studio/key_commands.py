"""`python -m studio keys create|list|revoke`: API keys from the command line, also while the studio runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from studio.keys import Keys
from studio.store import DATABASE, Store
from studio.store.records import DEFAULT_ACCOUNT, Account, ApiKey


def main(argv: Sequence[str]) -> int:
    """Carry out one command about keys; return 0 when it is done, 1 when there is no such key."""
    parser = argparse.ArgumentParser(prog="python -m studio keys", description="API keys of a studio.")
    parser.add_argument("--home", type=Path, default=Path(".studio"), help="the studio's home")
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="make a key and show it, this once")
    create.add_argument("name", help="what the key is for")
    create.add_argument("--account", default=DEFAULT_ACCOUNT, help="whose objects it reaches")
    commands.add_parser("list", help="show all keys but not their secrets")
    commands.add_parser("revoke", help="make a key invalid").add_argument("key_id")
    options = parser.parse_args(argv)
    options.home.mkdir(parents=True, exist_ok=True)
    with closing(Store(options.home / DATABASE)) as store:
        if options.command == "create":
            return _create(Keys(store), options.name, Account(options.account))
        return _list(store) if options.command == "list" else _revoke(Keys(store), options.key_id)


def _create(keys: Keys, name: str, account: Account) -> int:
    """Print the key alone on standard output, so that it can be piped into a file."""
    record, key = keys.create(name, account)
    print(f"{record.key_id}, for the account {account!r}. It is not shown again:", file=sys.stderr)
    print(key)
    return 0


def _list(store: Store) -> int:
    for key in store.keys.all():
        print(f"{key.key_id}  {key.account:<12}  {key.name:<24}  {_state(key)}")
    return 0


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M}"
    return "never used" if key.used_at is None else f"last used {key.used_at:%Y-%m-%d %H:%M}"


def _revoke(keys: Keys, key_id: str) -> int:
    if keys.revoke(key_id):
        return 0
    print(f"studio: there is no key {key_id!r} that is not revoked.", file=sys.stderr)
    return 1
