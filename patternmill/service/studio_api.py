"""The service as the engine sees it: create until the outcome is known, follow a job, read the offer."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import orjson

from patternmill.errors import ConfigurationError
from patternmill.processes import uptime
from patternmill.service.client import StudioClient
from patternmill.service.feedback_report import FEEDBACK, Delivery, FeedbackReport, delivery_of
from patternmill.service.jobs import CREATES, Job, read_created
from patternmill.service.outcomes import NOT_BEGUN, Answer, CreateEnd, Refusal, failed_exchange
from patternmill.service.pacing import Clock, Interrupt, Pace
from patternmill.service.polling import Poller
from patternmill.service.questions import JOB_TRIES
from patternmill.service.resend import (
    RATE_LIMITED,
    REFUSED_IN_DOUBT,
    REPEATED_REQUEST,
    CreateRequest,
    ResendAfter,
    ResendPolicy,
    Situation,
    decide_create,
    sentence,
    unclear_code,
)
from patternmill.settings import Settings
from patternmill.states import UNCLEAR_REFUSAL, Stage

#: The codes with which a create may end although the service has a job for it.
_LOOKED_UP = frozenset({REPEATED_REQUEST, REFUSED_IN_DOUBT, UNCLEAR_REFUSAL})
#: Requests a second, creates and polls apart, until the service shows that it takes fewer.
CREATE_RATE, POLL_RATE = 500.0, 300.0
#: A function that returns whether a request may be sent at this moment; whatever it raises ends the request.
MaySend = Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class _Sending:
    """One create, until its outcome is known."""

    request: CreateRequest
    may_send: MaySend | None
    #: When any run first sent it, by the uptime: the service forgets while a machine is suspended, too.
    began: float
    #: The situation as of the last send; in doubt from the beginning where an earlier run may have sent it.
    now: Situation
    first_sent: float = 0.0
    #: The last answer, and after how many seconds it came.
    last: tuple[Answer, float] | None = None

    @property
    def operation(self) -> str:
        return self.request.operation or CREATES[self.request.stage]

    @property
    def unsent(self) -> Refusal:
        """Return how it ends if it is not sent (again)."""
        if self.now.may_have_made:
            return Refusal(None, "in_doubt", "The run was stopped before the service answered clearly.")
        return NOT_BEGUN


class _KeptBackError(Exception):
    """A create that is not sent; `end` is how it ends."""

    def __init__(self, end: Refusal) -> None:
        self.end = end


class StudioApi(Poller):
    """All requests to the service, paced and resent. Safe for many tasks of one event loop."""

    def __init__(
        self,
        client: StudioClient,
        *,
        create_rate: float = CREATE_RATE,
        poll_rate: float = POLL_RATE,
        policy: ResendPolicy | None = None,
        clock: Clock = time.monotonic,
        uptime: Clock = uptime,
    ) -> None:
        """Use a client within limits; rates are requests a second."""
        super().__init__(client, Pace(poll_rate, clock=clock), policy or ResendPolicy(), clock)
        self._uptime = uptime
        self._rates, self._shared_among = (create_rate, poll_rate), 1
        self._paces = defaultdict[str, Pace](lambda: Pace(create_rate / self._shared_among, clock=clock))
        self._draining = Interrupt()
        #: Creates whose outcome is not known yet, and those of them that are out.
        self._creating = self._out = 0
        #: When a create was last accepted.
        self._accepted_at = float("-inf")
        #: Operations of which a create was accepted, in this run or before.
        self._working: set[str] = set()
        #: By operation: requests (by a hash of the body) answered as if the address were wrong, in a row.
        self._unclear = defaultdict[str, set[int]](set)

    @classmethod
    def from_settings(cls, settings: Settings) -> StudioApi:
        """Make an API. Raises ConfigurationError without an address and its key."""
        profile = settings.service
        if profile is None:
            raise ConfigurationError(
                "The address of the service or its key is missing.",
                remedy="Set PATTERNMILL_STUDIO_URL and PATTERNMILL_API_KEY.",
            )
        connections = min(settings.max_in_flight + 64, 512)
        client = StudioClient(profile.url, profile.key, settings.request_timeout, connections)
        policy = ResendPolicy(settings.create_timeout, settings.in_doubt_limit, settings.job_timeout)
        return cls(client, create_rate=CREATE_RATE, poll_rate=POLL_RATE, policy=policy)

    async def __aenter__(self) -> StudioApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def known_to_work(self, stages: Iterable[Stage], operations: Iterable[str] = ()) -> None:
        """Learn that creates of these were accepted before, so that "not found" is about one item."""
        self._working.update(CREATES[stage] for stage in stages)
        self._working.update(operations)

    def share_rates(self, among: int) -> None:
        """Take this client's part of the configured rates: `among` clients ask the service at once."""
        self._shared_among = among
        for pace in self._paces.values():
            pace.limit(self._rates[0] / among)
        self._pace.limit(self._rates[1] / among)

    async def create(self, request: CreateRequest, may_send: MaySend | None = None) -> CreateEnd:
        """Send a request, again and again if need be, until its outcome is known, waiting as the service asks.

        `may_send` is awaited before each sending. Raises what that raises, and nothing for the service's faults.
        """
        began = self._uptime() - (request.age or timedelta(0)).total_seconds()
        now = Situation(request, tries=0, in_doubt=request.age is not None)
        sending = _Sending(request, may_send, began, now)
        self._creating += 1
        try:
            end = await self._send_until_known(sending)
        finally:
            self._creating -= 1
        if isinstance(end, Refusal) and request.look_up is not None and end.code in _LOOKED_UP:
            end = await self._look_up(request, request.look_up, end)
        return end if isinstance(end, Job) else self._refused(sending, end)

    async def send_feedback(self, report: FeedbackReport) -> Delivery:
        """Send a report once: if it were sent again after a lost answer, it might be there twice."""
        answer = await self._client.post(FEEDBACK, orjson.dumps(report))
        return delivery_of(answer, report["requestId"])

    @property
    def queued(self) -> int:
        """Return the number of creates that wait to be sent: for the rate, or for a pause that was asked for."""
        return self._creating - self._out

    @property
    def is_quiet(self) -> bool:
        """Return whether no create is out; after `drain` none leaves any more."""
        return not self._out

    def drain(self) -> None:
        """Send no create from now on; those that wait end at once, in doubt or not begun. Polls continue."""
        self._draining.begin()

    def abandon(self) -> None:
        """Ask nothing more: open creates end in doubt, open jobs unfinished."""
        self._draining.begin()
        self._abandoned.begin()

    async def close(self) -> None:
        """Abandon what is left and close the connections."""
        self.abandon()
        await self._client.close()

    async def _send_until_known(self, sending: _Sending) -> CreateEnd:
        """Send a create, again after each pause, until its outcome is known."""
        while isinstance(end := await self._send_in_turn(sending), ResendAfter):
            sending.now = replace(
                sending.now,
                in_doubt=end.in_doubt or sending.now.in_doubt,
                redirected=end.redirected or sending.now.redirected,
            )
            with suppress(TimeoutError):
                async with self._draining.guard():
                    await asyncio.sleep(end.delay.total_seconds())
        return end

    async def _send_in_turn(self, sending: _Sending) -> CreateEnd | ResendAfter:
        pace = self._paces[sending.operation]
        try:
            async with self._draining.guard():
                # What was begun first goes first, so that resends come before what is new.
                await pace.acquire(since=sending.began)
        except TimeoutError:
            return sending.unsent
        try:
            await self._require_sendable(sending)
            return await self._send_now(sending, pace)
        except _KeptBackError as kept_back:
            return kept_back.end

    async def _require_sendable(self, sending: _Sending) -> None:
        """Raise _KeptBackError if a create may not be sent now; called as its turn comes, and as its body is written.

        A request that was in doubt for too long is kept back: the service may have forgotten it, and would make it a
        second time.
        """
        may_send = sending.may_send is None or await sending.may_send()
        if self._draining.begun or not may_send:
            raise _KeptBackError(sending.unsent)
        age = timedelta(seconds=self._uptime() - sending.began)
        if sending.now.in_doubt and age > self._policy.in_doubt_limit:
            message = "The service may have forgotten this request."
            raise _KeptBackError(Refusal(None, "in_doubt_too_long", message))

    async def _send_now(self, sending: _Sending, pace: Pace) -> CreateEnd | ResendAfter:
        sent_at = self._clock()
        if not sending.now.tries:
            sending.first_sent = sent_at
        self._out += 1
        try:
            async with self._abandoned.guard():
                look = partial(self._require_sendable, sending)
                answer = await self._client.post(sending.operation, sending.request.body, look)
        except TimeoutError:
            return Refusal(None, "in_doubt", "The run was stopped before the service answered.")
        finally:
            self._out -= 1
        sending.last = answer, self._clock() - sent_at
        self._learn(answer)
        sending.now = self._situation(sending, answer)
        end = decide_create(answer, sending.now, self._policy)
        if isinstance(end, Job):
            pace.accepted(sent_at)
            self._accepted_at = self._clock()
            self._working.add(sending.operation)
            self._unclear[sending.operation].clear()
        elif isinstance(end, ResendAfter) and (answer.status == RATE_LIMITED or answer.overloaded):
            pace.refused(sent_at, end.delay.total_seconds() if end.server_requested else 0.0)
        return end

    def _situation(self, sending: _Sending, answer: Answer) -> Situation:
        """Note what the answer says of the service, and return what is known besides it."""
        works, unclear = sending.operation in self._working, self._unclear[sending.operation]
        if unclear_code(answer, replace(sending.now, works=works)):
            unclear.add(hash(sending.request.body))
        if answer.status == RATE_LIMITED:
            # As long as others are accepted it waits for its turn, which is not counted as trying.
            sending.first_sent = max(sending.first_sent, self._accepted_at)
        away = self._since(self._trouble[0]) if self._trouble else timedelta(0)
        return replace(
            sending.now,
            tries=sending.now.tries + 1,
            trying_for=max(self._since(sending.first_sent), away),
            reached=self._reached,
            well=self._good_at >= sending.first_sent and away < self._policy.create_timeout,
            works=works,
            answered_well=self._answered_well,
            unclear_requests=len(unclear),
        )

    async def _look_up(self, request: CreateRequest, look_up: str, end: Refusal) -> CreateEnd:
        """Return the job that the service finds by the request ID; where it finds none, a person decides as before."""
        answer = await self.ask(look_up, {"requestId": orjson.loads(request.body)["requestId"]}, JOB_TRIES)
        job = read_created(answer.body, request.stage) if answer.usable else None
        message = f"{end.message} Its job was looked for with {look_up}: {sentence(answer)}"
        return job or replace(end, message=message)

    def _refused(self, sending: _Sending, end: Refusal) -> Refusal:
        """Return the end of a create with its last exchange; stop all creates where it stops the run."""
        if end.stops:
            self.drain()
        if end is NOT_BEGUN or sending.last is None:
            return end
        return replace(end, exchange=failed_exchange(sending.operation, *sending.last))
