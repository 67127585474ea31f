"""Two runs at once, a stop, a limit: on real processes, judged by the service's own record."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from tests.acceptance import scenarios
from tests.acceptance.harness import Zygote

PLAYED: dict[str, Callable[..., list[str]]] = {
    "jobs hang while it is stopped": scenarios.stopped_while_jobs_hang,
    "the holder stood still": scenarios.holder_stood_still,
    "stopped by SIGTERM": partial(scenarios.stopped_once, by=signal.SIGTERM),
    "stopped twice": scenarios.stopped_twice,
    "items limited": partial(scenarios.limited_run, options=("--max-items", "10")),
    "budget limited": partial(scenarios.limited_run, options=("--budget", "150")),
    "day limited, with kills": scenarios.limited_day,
    "overlapped": scenarios.overlapped,
    "the holder died": scenarios.holder_died,
    "two machines": scenarios.two_machines,
    "too many failures": scenarios.too_many_failures,
    "answers lost": scenarios.answers_lost,
    "polls fail": scenarios.polls_fail,
    "killed after a create": scenarios.killed_after_a_create,
}


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[str]]]]:
    """The scenarios that were asked for, played side by side: they mostly wait."""
    asked = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(3) as pool:
        yield {
            name: pool.submit(play, tmp_path_factory.mktemp("scenario"), zygote)
            for name, play in PLAYED.items()
            if name in asked
        }


@pytest.mark.parametrize("name", PLAYED)
def test_scenario(name: str, played: dict[str, Future[list[str]]]) -> None:
    """It finds nothing wrong."""
    assert played[name].result() == []
