"""Whether an answer about a job contradicts what was asked for. One pure function, for creates, polls and `settle`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from patternmill.items import Stage
from patternmill.text import key

#: Whether another item of ours has this value in this field: `requestId`, `prompt`, `patternId`, `selection` (a name
#: with its value), `jobId` or `result`.
IsOther = Callable[[str, Any], bool]
_RESULTS = {
    Stage.REFERENCE: "referenceId", Stage.PATTERN: "patternId", Stage.REFINEMENT: "patternId",
    Stage.PRODUCT: "productId", Stage.CHECKOUT: "checkoutId",
}  # fmt: skip
#: What a service may make without a job.
AT_ONCE = frozenset({Stage.REFERENCE, Stage.CHECKOUT})
_KINDS = frozenset({Stage.REFERENCE, Stage.PATTERN, Stage.PRODUCT, Stage.CHECKOUT})
#: The fields, beside selections, in which items of ours can be told apart.
_COMPARED = frozenset({"requestId", "prompt", "patternId"})
_LONGEST_ID = 500


@dataclass(frozen=True)
class Asked:
    """What was sent, and what is known of it."""

    stage: Stage
    sent: Mapping[str, Any]
    is_other: IsOther = field(default=lambda *_: False)
    #: The job that an earlier answer named for it.
    job_id: str | None = None
    #: The job was not compared with those of other items yet.
    job_is_new: bool = True
    #: Fields that the service has repeated exactly in an earlier answer of this kind.
    repeated: Collection[str] = ()


def job_in(data: Any) -> str:
    """Return the ID of the job that an answer is about; empty where it names none that can be used."""
    return _identifier(data, "jobId")


def made_in(data: Any, stage: Stage) -> dict[str, Any] | None:
    """Return an answer to a create as one about a job: it names one, or, for some stages, at once what was made."""
    if job_in(data):
        return dict(data)
    made = _identifier(data, _RESULTS[stage]) if stage in AT_ONCE else ""
    return {**data, "jobId": made, "status": "succeeded", "result": data} if made else None


def result_in(data: Mapping[str, Any], stage: Stage) -> str:
    """Return the ID of what was made; empty where the answer names none."""
    return _identifier(data.get("result"), _RESULTS[stage])


def contradiction(data: Mapping[str, Any], asked: Asked) -> str:
    """Return what in an answer that names a job contradicts what was asked for; empty: nothing."""
    job, stage = job_in(data), asked.stage
    own = Stage.PATTERN if stage is Stage.REFINEMENT else stage
    kind = str(data.get("kind") or "").strip().casefold()
    if asked.job_id and job != asked.job_id:
        return f"The job of this request is {asked.job_id}, and the service names {job}."
    if asked.job_is_new and asked.is_other("jobId", job):
        return f"The job {job} is the one of another request of ours."
    if kind != own and kind in _KINDS:
        return f"The job {job} is one of kind {kind}, and a {stage} was asked for."
    if data.get("status") in ("succeeded", "failed") and (problem := _of_result(data, asked, own)):
        return f"The job {job} {problem}."
    return _of_fields(data, asked)


def _of_result(data: Mapping[str, Any], asked: Asked, own: Stage) -> str:
    result = result_in(data, own)
    if data.get("status") == "failed":
        return f"is said to have failed, and names its result {result}" if result else ""
    if result:
        is_taken = asked.is_other("result", result)
        return f"names the result {result}, which another item has" if is_taken else ""
    others = [one for one in _KINDS if result_in(data, one)]
    return f"ended with a {others[0]}, and a {asked.stage} was asked for" if others else ""


def repeats(data: Mapping[str, Any], sent: Mapping[str, Any]) -> set[str]:
    """Return the fields of a request that an answer repeats exactly."""
    return {name for name, values in _named(data, sent).items() if sent[name] in values}


def _identifier(data: Any, name: str) -> str:
    value: Any = data.get(name) if isinstance(data, dict) else None
    is_text = isinstance(value, str) and value.isprintable() and value.strip()
    return str(value) if is_text and len(value) <= _LONGEST_ID else ""


def _named(data: Mapping[str, Any], sent: Mapping[str, Any], depth: int = 3) -> dict[str, list[Any]]:
    """Return the values that an answer holds under names of the request, in it and in the objects in it."""
    found: dict[str, list[Any]] = {}
    for name, value in data.items():
        if name in sent:
            found.setdefault(name, []).append(value)
        elif depth and isinstance(value, dict):
            for inner, values in _named(value, sent, depth - 1).items():
                found.setdefault(inner, []).extend(values)
    return found


def _of_fields(data: Mapping[str, Any], asked: Asked) -> str:
    """Return which repeated field is another item's, or not as this service repeats it."""
    job, result = job_in(data), result_in(data, asked.stage)
    for name, found in _named(data, asked.sent).items():
        values, ours = [value for value in found if value not in (None, result)], asked.sent[name]
        for value in values:
            if name in _COMPARED and _is_others(name, value, ours, asked):
                return (
                    f"The job {job} names the {name} {value[:80]!r}, which is that of another item of ours."
                )
            if name == "selections" and isinstance(value, dict) and (other := _other_choice(value, asked)):
                return f"The job {job} names the selection {other}, which another item of ours has."
        if values and name in asked.repeated and all(_changes(name, value, ours) for value in values):
            said = str(values[0])[:80]
            return f"The job {job} repeats the {name} {said!r}, and {str(ours)[:80]!r} was sent."
    return ""


def _other_choice(value: Mapping[str, Any], asked: Asked) -> str:
    """Return a selection that is not what was sent for its option, and is another item's; empty: none."""
    for name, ours in asked.sent["selections"].items():
        if name in value and _is_others("selection", value[name], ours, asked, name):
            return f"{name}={str(value[name])[:80]!r}"
    return ""


def _is_others(field: str, value: Any, ours: Any, asked: Asked, option: str = "") -> bool:
    """Return whether a text is not ours, but another item's. One that cannot be stored is nobody's."""
    if not isinstance(value, str) or not _differs(value, ours) or not " ".join(value.split()).isprintable():
        return False
    return asked.is_other(field, (option, value) if option else value)


def _differs(value: Any, ours: Any) -> bool:
    return bool(value != ours and (not isinstance(value, str) or key(value) != key(str(ours))))


def _changes(name: str, value: Any, ours: Any) -> bool:
    """Return whether a repeated value says something else: not a shortened text, nor what was left out or added."""
    if isinstance(value, dict) and isinstance(ours, dict):
        return any(option in ours and _differs(chosen, ours[option]) for option, chosen in value.items())
    is_shorter = isinstance(value, str) and isinstance(ours, str) and len(value) < len(ours)
    if is_shorter and not name.endswith("Id"):
        return not key(ours).startswith(key(value.rstrip(" .…")))
    return _differs(value, ours)
