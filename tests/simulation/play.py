"""A story of two catalogs over hours or days: runs that die, weather that changes, people who settle and pause."""

import asyncio
import csv
import os
import random
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from patternmill.pipeline import carry_out
from patternmill.service.client import Client
from tests.double import DIALECTS, Audit, Double, DoubleTransport, Line, Weather
from tests.double.audit import sheet_of
from tests.double.service import NOT_MADE, REFUSED, UNSAFE
from tests.double.weather import mixed_weather
from tests.simulation import clock, people

CATALOGS = ("spring", "autumn")
#: How often a catalog is refreshed in calm weather until nothing is left to do.
CALM_RUNS = 5
#: A run that goes on for so long, in seconds, does not end.
LONGEST = 12 * 3600.0


@dataclass
class Story:
    """What happened, and what is wrong with it."""

    seed: int
    double: Double
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    #: Requests that a person wrote off, or had tried again though the service refuses their content.
    excused: set[str] = field(default_factory=set)
    #: Prompts with the takes of them that a person wanted another one of.
    again: set[tuple[str, int]] = field(default_factory=set)
    outcomes: list[str] = field(default_factory=list)
    #: How long it lasted on the virtual clock, and for how much of that a run or an order went on, in seconds.
    lasted: float = 0.0
    at_work: float = 0.0


