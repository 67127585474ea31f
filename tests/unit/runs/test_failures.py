"""Failed, or so it says: a failed job is asked for once more before anything is bought anew."""

from __future__ import annotations

import pytest

from patternmill.runs.run import Run
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.hostile.in_process import InProcessApi, Service, Shown, failed, made
from tests.integrity import problems

from .workshop import Workshop, many, rows, until

ONE = rows(("H-1", "herons"))
DONE = made(Stage.PATTERN, "pat_job-1")


@pytest.mark.parametrize(
    ("shown", "status", "code", "bought"),
    [
        (failed(), RowStatus.SUCCEEDED, None, 2),
        (DONE, RowStatus.SUCCEEDED, None, 1),
        ({"status": "running"}, RowStatus.SUCCEEDED, None, 1),
        ({}, RowStatus.WAITING, "failure_not_confirmed", 1),
        (None, RowStatus.WAITING, "failure_not_confirmed", 1),
        ({**failed(), **DONE, "status": "failed"}, RowStatus.HELD, "failed_with_result", 1),
    ],
    ids=["failed again", "succeeded", "running", "404", "unreadable", "contradiction"],
)
def test_failed_job_is_asked_for_once_more(
    shop: Workshop, service: Service, shown: Shown | None, status: RowStatus, code: str | None, bought: int
) -> None:
    service.on_follow["herons"] = [failed()]
    service.on_ask["herons"] = [shown]
    ended = shop.run(ONE)
    assert (ended.rows["H-1"].status, ended.rows["H-1"].error_code) == (status, code)
    assert service.bought.count("herons") == bought
    if status is RowStatus.WAITING:
        assert shop.run(ONE).outcome is Outcome.COMPLETED
        assert service.bought.count("herons") == bought


def test_job_that_runs_and_fails_again_is_asked_for_again(shop: Workshop, service: Service) -> None:
    service.on_follow["herons"] = [failed(), failed()]
    service.on_ask["herons"] = [{"status": "running"}, failed()]
    assert shop.run(ONE).outcome is Outcome.COMPLETED
    assert (service.asked, service.bought.count("herons")) == (["job-1", "job-1"], 2)


@pytest.mark.parametrize("retried", [False, True])
def test_later_run_asks_before_it_buys_anew(shop: Workshop, service: Service, retried: bool) -> None:
    """By policy or as a person requests: the failure of an earlier run may be none any more."""
    service.on_follow["herons"] = [failed("content refused")]
    final = ("content refused",) if retried else ()
    shop.run(ONE, attempts=1, final_reasons=final)
    service.on_ask["herons"] = [DONE]
    ended = shop.run(ONE, attempts=1 if retried else 2, final_reasons=final, retries=retried)
    assert ended.outcome is Outcome.COMPLETED
    assert service.bought.count("herons") == 1


@pytest.mark.parametrize(("window", "most"), [(1, 4), (40, 0)])
def test_minute_in_which_everything_fails_costs_few_second_attempts(
    shop: Workshop, service: Service, window: int, most: int
) -> None:
    """None of what is held back; once the jobs read succeeded, a retry takes them and buys nothing."""
    for number in range(24):
        service.on_follow[f"prompt {number:03}"] = [failed(), failed()]
    ended = shop.run(many(24), max_in_flight=window)
    assert len(service.bought) == 24 + most
    waiting = [row for row in ended.rows.values() if row.status is RowStatus.WAITING]
    assert (len(waiting), {row.error_code for row in waiting}) == (24 - most, {"held_back"})
    assert "; `patternmill retry`. the loom broke" in (waiting[0].error or "")
    service.on_follow.clear()
    for job_id in [*service.shown]:
        service.show(job_id, made(Stage.PATTERN, service.shop.jobs[job_id].result_id))
    assert shop.run(many(24), retries=True).outcome is Outcome.COMPLETED
    assert len(service.bought) == 48 + most
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_held_back_attempts_follow_once_one_ends_well(shop: Workshop, service: Service) -> None:
    """Each is asked for again then; a real failure gets its next attempt in the same run."""
    for number in range(8):
        name = f"prompt {number:03}"
        service.on_follow[name] = [failed()]
        service.on_ask[name] = [failed(), failed()] if number else [made(Stage.PATTERN, "pat_job-1")]
    ended = shop.run(many(8))
    assert ended.outcome is Outcome.COMPLETED
    assert sorted(service.bought) == sorted(
        [f"S-{n:03}" for n in range(8)]
        + [f"prompt {n:03}" for n in range(8)]
        + [f"prompt {n:03}" for n in range(1, 8)]
    )
    assert shop.state("prompt 003") is AttemptState.SUCCEEDED


def test_stop_keeps_the_next_attempt_back(shop: Workshop, service: Service) -> None:
    """That is no failure: nobody is to edit the row or retry it by hand."""

    async def stop(run: Run, api: InProcessApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 1)
        run.stop("A person pressed Ctrl-C.")
        api.jobs_may_end.set()

    service.on_follow["herons"] = [failed(), failed()]
    ended = shop.run(ONE, watch=stop)
    assert ended.outcome is Outcome.CANCELLED
    row = ended.rows["H-1"]
    assert (row.status, row.error_code, service.bought) == (RowStatus.WAITING, "held_back", ["herons"])
    assert (row.error or "").startswith("Attempt 2 held back: A person pressed Ctrl-C")
    assert ended.run.progress.items_failed == 0
    assert shop.run(ONE).outcome is Outcome.COMPLETED
    assert service.bought == ["herons", "herons", "H-1"]
