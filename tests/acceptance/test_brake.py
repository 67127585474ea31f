"""The brake with four processes of two catalogs on one ledger: once `pause` has returned, nothing more is created.

A round is one pause at a random moment. The services' own records judge it: they have each request as it arrived.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pytest

from patternmill.ledger.ledger import Ledger, open_database
from patternmill.states import EXIT_CODES, Outcome
from prefect_host.own_server import OwnServer
from tests.acceptance.harness import COMMAND, Room, Started, Zygote, clean_environment, some_rows, started
from tests.acceptance.machines import Postgres, Workers
from tests.hostile import Hostile, Plan, audit
from tests.hostile.plan import CREATES, STARTS_JOB, Rule, Times
from tests.hostile.record import Line, lines_of
from tests.integrity import problems

ENVIRONMENTS = ("staging", "production")
WINDOW = 5
JOBS = Times("uniform", low=0.1, high=0.5)
#: Faults that leave creates in flight, in doubt or waiting to be sent again whenever a pause comes.
FAULTS = tuple(
    Rule(create, fault, params, share=share)
    for create in CREATES
    for fault, params, share in (
        ("answer_lost", {}, 0.08),
        ("status", {"code": 503}, 0.08),
        ("status", {"code": 503, "execute": True}, 0.04),
        ("late", {"delay": 0.7}, 0.08),
    )
)
EXIT_OVERLAP = EXIT_CODES[Outcome.SKIPPED_OVERLAP]
GAVE_UP = "It has not answered well for too long"
#: The options of `pause` in a round; the name of the catalog is filled in.
SCOPES: tuple[tuple[str, ...], ...] = ((), (), ("--environment", "staging"), ("--catalog", "{catalog}"))


@dataclass
class Fleet:
    """A ledger, a service for each environment, and what the processes of a round are started with."""

    folder: Path
    services: dict[str, Hostile]
    zygote: Zygote
    dice: random.Random
    ledger_url: str | None
    #: The settings of the process that is a flow, on Dask where there are machines.
    flow: dict[str, str]
    #: The number of rows of each catalog.
    rows: int
    rounds: int = 0
    #: The proof that the rounds tested something: creates before pauses, runs that met one, how long each pause took.
    bought: int = 0
    paused_runs: int = 0
    waited: list[float] = field(default_factory=list)

    def room(self, name: str, environment: str, **settings: str) -> Room:
        common = {
            "PATTERNMILL_HOME": str(self.folder / "home"),
            "PATTERNMILL_ENVIRONMENT": environment,
            "PATTERNMILL_MAX_IN_FLIGHT": str(WINDOW),
            # What has arrived is read at once: nothing that left before a pause is taken for a later one.
            "PATTERNMILL_REQUEST_TIMEOUT": "PT15S",
            **({"PATTERNMILL_LEDGER_URL": self.ledger_url} if self.ledger_url else {}),
        }
        about = f"{name}-{self.rounds}"
        rows = some_rows(self.rows, about=f"{about}-{environment}", shared=8)
        folder = self.folder / environment / about
        service = self.services[environment]
        return Room(folder, service, rows, self.zygote, common | settings, catalog=about)

    def start(self, room: Room, *inject: str) -> Started:
        """Start an import without Prefect, or as a flow."""
        if "PREFECT_API_URL" not in room.settings:
            return room.start(inject=("--first-pause", "0.3", *inject))
        return self.command(room, "import", str(room.file), "--out", str(room.out))

    def command(self, room: Room, *arguments: str) -> Started:
        return started(self.zygote.start, room.folder, [str(COMMAND), *arguments], room.environment)

    def creates(self) -> list[Line]:
        """Return what both services were asked to make."""
        lines = chain.from_iterable(lines_of(service.record) for service in self.services.values())
        return [line for line in lines if line["event"] == "request" and line["operation"] in STARTS_JOB]

    def ledger(self) -> Ledger:
        return Ledger(open_database(self.ledger_url or f"sqlite:///{self.folder}/home/ledger.sqlite3"))

    # -- a round

    def play(self) -> None:
        """Start four processes, kill one now and then, pause at a random moment, and judge."""
        self.rounds += 1
        rooms = [self.room("herons", environment) for environment in ENVIRONMENTS]
        rooms += [self.room("storks", "staging", **self.flow), self.room("storks", "production")]
        # Most intents wait for their turn, so that a pause comes before they are sent.
        running = [self.start(room, "--create-rate", "4") for room in rooms]
        try:
            self._judge(rooms, running)
        finally:
            for process in running:
                if process.runs:
                    process.kill()

    def _judge(self, rooms: list[Room], running: list[Started]) -> None:
        before = len(self.creates())
        self._await_moment(before, running)
        if self.dice.random() < 0.3:
            running[self.dice.randrange(4)].send(signal.SIGKILL)
        options = [part.format(catalog=rooms[0].catalog) for part in self.dice.choice(SCOPES)]
        asked_at = time.monotonic()
        ended = self.command(rooms[0], "pause", "--reason", "a round", *options).wait(120)
        at, took = time.time(), time.monotonic() - asked_at
        assert ended.code == 0 and "since" in ended.out, ended.output
        self.waited.append(took)
        self.bought += len(self.creates()) - before
        late = self._late_room(rooms[0])
        ends = [one.wait(180) for one in (*running, self.start(late))]
        if ends[-1].code == EXIT_OVERLAP:
            # The run that was draining when it came has ended by now.
            ends[-1] = self.start(late).wait(180)
        codes = [one.code for one in ends]
        covered = self._covered_requests(options)
        broken = [line for line in self.creates() if line["at"] > at and line["requestId"] in covered]
        assert broken == [], (self.rounds, options, codes, broken)
        assert ends[-1].code == EXIT_CODES[Outcome.PAUSED], ends[-1].output
        # A run that no pause covers may give up the service, which loses a share of all answers.
        bad = [
            one for one in ends if one.code not in {0, 3, 4, -signal.SIGKILL} and GAVE_UP not in one.output
        ]
        assert bad == [], "\n".join(one.output for one in ends)
        self.paused_runs += codes.count(3)
        lifted = self.command(rooms[0], "unpause", *options).wait(60)
        assert lifted.code == 0, lifted.output

    def _late_room(self, room: Room) -> Room:
        """Return a room of the same catalog with another row, which a pause always keeps from being bought."""
        rows = [*room.rows, *some_rows(1, about=f"late-{self.rounds}")]
        return replace(room, folder=room.folder / "late", rows=rows)

    def _await_moment(self, before: int, running: list[Started]) -> None:
        """Wait for a random time, which in the first round and half of the others begins with the first purchase."""
        if self.rounds == 1 or self.dice.random() < 0.5:
            until = time.monotonic() + 60
            while len(self.creates()) <= before:
                assert time.monotonic() < until, [one.output for one in running]
                time.sleep(0.02)
        time.sleep(self.dice.uniform(0, 3))

    def _covered_requests(self, options: list[str]) -> set[str]:
        """Return the requests that the pause covers, as the ledger has them."""
        named = dict(zip(options[::2], options[1::2], strict=True))
        with self.ledger() as ledger:
            return {
                request_id
                for request_id, environment, catalog in ledger.database.rows(
                    "SELECT a.request_id, i.environment, i.catalog FROM attempts a JOIN items i ON i.key = a.item_key"
                )
                if named.get("--environment") in (None, environment)
                and named.get("--catalog") in (None, catalog)
            }

    def complete(self) -> None:
        """Run the last round's catalogs to their ends: nothing was bought twice, and nothing is lost."""
        rooms = [
            self.room(name, environment) for name in ("herons", "storks") for environment in ENVIRONMENTS
        ]
        for _ in range(4):
            ends = [running.wait(180) for running in [self.start(room) for room in rooms]]
            if all(ended.code == 0 for ended in ends):
                break
        for room, ended in zip(rooms, ends, strict=True):
            assert ended.code in (0, 3), ended.output
            audited = audit(room.service.record, room.rows, room.service.plan)
            assert audited.double_purchases == () and audited.requests_with_two_jobs == ()
        with self.ledger() as ledger:
            assert list(problems(ledger)) == []


