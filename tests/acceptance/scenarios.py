"""Scenarios of a run, played on real processes; each returns its faults as sentences.

The tests expect none; with a bug seeded in the program (`inject`) there must be some.
"""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from patternmill.ledger.database import LEDGER_FILE
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Ended, Room, Started, Zygote, some_rows, wait_for
from tests.hostile import Hostile, Plan, Rule, Times
from tests.hostile.plan import CREATES
from tests.hostile.record import lines_of

Inject = tuple[str, ...]
NONE: Inject = ()
QUICK_JOBS = Times("uniform", low=0.05, high=0.2)
STOPPED_WINDOW = 8
SPREAD_JOBS = Times("uniform", low=0.8, high=4.0)
#: How long a signal may take to arrive, on a machine that is busy with something else.
HEARD = 2.0


def room_in(
    folder: Path,
    service: Hostile,
    zygote: Zygote,
    *,
    rows: int = 6,
    window: int = 200,
    home: str = "home",
    **settings: str,
) -> Room:
    settings = {f"PATTERNMILL_{name.upper()}": value for name, value in settings.items()}
    settings["PATTERNMILL_MAX_IN_FLIGHT"] = str(window)
    return Room(folder / "room", service, some_rows(rows), zygote, settings, home=home)


def creates_after(record: Path, moment: float) -> list[str]:
    """Creates that the service received after a moment of the clock."""
    return [
        f"{line['operation']} {line['at'] - moment:.2f} s after"
        for line in lines_of(record)
        if line["event"] == "request" and line["operation"] in CREATES and line["at"] > moment
    ]


def finish(room: Room) -> list[str]:
    """The same command once more, with the program as it is; then all invariants."""
    return judged(room, room.run())


def judged(room: Room, ended: Ended) -> list[str]:
    """The invariants of a run that should have made everything."""
    faults = [] if ended.code == 0 else [f"no end: {ended.output}"]
    return faults + Evidence(room).faults(all_made=not faults)


# Answers that are lost, and crashes


