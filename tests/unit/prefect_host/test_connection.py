"""A run's connection to its Prefect server, as it is left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prefect_host.connection import PrefectConnection


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
