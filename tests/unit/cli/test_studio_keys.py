"""`patternmill studio keys`: the keys of the studio that this home serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import main
from studio.keys import Keys
from studio.store import DATABASE, Store


def test_key_opens_the_studio_of_the_home_until_it_is_revoked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Created alone on standard output; listed without its secret; revoked once."""
    assert main.run(["studio", "keys", "create", "nightly run"]) == 0
    key = capsys.readouterr().out.strip()
    assert main.run(["studio", "keys", "list"]) == 0
    listed = capsys.readouterr().out
    store = Store(home / "studio" / DATABASE)
    assert Keys(store).account(f"Bearer {key}") == "default"
    store.close()

    assert "nightly run" in listed and key not in listed
    assert main.run(["studio", "keys", "revoke", listed.split()[0]]) == 0
    assert main.run(["studio", "keys", "revoke", listed.split()[0]]) == 1


def test_wrong_command_is_refused_by_its_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.run(["studio", "keys", "remove"])

    assert ended.value.code == 2
    assert "patternmill studio keys" in capsys.readouterr().err
