"""Polling in virtual time: what is learned, how seldom is asked, and that every wait ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from patternmill.service.outcomes import Answer, Ended, JobEnd
from patternmill.service.polling import gap_at
from patternmill.states import AttemptState, Stage
from tests.unit.service import virtual
from tests.unit.service.answers import DONE, JOB, Script, answered


@pytest.mark.parametrize(
    ("seconds", "lag", "polls"), [(75.0, 3.75, 40), (20.0, 2.0, 15), (0.7, 0.7, 4), (0.0, 0.21, 1)]
)
async def test_end_of_an_unknown_job_is_seen_soon_by_few_polls(
    seconds: float, lag: float, polls: int
) -> None:
    script = Script({}, latency=0.0)
    script.answer = lambda *_: answered(200, DONE if virtual.clock() >= seconds else JOB)  # type: ignore[method-assign]
    assert isinstance(await script.api().follow("job-1", Stage.PATTERN), Ended)
    assert virtual.clock() - seconds <= lag and len(script.sent) <= polls


async def test_first_poll_is_at_the_tenth_percentile_of_the_last_hundred_less_a_tenth() -> None:
    """The jobs are of the same stage. Quicker ones are noticed, though each is seen to end at its first poll."""
    poller, ended = Script({}).api(), 30.0
    assert poller.first_poll(Stage.PATTERN) == 0.2
    poller.remember((Stage.PATTERN, seconds) for seconds in [*[10.0] * 50, *[70.0] * 20, *[80.0] * 80])
    assert poller.first_poll(Stage.PATTERN) == pytest.approx(63.0)
    assert poller.first_poll(Stage.PRODUCT) == 0.2
    for _ in range(150):
        poller.remember([(Stage.PATTERN, max(ended, poller.first_poll(Stage.PATTERN)))])
    assert poller.first_poll(Stage.PATTERN) == pytest.approx(27.0)


def test_gaps_are_two_seconds_or_a_share_of_the_age() -> None:
    assert [gap_at(age) for age in (0.05, 0.2, 1.0, 5.0, 40.0, 100.0)] == [0.2, 0.2, 1.0, 2.0, 2.0, 5.0]


def _follow(*answers: Answer, age: float = 0.0, **policy: Any) -> tuple[JobEnd, float, int]:
    """Return how a job ends when its polls get these answers, the last one for ever; when; and after how many polls."""

    async def main() -> tuple[JobEnd, float, int]:
        script = Script({"jobs/get": list(answers)}, latency=0.01)
        end = await script.api(**policy).follow("job-1", Stage.PATTERN, age=timedelta(seconds=age))
        return end, virtual.clock(), len(script.sent)

    return virtual.run(main())


NAMELESS = answered(200, {**DONE, "result": None})
PAUSED = answered(200, {**JOB, "status": "paused"})
FIVE_MINUTES = {"job_timeout": timedelta(minutes=5)}


@pytest.mark.parametrize(
    ("answer", "options", "end", "seconds"),
    [
        (answered(200, JOB), FIVE_MINUTES, (None, "gave_up_waiting"), 300),
        (answered(200, JOB), {"age": 90_000}, (None, "gave_up_waiting"), 120),
        (PAUSED, FIVE_MINUTES, (AttemptState.HELD, "unknown_status"), 300),
        (NAMELESS, FIVE_MINUTES, (AttemptState.HELD, "result_missing"), 300),
        (answered(404), {"age": 600}, (AttemptState.HELD, "job_unknown"), 0),
        (answered(200, DONE), {"age": 90_000}, "succeeded", 0),
        (answered(200, {**JOB, "status": "failed", "error": {"message": "no"}}), {"age": 2}, "failed", 0),
    ],
)
def test_every_wait_ends(
    answer: Answer, options: dict[str, Any], end: Any, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """16, 25, 28, 29: a job of an earlier run is polled at once, and for a while however old it is."""
    ended, at, asked = _follow(answer, **options)
    assert (ended.job.status if isinstance(ended, Ended) else (ended.state, ended.code)) == end
    assert seconds <= at < seconds + 1
    assert (asked == 1) == (seconds == 0)
    assert len(caplog.records) == (answer is PAUSED)
