"""The random-kill loop: a catalog is driven by processes that are killed at random moments, until it is done.

`python -m tests.acceptance.kill_loop --kills 2000 [--rows 300] [--ledger postgresql://...] [--restart COMMAND]`
runs it for long, round after round, and prints figures; the test runs one round.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Ended, Room, Started, Zygote, chained_rows, some_rows
from tests.hostile import Hostile, Plan, Rule, Times

CREATES = ("patterns/create", "products/create")
REFINES = ("refine/recolor", "refine/edit")
SHORT = Times("uniform", low=0.05, high=0.3)
#: The share of the kills whose random moment is counted from a process's first work, the rest from its start:
#: on a busy machine a start takes longer than most of them live.
AMID = 0.6


def every(step: int, first: int) -> tuple[int, ...]:
    """A share that surely falls on something."""
    return tuple(range(first, 5000, step))


def mixed_faults() -> tuple[Rule, ...]:
    """About 12 % of the creates go wrong, most of them executed and unanswered; polls fail as well."""
    rules: list[Rule] = []
    for create in CREATES:
        rules += [
            Rule(create, "answer_lost", share=0.05),
            Rule(create, "answer_lost", {"how": "close"}, nth=every(67, 5)),
            Rule(create, "reset_before", nth=every(100, 9)),
            Rule(create, "status", {"code": 500}, nth=every(100, 15)),
            Rule(create, "status", {"code": 500, "execute": True}, nth=every(100, 25)),
            Rule(create, "status", {"code": 503, "execute": True}, nth=every(100, 35)),
            Rule(create, "half_json", nth=every(100, 45)),
            Rule(create, "status", {"code": 429, "retry_after": "0"}, nth=(19, 133)),
            Rule(create, "late", {"delay": 0.25}, nth=(23, 77)),
            Rule(create, "cut", nth=(29, 90)),
            Rule(create, "html", nth=(31, 99)),
            Rule(create, "empty", nth=(37, 101)),
            Rule(create, "no_content", nth=(41, 104)),
            Rule(create, "partial", nth=(43, 107)),
            Rule(create, "proxy_page", nth=(47, 109)),
            Rule(create, "edit", {"remove": ["jobId"]}, nth=(53, 111)),
            Rule(create, "edit", {"set": {"jobId": None}}, nth=(59, 113)),
            Rule(create, "close_after", nth=(11, 61, 131)),
            Rule(create, "deep", nth=(67,)),
            Rule(create, "huge", {"bytes": 6 * 2**20}, nth=(71,)),
            Rule(create, "gzip_bomb", {"bytes": 8 * 2**20}, nth=(73,)),
            Rule(create, "drip", {"interval": 0.02}, nth=(79,)),
            Rule(create, "silence", nth=(83,)),
            # By number, as a share may by chance fall on none; never on both attempts at one thing.
            Rule(
                create,
                "job_fails",
                {"message": "the loom broke"},
                nth=every(25, 13),
                each=1,
            ),
        ]
    rules += [
        Rule("jobs/get", "answer_lost", nth=every(80, 7)),
        Rule("jobs/get", "status", {"code": 503}, nth=every(80, 20)),
        Rule("jobs/get", "unknown_status", nth=every(15, 3), state="running"),
        Rule("jobs/get", "half_json", nth=every(80, 40)),
        Rule("jobs/get", "status", {"code": 404}, nth=every(30, 2), younger=1.5),
        Rule("connect", "reset", nth=(5, 17, 60)),
    ]
    return tuple(rules)


def faults_of_chains() -> tuple[Rule, ...]:
    """The same kinds of faults on refinements and uploads, of which there are fewer."""
    rules: list[Rule] = []
    for create in REFINES:
        rules += [
            Rule(create, "answer_lost", share=0.15),
            Rule(create, "answer_lost", {"how": "close"}, nth=(3, 11)),
            Rule(create, "reset_before", nth=(5,)),
            Rule(create, "status", {"code": 503, "execute": True}, nth=(7,)),
            Rule(create, "half_json", nth=(9,)),
            Rule(create, "job_fails", share=0.15, each=1, params={"message": "the dye ran"}),
        ]
    # The first request for each is the look at whether it is there.
    rules.append(Rule("references/create", "answer_lost", nth=(2,)))
    return (*rules, *mixed_faults())


@dataclass
class Tally:
    """What a loop did, as its proof that it did something."""

    starts: int = 0
    kills: int = 0
    #: Killed while buying: between a run's first intent and its end.
    mid_run: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    rows: int = 0
    purchases: int = 0
    lost_answers: int = 0
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        for name in ("starts", "kills", "mid_run", "rows", "purchases", "lost_answers"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.faults += other.faults


def kill_at_random(
    room: Room, kills: int, dice: random.Random, *, inject: tuple[str, ...] = (), longest: float = 0.9
) -> Tally:
    """Start and kill, `kills` times or until the catalog is done; then let it run to its end."""
    tally = Tally(rows=len(room.rows))
    began = time.monotonic()
    while tally.kills < kills:
        record = room.service.record
        size = record.stat().st_size if record.exists() else 0
        started = room.start(inject=(*HURRY, *inject))
        tally.starts += 1
        if dice.random() < AMID:
            await_work(record, size, started)
        killed = started.outlives(dice.uniform(0.02, longest))
        ended = started.kill() if killed else started.wait()
        tally.kills += ended.code == -9
        tally.codes[ended.code] = tally.codes.get(ended.code, 0) + 1
        if ended.code == 0:
            break
    last = run_until_done(room, tally, inject)
    tally.seconds = time.monotonic() - began
    if last.code != 0:
        tally.faults.append(f"it did not end: {last.output}")
    return tally


def await_work(record: Path, size: int, started: Started) -> None:
    """Until the service was asked to make something, or for a job, since its record had this size."""
    until = time.monotonic() + 60
    while time.monotonic() < until and started.runs:
        with record.open("rb") as file:
            file.seek(size)
            if any(word in file.read() for word in (b'/create"', b'jobs/get"')):
                return
        time.sleep(0.01)


def run_until_done(room: Room, tally: Tally, inject: tuple[str, ...], *, tries: int = 20) -> Ended:
    """A run may end unfinished for a reason of the service or the database; the same command goes on."""
    for _ in range(tries):
        ended = room.start(inject=(*HURRY, *inject)).wait(120)
        tally.starts += 1
        tally.codes[ended.code] = tally.codes.get(ended.code, 0) + 1
        if ended.code == 0:
            break
        time.sleep(0.5)
    return ended


def judge(room: Room, tally: Tally, ledger_url: str | None = None) -> Evidence:
    """Hold the tally against the evidence."""
    evidence = Evidence(room, ledger_url)
    tally.faults += evidence.faults()
    before = room.service.record.read_bytes().count(b"create")
    again = room.run()
    after = room.service.record.read_bytes().count(b"create")
    if again.code != 0 or after != before:
        tally.faults.append(f"a finished catalog cost {after - before} calls: {again.output}")
    tally.purchases = len(evidence.audit.purchases)
    tally.lost_answers = evidence.audit.faults["answer_lost"]
    tally.mid_run = _killed_in_mid_run(evidence)
    return evidence


def _killed_in_mid_run(evidence: Evidence) -> int:
    """Runs without an outcome that had begun to buy."""
    sql = "SELECT DISTINCT r.run_id, r.record, r.catalog FROM events e JOIN runs r ON r.run_id = e.run_id"
    return sum(
        catalog == evidence.room.catalog and "without closing it" in record
        for _, record, catalog in evidence.ledger(sql)
    )


def main() -> int:
    options = _arguments()
    total, zygote, number, restarts = Tally(), Zygote(Path(tempfile.mkdtemp())), 0, 0
    while total.kills < options.kills:
        number += 1
        seed = options.seed or random.randrange(10**9)
        tally, count = _round(options, zygote, seed)
        restarts += count
        total.add(tally)
        print(
            f"round {number}, seed {seed}: {tally.kills} kills ({tally.mid_run} in mid-run), {tally.starts} starts, "
            f"{tally.purchases} purchases, {tally.lost_answers} answers lost, {tally.seconds:.0f} s, "
            f"{len(tally.faults)} faults",
            flush=True,
        )
        for fault in tally.faults[:20]:
            print("  ", fault)
    zygote.close()
    print(
        f"{total.kills} kills ({total.mid_run} in mid-run) over {number} catalogs of {options.rows} rows, "
        f"{total.purchases} purchases, {total.lost_answers} answers lost, {restarts} database restarts, "
        f"{total.seconds:.0f} s: {len(total.faults)} faults"
    )
    return 1 if total.faults else 0


def _round(options: argparse.Namespace, zygote: Zygote, seed: int) -> tuple[Tally, int]:
    rules = faults_of_chains() if options.chains else mixed_faults()
    plan = Plan(seed=seed, rules=rules, patterns=SHORT, products=SHORT)
    settings = {"PATTERNMILL_MAX_IN_FLIGHT": str(options.window)}
    if options.ledger:
        settings["PATTERNMILL_LEDGER_URL"] = options.ledger
    with tempfile.TemporaryDirectory() as folder, Hostile(plan, Path(folder)) as service:
        # The ledger is one for all rounds, so each has a catalog of its own.
        rows = (chained_rows if options.chains else some_rows)(options.rows, about=f"soak-{seed}")
        room = Room(Path(folder) / "room", service, rows, zygote, settings, catalog=f"soak-{seed}")
        restarts = _Restarts(options.restart, options.every)
        tally = kill_at_random(room, 10**6, random.Random(seed), longest=options.longest)
        count = restarts.stop()
        judge(room, tally, options.ledger)
    return tally, count


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kill_loop")
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--chains", action="store_true", help="rows with references and refinements")
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--longest", type=float, default=0.9, help="seconds a process lives at most")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--ledger", help="PATTERNMILL_LEDGER_URL")
    parser.add_argument("--restart", help="a command that restarts the ledger's server")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between restarts")
    return parser.parse_args()


class _Restarts:
    """Runs a command every few seconds until it is stopped."""

    def __init__(self, command: str | None, every: float) -> None:
        self._over = threading.Event()
        self._count = 0
        self._thread: threading.Thread | None = None
        if command:
            work: Callable[[], None] = lambda: self._go(shlex.split(command), every)  # noqa: E731
            self._thread = threading.Thread(target=work, daemon=True)
            self._thread.start()

    def _go(self, command: list[str], every: float) -> None:
        while not self._over.wait(every):
            # The server that it starts would keep a pipe open.
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._count += 1

    def stop(self) -> int:
        self._over.set()
        if self._thread is not None:
            self._thread.join(30)
        return self._count


if __name__ == "__main__":
    sys.exit(main())
