"""Reports that a run sends about its own failures: one a cause, once an environment, whatever becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from patternmill.ledger.feedback_log import reported_causes
from patternmill.ledger.reports.integrity import problems
from patternmill.runs import failure_reports
from patternmill.runs.failure_reports import MOST_REPORTS, send_run_feedback
from patternmill.service import outcomes
from patternmill.service.feedback_report import Delivery, DeliveryState, FeedbackReport
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState, RowStatus

from .fake_studio import FakeStudioApi, Service, failed
from .workshop import Ended, Workshop, rows

TWO = rows(("H-1", "herons"), ("F-1", "ferns"))


def report(shop: Workshop, ended: Ended, api: FakeStudioApi | None = None) -> str:
    """As the run does it once its results are written."""
    api = api or FakeStudioApi(shop.service)
    return asyncio.run(send_run_feedback(shop.settings, cast(StudioApi, api), ended.ending.record))


def prompts(service: Service) -> list[str]:
    """What the reports that arrived are about."""
    return [cast(dict[str, Any], one.request.body)["prompt"] for one in service.reports]


def test_rows_that_fail_alike_are_one_report(shop: Workshop, service: Service) -> None:
    """Numbers and names in their reasons do not count; the most frequent cause comes first."""
    service.on_create["owls"] = [outcomes.Refused("invalid_request", "no owls")]
    for number, prompt in enumerate(("herons", "ferns"), 1):
        service.on_follow[prompt] = [failed(f"loom {number} broke at 12:0{number}")]
    ended = shop.run(rows(("O-1", "owls"), ("H-1", "herons"), ("F-1", "ferns"), ("X-1", "foxes")), attempts=1)
    assert report(shop, ended) == "2 reports sent to the service's operators."
    assert prompts(service) == ["herons", "owls"]
    assert "2 rows of one run ended alike." in service.reports[0].text
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_run_sends_a_few_reports_at_most(shop: Workshop, service: Service) -> None:
    names = ["red", "blue", "green", "grey", "black", "white", "pink"]
    for name in names:
        service.on_create[name] = [outcomes.Refused("invalid_request", f"nothing is {name} here")]
    ended = shop.run(rows(*((f"S-{number}", name) for number, name in enumerate(names))))
    assert report(shop, ended) == "5 reports sent to the service's operators. Left out: 2 more causes."
    assert len(service.reports) == MOST_REPORTS
    assert report(shop, ended) == "2 reports sent to the service's operators."


def test_cause_is_reported_once_in_its_environment(shop: Workshop, service: Service) -> None:
    """Also when another row of a later run fails so; a new cause is reported then."""
    service.on_follow["herons"] = [failed()]
    first = shop.run(TWO, attempts=1)
    assert report(shop, first) == "1 report sent to the service's operators."
    service.on_follow["owls"], service.on_follow["foxes"] = [failed()], [failed("no yarn")]
    second = shop.run(rows(("O-1", "owls"), ("X-1", "foxes")), attempts=1)
    assert report(shop, second) == "1 report sent to the service's operators."
    assert prompts(service) == ["herons", "foxes"]
    with shop.ledger() as ledger:
        assert len(reported_causes(ledger, "staging")) == 2
        assert reported_causes(ledger, "production") == {}


def test_failure_of_an_earlier_run_is_not_reported(shop: Workshop, service: Service) -> None:
    """It stays failed without another request."""
    service.on_follow["herons"] = [failed()]
    shop.run(TWO, attempts=1)
    again = shop.run(TWO, attempts=1)
    assert again.statuses["H-1"] is RowStatus.FAILED
    assert report(shop, again) == "No report sent."


@pytest.mark.parametrize(
    ("create", "status"),
    [
        (outcomes.Refused("redirected", "302"), RowStatus.FAILED),
        (outcomes.Refused("wrong_address", "404"), RowStatus.FAILED),
        (outcomes.Refused("proxy_page", "403"), RowStatus.FAILED),
        (outcomes.InDoubt("lost"), RowStatus.IN_DOUBT),
        (outcomes.Unresolved("no_clear_answer", "500", in_doubt=True), RowStatus.IN_DOUBT),
        (outcomes.NotBegun(), RowStatus.NOT_STARTED),
    ],
    ids=lambda one: getattr(one, "code", "") or str(one),
)
def test_only_what_the_service_failed_is_reported(
    create: outcomes.CreateEnd, status: RowStatus, shop: Workshop, service: Service
) -> None:
    service.on_create["herons"] = [create]
    ended = shop.run(TWO)
    assert ended.statuses["H-1"] is status
    assert report(shop, ended) == "No report sent."


def test_row_that_our_own_checks_refuse_is_not_reported(shop: Workshop, service: Service) -> None:
    ended = shop.run("sku,prompt,category,option:name\nH-1,herons,Sofa,H-1\n")
    assert ended.statuses["H-1"] is RowStatus.REFUSED
    assert report(shop, ended) == "No report sent."


def test_contradictory_answers_are_reported(shop: Workshop, service: Service) -> None:
    """They hold the item for a person; the service's operators should know."""
    service.on_follow["herons"] = [
        outcomes.Unresolved("job_unknown", "The service does not know the job any more.")
    ]
    ended = shop.run(TWO)
    assert ended.statuses["H-1"] is RowStatus.HELD
    assert report(shop, ended) == "1 report sent to the service's operators."


