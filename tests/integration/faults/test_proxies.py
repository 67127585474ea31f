"""Faults around a run: the connection to the service, its certificate, the service itself, the ledger's file."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import (
    Room,
    Zygote,
    some_rows,
    wait_for,
)
from tests.acceptance.kill_loop import mixed_faults
from tests.hostile import Hostile, Plan, Rule, Times, audit
from tests.hostile.certificates import write_certificates

PLAN = Plan(patterns=Times(median=0.1), products=Times(median=0.1))


def room_in(folder: Path, service: Hostile, zygote: Zygote, rows: int = 3, **settings: str) -> Room:
    return Room(folder / "room", service, some_rows(rows), zygote, settings)


def test_all_survivable_faults_at_once(tmp_path: Path, zygote: Zygote) -> None:
    """Everything is made in one run, or two."""
    # Long enough that a busy machine asks about them while they run.
    lasting = Times("uniform", low=0.5, high=2.0)
    plan = Plan(seed=11, rules=mixed_faults(), patterns=lasting, products=lasting)
    with Hostile(plan, tmp_path) as service:
        room = Room(tmp_path / "room", service, some_rows(120), zygote)
        codes = [room.run().code, room.run().code]
        assert codes[0] in {0, 3} and codes[1] == 0, codes
        evidence = Evidence(room)
        assert evidence.faults() == []
        assert evidence.audit.unfired(plan) == []


@pytest.mark.parametrize(
    ("expired", "host", "trusted"),
    [(True, "127.0.0.1", True), (False, "10.9.8.7", True), (False, "127.0.0.1", False)],
    ids=["expired", "other host", "unknown authority"],
)
def test_unverifiable_certificate_stops_the_run(
    expired: bool, host: str, trusted: bool, tmp_path: Path, zygote: Zygote
) -> None:
    """9: the run stops, and not one request goes out."""
    made = write_certificates(tmp_path / "tls", expired=expired, host=host)
    with Hostile(PLAN, tmp_path, certificate=made.service) as service:
        trust = {"SSL_CERT_FILE": str(made.authority)} if trusted else {}
        ended = room_in(tmp_path, service, zygote, **trust).run()
        assert ended.code == 2 and "certificate" in ended.output, ended.output
        assert audit(service.record).requests.total() == 0


def test_valid_certificate_of_a_private_authority_is_accepted(tmp_path: Path, zygote: Zygote) -> None:
    """The control of the test before: with a valid certificate the same run succeeds."""
    made = write_certificates(tmp_path / "tls")
    with Hostile(PLAN, tmp_path, certificate=made.service) as service:
        room = room_in(tmp_path, service, zygote, SSL_CERT_FILE=str(made.authority))
        assert room.run().code == 0
        assert Evidence(room).faults() == []


def test_host_name_not_found_stops_the_run(tmp_path: Path, zygote: Zygote) -> None:
    """1: at the start the run stops with the reason."""
    with Hostile(PLAN, tmp_path) as service:
        room = room_in(tmp_path, service, zygote, PATTERNMILL_STUDIO_URL="https://studio.example.invalid/v1")
        ended = room.run()
        assert ended.code == 2 and "name was not found" in ended.output, ended.output


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
        time.sleep(1.0)
        with service:
            assert started.wait().code == 0
            assert Evidence(room).faults() == []


def test_service_restart_buys_nothing_twice(tmp_path: Path, zygote: Zygote) -> None:
    """19, 4: the service stops in mid-run and restarts with its state: nothing is bought twice."""
    plan = Plan(patterns=Times(median=0.3), products=Times(median=0.3))
    with Hostile(plan, tmp_path) as service:
        room = Room(tmp_path / "room", service, some_rows(16), zygote, {"PATTERNMILL_MAX_IN_FLIGHT": "6"})
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
    rules = tuple(Rule(name, "status", {"code": 401}, first=5) for name in ("patterns/create", "jobs/get"))
    with Hostile(Plan(rules=rules, patterns=PLAN.patterns), tmp_path) as service:
        room = room_in(tmp_path, service, zygote, 16, PATTERNMILL_MAX_IN_FLIGHT="4")
        ended = room.run()
        assert ended.code == 1 and "PATTERNMILL_API_KEY" in ended.output, ended.output
        assert audit(service.record).count("patterns/create", 401) <= 4
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
        evidence = Evidence(room)
        assert evidence.faults_of_record() == []