@contextmanager
def fleet(
    folder: Path, zygote: Zygote, server: OwnServer, database: str, seed: int, rows: int
) -> Iterator[Fleet]:
    with ExitStack() as stack:
        services = {
            environment: stack.enter_context(
                Hostile(
                    Plan(seed=seed, rules=FAULTS, patterns=JOBS, products=JOBS),
                    folder / f"service-{environment}",
                )
            )
            for environment in ENVIRONMENTS
        }
        url = stack.enter_context(Postgres()).url if database == "postgres" else None
        flow = {**server.client_environment, "PYTHONUNBUFFERED": "1"}
        made = Fleet(folder, services, zygote, random.Random(seed), url, flow, rows)
        if url is not None:
            environment = clean_environment() | made.room("first", "staging", **flow).environment
            machines = stack.enter_context(closing(Workers(folder, environment, threads=8)))
            machines.add()
            made.flow |= machines.settings
        yield made


@pytest.mark.slow
@pytest.mark.timeout(14400)
@pytest.mark.parametrize(
    ("database", "rounds", "rows"),
    [
        ("postgres", 1, 12),
        *(pytest.param(one, 100, 24, marks=pytest.mark.soak) for one in ("sqlite", "postgres")),
    ],
)
def test_nothing_is_created_once_pause_has_returned(
    tmp_path: Path, zygote: Zygote, joint_server: OwnServer, database: str, rounds: int, rows: int
) -> None:
    seed = random.randrange(10**6)
    with fleet(tmp_path, zygote, joint_server, database, seed, rows) as made:
        for _ in range(rounds):
            made.play()
        made.complete()
    slowest = max(made.waited)
    print(
        f"seed {seed}: {rounds} pauses, {made.bought} creates before them, {made.paused_runs} runs ended Paused; "
        f"a pause took {sum(made.waited) / rounds:.1f} s, at most {slowest:.1f} s"
    )
    assert made.bought > 0 and made.paused_runs >= rounds
