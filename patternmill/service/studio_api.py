"""The service as the engine sees it: create until the outcome is known, follow a job, read the offer."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import orjson

from patternmill.catalog.offer import Offer
from patternmill.errors import ServiceStopped
from patternmill.processes import uptime
from patternmill.service.client import StudioClient
from patternmill.service.feedback_report import FEEDBACK, Delivery, FeedbackReport, delivery_of
from patternmill.service.jobs import CREATES, Job, read_created, read_job
from patternmill.service.offer_reader import read_models, read_offer
from patternmill.service.orders import ShownOrder, read_order
from patternmill.service.outcomes import (
    NOT_BEGUN,
    Answer,
    CreateEnd,
    ExchangeResult,
    JobEnd,
    No,
    failed_exchange,
)
from patternmill.service.pacing import Clock, Interrupt, Pace
from patternmill.service.polling import POLL, Poller
from patternmill.service.questions import Questions
from patternmill.service.refusals import GIVEN
from patternmill.service.resend import (
    RATE_LIMITED,
    REFUSED_IN_DOUBT,
    REPEATED_REQUEST,
    ResendAfter,
    ResendPolicy,
    Situation,
    decide_create,
    sentence,
    unclear_code,
)
from patternmill.settings import Settings
from patternmill.states import UNCLEAR_REFUSAL, Stage
from patternmill.text import duration

#: Seconds after which a service without a good answer is shown as waited for, and how much of its last one.
_SHOWN_AFTER, _LONGEST_REASON = 10.0, 120

#: How often one job is asked for, and the possible answers for one that is unknown: the interface states none.
_LOOK_UP_TRIES, _UNKNOWN_JOB = 4, frozenset({400, 404, 410, 422})

#: How a create may end though the service has a job for it.
_LOOKED_UP = frozenset({REPEATED_REQUEST, REFUSED_IN_DOUBT, UNCLEAR_REFUSAL})

ORDER = "orders/get"


#: Requests a second, creates and polls apart, until the service shows that it takes fewer.
CREATE_RATE, POLL_RATE, POLLS_AT_ONCE = 500.0, 300.0, 64


@dataclass(slots=True)
class _Sending:
    """One create, until its outcome is known."""

    operation: str
    body: bytes
    #: As it was at the last send; in doubt from the beginning is what an earlier run may have sent.
    now: Situation
    stopping: Callable[[], bool]
    permitted: Callable[[], Awaitable[None]] | None
    #: By the uptime, when it was first sent by any run: a machine that is suspended does not make the service remember
    #: longer.
    began: float
    first_sent: float = 0.0
    #: The last answer, and after how many seconds it came.
    last: tuple[Answer, float] | None = None


class _KeptBackError(Exception):
    """A create that is not sent; `end` is how it ends."""

    def __init__(self, end: CreateEnd) -> None:
        self.end = end


class StudioApi:
    """All requests to the service, paced and resent. Safe for many tasks of one event loop."""

    def __init__(
        self,
        client: StudioClient,
        *,
        create_rate: float = 200.0,
        poll_rate: float = 100.0,
        policy: ResendPolicy | None = None,
        clock: Clock = time.monotonic,
        uptime: Clock = uptime,
    ) -> None:
        """Rates are requests a second."""
        self._client = client
        self._policy = policy or ResendPolicy()
        self._clock, self._uptime = clock, uptime
        #: Requests a second at most; of the creates, by operation.
        self._rates, self._shared_among = (create_rate, poll_rate), 1
        self._paces = defaultdict[str, Pace](lambda: Pace(create_rate / self._shared_among, clock=clock))
        self._polls = Pace(poll_rate, clock=clock)
        #: Polls and other questions that are out.
        self._asking = asyncio.Semaphore(POLLS_AT_ONCE)
        #: When a create was accepted last.
        self._accepted_at = float("-inf")
        self._questions = Questions(self._post, self._polls, self._policy)
        self._poller = Poller(self._ask, self._polls, resend=self._policy, clock=clock)
        self._draining, self._abandoned = Interrupt(), Interrupt()
        #: Creates whose outcome is not known yet, and those of them that are out.
        self._creating = self._out = 0
        self._reached = self._answered_well = False
        #: Operations of which a create was accepted, in this run or before.
        self._working: set[str] = set()
        #: By operation: requests (by a hash of the body) answered as if the address were wrong, in a row.
        self._unclear = defaultdict[str, set[int]](set)
        #: When an answer was good last; since when none was, and the last of those; None while all is well.
        self._good_at = float("-inf")
        self._trouble: tuple[float, Answer] | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> StudioApi:
        """Raises ConfigurationError without an address and its key."""
        return cls(
            StudioClient.from_settings(settings, max_connections=min(settings.max_in_flight + 64, 512)),
            create_rate=CREATE_RATE,
            poll_rate=POLL_RATE,
            policy=ResendPolicy(settings.create_timeout, settings.in_doubt_limit, settings.job_timeout),
        )

    async def __aenter__(self) -> StudioApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def known_to_work(self, stages: Iterable[Stage], operations: Iterable[str] = ()) -> None:
        """Creates of these were accepted before, so that "not found" is about one item."""
        self._working.update(CREATES[stage] for stage in stages)
        self._working.update(operations)

    def remember(self, took: Iterable[tuple[Stage, float]]) -> None:
        """Take in how many seconds earlier jobs took, the latest last: it says when the next ones are first polled."""
        for stage, seconds in took:
            self._poller.remember(stage, seconds)

    def share_rates(self, among: int) -> None:
        """So many clients ask the service at once: of the configured rates this one takes its part."""
        self._shared_among = among
        for pace in self._paces.values():
            pace.limit(self._rates[0] / among)
        self._polls.limit(self._rates[1] / among)

    async def create(
        self,
        stage: Stage,
        body: bytes,
        *,
        operation: str | None = None,
        known_job_id: str | None = None,
        age: timedelta | None = None,
        repeatable: bool = True,
        given: Collection[str] = GIVEN,
        look_up: str | None = None,
        stopping: Callable[[], bool] = lambda: False,
        permitted: Callable[[], Awaitable[None]] | None = None,
    ) -> CreateEnd:
        """Resend `body` until its outcome is known, waiting as the service requests.

        `operation`: where a stage has several. `repeatable`: if not, what may have been executed is not sent again.
        `given`: fields of it that are not the row's. `look_up`: an operation that finds a job by its request ID.
        `age`: how long ago this very request was first sent by an earlier run; None when it never was.
        `known_job_id`: the job that an earlier answer named for it. `permitted`: awaited
        each time before it is sent. Raises what that raises, and nothing for the service's faults.
        """
        began = self._uptime() - (age or timedelta(0)).total_seconds()
        operation = operation or CREATES[stage]
        in_doubt = age is not None
        now = Situation(stage, body, given, repeatable, tries=0, in_doubt=in_doubt, known_job_id=known_job_id)
        sending = _Sending(operation, body, now, stopping, permitted, began)
        self._creating += 1
        try:
            while isinstance(end := await self._send_in_turn(sending), ResendAfter):
                sending.now = replace(
                    sending.now,
                    in_doubt=end.in_doubt or sending.now.in_doubt,
                    redirected=end.redirected or sending.now.redirected,
                )
                with suppress(TimeoutError):
                    async with self._draining.guard():
                        await asyncio.sleep(end.delay.total_seconds())
        finally:
            self._creating -= 1
        if isinstance(end, No) and look_up is not None and end.code in _LOOKED_UP:
            end = await self._looked_up(look_up, sending.now, end)
        if isinstance(end, No) and end.stops:
            self.drain()
        if isinstance(end, No) and end is not NOT_BEGUN and sending.last is not None:
            return replace(end, exchange=failed_exchange(operation, *sending.last))
        return end

    async def _looked_up(self, look_up: str, now: Situation, end: No) -> CreateEnd:
        """The job that the service finds by the request ID; where it finds none, a person decides as before."""
        request_id = orjson.loads(now.sent)["requestId"]
        answer = await self._questions.ask(look_up, {"requestId": request_id}, _LOOK_UP_TRIES)
        job = read_created(answer.body, now.stage) if answer.usable else None
        if job is not None:
            return job
        return replace(
            end, message=f"{end.message} Its job was looked for with {look_up}: {sentence(answer)}"
        )

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), once: bool = False
    ) -> JobEnd:
        """Ask for the job until it ends, or `once`. `age`: how long ago it was accepted."""
        return await self._poller.follow(job_id, stage, age=age, once=once)

    async def job(self, job_id: str) -> Job | None:
        """One job as the service shows it now, asked for with a few quick tries; None when it knows of none.

        Raises ServiceStopped without a readable answer.
        """
        answer = await self._questions.ask(POLL, {"jobId": job_id}, _LOOK_UP_TRIES)
        job = read_job(answer.body) if answer.usable else None
        if job is not None or answer.status in _UNKNOWN_JOB:
            return job
        unreadable = " No job can be read from that." if answer.usable else ""
        raise ServiceStopped(f"{sentence(answer)}{unreadable}", code="job_not_shown")

    async def order(self, checkout_id: str) -> ShownOrder | None:
        """The order of a checkout, asked for once; None as long as there is none, which may be all that is unpaid.

        Raises ServiceStopped without a readable answer.
        """
        answer = await self._questions.ask(ORDER, {"checkoutId": checkout_id}, tries=1)
        return read_order(answer, checkout_id)

    async def offer(self) -> Offer:
        """Read the categories and their options. The offer's note names what cannot be read.

        Raises ServiceStopped when the key or the address is refused, or when the service gives no clear answer.
        """
        return await read_offer(self._questions)

    async def send_feedback(self, report: FeedbackReport) -> Delivery:
        """Send a report, once: sent again after a lost answer it would be there twice."""
        answer = await self._client.post(FEEDBACK, orjson.dumps(report))
        return delivery_of(answer, report["requestId"])

    async def missing(self, operations: Iterable[str]) -> dict[str, str]:
        """Operations that the service lacks, each with how that is known. Makes nothing. Raises ServiceStopped."""
        return await self._questions.missing(operations)

    async def models(self) -> Offer | None:
        """The models in the form of an offer; None when no list of them can be read.

        Raises ServiceStopped when the key is refused, or when the service gives no clear answer.
        """
        return await read_models(self._questions)

    @property
    def waiting(self) -> str:
        """For people: that the service is waited for, for how long, and what it said last; empty otherwise."""
        seconds = self._since(self._trouble[0]).total_seconds() if self._trouble else 0.0
        if self._trouble is None or seconds < _SHOWN_AFTER:
            return ""
        reason = sentence(self._trouble[1]).removesuffix(".")[:_LONGEST_REASON]
        return f"waiting for the service since {duration(seconds)}: {reason}"

    @property
    def queued(self) -> int:
        """Creates that wait until they may be sent: for the rate, or for a pause that was asked."""
        return self._creating - self._out

    def drain(self) -> None:
        """From now on no create is sent; those that wait end at once, in doubt or not begun. Polls continue."""
        self._draining.begin()

    def abandon(self) -> None:
        """Nothing is asked any more: open creates end in doubt, open jobs unfinished."""
        self._draining.begin()
        self._abandoned.begin()
        self._poller.abandon()

    async def close(self) -> None:
        """Abandon what is left and close the connections."""
        self.abandon()
        await self._client.close()

    async def _send_in_turn(self, sending: _Sending) -> CreateEnd | ResendAfter:
        pace = self._paces[sending.operation]
        try:
            async with self._draining.guard():
                # What was begun first goes first: what is sent again before what is new.
                await pace.acquire(since=sending.began)
        except TimeoutError:
            return _unsent(sending)
        try:
            await self._look_again(sending)
            return await self._send(sending, pace)
        except _KeptBackError as kept_back:
            return kept_back.end

    async def _look_again(self, sending: _Sending) -> None:
        """After the wait for its turn, and as the body is written: raise _KeptBackError if it is not sent after all.

        The run's last beat may be too old, which `permitted` renews or refuses; and so may a request in doubt: the
        service may have forgotten it, and would make it anew.
        """
        if sending.permitted is not None:
            await sending.permitted()
        if self._draining.begun or sending.stopping():
            raise _KeptBackError(_unsent(sending))
        age = timedelta(seconds=self._uptime() - sending.began)
        if sending.now.in_doubt and age > self._policy.in_doubt_limit:
            message = "The service may have forgotten this request."
            raise _KeptBackError(No(None, "in_doubt_too_long", message))

    async def _send(self, sending: _Sending, pace: Pace) -> CreateEnd | ResendAfter:
        sent_at = self._clock()
        if not sending.now.tries:
            sending.first_sent = sent_at
        self._out += 1
        try:
            async with self._abandoned.guard():
                answer = await self._client.post(
                    sending.operation, sending.body, partial(self._look_again, sending)
                )
        except TimeoutError:
            return No(None, "in_doubt", "The run was stopped before the service answered.")
        finally:
            self._out -= 1
        sending.last = answer, self._clock() - sent_at
        self._learn(answer)
        works = sending.operation in self._working
        if unclear_code(answer, replace(sending.now, works=works)):
            self._unclear[sending.operation].add(hash(sending.body))
        if answer.status == RATE_LIMITED:
            # As long as others are accepted it waits for its turn, which is not counted as trying.
            sending.first_sent = max(sending.first_sent, self._accepted_at)
        sending.now = self._situation(sending)
        end = decide_create(answer, sending.now, self._policy)
        self._pace(sending.operation, answer, end, pace, sent_at)
        return end

    def _situation(self, sending: _Sending) -> Situation:
        away = self._since(self._trouble[0]) if self._trouble else timedelta(0)
        return replace(
            sending.now,
            tries=sending.now.tries + 1,
            trying_for=max(self._since(sending.first_sent), away),
            reached=self._reached,
            well=self._good_at >= sending.first_sent and away < self._policy.create_timeout,
            works=sending.operation in self._working,
            answered_well=self._answered_well,
            unclear_requests=len(self._unclear[sending.operation]),
        )

    def _pace(
        self, operation: str, answer: Answer, end: CreateEnd | ResendAfter, pace: Pace, sent_at: float
    ) -> None:
        if isinstance(end, Job):
            pace.accepted(sent_at)
            self._accepted_at = self._clock()
            self._working.add(operation)
            self._unclear[operation].clear()
        elif isinstance(end, ResendAfter) and (answer.status == RATE_LIMITED or answer.overloaded):
            pace.refused(sent_at, end.delay.total_seconds() if end.server_requested else 0.0)

    async def _ask(self, job_id: str) -> Answer:
        return await self._post(POLL, orjson.dumps({"jobId": job_id}))

    async def _post(self, operation: str, body: bytes) -> Answer:
        async with self._asking:
            answer = await self._client.post(operation, body)
        self._learn(answer)
        return answer

    def _learn(self, answer: Answer) -> None:
        self._reached = self._reached or answer.exchange is ExchangeResult.ANSWERED
        self._answered_well = self._answered_well or answer.usable
        if answer.service_failed:
            self._trouble = (self._trouble[0] if self._trouble else self._clock(), answer)
        else:
            self._trouble, self._good_at = None, self._clock()

    def _since(self, moment: float) -> timedelta:
        return timedelta(seconds=self._clock() - moment)


def _unsent(sending: _Sending) -> CreateEnd:
    if sending.now.may_have_made:
        return No(None, "in_doubt", "The run was stopped before the service answered clearly.")
    return NOT_BEGUN
