"""Fault plans: what they may contain, what is refused and why, and which calls a fault fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from studio.instruments.fault_plan import Call, Fault, FaultPlan, load_plan

CLOSE = {"kind": "close"}


def fault(**fields: Any) -> Fault:
    return Fault.model_validate({"on": "patterns/create", "effect": CLOSE, **fields})


def call(operation: str = "patterns/create", **fields: Any) -> Call:
    return Call(operation, **fields)


@pytest.mark.parametrize(
    ("fields", "ordinals"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"nth": [2, 5]}, [2, 5]),
        ({"first": 2}, [1, 2]),
    ],
)
def test_calls_are_chosen_by_their_number(fields: dict[str, Any], ordinals: list[int]) -> None:
    assert [ordinal for ordinal in range(1, 7) if fault(**fields).falls_on(ordinal)] == ordinals


@pytest.mark.parametrize(
    ("fields", "fitting", "other"),
    [
        ({}, call(), call("products/create")),
        ({"on": "creates"}, call("refine/crop"), call("jobs/get")),
        ({"on": "polls"}, call("jobs/get"), call("jobs/list")),
        ({"on": "all"}, call("orders/list"), call("no/operation")),
        ({"requestId": "r1"}, call(request_id="r1"), call(request_id="r10")),
        ({"prompt": "heron"}, call(prompt="Blue HERONS"), call(prompt="ferns")),
        ({"repeated": True}, call(repeated=True), call()),
        ({"repeated": False}, call(), call(repeated=True)),
    ],
)
def test_faults_fit_calls_by_all_conditions(fields: dict[str, Any], fitting: Call, other: Call) -> None:
    assert fault(**fields).fits(fitting)
    assert not fault(**fields).fits(other)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"on": "pattern/create"}, "names no operation: 'pattern/create'"),
        ({"nth": [1], "first": 2}, "only one can be there"),
        ({"nth": [0]}, "greater than or equal to 1"),
        ({"on": "jobs/get", "effect": {"kind": "job_fails"}}, "starts no job"),
        ({"on": "jobs/get", "repeated": True}, "takes no requestId"),
        ({"repeated": True, "effect": {"kind": "job_never_ends"}}, "a repeated request starts no job"),
        ({"effect": {"kind": "explode"}}, "explode"),
        ({"effect": {"kind": "refuse"}}, "is missing"),
        ({"twice": True}, "Extra inputs are not permitted"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    """A fault that never fires because of a typo would show nothing."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"faults": [{"on": "creates", "effect": CLOSE, **fields}]}))

    with pytest.raises(ValueError, match=r"faults\.0") as refused:
        load_plan(path)
    assert reason in str(refused.value)


def test_plans_are_json_or_toml(tmp_path: Path) -> None:
    """The same plan can be read from both."""
    raw = {"faults": [{"on": "creates", "nth": [3], "effect": {"kind": "refuse", "status": 503}}]}
    toml = '[[faults]]\non = "creates"\nnth = [3]\neffect = { kind = "refuse", status = 503 }\n'
    (tmp_path / "plan.json").write_text(json.dumps(raw))
    (tmp_path / "plan.toml").write_text(toml)

    plan = load_plan(tmp_path / "plan.json")
    assert plan == load_plan(tmp_path / "plan.toml")
    assert plan.faults[0].nth == (3,)


def test_faults_have_names_of_their_own() -> None:
    """Those without a name get one, and no two are the same."""
    close = fault().model_dump()
    plan = FaultPlan.model_validate({"faults": [close, {**close, "name": "mine"}, close]})

    assert [one.name for one in plan.named] == ["1 patterns/create close", "mine", "3 patterns/create close"]
    with pytest.raises(ValueError, match="two faults have the name 'mine'"):
        FaultPlan.model_validate({"faults": [{**close, "name": "mine"}] * 2})
