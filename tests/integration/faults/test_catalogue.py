"""Faults of the service and around a run, through real sockets: what they lead to, and what they must never cost.

What each answer leads to is a line of a table in `tests/unit/service/test_resend.py`, and the simulation meets all of
them in virtual time. Here real processes meet what they do to a whole command.
"""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Room, Zygote, some_rows, wait_for
from tests.acceptance.kill_loop import mixed_faults
from tests.dialects import DIALECTS
from tests.hostile import Hostile, Plan, Rule, Times
from tests.hostile.certificates import write_certificates
from tests.hostile.plan import CREATES, LOOK_UP

PATTERN = "patterns/create"
PLAN = Plan(patterns=Times(median=0.1), products=Times(median=0.1))
MADE = ["succeeded"] * 3
#: A part of the prompt of the first row.
FIRST = "no. 1"


def room_in(folder: Path, service: Hostile, zygote: Zygote, rows: int = 3, **settings: str) -> Room:
    return Room(folder / "room", service, some_rows(rows, shared=0, goods=1), zygote, settings)


LOST = Rule(PATTERN, "answer_lost", matching=FIRST, each=1)
#: Rules, and of three rows with a prompt each: statuses if they are certain, exit code, what is said and bought.
CASES: dict[str, tuple[tuple[Rule, ...], list[str], int, str, int]] = {
    "20 301 of all": ((Rule(PATTERN, "redirect", {"code": 301}),), [], 1, "STUDIO_URL", 0),
    "31 ID forgotten": ((LOST, Rule(PATTERN, "forget", repeat=True)), MADE, 0, "", 7),
    "46 422 on a resend in doubt": (
        (LOST, Rule(PATTERN, "status", {"code": 422}, matching=FIRST, repeat=True)),
        *(["held", *MADE[1:]], 3, "422", 5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_single_fault(name: str, tmp_path: Path, zygote: Zygote) -> None:
    """The outcome is that of the catalogue, and there is no purchase too many."""
    rules, statuses, code, message, bought = CASES[name]
    plan = Plan(rules=rules, patterns=PLAN.patterns, products=PLAN.products)
    with Hostile(plan, tmp_path) as service:
        room = room_in(tmp_path, service, zygote)
        ended = room.run(inject=HURRY)
        evidence = Evidence(room)
        assert ended.code == code, ended.output
        assert evidence.audit.unfired(plan) == [], "the fault was never met"
        assert message in ended.output + "".join(row["error"] for row in evidence.results)
        assert len(evidence.audit.double_purchases) == (name == "31 ID forgotten")
        assert evidence.audit.strayed == 0, "a redirect was followed"
        assert evidence.audit.changed_bodies == ()
        assert len(evidence.audit.purchases) == bought
        assert sorted(evidence.statuses) == statuses or not statuses


def test_all_survivable_faults_at_once(tmp_path: Path, zygote: Zygote) -> None:
    """Everything is made in one run, or two."""
    lasting = Times("uniform", low=0.5, high=2.0)
    plan = Plan(seed=11, rules=mixed_faults(), patterns=lasting, products=lasting)
    with Hostile(plan, tmp_path) as service:
        room = Room(tmp_path / "room", service, some_rows(120), zygote)
        codes = [room.run().code, room.run().code]
        assert codes[0] in {0, 3} and codes[1] == 0, codes
        assert Evidence(room).faults() == []


@pytest.mark.parametrize(
    ("expired", "host", "trusted"),
    [
        (True, "127.0.0.1", True),
        (False, "10.9.8.7", True),
        (False, "127.0.0.1", False),
        (False, "127.0.0.1", True),
    ],
    ids=["expired", "other host", "unknown authority", "valid"],
)
def test_unverifiable_certificate_stops_the_run(
    expired: bool, host: str, trusted: bool, tmp_path: Path, zygote: Zygote
) -> None:
    """9: the run stops, and not one request goes out; with a valid one of a private authority it succeeds."""
    made = write_certificates(tmp_path / "tls", expired=expired, host=host)
    with Hostile(PLAN, tmp_path, certificate=made.service) as service:
        trust = {"SSL_CERT_FILE": str(made.authority)} if trusted else {}
        ended = room_in(tmp_path, service, zygote, **trust).run()
        if trusted and not expired and host == "127.0.0.1":
            assert ended.code == 0, ended.output
        else:
            assert ended.code == 2 and "certificate" in ended.output, ended.output
            assert not [line for line in service.lines() if line["event"] == "request"]


def test_refused_connections_are_waited_out(tmp_path: Path, zygote: Zygote) -> None:
    """2: nothing listens at first; the run waits, and makes everything."""
    # Bound and not listening: connections are refused, and no other test is given the port meanwhile.
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        service = Hostile(PLAN, tmp_path, port=port)
        service.url = f"http://127.0.0.1:{port}/v1"
        room = room_in(tmp_path, service, zygote)
        # With the pauses that people have: those of a test may all be over before the service is up.
        started = room.start(inject=())
        with service:
            assert started.wait().code == 0
            assert Evidence(room).faults() == []


def test_service_restart_buys_nothing_twice(tmp_path: Path, zygote: Zygote) -> None:
    """19, 4: the service stops in mid-run and restarts with its state: nothing is bought twice."""
    plan = Plan(patterns=Times(median=0.3), products=Times(median=0.3))
    with Hostile(plan, tmp_path) as service:
        room = room_in(tmp_path, service, zygote, 16, PATTERNMILL_MAX_IN_FLIGHT="6")
        started = room.start()
        for count in (4, 12):
            wait_for(service.record, '"created"', count=count)
            service.stop()
            service.start()
        ended = started.wait()
        assert ended.code == 0, ended.output
        assert Evidence(room).faults() == []


def test_expired_key_halts_the_run_and_a_valid_one_resumes_it(tmp_path: Path, zygote: Zygote) -> None:
    """42: what was paid for stays known, nothing new is begun, and with a valid key the run resumes."""
    rules = tuple(Rule(name, "status", {"code": 401}, first=5) for name in (PATTERN, "jobs/get"))
    with Hostile(Plan(rules=rules, patterns=PLAN.patterns), tmp_path) as service:
        room = room_in(tmp_path, service, zygote, 16, PATTERNMILL_MAX_IN_FLIGHT="4")
        ended = room.run()
        assert ended.code == 1 and "PATTERNMILL_API_KEY" in ended.output, ended.output
        refused = [line for line in service.lines() if line.get("status") == 401]
        assert len([line for line in refused if line["operation"] == PATTERN]) <= 4
        service.change(PLAN)
        assert room.run().code == 0
        assert Evidence(room).faults() == []


@pytest.mark.parametrize("older", [False, True], ids=["deleted", "copied back"])
def test_lost_or_older_ledger_buys_nothing_twice(older: bool, tmp_path: Path, zygote: Zygote) -> None:
    """39: without its ledger, or with yesterday's, a run sends the same request IDs: nothing is bought twice."""
    with Hostile(PLAN, tmp_path) as service:
        room = room_in(tmp_path, service, zygote, 12, PATTERNMILL_MAX_IN_FLIGHT="3")
        started = room.start()
        wait_for(service.record, '"created"', count=4)
        started.kill()
        home = room.folder / room.home
        if older:
            shutil.copytree(home, room.folder / "yesterday")
        assert room.run().code == 0
        # Beside its results another ledger would be refused.
        shutil.rmtree(room.out)
        shutil.rmtree(home)
        if older:
            shutil.copytree(room.folder / "yesterday", home)
        assert room.run().code == 0
        assert Evidence(room).faults_of_record() == []


def test_known_requests_are_held_in_each_dialect_and_bought_once(tmp_path: Path, zygote: Zygote) -> None:
    """A second machine, at a service that refuses an ID that it has: nobody is told to correct a row.

    Where the operations file names a look-up, their jobs are followed.
    """
    rules = tuple(
        Rule(create, "dialect", {"name": dialect}, matching=f"no. {number},", repeat=True)
        for number, dialect in enumerate(DIALECTS)
        for create in CREATES
    )
    rows, plan = some_rows(len(DIALECTS), shared=0), Plan(rules=rules, patterns=PLAN.patterns)
    with Hostile(plan, tmp_path / "service") as service:
        first, second, third = (Room(tmp_path / name, service, rows, zygote) for name in "123")
        assert first.run(inject=HURRY).code == 0
        bought = len(Evidence(first).audit.purchases)
        assert second.run(inject=HURRY).code == 3
        held = Evidence(second).results
        assert {(row["status"], row["error_code"]) for row in held} == {("held", "repeated_request")}
        assert not [row["error"] for row in held if "orrect" in row["error"]]
        third.operations.write_text(json.dumps({"staging": {"lookup": LOOK_UP}}))
        ended = third.run(inject=HURRY)
        assert ended.code == 0, ended.output
        ids = [[row["product_id"] for row in Evidence(room).results] for room in (first, third)]
        assert ids[0] == ids[1] and len(Evidence(third).audit.purchases) == bought
