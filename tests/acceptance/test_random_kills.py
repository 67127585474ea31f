"""SIGKILL at random moments, any number of times, then the same command: nothing twice, nothing lost."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import ExpectedRow, Room, Zygote, chained_rows, some_rows
from tests.acceptance.kill_loop import SHORT, faults_of_chains, judge, kill_at_random, mixed_faults
from tests.hostile import Hostile, Plan, Rule


def killed(
    tmp_path: Path, zygote: Zygote, rules: tuple[Rule, ...], rows: list[ExpectedRow], kills: int
) -> tuple[Plan, Evidence]:
    """Kill runs over these rows so often, and judge them; each test has another seed, which is printed."""
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"KILL_SEED={seed}")
    plan = Plan(seed=seed, rules=rules, patterns=SHORT, products=SHORT)
    with Hostile(plan, tmp_path) as service:
        settings = {"PATTERNMILL_MAX_IN_FLIGHT": "8"}
        room = Room(tmp_path / "room", service, rows, zygote, settings)
        tally = kill_at_random(room, kills + kills // 5, random.Random(seed), longest=0.5)
        evidence = judge(room, tally)
    print(tally, evidence.audit.faults)
    assert tally.faults == []
    assert tally.kills >= kills, "the loop was over before it proved anything"
    assert tally.mid_run >= kills // 8, "the kills hit processes that bought nothing"
    return plan, evidence


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("rows", "kills"), [(60, 8), pytest.param(300, 50, marks=pytest.mark.soak)])
def test_random_kills_buy_nothing_twice(tmp_path: Path, zygote: Zygote, rows: int, kills: int) -> None:
    """With 12 % faults, the service's own record shows no purchase too many."""
    plan, evidence = killed(tmp_path, zygote, mixed_faults(), some_rows(rows), kills)
    creates = evidence.audit.count("patterns/create") + evidence.audit.count("products/create")
    assert evidence.audit.faults.total() > 0.1 * creates
    if rows >= 300:
        assert evidence.audit.unfired(plan) == []


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_random_kills_buy_no_part_of_a_chain_twice(tmp_path: Path, zygote: Zygote) -> None:
    """The same over rows with references and refinements, at a service that answers all of them with jobs."""
    plan, evidence = killed(tmp_path, zygote, faults_of_chains(), chained_rows(200), 50)
    assert evidence.audit.bought("reference") == 1
    assert evidence.audit.count("refine/recolor") > 50
    assert [rule for rule in evidence.audit.unfired(plan) if rule.startswith("ref")] == []
