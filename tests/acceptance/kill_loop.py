"""The random-kill loop: a catalog is driven by processes that are killed at random moments, until it is done.

`python -m tests.acceptance.kill_loop --kills 2000 [--rows 300] [--chains] [--ledger postgresql://...]` plays round
after round for a long time, and prints figures; a test plays one round.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Room, Started, Zygote, chained_rows, some_rows
from tests.hostile import Hostile, Plan, Rule, Times
from tests.hostile.plan import CREATES, REFINE

SHORT = Times("uniform", low=0.05, high=0.3)
#: The share of the kills that are timed from a process's first work; the others are timed from its start, which on a
#: busy machine takes longer than most of them live.
AMID = 0.6
#: The number of times that the same command resumes what a run left unfinished because of the service.
TRIES = 20


def every(step: int, first: int) -> tuple[int, ...]:
    """Return the numbers of the calls that a fault falls on: unlike a random share, they surely hit some."""
    return tuple(range(first, 5000, step))


#: What goes wrong with the creates of these numbers.
_BY_NUMBER: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("answer_lost", {"how": "close"}, every(67, 5)),
    ("reset_before", {}, every(100, 9)),
    ("status", {"code": 500}, every(100, 15)),
    ("status", {"code": 500, "execute": True}, every(100, 25)),
    ("status", {"code": 503, "execute": True}, every(100, 35)),
    ("half_json", {}, every(67, 45)),
    ("status", {"code": 429, "retry_after": "0"}, (19, 133)),
    ("late", {"delay": 0.25}, (23, 77)),
    ("no_content", {}, (41, 104)),
    ("edit", {"remove": ["jobId"]}, (53, 111)),
    ("edit", {"set": {"jobId": None}}, (59, 113)),
    # The fault falls on numbers, as a share may by chance fall on none.
    ("job_fails", {"message": "the loom broke"}, every(25, 13)),
]
_OF_POLLS = (
    Rule("jobs/get", "answer_lost", nth=every(80, 7)),
    Rule("jobs/get", "status", {"code": 503}, nth=every(80, 20)),
    Rule("jobs/get", "edit", {"set": {"status": "pondering"}}, nth=every(15, 3)),
    Rule("jobs/get", "half_json", nth=every(80, 40)),
)
#: The faults of refinements and uploads, which are fewer. The first request for an upload checks whether it is there.
_OF_CHAINS = (
    *(Rule(refine, "answer_lost", share=0.15) for refine in REFINE),
    *(Rule(refine, "reset_before", nth=(5,)) for refine in REFINE),
    *(Rule(refine, "status", {"code": 503, "execute": True}, nth=(7,)) for refine in REFINE),
    *(Rule(refine, "half_json", nth=(9,)) for refine in REFINE),
    *(Rule(refine, "job_fails", {"message": "the dye ran"}, share=0.15, each=1) for refine in REFINE),
    Rule("references/create", "answer_lost", nth=(2,)),
)


def mixed_faults() -> tuple[Rule, ...]:
    """Return faults of about 12 % of the creates, most of them executed and unanswered; polls fail as well."""
    rules: list[Rule] = []
    for create in CREATES:
        rules.append(Rule(create, "answer_lost", share=0.05))
        # A job fails once at most for one thing, so that its next attempt succeeds.
        rules += [
            Rule(create, fault, params, nth=numbers, each=1 if fault == "job_fails" else None)
            for fault, params, numbers in _BY_NUMBER
        ]
    return (*rules, *_OF_POLLS)


def kill_at_random(room: Room, kills: int, dice: random.Random) -> int:
    """Start and kill the command this many times, or until the catalog is done; return how often it was killed."""
    killed = 0
    while killed < kills:
        size = room.service.record.stat().st_size
        started = room.start(inject=HURRY)
        if dice.random() < AMID:
            await_work(room.service.record, size, started)
        if not started.outlives(dice.uniform(0.02, 0.9)):
            if started.wait().code == 0:
                break
            continue
        started.kill()
        killed += 1
    return killed


def await_work(record: Path, size: int, started: Started) -> None:
    """Wait until the service was asked to make something, or for a job, since its record had this size."""
    while started.outlives(0.01):
        with record.open("rb") as file:
            file.seek(size)
            if any(word in file.read() for word in (b'/create"', b'jobs/get"')):
                return


def judge(room: Room, ledger_url: str | None) -> tuple[Evidence, list[str]]:
    """Run the catalog to its end, and check the evidence; a finished one causes no more calls."""
    for _ in range(TRIES):
        ended = room.run()
        if ended.code == 0:
            break
    evidence = Evidence(room, ledger_url)
    faults = [*evidence.faults(), *([f"it did not end: {ended.output}"] if ended.code else [])]
    before = room.service.record.read_bytes().count(b"create")
    again = room.run()
    after = room.service.record.read_bytes().count(b"create")
    if again.code != 0 or after != before:
        faults.append(f"a finished catalog cost {after - before} calls: {again.output}")
    return evidence, faults


def killed_in_mid_run(evidence: Evidence) -> int:
    """Count the runs without an outcome that had begun to buy."""
    sql = "SELECT DISTINCT r.run_id, r.record, r.catalog FROM events e JOIN runs r ON r.run_id = e.run_id"
    return sum(
        catalog == evidence.room.catalog and "without closing it" in record
        for _, record, catalog in evidence.ledger(sql)
    )


def play(options: argparse.Namespace, zygote: Zygote, seed: int) -> tuple[Counter[str], list[str]]:
    """Play one round; return the counts that prove that it did something, and its faults."""
    rules = (*(_OF_CHAINS if options.chains else ()), *mixed_faults())
    plan = Plan(seed=seed, rules=rules, patterns=SHORT, products=SHORT)
    settings = {"PATTERNMILL_MAX_IN_FLIGHT": str(options.window)}
    if options.ledger:
        settings["PATTERNMILL_LEDGER_URL"] = options.ledger
    with tempfile.TemporaryDirectory() as folder, Hostile(plan, Path(folder)) as service:
        # All rounds share one ledger, so each has a catalog of its own.
        rows = (chained_rows if options.chains else some_rows)(options.rows, about=f"soak-{seed}")
        room = Room(Path(folder) / "room", service, rows, zygote, settings, catalog=f"soak-{seed}")
        killed = kill_at_random(room, options.kills, random.Random(seed))
        evidence, faults = judge(room, options.ledger)
        counts = {
            "kills": killed,
            "kills in mid-run": killed_in_mid_run(evidence),
            "purchases": len(evidence.audit.purchases),
            "answers lost": evidence.audit.faults["answer_lost"],
        }
        return Counter(counts), faults


def main(arguments: Sequence[str], zygote: Zygote) -> int:
    """Play rounds until there were enough kills; return whether anything was wrong."""
    options = _parser().parse_args(arguments)
    total, number, faults = Counter[str](), 0, list[str]()
    while total["kills"] < options.kills and not faults:
        number, seed = number + 1, options.seed or random.randrange(10**9)
        counts, faults = play(options, zygote, seed)
        total += counts
        print(f"round {number}, seed {seed}:", _line(counts), *faults[:20], sep="\n  ", flush=True)
    print(f"{_line(total)}; {number} catalogs of {options.rows} rows: {len(faults)} faults")
    return bool(faults)


def _line(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kill_loop")
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--chains", action="store_true", help="rows with references and refinements")
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--ledger", help="PATTERNMILL_LEDGER_URL")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Zygote(Path(tempfile.mkdtemp()))))