@pytest.mark.parametrize(
    ("state", "again"),
    [
        (DeliveryState.UNAVAILABLE, True),
        (DeliveryState.NOT_SENT, True),
        (DeliveryState.IN_DOUBT, False),
    ],
)
def test_first_report_that_fails_is_the_last(
    state: DeliveryState, again: bool, shop: Workshop, service: Service
) -> None:
    """What was certainly not delivered may be reported by the next run; what may have arrived never is."""
    service.on_follow["herons"], service.on_follow["ferns"] = [failed()], [failed("no yarn")]
    ended = shop.run(TWO, attempts=1)
    service.on_report = [state]
    assert report(shop, ended) == f"No report sent. It is {state}."
    assert report(shop, ended).startswith("2 reports sent" if again else "1 report sent")
    assert sorted(prompts(service)) == ["ferns", "herons"]


class Interrupted(FakeStudioApi):
    """Ends, or hangs, while a report is sent."""

    def __init__(self, service: Service, do: Callable[[], Any]) -> None:
        super().__init__(service)
        self._do = do

    async def send_feedback(self, report: FeedbackReport) -> Delivery:
        self.service.reports.append(report)
        await self._do()
        raise AssertionError("it does not get here")


def test_report_that_was_interrupted_is_not_sent_again(shop: Workshop, service: Service) -> None:
    """It was on record before it was sent."""
    service.on_follow["herons"] = [failed()]
    ended = shop.run(TWO, attempts=1)

    async def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report(shop, ended, Interrupted(service, die))
    assert report(shop, ended) == "No report sent."
    assert len(service.reports) == 1


def test_slow_service_holds_nothing_up(
    shop: Workshop, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on_follow["herons"] = [failed()]
    ended = shop.run(TWO, attempts=1)
    monkeypatch.setattr(failure_reports, "TIME_LIMIT", timedelta(milliseconds=20))
    slow = Interrupted(service, lambda: asyncio.sleep(60))
    assert "may have arrived" in report(shop, ended, slow)
    assert report(shop, ended) == "No report sent."


def test_report_tells_every_attempt(shop: Workshop, service: Service) -> None:
    """With its request, its job and how it ended."""
    service.on_follow["herons"] = [failed("first"), failed("second")]
    ended = shop.run(TWO, attempts=2)
    report(shop, ended)
    attempts = shop.attempts()["herons"]
    assert [one.state for one in attempts] == [AttemptState.FAILED, AttemptState.FAILED]
    text = service.reports[0].text
    assert "Happened: The job failed: second [pattern_failed]" in text
    for attempt in attempts:
        assert f"request {attempt.request_id}" in text
        assert f"job {attempt.job_id}: failed" in text


def test_exchange_is_kept_with_the_attempt(shop: Workshop, service: Service) -> None:
    """And is what the report has of the response."""
    exchange = outcomes.FailedExchange("patterns/create", 422, 12.5, {"error": "no herons"})
    service.on_create["herons"] = [outcomes.Refused("invalid_request", "no herons", exchange=exchange)]
    ended = shop.run(TWO)
    report(shop, ended)
    assert service.reports[0].on_wire()["response"] == {
        "status": 422,
        "durationMs": 12.5,
        "body": {"error": "no herons"},
    }
