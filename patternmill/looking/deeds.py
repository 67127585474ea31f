"""What can be done from the page: planned, shown with what it costs, agreed to, and carried out as verbs are."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from patternmill.agreement import open_questions, plan_lines, plan_run
from patternmill.errors import Refusal
from patternmill.ledger.brake import pause, unpause
from patternmill.ledger.database import Database
from patternmill.orders import OrderPlan, check_order_name, place_order, plan_order
from patternmill.request import End, Request
from patternmill.run import check_name, check_sheet, open_run
from patternmill.settings import Settings
from patternmill.text import counted, money

Lines = Sequence[str]


class Asked(BaseModel):
    """A request of a person on the page, with what they filled in."""

    kind: Literal["order", "remake", "pause", "unpause"]
    name: str = ""
    quantities: dict[str, Annotated[int, Field(ge=1)]] = {}
    sku: tuple[str, ...] = ()
    take: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Planned:
    """A plan that was shown and can be agreed to; `go` carries it out and says what came of it.

    `is_brake`: it stops what goes on, so that it cannot wait for its end.
    """

    lines: Lines
    question: str
    go: Callable[[], Awaitable[Lines]]
    is_brake: bool = False


@dataclass
class Deeds:
    """Carries out what the page asks for about one catalog, one thing at a time; a pause at any time."""

    database: Database
    settings: Settings
    environment: str
    catalog: str
    #: Carries a request out as the verbs do.
    carry_out: Callable[[Request], Awaitable[End]]
    #: What was begun last, and what goes on beside it.
    jobs: list[dict[str, Any]] = field(default_factory=list)
    _planned: Planned | None = None
    _task: "asyncio.Task[None] | None" = None
    _braking: "set[asyncio.Task[None]]" = field(default_factory=set)
    _number: int = field(default=0)

    async def plan(self, asked: Asked) -> dict[str, Any]:
        """Return what would be done and the question about it. Raises Refusal."""
        if asked.kind in ("order", "remake"):
            self._refuse_two()
        plans = {"order": self._order, "remake": self._remake, "pause": self._pause, "unpause": self._unpause}
        self._planned, self._number = await plans[asked.kind](asked), self._number + 1
        return {
            "plan": self._number, "lines": self._planned.lines, "question": self._planned.question,
        }  # fmt: skip

    def begin(self, number: int) -> None:
        """Carry out the plan that was shown last. Raises Refusal for another one."""
        planned = self._planned
        if not planned or not planned.is_brake:
            self._refuse_two()
        if planned is None or number != self._number:
            raise Refusal("other_plan", "Another plan was made meanwhile.", "Look at it anew.")
        job = {"number": number, "question": planned.question, "lines": [], "over": False}
        self._planned, self.jobs = None, [*(one for one in self.jobs if not one["over"]), job]
        task = asyncio.create_task(self._carry_out(planned, job))
        if planned.is_brake:
            self._braking.add(task)
            task.add_done_callback(self._braking.discard)
        else:
            self._task = task

    async def _carry_out(self, planned: Planned, job: dict[str, Any]) -> None:
        try:
            job["lines"] = list(await planned.go())
        except Refusal as refusal:
            job["lines"] = [str(refusal)]
        except Exception as error:
            job["lines"] = [f"It ended with an unexpected error: {error!r}."]
        finally:
            job["over"] = True

    def _refuse_two(self) -> None:
        if self._task and not self._task.done():
            raise Refusal(
                "under_way", "Something else that was begun here goes on.", "Wait until it has ended."
            )

    async def close(self) -> None:
        """Stop what goes on, in order: a run follows its jobs for a while and writes its results."""
        going = {task for task in (self._task, *self._braking) if task and not task.done()}
        for task in going:
            task.cancel()
        if going:
            await asyncio.wait(going)

    async def _order(self, asked: Asked) -> Planned:
        if not asked.name.strip():
            raise Refusal("no_name", "An order needs a name.")
        check_name(self.environment, self.settings)
        place = self.database, self.environment, self.catalog
        plan = await asyncio.to_thread(plan_order, *place, asked.quantities)
        check_order_name(self.database, self.environment, asked.name.strip(), plan)
        lines = [f"{line.quantity:,} × {line.sku} ({line.product_id})" for line in plan.lines]
        question = f"Make the checkout {asked.name.strip()} of {counted(plan.pieces, 'piece')}?"
        return Planned([*plan.left_out, *lines], question, partial(self._place, asked.name.strip(), plan))

    async def _place(self, name: str, plan: OrderPlan) -> Lines:
        return [(await place_order(self.database, self.settings, name, plan)).words]

    async def _remake(self, asked: Asked) -> Planned:
        request = Request(
            verb="remake", catalog=self.catalog, environment=self.environment, sku=asked.sku, take=asked.take
        )
        async with open_run(request) as run:
            checked = await check_sheet(run)
            plan = plan_run(run, checked)
            lines = list(plan_lines(run, plan))
            needs = [message for _, message, _ in open_questions(run, plan)]
            cost = f" for {money(plan.cost, run.settings.currency)}" if plan.cost else ""
            replaced = len(plan.changes.replaced)
        agreed = {"max_items": plan.purchases} | ({"change": replaced} if replaced else {})
        question = f"Make {counted(plan.purchases, 'item')}{cost} in {self.environment}?"
        go = partial(self._run, request.model_copy(update=agreed))
        return Planned([*lines, *needs], question if plan.purchases else "Do so? It costs nothing.", go)

    async def _run(self, request: Request) -> Lines:
        end = await self.carry_out(request)
        return end.message.splitlines()

    @property
    def _scope(self) -> str:
        return f"{self.environment}/{self.catalog}"

    async def _pause(self, asked: Asked) -> Planned:
        if not asked.reason.strip():
            raise Refusal("no_reason", "A pause needs its reason; runs that meet it say it.")
        lines = [
            "Nothing more is bought for this catalog by any run; jobs in flight are followed to their end."
        ]
        return Planned(
            lines, f"Pause {self._scope}?", partial(self._brake, asked.reason.strip()), is_brake=True
        )

    async def _brake(self, reason: str) -> Lines:
        left = await pause(self.database, self._scope, reason)
        return [f"Paused: {self._scope}.", *(f"{run} has not acknowledged it yet." for run in left)]

    async def _unpause(self, asked: Asked) -> Planned:
        lines = ["Runs may buy for it again."]
        return Planned(lines, f"Lift the pause of {self._scope}?", self._lift, is_brake=True)

    async def _lift(self) -> Lines:
        is_lifted = await asyncio.to_thread(unpause, self.database, self._scope)
        return [f"Lifted: {self._scope}." if is_lifted else f"{self._scope} was not paused."]