def play(seed: int) -> Story:
    """Play a seed and judge it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        chance = random.Random(f"{seed}/story")
        random.seed(seed)
        dialect = DIALECTS[seed % len(DIALECTS)]
        double = Double(mixed_weather(chance, dialect, clock.EPOCH), str(seed), clock.now)
        with _surroundings(Path(folder), double, chance):
            player = _Player(Story(seed, double), Path(folder), chance)
            clock.play(str(seed), player.all)
        return player.story


@contextmanager
def _surroundings(folder: Path, double: Double, chance: random.Random) -> Iterator[None]:
    """Set what the program reads: its settings, its folder, and the service in place of the network."""
    before, init, started = dict(os.environ), Client.__init__, Path.cwd()
    os.environ.update(
        PATTERNMILL_HOME=str(folder / "home"), PATTERNMILL_STUDIO_URL="http://double.test/v1",
        PATTERNMILL_API_KEY="key-of-the-double", PATTERNMILL_ENVIRONMENT="staging",
        PATTERNMILL_CONFIRM_ABOVE="100000", PATTERNMILL_CHANGE_AT_MOST="100000", PATTERNMILL_RETIRE_AT_MOST="100000",
        PATTERNMILL_MAX_IN_FLIGHT=chance.choice(["3", "20", "200"]), PATTERNMILL_ATTEMPTS=chance.choice("123"),
    )  # fmt: skip

    def connect(self: Client, settings: Any, transport: Any = None) -> None:
        init(self, settings, _Wire(double))

    Client.__init__ = connect  # type: ignore[method-assign]
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(started)
        Client.__init__ = init  # type: ignore[method-assign]
        os.environ.clear()
        os.environ.update(before)


class _Wire(DoubleTransport):
    """The network of a process that may die as a request leaves, and as its answer comes."""

    async def handle_async_request(self, request: Any) -> Any:
        await clock.lives_on()
        try:
            return await super().handle_async_request(request)
        finally:
            await clock.lives_on()


class _Player:
    def __init__(self, story: Story, folder: Path, chance: random.Random) -> None:
        self.story, self.double, self._folder, self._chance = story, story.double, folder, chance
        count, shared = chance.choice([8, 16, 30]), chance.choice([0.0, 0.2, 0.6])
        lines = [self._line(number, shared) for number in range(count)]
        other = [self._line(number + 500, shared) for number in range(count // 3)]
        #: The rows of each sheet. Rows that are in both are one product.
        self.lines = {"spring": lines, "autumn": [*chance.sample(lines, count // 2), *other]}
        #: The rows of the sheets that the last results are about.
        self._shown: dict[str, list[Line]] = {}
        self._orders: set[int] = set()
        self._living, self._counted_at = 0, 0.0

    def _line(self, number: int, shared: float) -> Line:
        chance = self._chance
        prompt = f"shared {chance.randrange(3)}" if chance.random() < shared else f"prompt {number:04}"
        prompt += chance.choices(["", f" {REFUSED}", f" {UNSAFE}"], [96, 2, 2])[0]
        size = chance.choices(["s", "m", NOT_MADE], [60, 37, 3])[0]
        return Line(f"S-{number:04}", prompt, chance.choice(["Tote", "Mug"]), size)

    async def all(self) -> None:
        for turn in range(self._chance.randrange(3, 9)):
            if turn and self._chance.random() < 0.4:
                self._edit(self._chance.choice(CATALOGS))
            await self._turn()
            self._look_at_results(final=False)
            forgets = self.double.weather.dialect == "forgets"
            if self._chance.random() < (0.1 if forgets else 0.5):
                await self._settle()
            if self._chance.random() < 0.4:
                await self._decide(self._chance.choice(CATALOGS))
            if self._chance.random() < 0.3:
                await self._order(turn)
            pauses = [60.0, 20 * 3600.0] if forgets else [60.0, 300.0, 900.0, 4000.0, 4 * 3600.0, 20 * 3600.0]
            await asyncio.sleep(self._chance.choice(pauses))
            if self._chance.random() < 0.5:
                dialect = self.double.weather.dialect
                self.double.weather = mixed_weather(
                    self._chance, dialect, clock.now(), spared=("read_failed",)
                )
        await self._calm_down()
        self.story.lasted = clock.now() - clock.EPOCH
        self._judge()

    async def _turn(self) -> None:
        """Run a catalog, both at once, or one twice, perhaps to a death, and perhaps with a pause by a person."""
        both = self._chance.random() < 0.5
        catalogs = [*CATALOGS[: 1 + both], *(["spring"] if self._chance.random() < 0.2 else [])]
        runs = [self._run(self._chance.choice(["import", "refresh"]), name) for name in catalogs]
        if self._chance.random() < 0.15:
            runs.append(self._pause())
        await asyncio.gather(*runs)

    async def _run(self, verb: str, catalog: str, *, calm: bool = False) -> Any:
        """Carry out a request in a process of its own, which may die."""
        how = "" if calm else self._chance.choice(["", "", "moment", "moment", "time"])
        await asyncio.sleep(0 if calm else self._chance.choice([0.0, self._chance.uniform(0, 60)]))
        lines, written_at = self.lines[catalog], self._written_at(catalog)
        process = clock.Process(int(self._chance.expovariate(1 / 200)) if how == "moment" else None)
        if how == "time":
            asyncio.get_running_loop().call_later(self._chance.expovariate(1 / 60), process.die)
        request = people.request(verb, catalog, self._sheet(catalog), self._folder / f"out-{catalog}")
        end = await self._lived(process, f"{verb} {catalog}", carry_out(request))
        if end is None:
            return None
        if self._written_at(catalog) != written_at:
            self._shown[catalog] = lines
        self.story.outcomes.append(
            f"{verb} {catalog}: {end.outcome}: {end.message.splitlines()[0].partition(' by ')[0][:150]}"
        )
        self.story.counts[end.outcome] += 1
        self.story.counts[f"{verb}s"] += 1
        return end

    async def _lived(self, process: clock.Process, what: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what comes of the work of a process, or None where it dies."""
        going, dying = process.start(work), asyncio.create_task(process.died.wait())
        self._at_work(1)
        await asyncio.wait({going, dying}, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
        self._at_work(-1)
        if not going.done() and process.is_alive:
            self.story.wrong.append(f"{what} does not end")
            process.die()
        dying.cancel()
        self.story.counts["lives"] += 1
        if not process.is_alive:
            await process.bury()
            self.story.counts["deaths"] += 1
            self.story.outcomes.append(f"{what}: died")
            return None
        if error := going.exception():
            self.story.wrong.append(f"{what} ended with {error!r}")
            return None
        return going.result()

    def _at_work(self, more: int) -> None:
        """Count the processes that live, and the time while there is one."""
        if self._living:
            self.story.at_work += clock.now() - self._counted_at
        self._living, self._counted_at = self._living + more, clock.now()

    async def _decide(self, catalog: str) -> None:
        """Decide about some patterns, and have those made again that are marked."""
        self.story.again |= set(await people.look(catalog, self._chance))
        await self._run("remake", catalog)

    async def _order(self, number: int, *, calm: bool = False) -> None:
        """Order products under a name of its own, perhaps to a death; then look what became of it."""
        catalog, name = CATALOGS[number % 2], f"order {number}"
        self._orders.add(number)
        for is_last in (calm, True):
            moments = None if is_last else int(self._chance.expovariate(1 / 20))
            words = await self._lived(clock.Process(moments), name, people.order(name, catalog, number + 1))
            work = people.order(name, catalog, number + 1)
            if words := await self._lived(clock.Process(moments), name, work):
                self.story.outcomes.append(words)
            self.story.counts["orders"] += bool(words and "to be paid" in words)
            if is_last:
                return

    def _sheet(self, catalog: str) -> Path:
        path = self._folder / f"{catalog}.csv"
        path.write_text(sheet_of(self.lines[catalog]))
        return path

    def _edit(self, catalog: str) -> None:
        """Change a sheet as people do: other prompts and sizes, new rows, rows that are gone."""
        lines, chance = list(self.lines[catalog]), self._chance
        for number in chance.sample(range(len(lines)), min(3, len(lines))):
            lines[number] = replace(lines[number], prompt=f"changed {chance.randrange(10_000)}")
        lines.append(self._line(1000 + chance.randrange(1000), 0.0))
        if len(lines) > 6:
            lines.pop(chance.randrange(len(lines)))
        seen = {line.sku: line for line in lines}
        self.lines[catalog] = list(seen.values())

    async def _pause(self) -> None:
        """Pause all buying for a while; once that has taken hold, nothing is bought."""
        await asyncio.sleep(self._chance.uniform(5, 200))
        held = await people.pause()
        before = len(self.double.record)
        await asyncio.sleep(600)
        sent = [
            event["name"] for event in self.double.record[before:] if "create" in event.get("operation", "")
        ]
        if held and sent:
            self.story.wrong.append(f"{len(sent)} creates left in a pause: {sent[:3]}")
        await people.unpause()
        self.story.counts["pauses"] += 1

    async def _settle(self) -> None:
        decided = await people.settle(self.double)
        self.story.counts.update(f"settled: {how.partition(':')[0]}" for how in decided.values())
        self.story.excused |= {request for request, how in decided.items() if how == "write-off"}

    async def _calm_down(self) -> None:
        """Let the weather clear, and run until nothing is left to do; then a further run buys nothing."""
        await asyncio.sleep(3600)
        stormy = self.double.weather
        self.double.weather = Weather(
            stormy.dialect, pattern_time=20.0, product_time=10.0, echoes=stormy.echoes
        )
        await people.take_back()
        for _ in range(CALM_RUNS):
            before, goes_on = set(self.double.jobs), False
            for catalog in CATALOGS:
                end = await self._run("refresh", catalog, calm=True)
                goes_on |= bool(end) and "waiting" in end.summary.counts
                await self._settle()
                self.story.excused |= {
                    job.request for job in self.double.jobs.values() if "policy" in job.reason
                }
                await self._run("retry", catalog, calm=True)
                await self._run("remake", catalog, calm=True)
            for number in self._orders:
                await self._order(number, calm=True)
            await asyncio.sleep(3600)
            new = [job for name, job in self.double.jobs.items() if name not in before]
            if not goes_on and all("policy" in job.reason for job in new if job.stage != "checkout"):
                break
        bought = len(self.double.jobs)
        for catalog in CATALOGS:
            await self._run("refresh", catalog, calm=True)
        if len(self.double.jobs) > bought:
            self.story.wrong.append(f"a run with nothing left to do bought {len(self.double.jobs) - bought}")

    def _results(self, catalog: str) -> Path:
        return self._folder / f"out-{catalog}" / "results.csv"

    def _written_at(self, catalog: str) -> int:
        path = self._results(catalog)
        return path.stat().st_mtime_ns if path.exists() else 0

    def _rows(self, catalog: str) -> list[dict[str, str]]:
        if not (path := self._results(catalog)).exists():
            return []
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))

    def _look_at_results(self, *, final: bool) -> None:
        """Read what the last runs told people: no advice to buy again; at the end, each row as the service made it."""
        audit = Audit(self.double.record, self.story.excused, self.story.again)
        for catalog, lines in (self.lines if final else self._shown).items():
            rows = self._rows(catalog)
            self._note("wrong_advice", audit.wrong_advice(lines, rows))
            if final:
                self._note("lost", audit.lost(lines, rows))
                self.story.counts.update(f"rows {row['status']}" for row in rows)

    def _judge(self) -> None:
        self._look_at_results(final=True)
        audit = Audit(self.double.record, self.story.excused, self.story.again)
        self._note("twice", audit.bought_twice())
        self._note("changed", audit.changed())
        self.story.counts["purchases"] = len(audit.jobs)
        self.story.counts["faults"] = self.double.fired.total()
        self.story.counts["wrong"] = len(self.story.wrong)

    def _note(self, what: str, found: Iterator[str]) -> None:
        for sentence in found:
            self.story.wrong.append(f"{what}: {sentence}")
            self.story.counts[what] += 1
