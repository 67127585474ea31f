"""A whole import in virtual time, through deaths and stops of its process, until every row is final."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest

from patternmill.errors import Overlap
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.requests import find_request
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.planning.offer import Category, Offer
from patternmill.runs import run as run_module
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import PASSING_REFUSALS, UNFINISHED_ROWS, Outcome
from patternmill.tables.checks import Checked, check_catalog
from tests.dialects import DIALECTS, UNKNOWN
from tests.hostile.in_process import Service
from tests.integration.simulation.loop import SimulationLoop
from tests.integration.simulation.service import EPOCH, LOOK_UP, SimulatedClient, SimulatedService
from tests.integration.simulation.weather import FINAL, NOT_MADE, Weather, mixed
from tests.integrity import problems
from tests.row_results import RowResult
from tests.unit.runs.workshop import Workshop, drive

OFFER = Offer((Category("cat_tote", "Tote", None), Category("cat_mug", "Mug", None)), note=None)
BY_HAND, HOURLY = 20, 3_700.0
MOST_LIVES = 60
#: Counts the rows that have a pattern and whose product has not ended, except products in some states.
STRANDED = (
    "SELECT count(*) FROM items i JOIN attempts p ON p.item_key = i.pattern_key AND p.state = 'succeeded' "
    "WHERE NOT EXISTS (SELECT 1 FROM attempts q WHERE q.item_key = i.key "
    "AND q.state IN ('succeeded', 'failed', 'held', 'rejected', :followed, :in_doubt))"
)


@dataclass(frozen=True)
class Line:
    """One row as it is asked for."""

    sku: str
    prompt: str
    category: str
    size: str
    #: The colour of the refinement; empty if there is none.
    colour: str = ""


@dataclass(frozen=True)
class Setup:
    """The inputs of a simulation: everything that is drawn before it begins."""

    seed: str
    lines: tuple[Line, ...] = field(repr=False)
    weather: Weather
    window: int = 40
    attempts: int = 2
    #: How each life of the process ends, and after how much: moments, or seconds. The last one ends by itself.
    ends: tuple[tuple[str, float], ...] = ()
    #: The share of the lives during which another process attempts a run.
    overlaps: float = 0.0

    @property
    def catalog(self) -> str:
        """Return the text of the catalog's file."""
        rows = ((one.sku, one.prompt, one.category, one.sku, one.size, one.colour) for one in self.lines)
        return "sku,prompt,category,option:name,option:size,refine:recolor\n" + "".join(
            f"{','.join(row)}\n" for row in rows
        )


@dataclass
class Story:
    """The record of a simulation that is judged afterwards."""

    setup: Setup
    service: SimulatedService
    rows: dict[str, RowResult] = field(default_factory=dict)
    #: How each life ended.
    lives: list[str] = field(default_factory=list)
    #: Faults found during the play.
    offences: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    lasted: float = 0.0

    def trace(self) -> str:
        """Return everything that can be seen from outside, with its virtual times."""
        asked = (
            f"{one.at!r} {one.life} {one.operation} {one.name} {one.fault}" for one in self.service.asked
        )
        rows = (f"{sku} {row.status} {row.product_id}" for sku, row in self.rows.items())
        return "\n".join([*asked, *self.events, *rows, *self.lives, repr(self.lasted)])


def some_lines(count: int, chance: random.Random, shared: float, refined: float) -> tuple[Line, ...]:
    lines: list[Line] = []
    for number in range(count):
        prompt = f"prompt {number:04}"
        if lines and chance.random() < shared:
            prompt = chance.choice(lines).prompt
        category, size = chance.choice(["Tote", "Mug"]), chance.choice(["s", "m"])
        colour = chance.choice(["#aabbcc", "#112233"]) if chance.random() < refined else ""
        lines.append(Line(f"S-{number:04}", prompt, category, size, colour))
    if chance.random() < 0.3:
        lines[-1] = replace(lines[-1], size=NOT_MADE)
    return tuple(lines)


def mixed_setup(seed: int) -> Setup:
    """Return a setup with every kind of fault at once."""
    chance = random.Random(f"{seed}/setup")
    ends: list[tuple[str, float]] = []
    for _ in range(chance.randrange(2, 8)):
        how = chance.choice(["moment", "moment", "second", "stop"])
        ends.append((how, chance.expovariate(1 / 300) if how == "moment" else chance.expovariate(1 / 40)))
    weather = replace(mixed(chance), dialect=[None, *DIALECTS, *UNKNOWN][seed % (len(DIALECTS) + 2)])
    if weather.dialect in UNKNOWN:
        # That its words pass would not show: they are refused for ever.
        passing = ("status_404", "status_405", "proxy_page", "redirect_302", "redirect_303", "redirect_307")
        stays = tuple(one for one in weather.spells if one.kind not in passing)
        weather = replace(weather, limits=(), spells=stays)
    count, shared = chance.choice([12, 30, 50]), chance.choice([0.0, 0.2, 0.6])
    return Setup(
        str(seed),
        some_lines(count, chance, shared, refined=chance.choice([0.0, 0.0, 0.3])),
        weather,
        window=chance.choice([3, 20, 60, 200]),
        attempts=chance.choice([1, 2, 3]),
        ends=tuple(ends),
        overlaps=0.3,
    )


