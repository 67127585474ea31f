"""What a run would do: for each item the next action, and for each row its turn. Pure functions."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from patternmill.changes import Changes
from patternmill.items import Item, Row, Stage
from patternmill.states import Attempt, State


class Action(StrEnum):
    """What a run does about an item."""

    FOLLOW = "follow"  #: Its job goes on, or its request has no answer yet.
    MAKE = "make"
    RESEND = "resend"  #: It was refused before.
    EXISTS = "exists"
    FAILED = "failed"  #: It ended for good, until its row changes or a `retry`.
    REJECTED = "rejected"  #: Nothing is built on a take that a person has rejected.
    HELD = "held"


BOUGHT = frozenset({Action.MAKE, Action.RESEND})
#: Nothing is bought that is built on such an item.
_BLOCKING = frozenset({Action.FAILED, Action.HELD, Action.REJECTED})


@dataclass(frozen=True, slots=True)
class Step:
    """An item with what is to be done about it. `most`: the number that its last attempt may have."""

    item: Item
    action: Action
    most: int
    attempt: Attempt | None = None
    retrying: bool = False


def next_action(last: Attempt | None, most: int, retrying: bool = False) -> Action:
    """Return what the last attempt at an item leads to.

    Only a `failed` of the service allows another attempt. A refusal of the content, or one that names the row, is
    final until the row changes; only `retry` goes beyond that, and beyond what a person wrote off.
    """
    if last is None:
        return Action.MAKE
    is_final = last.state is State.WRITTEN_OFF or last.code in ("content_refused", "invalid_request")
    if last.state in (State.FAILED, State.WRITTEN_OFF):
        return Action.MAKE if last.number < most and (retrying or not is_final) else Action.FAILED
    if last.state is State.REJECTED:
        return Action.RESEND if retrying or not is_final else Action.FAILED
    return {
        State.INTENDED: Action.FOLLOW,
        State.ACCEPTED: Action.FOLLOW,
        State.SUCCEEDED: Action.EXISTS,
        State.HELD: Action.HELD,
    }[last.state]


@dataclass(frozen=True)
class Plan:
    """The rows of a run in the order in which they are begun, and a step for each of their items."""

    rows: tuple[Row, ...]
    steps: Mapping[str, Step]
    prices: Mapping[Stage, int] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)

    @cached_property
    def counts(self) -> Counter[tuple[Action, Stage | None]]:
        """Return how many items there are by what is done about them and by stage; None: of all stages."""
        counts = Counter[tuple[Action, Stage | None]]()
        for step in self.steps.values():
            counts[step.action, step.item.stage] += 1
            counts[step.action, None] += 1
        return counts

    def is_bought(self, item: Item) -> bool:
        return self.steps[item.id].action in BOUGHT

    @property
    def purchases(self) -> int:
        """Return how many items are bought that were never asked for, or are asked for again."""
        return self.counts[Action.MAKE, None] + self.counts[Action.RESEND, None]

    @property
    def work(self) -> int:
        """Return how many items the service is asked about at all."""
        return self.purchases + self.counts[Action.FOLLOW, None]

    @property
    def cost(self) -> int:
        """Return what the plan costs at its prices, in ten-thousandths."""
        total = 0
        for (action, stage), number in self.counts.items():
            total += number * self.prices.get(stage, 0) if stage and action in BOUGHT else 0
        return total

    @property
    def digest(self) -> str:
        """Return what two plans share that buy the same items."""
        bought = sorted(step.item.id for step in self.steps.values() if step.action in BOUGHT)
        return hashlib.sha256("".join(bought).encode()).hexdigest()[:16]

    def without(self, numbers: frozenset[int]) -> "Plan":
        """Return the plan without these rows and what only they need."""
        rows = tuple(row for row in self.rows if row.number not in numbers)
        left = {item.id for row in rows for item in row.chain}
        return Plan(rows, {name: step for name, step in self.steps.items() if name in left}, self.prices)


def make_plan(
    rows: Iterable[Row],
    last: Mapping[str, Attempt],
    attempts: int,
    prices: Mapping[Stage, int],
    retrying: bool,
) -> Plan:
    """Return the plan of these rows, whose items have these last attempts. A retry allows one more attempt."""
    steps: dict[str, Step] = {}
    rows = tuple(rows)
    for row in rows:
        below = Action.REJECTED if row.is_rejected else Action.EXISTS
        for item in row.chain:
            if item.id not in steps:
                attempt = last.get(item.id)
                most = max(attempts, attempt.number + 1) if attempt and retrying else attempts
                action = next_action(attempt, most, retrying)
                blocked = action in BOUGHT and below in _BLOCKING
                steps[item.id] = Step(item, below if blocked else action, most, attempt, retrying)
            below = below if row.is_rejected else steps[item.id].action
    in_turn = tuple(sorted(rows, key=lambda row: _turn(row, steps))) if last else rows
    return Plan(in_turn, steps, prices)


def _turn(row: Row, steps: Mapping[str, Step]) -> tuple[bool, bool]:
    """Return the row's place in the queue: what goes on comes first, what ended badly before comes last."""
    mine = [steps[item.id] for item in row.chain]
    return any(step.attempt and step.action in BOUGHT for step in mine), all(
        step.action is not Action.FOLLOW for step in mine
    )


def affordable(plan: Plan, items: int | None, money: int | None) -> Iterator[Row]:
    """Yield the rows of a plan until the next would pass a limit, so that no pattern is bought without its product."""
    if items is None and money is None:
        yield from plan.rows
        return
    bought, spent, seen = 0, 0, set[str]()
    for row in plan.rows:
        new = [item for item in row.chain if item.id not in seen and plan.steps[item.id].action in BOUGHT]
        seen.update(item.id for item in new)
        bought, spent = bought + len(new), spent + sum(plan.prices.get(item.stage, 0) for item in new)
        if new and ((items is not None and bought > items) or (money is not None and spent > money)):
            return
        yield row
