"""Questions that change nothing at the service, asked again while an answer is a passing failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson

from patternmill.errors import ServiceStopped
from patternmill.planning.offer import UNREADABLE_OFFER, Category, Offer
from patternmill.service.client import StudioClient
from patternmill.service.jobs import POLL, Job, read_job
from patternmill.service.offer_shapes import offer_of, read_page
from patternmill.service.orders import ShownOrder, read_order
from patternmill.service.outcomes import Answer
from patternmill.service.pacing import Clock, Pace
from patternmill.service.resend import (
    NOT_REACHED_YET,
    RATE_LIMITED,
    REDIRECTS,
    REMEDIES,
    STOPPING,
    UNREACHABLE,
    ResendPolicy,
    read_retry_after,
    sentence,
)
from patternmill.text import duration

ORDER = "orders/get"
CATEGORIES, CATEGORY, MODELS = "categories/list", "categories/get", "models/list"
#: How often a question is asked at most (less for a job: a person or a run waits for it), and the longest pauses.
TRIES, JOB_TRIES = 6, 4
_LONGEST_PAUSE, _LONGEST_WAIT = timedelta(seconds=4), timedelta(minutes=1)
_MOST_PAGES = 500
#: The most questions and polls that are out at once.
_MOST_AT_ONCE = 64
#: Seconds after which a service without a good answer is shown as waited for, and the characters shown of its last one.
_SHOWN_AFTER, _LONGEST_REASON = 10.0, 120
#: Statuses of an operation that is not there, of one that this key may not use, and of a job that is unknown.
_ABSENT, _FORBIDDEN, _UNKNOWN_JOB = frozenset({404, 405, 410, 501}), 403, frozenset({400, 404, 410, 422})


class Questions:
    """Asks the service, under one rate, and remembers how well it answers. Safe for many tasks of one event loop."""

    def __init__(self, client: StudioClient, pace: Pace, policy: ResendPolicy, clock: Clock) -> None:
        self._client, self._pace, self._policy, self._clock = client, pace, policy, clock
        self._pauses = replace(policy, longest_pause=_LONGEST_PAUSE)
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        #: Whether any request was answered at all, and any of them well.
        self._reached = self._answered_well = False
        #: When an answer was last good; since when none was, with the latest bad one (None while all is well).
        self._good_at = float("-inf")
        self._trouble: tuple[float, Answer] | None = None

    async def job(self, job_id: str) -> Job | None:
        """Return one job as the service shows it now, after a few quick tries; None when it knows of none.

        Raises ServiceStopped without a readable answer.
        """
        answer = await self.ask(POLL, {"jobId": job_id}, JOB_TRIES)
        job = read_job(answer.body) if answer.usable else None
        if job is not None or answer.status in _UNKNOWN_JOB:
            return job
        unreadable = " No job can be read from that." if answer.usable else ""
        raise ServiceStopped(f"{sentence(answer)}{unreadable}", code="job_not_shown")

    async def order(self, checkout_id: str) -> ShownOrder | None:
        """Return the order of a checkout, asked for once; None while there is none, perhaps because it is not paid.

        Raises ServiceStopped without a readable answer.
        """
        return read_order(await self.ask(ORDER, {"checkoutId": checkout_id}, tries=1), checkout_id)

    async def require_access(self) -> None:
        """Ask once for the categories. Raises ServiceStopped when the service does not answer, or refuses the key."""
        answer = await self.ask(CATEGORIES, {}, tries=1)
        _refuse_unclear(answer)
        if not answer.usable:
            raise _stopped("wrong_address", answer)

    async def offer(self) -> Offer:
        """Read the categories and their options. The offer's note names what cannot be read.

        Raises ServiceStopped when the key or the address is refused, or when the service gives no clear answer.
        """
        categories = await self._list(CATEGORIES)
        if isinstance(categories, str):
            return replace(UNREADABLE_OFFER, note=f"{UNREADABLE_OFFER.note} {categories}")
        ids = [category.id for category in categories]
        details = await asyncio.gather(*map(self._details, ids))
        return offer_of(categories, dict(zip(ids, details, strict=True)))

    async def models(self) -> Offer | None:
        """Return the models in the form of an offer; None when no list of them can be read.

        Raises ServiceStopped when the key is refused, or when the service gives no clear answer.
        """
        models = await self._list(MODELS)
        return Offer(models, note=None) if models and not isinstance(models, str) else None

    async def missing(self, operations: Iterable[str]) -> dict[str, str]:
        """Return the operations that the service does not have, each with how that is known.

        The request is `{}`: without an ID of what is to be changed and a request ID no service can make anything of it.
        Raises ServiceStopped when the key is refused, or when the service gives no clear answer: a purchase must not
        be what finds out whether an operation is there.
        """
        missing = {}
        for operation in operations:
            answer = await self.ask(operation, {})
            if answer.status == _FORBIDDEN:
                missing[operation] = f"the key may not use {operation} (the service answers 403)"
            elif answer.status in _ABSENT:
                missing[operation] = f"the service has no {operation} (it answers {answer.status})"
            else:
                _refuse_unclear(answer)
        return missing

    async def ask(self, operation: str, question: Mapping[str, object], tries: int = TRIES) -> Answer:
        """Return the first answer that is not a passing failure, or the last one."""
        number = 1
        while True:
            await self._pace.acquire()
            answer = await self._post(operation, orjson.dumps(question))
            is_passing = answer.status != 501 and (answer.service_failed or answer.status == RATE_LIMITED)
            if not is_passing or answer.trouble in NOT_REACHED_YET or number == tries:
                return answer
            requested = min(read_retry_after(answer) or timedelta(0), _LONGEST_WAIT)
            await asyncio.sleep(max(requested, self._pauses.pause(number)).total_seconds())
            number += 1

    @property
    def waiting(self) -> str:
        """Say that the service is waited for, for how long, and what it said last; empty otherwise."""
        seconds = self._since(self._trouble[0]).total_seconds() if self._trouble else 0.0
        if self._trouble is None or seconds < _SHOWN_AFTER:
            return ""
        reason = sentence(self._trouble[1]).removesuffix(".")[:_LONGEST_REASON]
        return f"waiting for the service since {duration(seconds)}: {reason}"

    async def _list(self, operation: str) -> tuple[Category, ...] | str:
        """Return all of a list, page by page; or why it cannot be read to its end."""
        categories: dict[str, Category] = {}
        question: dict[str, object] = {}
        for _ in range(_MOST_PAGES):
            answer = await self.ask(operation, question)
            _refuse_unclear(answer)
            page = read_page(answer.body) if answer.usable else None
            if page is None:
                return "The shape of its answer is not known." if answer.usable else sentence(answer)
            count = len(categories)
            for category in page.categories:
                categories.setdefault(category.id, category)
            if page.cursor is None and not page.has_more and page.total <= len(categories):
                return tuple(categories.values())
            if page.cursor is None or len(categories) == count:
                break
            question = {"cursor": page.cursor}
        return "It has more pages than its answers lead to."

    async def _details(self, category_id: str) -> Any:
        """Return the answer of `categories/get`, or None. Only a refused key stops more than this one category."""
        answer = await self.ask(CATEGORY, {"categoryId": category_id})
        if answer.status in STOPPING:
            raise _stopped(STOPPING[answer.status], answer)
        return answer.body if answer.usable else None

    async def _post(self, operation: str, body: bytes) -> Answer:
        async with self._slots:
            answer = await self._client.post(operation, body)
        self._learn(answer)
        return answer

    def _learn(self, answer: Answer) -> None:
        self._reached = self._reached or answer.status is not None
        self._answered_well = self._answered_well or answer.usable
        if answer.service_failed:
            self._trouble = (self._trouble[0] if self._trouble else self._clock(), answer)
        else:
            self._trouble, self._good_at = None, self._clock()

    def _since(self, moment: float) -> timedelta:
        return timedelta(seconds=self._clock() - moment)


def _stopped(code: str, answer: Answer) -> ServiceStopped:
    return ServiceStopped(sentence(answer), code=code, remedy=REMEDIES.get(code, ""))


def _refuse_unclear(answer: Answer) -> None:
    """Raise ServiceStopped when the key or the address is refused, or when the service gives no clear answer."""
    if answer.status in STOPPING:
        raise _stopped(STOPPING[answer.status], answer)
    if answer.status in REDIRECTS:
        raise _stopped("redirected", answer)
    if answer.trouble in NOT_REACHED_YET:
        raise _stopped(answer.trouble.value, answer)
    if answer.status not in _ABSENT and (answer.service_failed or answer.status == RATE_LIMITED):
        raise _stopped(UNREACHABLE, answer)