def play(setup: Setup) -> Story:
    """Play it to its end."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        loop = SimulationLoop(random.Random(f"{setup.seed}/disk"))
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            player = _Player(setup, loop, Path(folder) / "home")
            with player.virtual_ledgers():
                runner.run(player.all())
            return player.story


class _Player:
    def __init__(self, setup: Setup, loop: SimulationLoop, home: Path) -> None:
        self.setup, self.loop = setup, loop
        self.service = SimulatedService(setup.seed, setup.weather, loop)
        self.story = Story(setup, self.service)
        self.shop = Workshop(home, Service())
        names = {"lookup": LOOK_UP} if setup.weather.looks_up else {}
        self.operations = home.with_suffix(".json")
        self.operations.write_text(json.dumps({"staging": names}))
        self.chance = random.Random(f"{setup.seed}/lives")
        self.checked: Checked = check_catalog(self.shop.read(setup.catalog), OFFER)
        self.ledgers: list[Ledger] = []
        self.runs: list[Run] = []

    @contextmanager
    def virtual_ledgers(self) -> Iterator[None]:
        """Ledgers of the run under test have the virtual time."""

        def opened(settings: Settings) -> Ledger:
            ledger = self._opened()
            self.ledgers.append(ledger)
            return ledger

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(run_module, "open_ledger", opened)
            yield

    async def all(self) -> None:
        ends = list(self.setup.ends)
        for number in range(MOST_LIVES):
            how, after = ends.pop(0) if ends else ("itself", 0.0)
            ending = await self._life(how, after)
            self._look_at_the_ledger()
            if ending is not None and not self._is_left(ending):
                break
            if ending is not None and self.chance.random() < 0.5:
                await self._settle()
            # A person looks at what stopped it before it is begun again.
            stopped = ending is not None and ending.outcome is Outcome.FAILED
            pause = self.chance.choice([60.0, 900.0, 4000.0] if stopped else [0.0, 1.0, 300.0])
            # A person who has begun it so often leaves it to a schedule.
            await asyncio.sleep(pause if number < BY_HAND else HOURLY)
        assert ending is not None and not self._is_left(ending), f"{self.story.lives} and no end"
        # What is refused in unknown words is sent again by each run, and any of these may be stopped by it.
        if self.setup.weather.dialect not in UNKNOWN:
            asked = len(self.service.asked)
            ending = await self._life("itself", 0.0)
            assert ending is not None
            if len(self.service.asked) != asked and not self._refused(ending):
                self.story.offences.append("a run with nothing left to do asked the service")
        self.story.rows = self.shop.results(ending)
        self.story.lasted = self.loop.time()
        self._remember_events()

    def _is_left(self, ending: RunEnding) -> bool:
        """Return whether the next run has something to do: a stop, an unfinished row, or a refusal that may pass."""
        if set(ending.rows) & UNFINISHED_ROWS or self.setup.weather.dialect in UNKNOWN:
            return bool(set(ending.rows) & UNFINISHED_ROWS)
        return ending.outcome is Outcome.FAILED or bool(self._refused(ending) - self._never_made())

    def _refused(self, ending: RunEnding) -> set[str]:
        """Return the rows that the next run sends again, as their refusal may pass."""
        rows = self.shop.results(ending).values()
        return {row.sku for row in rows if row.error_code in PASSING_REFUSALS}

    def _never_made(self) -> set[str]:
        """Return the rows of a size that is not made. A run with such a row alone cannot know that it is the row."""
        return {line.sku for line in self.setup.lines if line.size == NOT_MADE}

    async def _settle(self) -> None:
        """Act as a person who has every request that was answered with another job, or with none, sent once more."""
        self.loop.begin_life()
        with self._opened() as ledger:
            held = ledger.database.rows(
                "SELECT a.request_id FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.state = 'held' "
                "AND i.stage <> 'refinement' AND a.error_code IN ('wrong_job', 'job_unknown') ORDER BY 1"
            )
            items = [find_request(ledger, request_id) for (request_id,) in held]
            decision = Settlement(Resolution.RESEND, "it is there", "a person")
            left = await settle(ledger, items, decision, limit=timedelta(hours=12))
            self.story.offences += map(str, left.values())
            self.service.fired["settled"] += len(items)

    def _opened(self) -> Ledger:
        database = SqliteDatabase(self.shop.home / "ledger.sqlite3")
        return Ledger(database, clock=lambda: EPOCH.timestamp() + self.loop.time())

    # -- one life of the process

    async def _life(self, how: str, after: float) -> RunEnding | None:
        """Drive a life of the process to its end or until it dies, when whatever it was doing is gone."""
        self.loop.begin_life()
        self.story.began.append(self.loop.time())
        timer = self._arm(how, after)
        living = asyncio.create_task(self._whole_run(how, after))
        dying = asyncio.create_task(self.loop.died.wait())
        await asyncio.wait([living, dying], return_when=asyncio.FIRST_COMPLETED)
        if timer is not None:
            timer.cancel()
        dead = not self.loop.alive
        if dead:
            self._bury_connections()
        dying.cancel()
        await self._end_all_tasks(living)
        assert self.ledgers or dead, "the run opens its ledger elsewhere now, with a clock of its own"
        ending = None if dead else living.result()
        self.story.lives.append(f"{how}: {'died' if ending is None else ending.outcome}")
        self._bury_connections()
        if dead and self.chance.random() < 0.5:
            self.shop.bury()
        return ending

    def _arm(self, how: str, after: float) -> asyncio.TimerHandle | None:
        if how == "moment":
            self.loop.moments_left = 1 + int(after)
        if how == "second":
            return self.loop.call_later(after, self.loop.die)
        return None

    async def _whole_run(self, how: str, after: float) -> RunEnding:
        life, setup = len(self.story.began), self.setup
        api = StudioApi(
            SimulatedClient(self.service, life),
            create_rate=200.0,
            poll_rate=100.0,
            policy=ResendPolicy(jitter=random.Random(f"{setup.seed}/jitter/{life}").random),
            clock=self.loop.time,
            uptime=self.loop.time,
        )
        spec = self.shop.spec(
            max_in_flight=setup.window,
            attempts=setup.attempts,
            final_reasons=(FINAL,),
        )
        named = {"operations_file": self.operations}
        spec = replace(spec, settings=spec.settings.model_copy(update=named))
        run = Run(spec, api=api, checked=self.checked)
        await run.begin()
        self.runs.append(run)
        if how == "stop":
            self.loop.call_later(after, self._stop, run)
        driving = asyncio.create_task(drive(run))
        if self.chance.random() < setup.overlaps:
            await self._overlap(self.chance.expovariate(1 / 40), driving)
        await driving
        ending = await run.end()
        await api.close()
        return ending

    def _stop(self, run: Run) -> None:
        if run.ending is None:
            run.stop("a person pressed Ctrl-C")

    async def _overlap(self, after: float, driving: asyncio.Task[None]) -> None:
        """Another process attempts a run meanwhile."""
        await asyncio.wait([driving], timeout=after)
        if driving.done():
            return
        other = StudioApi(SimulatedClient(self.service, -1), clock=self.loop.time)
        try:
            await Run(self.shop.spec(), api=other, checked=self.checked).begin()
            self.story.offences.append("two runs hold the catalog at once")
        except Overlap:
            self.service.fired["overlap"] += 1

    async def _end_all_tasks(self, living: asyncio.Task[RunEnding]) -> None:
        """End all tasks as the kernel would: none gets another turn that anybody could see."""
        tasks = asyncio.all_tasks() - {cast("asyncio.Task[None]", asyncio.current_task())}
        for task in sorted(tasks, key=lambda one: int(one.get_name().rpartition("-")[2])):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _bury_connections(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.ledgers.clear()

    def _look_at_the_ledger(self) -> None:
        """Check, whatever ended the life, that the ledger agrees with itself and that few rows have only a pattern."""
        with self.shop.ledger() as ledger:
            self.story.offences += problems(ledger)
            # What is waited for no longer makes room for other rows.
            weather = self.setup.weather
            given_up = {"followed": "accepted" if weather.jobs_stuck or weather.jobs_odd else ""}
            given_up["in_doubt"] = "intended" if weather.spells else ""
            ((stranded,),) = ledger.database.rows(STRANDED, given_up)
        if stranded > self._most_stranded():
            self.story.offences.append(f"{stranded} rows have a pattern and no product")

    def _most_stranded(self) -> float:
        """Return how many rows may be stranded: a window, plus what an earlier life left of a shared pattern."""
        prompts = Counter(line.prompt for line in self.setup.lines)
        if len(prompts) == len(self.setup.lines):
            return self.setup.window
        return self.setup.window + max(prompts.values())

    def _remember_events(self) -> None:
        """The ledger's own story; runs are named by their order, because their IDs are drawn by chance."""
        numbers: dict[str, int] = {}
        with self.shop.ledger() as ledger:
            for at, run_id, request_id, kind, detail in ledger.database.rows(
                "SELECT at, run_id, request_id, kind, detail FROM events ORDER BY seq"
            ):
                number = numbers.setdefault(run_id, len(numbers) + 1)
                self.story.events.append(f"{at!r} {number} {request_id} {kind} {detail}")
