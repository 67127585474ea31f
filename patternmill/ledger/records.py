"""The values that are written to the ledger and read from it: attempts, runs, rows, approvals, leases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.states import AttemptState, Outcome, Stage, Verdict


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one item: what was sent under which request ID, and what came of it. Times are Unix seconds."""

    request_id: RequestId
    item_key: ItemKey
    attempt: int
    state: AttemptState
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
    #: When it was intended by a clock that cannot be set; None where the machine has none.
    uptime: str | None = None
    #: Minor units, reserved with the intent; and of which currency (empty: the unit of the prices).
    price: int = 0
    currency: str = ""

    @property
    def since(self) -> float:
        """When it came into its state."""
        return self.ended_at or self.accepted_at or self.intended_at

    @property
    def content(self) -> dict[str, Any]:
        """What was asked for, whatever the request's ID: a service may give the same for the same."""
        return {name: value for name, value in orjson.loads(self.body).items() if name != "requestId"}


@dataclass(frozen=True, slots=True)
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
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    #: Why the run ended as it did, in one sentence, where the outcome alone does not explain it.
    reason: str | None = None
    #: Versions of the program and its libraries, by name.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: What was requested: window, attempts, limits; and notes, as on options that could not be checked.
    options: Mapping[str, Any] = field(default_factory=dict)
    prefect_flow_run_id: str | None = None

    def with_options(self, options: Mapping[str, Any]) -> RunRecord:
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True)
class Intent:
    """A request about to be sent, as it must be durable before it is."""

    request_id: RequestId
    item_key: ItemKey
    stage: Stage
    attempt: int
    body: bytes
    #: Minor units, reserved with the intent.
    price: int = 0


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
    #: Of a checkout.
    picked: tuple[PickedLine, ...] = ()


@dataclass(frozen=True)
class OrderRecord:
    """An order as the service last showed it; fields that it does not show are None. Times are Unix seconds."""

    order_id: str | None
    status: str | None
    #: Whether the service has ever said so.
    paid: bool
    #: Whether the service last said that it is cancelled.
    cancelled: bool
    #: When it was seen first, and last.
    since: float = 0.0
    read_at: float = 0.0


@dataclass(frozen=True)
class RunRow:
    """One row of a run as it is remembered: `row` is JSON of what was understood, or of why it was refused."""

    position: int
    line: int
    sku: str
    pattern_key: ItemKey | None
    product_key: ItemKey | None
    row: str
    #: JSON: the cells of its file by the contract's columns, and those that a person has otherwise. None: not followed.
    said: str | None = None
    corrected: str | None = None
    #: JSON, once the run has ended.
    outcome: str | None = None
    #: The items that its pattern is built on, in the order in which they are made.
    before: tuple[ItemKey, ...] = ()
    #: Of what its product is built on.
    stages: tuple[Stage, ...] = (Stage.PATTERN,)

    @property
    def needed(self) -> tuple[ItemKey, ...]:
        """What its product is built on, in the order in which it is made."""
        return (*self.before, self.pattern_key) if self.pattern_key is not None else ()

    @property
    def chain(self) -> tuple[tuple[Stage, ItemKey], ...]:
        """All items, in the order in which they are made."""
        if self.pattern_key is None or self.product_key is None:
            return ()
        return (*zip(self.stages, self.needed, strict=True), (Stage.PRODUCT, self.product_key))


@dataclass(frozen=True)
class SpendingLimits:
    """What a run may buy; None is without limit. Amounts are in minor units."""

    items: int | None = None
    run_amount: int | None = None
    day_amount: int | None = None
    #: Nothing but what this approval covers.
    approval: str | None = None
    #: What no second attempt may use up: what the plan buys when every first attempt succeeds.
    first: Mapping[Stage, int] = field(default_factory=dict)
    #: Of these, for one of each stage.
    prices: Mapping[Stage, int] = field(default_factory=dict)
    #: Of all amounts; limits nothing by itself.
    currency: str | None = field(default=None, compare=False)

    @property
    def unit(self) -> str:
        """Return the currency as the ledger writes it; empty: the unit of the prices."""
        return self.currency or ""


@dataclass(frozen=True)
class Approval:
    """A plan that was put before a person, and the decision. Amounts are in minor units, times Unix seconds.

    Approved, `worst` and `most_purchases` are the ceiling of all that is bought under it.
    """

    id: str
    environment: str
    catalog: str
    digest: str
    #: What the plan would buy, and for how much; `worst`: every item fails until its last attempt.
    items: int
    expected: int
    worst: int
    #: Requests, with every attempt at every item.
    most_purchases: int
    asked_at: float
    #: Of the amounts; empty: the unit of the prices.
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

    def left_in(self, currency: str) -> int:
        """Return what it still covers, in minor units; nothing in another currency than its own."""
        return self.worst - self.amount if currency == self.currency else 0

    @property
    def short(self) -> str:
        """The digest as people write it."""
        return self.digest[:12]


@dataclass(frozen=True)
class Lease:
    """The right to drive a catalog, and to write for it, until there is one with a newer fence.

    With a `group`, that of one execution to drive a group of a run's rows; its fence is the group's own.
    """

    environment: str
    catalog: str
    fence: int
    run_id: RunId
    #: As others see it: its holder (JSON of a process; empty once it is released) and its heartbeats.
    holder: str = ""
    beats: int = 0
    #: Why its run was asked to stop.
    stop: str | None = None
    group: int | None = None


@dataclass(frozen=True)
class RunGroup:
    """A group as its run sees it; times are Unix seconds."""

    number: int
    #: Its rows that have not ended, and how many of them may be under way at once.
    rows_left: int
    share: int
    #: Of the last execution; None: nothing is begun.
    beat_at: float | None
    ended_at: float | None
    #: JSON: how far the last execution is.
    report: str | None
