"""The values that are written to the ledger and read from it: attempts, runs, rows, approvals, leases with holders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from pydantic import TypeAdapter

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.processes import birth, machine
from patternmill.states import AttemptState, Outcome, RowStatus, Stage, Verdict

#: The name that marks what was forgotten: with the time in a run's options, and in what is left of items and bodies.
FORGOTTEN = "forgotten"


def digest_of_body(body: bytes) -> bytes:
    """Return the digest that replaces a request's body; it does not depend on the request's ID."""
    content = orjson.loads(body)
    if FORGOTTEN in content:
        return body
    content.pop("requestId", None)
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return orjson.dumps({FORGOTTEN: hashlib.sha256(canonical).hexdigest()})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one item: what was sent under which request ID, and what came of it. Times are Unix seconds."""

    request_id: RequestId
    item_key: ItemKey
    attempt: int
    state: AttemptState = AttemptState.INTENDED
    body: bytes = b""
    job_id: str | None = None
    #: The pattern ID or product ID, once the job succeeded.
    result_id: str | None = None
    #: Where the service shows what was made, if it does.
    picture_url: str | None = None
    error_code: str | None = None
    error: str | None = None
    intended_at: float = 0.0
    accepted_at: float | None = None
    ended_at: float | None = None
    #: When it was intended, by a clock that nobody can set; None where the machine has none.
    uptime: str | None = None
    #: The price reserved with the intent, in minor units, and its currency (empty: the unit of the prices).
    price: int = 0
    currency: str = ""

    @classmethod
    def of(cls, row: Sequence[Any]) -> Attempt:
        """Return the attempt in a row of its table."""
        request_id, item_key, attempt, state, body, *rest = row
        return cls(RequestId(request_id), ItemKey(item_key), attempt, AttemptState(state), bytes(body), *rest)

    @property
    def since(self) -> float:
        """Return when the attempt came into its state, in Unix seconds."""
        return self.ended_at or self.accepted_at or self.intended_at

    @property
    def is_forgotten(self) -> bool:
        """Return whether only a digest is left of its body."""
        return FORGOTTEN in orjson.loads(self.body)

    def is_like(self, other: Attempt) -> bool:
        """Return whether both ask for the same thing, whatever their request IDs; a service may make the same of it."""
        return digest_of_body(self.body) == digest_of_body(other.body)


#: The name of the option that has the expected cost of a run's plan.
COST = "cost"


@dataclass(frozen=True)
class RunRecord:
    """One run over one input file. `ended_at` and `outcome` are None while it runs, and after a crash."""

    run_id: RunId
    catalog: str
    environment: str
    #: The input as the person named it, and the SHA-256 of its bytes.
    source: str
    input_sha256: str
    input_encoding: str | None
    #: Scheme, host and path of the service; never a key.
    studio_url: str
    started_at: datetime
    #: The identity of the ledger that it was written to.
    ledger: str = ""
    #: The host that its own process ran on.
    machine: str = ""
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    #: Why the run ended as it did, in one sentence, where the outcome alone does not explain it.
    reason: str | None = None
    #: Versions of the program and its libraries, by name.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: What was requested, its expected cost, and notes, for example about options that could not be checked.
    options: Mapping[str, Any] = field(default_factory=dict)
    prefect_flow_run_id: str | None = None

    def with_options(self, options: Mapping[str, Any]) -> RunRecord:
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True)
class PickedLine:
    """One line of a checkout: the row that a person picked, its product, and how many."""

    sku: str
    product_key: ItemKey
    product_id: str
    quantity: int
    note: str | None = None


@dataclass(frozen=True)
class NewItem:
    """An item as the plan names it."""

    key: ItemKey
    stage: Stage
    content: str
    sku: str | None = None
    #: The item that it is built on.
    pattern_key: ItemKey | None = None
    #: The lines of a checkout.
    picked: tuple[PickedLine, ...] = ()


@dataclass(frozen=True)
class OrderRecord:
    """An order as the service last showed it; fields that it does not show are None. Times are Unix seconds."""

    order_id: str | None
    status: str | None
    #: Whether the service has ever shown it as paid.
    paid: bool
    #: Whether the service last showed it as cancelled.
    cancelled: bool
    #: When the order was first seen, and when it was last read.
    since: float = 0.0
    read_at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class RowDecision:
    """The reason why a row gets no product: a person has to choose among its pattern's takes, or rejected them all."""

    #: Either TO_CHOOSE or DISCARDED.
    status: RowStatus
    #: The pattern items that the run makes to choose from, in the order of their numbers.
    takes: tuple[ItemKey, ...] = ()
    #: Whether the product that the row names existed before the run.
    has_product: bool = False


_DECISION = TypeAdapter(RowDecision)
#: The name of a row's decision in its JSON, and a text that only the JSON of a row with a decision contains.
_DECIDED = "decision"
HAS_DECISION = f'"{_DECIDED}": {{'


