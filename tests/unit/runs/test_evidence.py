"""Responses are evidence: what contradicts the request or the ledger is held, and is not bought a second time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from patternmill.engine.evidence import KnownOwners, contradictions, owner_of_result
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.records import Attempt
from patternmill.service.jobs import read_job
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from tests.integration.ledger.samples import STAGING, at_state

from .fake_studio import Service, Shown, failed, made
from .workshop import Workshop, rows

BODY = {"requestId": "r-1", "patternId": "pat-1", "categoryId": "cat_tote", "selections": {"size": "s"}}
ASKED = Attempt(
    RequestId("r-1"), ItemKey("item"), 1, AttemptState.ACCEPTED, json.dumps(BODY).encode(), "job-1"
)
DONE: Shown = {"status": "succeeded", "result": {"productId": "q-1"}}
#: What a product's job shows, and the code of the contradiction; none: it is believed.
SHOWN: list[tuple[Shown, str]] = [
    (DONE, ""),
    ({"status": "running"}, ""),
    ({**DONE, "jobId": "job-2"}, "wrong_job"),
    ({**DONE, "requestId": "trace-4711", "selections": {"size": "s", "wrap": "none"}}, ""),
    ({**DONE, "kind": "pattern"}, ""),
    ({**DONE, "patternId": "pat-1", "request": BODY}, ""),
    ({**DONE, "patternId": "pat-2"}, "job_of_another_pattern"),
    ({**DONE, "request": {**BODY, "patternId": "pat-2"}}, "job_of_another_pattern"),
    ({"status": "running", "patternId": "pat-2"}, "job_of_another_pattern"),
    (made(Stage.PRODUCT, "q-1", patternId="pat-1"), ""),
    (made(Stage.PRODUCT, "q-1", patternId="pat-2"), "job_of_another_pattern"),
    (made(Stage.PATTERN, "pat-1"), "job_of_another_kind"),
    (failed(), ""),
    ({**failed(), "result": {"productId": None}}, ""),
    ({**failed(), "result": {"productId": "q-1"}}, "failed_with_result"),
    ({**failed(), "productId": "q-1"}, "failed_with_result"),
]


@pytest.mark.parametrize(("shown", "code"), SHOWN)
def test_contradictions_of_a_response(shown: Shown, code: str) -> None:
    job = read_job({"jobId": "job-1", "kind": "build", "result": None} | shown)
    assert job is not None
    assert [found.code for found in contradictions(job, ASKED, Stage.PRODUCT)] == ([code] if code else [])


def test_contradictions_of_the_ledger() -> None:
    job = read_job({"jobId": "job-1", **DONE})
    assert job is not None
    owners = KnownOwners(RequestId("a"), RequestId("b"), RequestId("c"))
    assert [found.code for found in contradictions(job, ASKED, Stage.PRODUCT, owners)] == [
        "job_of_another_item",
        "request_of_another_item",
        "result_of_another_item",
    ]


@pytest.mark.parametrize(
    ("name", "shown", "code"),
    [
        ("F-1", {**failed(), "result": {"productId": "product-of-F-1"}}, "failed_with_result"),
        ("F-1", {**DONE, "patternId": "pattern-of-herons"}, "job_of_another_pattern"),
        ("ferns", {**made(Stage.PATTERN, "pat"), "requestId": "herons"}, "request_of_another_item"),
        ("ferns", {**failed(), "input": {"requestId": "herons"}}, "request_of_another_item"),
    ],
)
@pytest.mark.parametrize("on", ["create", "poll"])
def test_contradicting_responses_are_held(
    shop: Workshop, service: Service, on: str, name: str, shown: Shown, code: str
) -> None:
    """Whichever response they are in, the create's own included; none is a product, and nothing is bought again."""
    shop.run(rows(("H-1", "herons")))
    herons = shop.attempts()["herons"][0].request_id
    shown = json.loads(json.dumps(shown).replace('"herons"', f'"{herons}"'))
    scripts: Any = service.on_create if on == "create" else service.on_follow
    scripts[name] = [shown]
    for _ in range(2):
        ended = shop.run(rows(("H-1", "herons"), ("F-1", "ferns")))
        assert (ended.rows["F-1"].status, ended.rows["F-1"].error_code) == (RowStatus.HELD, code)
        assert service.bought.count(name) == 1


def test_trace_numbers_and_defaults_contradict_nothing(shop: Workshop, service: Service) -> None:
    """A service may have a number of its own for each exchange, and say which options it chose."""
    catalog = [(f"S-{number:02}", f"prompt {number:02}") for number in range(12)]
    for sku, prompt in catalog:
        for name, stage in ((sku, Stage.PRODUCT), (prompt, Stage.PATTERN)):
            own = {"requestId": f"trace of {name}", "selections": {"name": sku, "wrap": "none"}}
            service.on_create[name] = [{"status": "running", **own}]
            service.on_follow[name] = [made(stage, f"{stage}-of-{name}") | own]
    ended = shop.run(rows(*catalog))
    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == 24


def test_results_of_refinements_are_compared(shop: Workshop) -> None:
    """With patterns and refinements; but what it is made of may be changed in place."""
    content = '{"pattern":"herons"}'
    with shop.ledger() as ledger:
        for name in ("herons", "ferns"):
            at_state(ledger, name, AttemptState.SUCCEEDED)
        edit = at_state(ledger, "edit", AttemptState.ACCEPTED, stage=Stage.REFINEMENT, content=content)
        asked = replace(edit, body=b'{"colour":"red"}')
        owners = {
            name: owner_of_result(ledger.purchases, f"made-{name}/1", asked, Stage.REFINEMENT, STAGING)
            for name in ("herons", "ferns", "nobody")
        }
    assert owners == {"herons": None, "ferns": "ferns/1", "nobody": None}
