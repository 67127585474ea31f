"""A Prefect server that is silent for a while as the record settles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cli.prefect_record import SILENCES, Api, settle


class Silent(Api):
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


def test_not_for_ever() -> None:
    with pytest.raises(OSError):
        settle(Silent(SILENCES + 1), "run")
