"""The bench's own service keeps the score rightly: a wrong measure would make every figure wrong."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fake import Pace, Studio


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def studio(pace: Pace | None = None) -> tuple[Studio, Clock]:
    clock = Clock()
    return Studio(pace or Pace(10.0, 3.0), clock), clock


def pattern(service: Studio, prompt: str, request_id: str = "") -> dict[str, Any]:
    body = {"requestId": request_id or f"r-{prompt}", "prompt": prompt}
    return dict(service.answer("/v1/patterns/create", body)[1])


def poll(service: Studio, job_id: str) -> dict[str, Any]:
    return dict(service.answer("/v1/jobs/get", {"jobId": job_id})[1])


def test_lag_is_measured_at_the_first_poll_after_the_end() -> None:
    """Lag runs from the job's end to its discovery; later polls change nothing."""
    service, clock = studio(Pace(10.0, 3.0, sigma=0.0))
    job_id = pattern(service, "herons")["jobId"]
    for clock.now, status in ((105.0, "running"), (112.5, "succeeded"), (120.0, "succeeded")):
        assert poll(service, job_id)["status"] == status
    score = service.score("pattern")
    assert (score["polls_mean"], score["lag_median"]) == (3, 2.5)


def test_repeated_request_is_one_job() -> None:
    service, _ = studio()
    assert pattern(service, "herons", "r1")["jobId"] == pattern(service, "herons", "r1")["jobId"]
    assert service.stats(1)["jobs"] == 1


def test_lower_bound_is_the_longest_row_or_work_over_window() -> None:
    """Wide open, the longest row decides; in a narrow window, the work."""
    service, clock = studio(Pace(10.0, 3.0, sigma=0.0))
    for number in range(4):
        job_id = pattern(service, f"study {number}")["jobId"]
        clock.now += 20
        body = {"requestId": f"p{number}", "patternId": poll(service, job_id)["result"]["patternId"]}
        service.answer("/v1/products/create", body)
    assert service.shortest(window=100) == pytest.approx(13.0)
    assert service.shortest(window=2) == pytest.approx(4 * 13.0 / 2)