@dataclass(frozen=True)
class RunRow:
    """One row of a run on record: `row` is JSON of what was understood, or of why it was refused."""

    position: int
    line: int
    sku: str
    pattern_key: ItemKey | None
    product_key: ItemKey | None
    row: str
    #: JSON; empty until the run has ended.
    outcome: str = ""
    #: What its product is built on, in the order in which it is made; empty: its pattern alone.
    built_on: tuple[tuple[Stage, ItemKey], ...] = ()

    @property
    def needed(self) -> tuple[tuple[Stage, ItemKey], ...]:
        """Return what its product is built on, in the order in which it is made."""
        return self.built_on or (((Stage.PATTERN, self.pattern_key),) if self.pattern_key is not None else ())

    @property
    def chain(self) -> tuple[tuple[Stage, ItemKey], ...]:
        """Return all its items, in the order in which they are made."""
        if self.pattern_key is None or self.product_key is None:
            return ()
        return (*self.needed, (Stage.PRODUCT, self.product_key))

    @property
    def items(self) -> tuple[ItemKey, ...]:
        """Return its items, with the takes that a person is to choose from."""
        takes = self.decision.takes if self.decision is not None else ()
        return (*takes, *(key for _, key in self.chain))

    @property
    def decision(self) -> RowDecision | None:
        """Return why no product is made for it, if that depends on a person's decision; otherwise None."""
        # Few rows have one, and parsing all of them takes a while.
        decision = orjson.loads(self.row).get(_DECIDED) if HAS_DECISION in self.row else None
        return _DECISION.validate_python(decision) if decision is not None else None


def row_content(content: Mapping[str, Any], decision: RowDecision | None) -> str:
    """Return the JSON of a row: what was understood of it and, if there is a decision, why no product is made."""
    decided = {_DECIDED: _DECISION.dump_python(decision, mode="json")} if decision is not None else {}
    return json.dumps({**content, **decided}, ensure_ascii=False)


@dataclass(frozen=True)
class SpendingLimits:
    """The limits on what a run may buy; None means no limit. Amounts are in minor units."""

    items: int | None = None
    run_amount: int | None = None
    day_amount: int | None = None
    #: The ID of the approval that every purchase must be covered by.
    approval: str | None = None
    #: What the plan buys when every first attempt succeeds: no second attempt may use that up.
    first: Mapping[Stage, int] = field(default_factory=dict)
    #: The price of one item of each stage.
    prices: Mapping[Stage, int] = field(default_factory=dict)
    #: The currency of all amounts; it limits nothing by itself.
    currency: str | None = field(default=None, compare=False)

    @property
    def unit(self) -> str:
        """Return the currency as the ledger writes it; empty: the unit of the prices."""
        return self.currency or ""


@dataclass(frozen=True)
class Approval:
    """A plan that was put before a person, and the decision. Amounts are in minor units, times Unix seconds.

    Once it is approved, `worst` and `most_purchases` are the ceiling of everything that is bought under it.
    """

    id: str
    environment: str
    catalog: str
    digest: str
    #: The items that the plan would buy, and the cost: expected, and at worst, if each needs its last attempt.
    items: int
    expected: int
    worst: int
    #: The number of requests if every item needs all of its attempts.
    most_purchases: int
    asked_at: float
    #: The currency of the amounts; empty: the unit of the prices.
    currency: str = ""
    #: The flow run that waits for the decision.
    flow_run_id: str | None = None
    verdict: Verdict = Verdict.WAITING
    decided_at: float | None = None
    who: str | None = None
    note: str | None = None
    #: What was bought under it, over all runs.
    purchases: int = 0
    amount: int = 0

    @classmethod
    def of(cls, row: Sequence[Any]) -> Approval:
        """Return the approval in a row of its table."""
        approval = cls(*row)
        return replace(approval, verdict=Verdict(approval.verdict))

    @property
    def short(self) -> str:
        """Return the digest as people write it."""
        return self.digest[:12]


@dataclass(frozen=True)
class Lease:
    """The right to drive a catalog, and to write for it, until there is one with a newer fence.

    With a `group`, the right of one execution to drive a group of a run's rows; its fence is the group's own.
    """

    environment: str
    catalog: str
    fence: int
    run_id: RunId
    #: The holder (JSON of a process; empty once released) and the heartbeats, as others see them.
    holder: str = ""
    beats: int = 0
    #: Why the run was asked to stop.
    stop: str | None = None
    group: int | None = None


LEASES = "SELECT environment, catalog, fence, run_id, holder, beats, stop FROM leases "
HELD_LEASES = f"{LEASES}WHERE holder <> '' ORDER BY environment, catalog"
#: How long a lease without heartbeats is watched before its holder counts as dead.
TAKEOVER_AFTER = timedelta(seconds=20)
#: Seconds without a beat after which the execution of a group counts as lost.
LOST_AFTER = 10.0


def this_process(flow_run_id: str | None = None) -> dict[str, Any]:
    """Return how a holder identifies itself, so that another process of its machine can see whether it is alive.

    `born` is the process's start time by the kernel, as PIDs are reused. `flow_run_id` is set for a run that a
    deployment began, which can be begun again.
    """
    pid = os.getpid()
    return {"machine": machine(), "pid": pid, "born": birth(pid), "flow_run_id": flow_run_id}


def holder_of(lease: Lease) -> dict[str, Any]:
    """Return what identifies the process that holds a lease; a released lease has none."""
    return dict(json.loads(lease.holder))


def is_surely_dead(holder: Mapping[str, Any]) -> bool:
    """Return whether a holder ran on this machine and no longer does; False when that cannot be known from here."""
    return bool(holder["machine"] == machine() and birth(holder["pid"]) != holder["born"])


def is_free(lease: Lease) -> bool:
    """Return whether a lease has no holder, or surely a dead one; one of another machine counts as alive."""
    return not lease.holder or is_surely_dead(holder_of(lease))


@dataclass(frozen=True)
class RunGroup:
    """A group as its run sees it; times are Unix seconds."""

    number: int
    #: Its rows that have not ended, and how many of them may be under way at once.
    rows_left: int
    share: int
    #: When the last execution gave a sign, and when it ended; None if it has not, or if there was none.
    beat_at: float | None
    ended_at: float | None
    #: The progress of the last execution, as JSON.
    report: str | None
