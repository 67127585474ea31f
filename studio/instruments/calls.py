"""One call of an operation, as faults look at it: what it is about, and whether it came before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from studio.store import Account, Job, Store


@dataclass(frozen=True)
class Call:
    """`request_id` and `prompt` of a poll are those of its job, of a product those of its pattern."""

    operation: str
    account: Account
    request_id: str = ""
    prompt: str = ""
    #: Its requestId was accepted before, by the same operation.
    repeated: bool = False


def read_call(store: Store, operation: str, account: Account, body: Mapping[str, object]) -> Call:
    """The call with this body; what cannot be read of it is left empty."""
    request_id = _text(body, "requestId")
    if operation == "jobs/get":
        job = store.jobs.get(account, _text(body, "jobId"))
        if job is not None:
            return Call(operation, account, job.request_id, _prompt(job))
    pattern = store.jobs.of_result(account, "pattern", _text(body, "patternId"))
    prompts = (_text(body, "prompt"), "" if pattern is None else _prompt(pattern))
    known = store.requests.find(account, request_id) if request_id else None
    repeated = known is not None and known.operation == operation
    return Call(operation, account, request_id, "\n".join(filter(None, prompts)), repeated)


def read_object(raw: bytes) -> dict[str, object]:
    """The JSON object, or an empty one when it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _prompt(job: Job) -> str:
    return str(job.subject["prompt"])
