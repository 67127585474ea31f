"""Fault plans as data: what goes wrong, and on which calls."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from studio.design import Value
from studio.errors import Refusal
from studio.operations.table import OPERATIONS
from studio.wire import read_body

ALL = frozenset(one.name for one in OPERATIONS)
#: The operations whose requests can be repeated, and those that start a job.
CREATES = frozenset(name for name in ALL if name.endswith("/create") or name.startswith("refine/"))
CREATES -= {"feedback/create"}
STARTS_JOB = CREATES - {"checkouts/create", "references/create"}
#: Names for groups of operations.
GROUPS = {"creates": CREATES, "polls": frozenset({"jobs/get"}), "all": ALL}
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Call:
    """One call: `request_id` and `prompt` of a poll are those of its job; the prompt of a product is its pattern's."""

    operation: str
    request_id: str = ""
    prompt: str = ""
    #: True if the same operation accepted its requestId before.
    repeated: bool = False


class RefuseCall(Value):
    """Nothing is accepted; the answer is an error in the studio's own shape."""

    kind: Literal["refuse"] = "refuse"
    status: Annotated[int, Field(ge=400, le=599)]
    code: str = ""
    message: str = "The call was refused by a fault plan."
    #: The Retry-After of the answer in whole seconds; None: it has none.
    retryAfter: Annotated[int, Field(ge=0)] | None = None


class CloseConnection(Value):
    """The connection is closed without an answer, before or after the call was carried out."""

    kind: Literal["close"] = "close"
    when: Literal["before", "after"] = "after"


class DelayCall(Value):
    """Real seconds, whatever the studio's clock: before the call is carried out, and before it is answered."""

    kind: Literal["delay"] = "delay"
    before: Seconds = 0
    after: Seconds = 0


class SpoilBody(Value):
    """The call is carried out, and its answer cannot be read. `truncated`: the connection ends in the middle of it."""

    kind: Literal["body"] = "body"
    form: Literal["truncated", "malformed", "html", "empty"]
    #: The status of the answer; None: the one that it would have had.
    status: Annotated[int, Field(ge=200, le=599)] | None = None


class FailJob(Value):
    """The job is accepted and fails."""

    kind: Literal["job_fails"] = "job_fails"
    message: Annotated[str, Field(min_length=1)] = "The job failed by a fault plan."


class NeverEndJob(Value):
    """The job is accepted and stays `running`."""

    kind: Literal["job_never_ends"] = "job_never_ends"


class TimeJob(Value):
    """The job takes so many seconds of the studio's clock."""

    kind: Literal["job_takes"] = "job_takes"
    seconds: Annotated[float, Field(ge=0, le=3e9, allow_inf_nan=False)]


Effect = Annotated[
    RefuseCall | CloseConnection | DelayCall | SpoilBody | FailJob | NeverEndJob | TimeJob,
    Field(discriminator="kind"),
]


class Fault(Value):
    """One thing that goes wrong, and the calls that it falls on: those that fit all conditions, or some of them.

    Calls are counted from 1. An effect on jobs counts only calls that start one.
    """

    name: Annotated[str, Field(max_length=100)] = ""
    #: An operation, `creates`, `polls` or `all`.
    on: str
    effect: Effect
    requestId: str | None = None
    #: Text in the prompt, ignoring case: for a poll the prompt of its job, for a product that of its pattern.
    prompt: str | None = None
    #: True: only a requestId that was accepted before; False: only a new one.
    repeated: bool | None = None
    nth: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    first: Count | None = None

    @property
    def operations(self) -> frozenset[str]:
        """Return the operations that `on` stands for: one, several, or none."""
        return GROUPS.get(self.on, frozenset({self.on}) & ALL)

    @property
    def on_job(self) -> bool:
        return isinstance(self.effect, FailJob | NeverEndJob | TimeJob)

    @property
    def expected(self) -> int:
        """Return the least number of times that it has to fire to have been of use."""
        return len(set(self.nth)) if self.nth else self.first or 1

    def fits(self, call: Call) -> bool:
        """Return whether the call is one of those that are counted."""
        return (
            call.operation in self.operations
            and self.requestId in (None, call.request_id)
            and (self.prompt is None or self.prompt.casefold() in call.prompt.casefold())
            and self.repeated in (None, call.repeated)
        )

    def falls_on(self, ordinal: int) -> bool:
        """Return whether it is the turn of this call."""
        if self.nth is not None:
            return ordinal in self.nth
        return self.first is None or ordinal <= self.first

    @model_validator(mode="after")
    def _check(self) -> Fault:
        if not self.operations:
            raise ValueError(f"'on' names no operation: {self.on!r}; creates, polls and all name several")
        if self.nth is not None and self.first is not None:
            raise ValueError("of nth and first, only one can be there")
        if self.on_job and not self.operations & STARTS_JOB:
            raise ValueError(f"{self.on!r} starts no job")
        if self.repeated is not None and not self.operations & CREATES:
            raise ValueError(f"{self.on!r} takes no requestId that could be repeated")
        if self.on_job and self.repeated:
            raise ValueError("a repeated request starts no job")
        return self


class FaultPlan(Value):
    """Faults in the order in which they are considered: on one call, the first of them fires."""

    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _check_names(self) -> FaultPlan:
        names = [fault.name for fault in self.named]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two faults have the name {twice[0]!r}")
        return self

    @property
    def named(self) -> tuple[Fault, ...]:
        """Return all faults; one without a name is named by its number, operation and effect."""
        return tuple(
            fault.model_copy(update={"name": fault.name or f"{number} {fault.on} {fault.effect.kind}"})
            for number, fault in enumerate(self.faults, start=1)
        )


def load_plan(path: Path) -> FaultPlan:
    """Read a plan from a JSON or TOML file. Raises ValueError that names every field at fault."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    raw = json.dumps(tomllib.loads(text)) if path.suffix == ".toml" else text
    try:
        return read_body(FaultPlan, raw.encode())
    except Refusal as refusal:
        raise ValueError(refusal.message) from None
