"""The embedded studio as the command starts it: with a key of its own, shared, and gone afterwards."""

from __future__ import annotations

import json
import stat
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.services import EmbeddedStudio
from patternmill.errors import ConfigurationError, PatternmillError
from prefect_host.shared_process import bound_socket


def answer_status(studio: EmbeddedStudio, key: str) -> int:
    request = urllib.request.Request(
        f"{studio.url}/categories/list",
        data=json.dumps({}).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json", "User-Agent": "test"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_studio_answers_with_its_own_key_only(tmp_path: Path) -> None:
    """It serves its address and key, and ends with its user."""
    with EmbeddedStudio(tmp_path, pace="instant") as studio:
        assert answer_status(studio, studio.key.get_secret_value()) == 200
        assert answer_status(studio, "another") == 401
    assert not studio.is_alive()


def test_port_of_a_killed_studio_stays_taken(tmp_path: Path) -> None:
    """Nobody else gets what is sent there; and the next studio has another key, which only its owner can read."""
    with EmbeddedStudio(tmp_path, pace="instant") as first:
        child, port, earlier = first.child, urlsplit(first.url).port, first.key
        assert child is not None and port is not None
        child.kill()
        child.wait()
        with pytest.raises(PatternmillError, match=f"Port {port} .*in use"):
            bound_socket(port)
    bound_socket(port).close()
    with EmbeddedStudio(tmp_path, pace="instant") as second:
        assert second.key != earlier
    assert stat.S_IMODE((tmp_path / "studio" / "api-key").stat().st_mode) == 0o600


def test_two_commands_share_one_studio(tmp_path: Path) -> None:
    """A second user joins the running studio, and its end leaves the studio to the first."""
    with EmbeddedStudio(tmp_path, pace="instant") as first:
        with EmbeddedStudio(tmp_path, pace="instant") as second:
            assert second.url == first.url
        assert answer_status(first, first.key.get_secret_value()) == 200


def test_studio_of_another_environment_is_not_shared(tmp_path: Path) -> None:
    """Category IDs differ by environment, so that one studio cannot serve two."""
    with (
        EmbeddedStudio(tmp_path, environment="staging", pace="instant"),
        pytest.raises(ConfigurationError, match="staging"),
        EmbeddedStudio(tmp_path, environment="production"),
    ):
        pass
