"""API keys: each is shown once, kept as a digest, and belongs to an account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.errors import Refusal
from studio.key_commands import main
from studio.keys import Keys
from studio.store import Store
from studio.store.records import Account


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "studio.db")
    yield made
    made.close()


def test_header_that_is_no_text_is_refused(store: Store) -> None:
    with pytest.raises(Refusal) as refused:
        Keys(store, ["configured"]).account("Bearer \udcff")
    assert refused.value.status == 401


def test_keys_are_not_in_the_file(store: Store, tmp_path: Path) -> None:
    """No part of one is there either that would help to guess the rest."""
    _, key = Keys(store).create("ci", Account("shop"))

    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ci" in written
    assert key.removeprefix("studio_")[:8].encode() not in written


def test_key_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has the key alone; the list has all about it but the key."""
    home = ["--home", str(tmp_path)]
    assert main([*home, "create", "nightly run", "--account", "shop"]) == 0
    key, note = capsys.readouterr()
    assert main([*home, "list"]) == 0
    listed = capsys.readouterr().out
    key_id = listed.split()[0]

    assert key.startswith("studio_")
    assert key_id in note
    assert key.strip() not in note + listed
    assert "nightly run" in listed and "never used" in listed
    assert main([*home, "revoke", key_id]) == 0
    assert main([*home, "revoke", key_id]) == 1
    assert main([*home, "list"]) == 0
    assert "revoked" in capsys.readouterr().out
