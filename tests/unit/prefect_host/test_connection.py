"""A run's connection to its Prefect server, as it is left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prefect_host.client_settings import client_environment
from prefect_host.connection import END_SECONDS, PrefectConnection


def test_ctrl_c_while_the_server_ends_is_not_a_stop_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ended before: its exit code stays."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with PrefectConnection(tmp_path, print) as connection:
        server: Any = SimpleNamespace(stop=interrupted)
        connection._own = server


def test_end_of_a_run_waits_as_long_as_prefects_client_tries() -> None:
    """It tries again after 2, 4 and 8 seconds: ended before, the flow run would stay open at a server that is back."""
    tries = int(client_environment("http://127.0.0.1:9/api")["PREFECT_CLIENT_MAX_RETRIES"])
    assert sum(2**number for number in range(1, tries + 1)) < END_SECONDS
