"""Whether the service has an operation that the interface names without a shape: asked so that nothing can be made.

The request is `{}`: without an ID of what is to be changed and without a request ID no service can make anything of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson

from patternmill.service.outcomes import Answer
from patternmill.service.questions import Questions, refuse_stopping, unreachable
from patternmill.service.resend import STOPPING

#: Statuses of an operation that is not there.
ABSENT = frozenset({404, 405, 410, 501})
_FORBIDDEN = 403
#: Every service has this operation.
_STATED = "jobs/get"
#: No service has this one.
_NONSENSE = "no-such-operation"


async def missing_operations(questions: Questions, operations: Iterable[str]) -> dict[str, str]:
    """Those of the operations that the service does not have, each with what it answered.

    Raises ServiceStopped when the key is refused, or when the service gives no clear answer: what is not known to be
    there must not be found out with a purchase.
    """
    probe = _Probe(questions)
    found = {operation: await probe.why_missing(operation) for operation in operations}
    return {operation: why for operation, why in found.items() if why is not None}


class _Probe:
    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._stated: Answer | None = None

    async def why_missing(self, operation: str) -> str | None:
        answer = await self._questions.ask(operation, {})
        if answer.status == _FORBIDDEN:
            return f"the key may not use {operation} (the service answers 403)"
        if answer.status in STOPPING or answer.status not in ABSENT:
            _refuse_unclear(answer)
            return None
        if await self._answers_so_to_anything(answer, operation):
            return None
        return f"the service has no {operation} (it answers {answer.status})"

    async def _answers_so_to_anything(self, answer: Answer, operation: str) -> bool:
        """Whether the status is about the empty body: an operation that is there is answered so too, and not like one
        that is certainly not there.
        """
        if self._stated is None:
            self._stated = await self._questions.ask(_STATED, {})
        if self._stated.status != answer.status:
            return False
        group = operation.rpartition("/")[0]
        nonsense = f"{group}/{_NONSENSE}" if group else _NONSENSE
        other = await self._questions.ask(nonsense, {})
        return _likeness(other, nonsense) != _likeness(answer, operation)


def _refuse_unclear(answer: Answer) -> None:
    refuse_stopping(answer)
    if answer.status is None or answer.status >= 500 or answer.status == 429:
        raise unreachable(answer)


_VARYING = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|\d+", re.IGNORECASE)


def _likeness(answer: Answer, operation: str) -> tuple[int | None, str]:
    """The answer without what differs from one request to the next."""
    text = orjson.dumps(answer.body, option=orjson.OPT_SORT_KEYS).decode() if answer.body is not None else ""
    for part in (operation, operation.rpartition("/")[2]):
        text = text.replace(part, "")
    return answer.status, _VARYING.sub("", text)