def answers_lost(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """Every create is executed, and its first answer lost."""
    rules = tuple(Rule(create, "answer_lost", each=1) for create in CREATES)
    with Hostile(Plan(rules=rules, patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(folder, service, zygote)
        return judged(room, room.run(inject=(*HURRY, *inject)))


def polls_fail(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """The first poll of every job is answered 503."""
    rules = (Rule("jobs/get", "status", {"code": 503}, each=1),)
    with Hostile(Plan(rules=rules, patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(folder, service, zygote)
        return judged(room, room.run(inject=(*HURRY, *inject)))


def killed_after_a_create(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """Killed as soon as the service has executed creates, three times over."""
    with Hostile(Plan(patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(folder, service, zygote)
        for count in (1, 3, 6):
            started = room.start(inject=(*HURRY, *inject))
            wait_for(service.record, '"created"', count=count)
            started.kill()
        return finish(room)


# Two runs of one catalog


def overlapped(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """A second run comes while the first one drives the catalog."""
    with Hostile(Plan(patterns=Times(median=12.0), products=Times(median=0.2)), folder) as service:
        room = room_in(folder, service, zygote, window=8)
        first = room.start(inject=(*HURRY, *inject))
        wait_for(service.record, '"created"')
        before = time.monotonic()
        second = room.start("--out", str(folder / "second"), inject=(*HURRY, *inject)).wait()
        took = time.monotonic() - before
        faults = [] if second.code == 4 else [f"the second run was not refused: {second.output}"]
        faults += [f"it took {took:.1f} s to report it"] if took > 20 else []
        faults += (
            [] if "being driven by run" in second.output else [f"the reason is missing: {second.output}"]
        )
        ended = first.wait()
        return faults + ([f"the first: {ended.output}"] if ended.code else Evidence(room).faults())


def holder_died(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """The run that held the catalog was killed: the next one takes over at once."""
    with Hostile(Plan(patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(folder, service, zygote)
        first = room.start(inject=(*HURRY, *inject))
        wait_for(service.record, '"created"')
        first.kill()
        count, before = len(_asked(service.record)), time.monotonic()
        second = room.start(inject=(*HURRY, *inject))
        wait_for(service.record, '"jobs/get"', count=1)
        while len(_asked(service.record)) == count and second.runs:
            time.sleep(0.01)
        took = time.monotonic() - before
        second.wait()
        return finish(room) + ([f"it took {took:.1f} s to take over"] if took > 18 else [])


def _asked(record: Path) -> list[object]:
    return [line for line in lines_of(record) if line["event"] == "request"]


def holder_stood_still(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """The holder is stopped, another run takes over and makes everything, and the first one is continued."""
    with Hostile(Plan(patterns=Times(median=0.6), products=Times(median=0.6)), folder) as service:
        room = room_in(folder, service, zygote, rows=24, window=6)
        hasty = (*HURRY, "--silence", "1.5")
        # Two requests or more are on record, and wait until they may be sent.
        first = room.start(inject=(*hasty, "--drain", "5", "--create-rate", "2", *inject))
        wait_for(service.record, '"created"', count=4)
        _stop_between_writes(first, room.folder / room.home)
        # Requests that were sent have arrived by now.
        time.sleep(0.3)
        second = room.start("--out", str(folder / "second"), inject=(*hasty, *inject))
        wait_for(service.record, '"products/create"', count=12)
        continued = time.time()
        first.send(signal.SIGCONT)
        late = second.wait()
        ended = first.wait()
        faults = [] if late.code == 0 else [f"the second: {late.output}"]
        fenced = ended.code == 1 and "took over" in ended.output
        faults += [] if fenced else [f"the first was not fenced off: {ended.output}"]
        faults += _sent_twice(service.record, continued)
        # One that stood still may ask for the jobs that it knew of; it may not buy.
        return faults + [fault for fault in finish(room) if not fault.startswith("jobs/get")]


def _stop_between_writes(started: Started, home: Path) -> None:
    """Stop a process while it holds no lock of the database: one that does keeps everybody out until it goes on."""
    ledger = home / LEDGER_FILE
    while True:
        started.send(signal.SIGSTOP)
        _await_stop(started.pid)
        with closing(sqlite3.connect(ledger, timeout=0.2, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                started.send(signal.SIGCONT)
                time.sleep(0.01)
            else:
                return


def _await_stop(pid: int) -> None:
    """SIGSTOP returns before the threads have stopped: one of them could lock the database after we looked."""
    while not _all_stopped(pid):
        time.sleep(0.005)


def _all_stopped(pid: int) -> bool:
    try:
        threads = [thread.read_text() for thread in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        # A thread ended meanwhile.
        return False
    return all(thread.rpartition(")")[2].split()[0] == "T" for thread in threads)


def _sent_twice(record: Path, since: float) -> list[str]:
    """Creates of requests that the service had already, after a moment: of the one that stood still."""
    return [
        f"{line['operation']} of {line['requestId']} was sent again after the takeover"
        for line in lines_of(record)
        if line["event"] == "request"
        and line["operation"] in CREATES
        and line["repeat"]
        and line["at"] > since
    ]


def two_machines(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """Two ledgers that know nothing of one another, one file, at once."""
    with Hostile(Plan(patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        rooms = [room_in(folder, service, zygote, rows=24, window=8, home=home) for home in ("one", "two")]
        started = [room.start(inject=(*HURRY, *inject)) for room in rooms]
        ended = [one.wait() for one in started]
        faults = [one.output for one in ended if one.code]
        evidence = [Evidence(room) for room in rooms]
        faults += [fault for one in evidence for fault in one.faults_of_record()] if not faults else []
        one, two = ([row | {"run": ""} for row in each.results] for each in evidence)
        if not faults and one != two:
            faults.append("the two machines have different products")
        return faults


# A person's stop


def stopped_once(
    folder: Path, zygote: Zygote, inject: Inject = NONE, *, by: signal.Signals = signal.SIGINT
) -> list[str]:
    """One signal: nothing new is bought, what runs is followed to its end, the results show the states."""
    with Hostile(Plan(patterns=SPREAD_JOBS, products=SPREAD_JOBS), folder) as service:
        room = room_in(folder, service, zygote, rows=24, window=STOPPED_WINDOW)
        started = room.start(inject=(*HURRY, *inject))
        wait_for(service.record, '"products/create"', count=2)
        sent = time.time()
        started.send(by)
        ended = started.wait()
        faults = [] if ended.code == 130 else [f"it did not end as interrupted: {ended.output}"]
        faults += creates_after(service.record, sent + HEARD)
        evidence = Evidence(room)
        faults += evidence.faults(all_made=False)
        faults += [f"paid and not waited for: {p.job_id}" for p in evidence.audit.unfinished]
        if "not_started" not in evidence.statuses:
            faults.append("the stop came too late to prove anything")
        stranded = [r for r in evidence.results if r["pattern_id"] and not r["product_id"]]
        faults += (
            [f"{len(stranded)} rows have a pattern without a product"]
            if len(stranded) > STOPPED_WINDOW
            else []
        )
        return faults + finish(room)


def stopped_while_jobs_hang(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """Jobs that do not end bound the drain: what is open keeps its job IDs."""
    with Hostile(Plan(patterns=Times(median=20)), folder) as service:
        room = room_in(folder, service, zygote, rows=3, window=3, job_timeout="PT60S")
        started = room.start(inject=(*HURRY, "--drain", "1.5", *inject))
        wait_for(service.record, '"created"', count=2)
        before = time.monotonic()
        started.send(signal.SIGTERM)
        ended = started.wait()
        took = time.monotonic() - before
        faults = [] if ended.code == 130 else [f"it did not end as interrupted: {ended.output}"]
        faults += [f"the drain of 1.5 s took {took:.1f} s"] if not 1 < took < 19 else []
        faults += ["no row reads cancelled"] if "cancelled" not in Evidence(room).statuses else []
        return faults + finish(room)


def stopped_twice(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """The second signal leaves at once, and the next run goes on."""
    with Hostile(Plan(patterns=Times(median=10)), folder) as service:
        room = room_in(folder, service, zygote, rows=4, window=4)
        started = room.start(inject=(*HURRY, *inject))
        wait_for(service.record, '"created"', count=3)
        started.send(signal.SIGINT)
        time.sleep(0.4)
        faults = [] if started.runs else ["the first signal did not let it drain"]
        before = time.monotonic()
        started.send(signal.SIGINT)
        ended, took = started.wait(), time.monotonic() - before
        faults += [] if ended.code == 130 else [f"it did not end as interrupted: {ended.output}"]
        faults += [f"it took {took:.1f} s"] if took > 9 else []
        return faults + finish(room)


# Limits


def limited_day(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """A day's budget holds over crashes and lost answers; raised, the work goes on to its end."""
    most, prices = 300, {"pattern": 10, "product": 25}
    rules = tuple(Rule(create, "answer_lost", share=0.2, each=1) for create in CREATES)
    with Hostile(Plan(rules=rules, patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(
            folder,
            service,
            zygote,
            rows=24,
            window=4,
            day_budget=str(most),
            pattern_price="10",
            product_price="25",
        )
        for count in (2, 4, 7, 10):
            started = room.start(inject=(*HURRY, *inject))
            wait_for(service.record, '"created"', count=count)
            started.kill()
        ended = room.run(inject=(*HURRY, *inject))
        evidence = Evidence(room)
        spent = sum(prices[purchase.stage] for purchase in evidence.audit.purchases)
        faults = _reached(ended)
        faults += [f"{spent} was spent of {most}"] if not most - 35 < spent <= most else []
        room.settings["PATTERNMILL_DAY_BUDGET"] = "100000"
        return faults + finish(room)


def limited_run(
    folder: Path, zygote: Zygote, inject: Inject = NONE, *, options: tuple[str, ...] = ()
) -> list[str]:
    """A run's limit is met exactly, whatever gets lost; the next run goes on."""
    rules = tuple(Rule(create, "answer_lost", share=0.3, each=1) for create in CREATES)
    plan = Plan(rules=(*rules, Rule("patterns/create", "job_fails", each=1, share=0.2)), patterns=QUICK_JOBS)
    with Hostile(plan, folder) as service:
        room = room_in(folder, service, zygote, rows=16, window=4, pattern_price="10", product_price="25")
        ended = room.run(*options, inject=(*HURRY, *inject))
        evidence = Evidence(room)
        faults = _reached(ended) + evidence.faults(all_made=False) + _overshot(evidence, options)
        return faults + finish(room)


def _reached(ended: Ended) -> list[str]:
    right = ended.code == 3 and "Budget reached" in ended.out
    return [] if right else [f"the limit was not reached: {ended.output}"]


def _overshot(evidence: Evidence, options: tuple[str, ...]) -> list[str]:
    patterns, products = evidence.audit.bought("pattern"), evidence.audit.bought("product")
    is_budget = options[0] == "--budget"
    came_to = 10 * patterns + 25 * products if is_budget else patterns + products
    least = int(options[1]) - (35 if is_budget else 2)
    return [] if least <= came_to <= int(options[1]) else [f"{came_to} for {' '.join(options)}"]


def too_many_failures(folder: Path, zygote: Zygote, inject: Inject = NONE) -> list[str]:
    """More failures than allowed stop new items; what was paid for is finished, and everything is written."""
    rules = (Rule("patterns/create", "job_fails", {"message": "the loom broke"}, share=0.5),)
    with Hostile(Plan(rules=rules, patterns=QUICK_JOBS, products=QUICK_JOBS), folder) as service:
        room = room_in(folder, service, zygote, rows=40, window=4)
        ended = room.run("--max-failures", "3", attempts="1", inject=(*HURRY, *inject))
        evidence = Evidence(room)
        faults = (
            [] if ended.code == 1 and "max-failures" in ended.output else [f"it did not halt: {ended.output}"]
        )
        faults += evidence.faults(all_made=False)
        faults += [f"paid and not waited for: {p.job_id}" for p in evidence.audit.unfinished]
        failed, never = evidence.statuses.count("failed"), evidence.statuses.count("not_started")
        return faults + ([] if 3 < failed < 12 and never > 10 else [f"{failed} failed, {never} not started"])
