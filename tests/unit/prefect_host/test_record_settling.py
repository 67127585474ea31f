"""A Prefect server that is silent for a while as the record settles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from prefect.client.orchestration import PrefectClient

from prefect_host.record import MOST_SILENCES, TaskRunCounts, await_record

SILENT = None


class Server:
    """Answers how many task runs are open, or nothing in time."""

    def __init__(self, answers: Iterable[int | None], silence: float = 0.0) -> None:
        self._answers = iter(answers)
        self._silence = silence
        self._open = 0

    async def read_flow_runs(self, **question: Any) -> list[Any]:
        answer = next(self._answers)
        if answer is SILENT:
            time.sleep(self._silence)
            raise TimeoutError
        self._open = answer
        return []

    async def request(self, method: str, path: str, json: dict[str, Any]) -> Server:
        self._asked = json
        return self

    def json(self) -> int:
        return self._open if "state" in self._asked["task_runs"] else 0


def settled(server: Server, patience: float = 20.0) -> TaskRunCounts:
    client = cast(PrefectClient, server)
    return asyncio.run(await_record(client, UUID(int=1), patience=timedelta(seconds=patience)))


def test_short_silence_is_waited_out() -> None:
    assert settled(Server([*[SILENT] * MOST_SILENCES, 0])).open == 0


@pytest.mark.slow
def test_silence_does_not_count_towards_the_timeout() -> None:
    """What had not arrived before it may arrive after it."""
    assert settled(Server([1, SILENT, 1, 0], silence=1.2), patience=1.0).open == 0


@pytest.mark.slow
def test_unchanging_counts_end_the_wait() -> None:
    assert settled(Server([1] * 99), patience=1.0).open == 1


def test_long_silence_ends_the_wait() -> None:
    with pytest.raises(TimeoutError):
        settled(Server([SILENT] * (MOST_SILENCES + 1)))
