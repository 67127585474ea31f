"""A Prefect server that is silent for a while as the record settles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from prefect_host.record import SILENCES, PrefectApi, settle


class Silent(PrefectApi):
    """Answers nothing to the first questions; then the record is whole."""

    def __init__(self, silences: int) -> None:
        super().__init__("http://localhost")
        object.__setattr__(self, "left", iter(range(silences)))

    left: Iterator[int]

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        for _ in self.left:
            raise TimeoutError
        return [] if path.endswith("filter") else 0


def test_a_silence_is_waited_out() -> None:
    assert settle(Silent(SILENCES), "run").whole


@pytest.mark.slow
def test_a_silence_uses_up_no_patience() -> None:
    """What had not come before it may come after it."""
    looks: Iterator[int | None] = iter([1, None, 1, 0])

    class Late(PrefectApi):
        def post(self, path: str, body: Mapping[str, Any]) -> Any:
            if path.endswith("filter"):
                return []
            if "task_runs" not in body:
                return 0
            still_open = next(looks)
            if still_open is None:
                time.sleep(1.2)
                raise TimeoutError
            return still_open

    assert settle(Late("http://localhost"), "run", patience=timedelta(seconds=1)).whole


def test_not_for_ever() -> None:
    with pytest.raises(OSError):
        settle(Silent(SILENCES + 1), "run")
