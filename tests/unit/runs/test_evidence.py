"""Responses are evidence: what contradicts the request or the ledger is held, and is not bought a second time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from patternmill.engine.evidence import contradictions, owner_of_result
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.records import Attempt
from patternmill.service.jobs import read_job
from patternmill.states import AttemptState, RowStatus, Stage
from tests.hostile.in_process import Service, Shown, failed, made
from tests.integration.ledger.samples import STAGING, at_state

from .workshop import Workshop, rows

BODY = {"requestId": "r-1", "patternId": "pat-1", "categoryId": "cat_tote", "selections": {"size": "s"}}
ASKED = Attempt(
    RequestId("r-1"), ItemKey("item"), 1, AttemptState.ACCEPTED, json.dumps(BODY).encode(), "job-1"
)
DONE: Shown = {"status": "succeeded", "result": {"productId": "q-1"}}
#: What a product's job shows, and the code of the contradiction; an empty one if the job is believed.
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
def test_contradictions_of_a_response(shop: Workshop, shown: Shown, code: str) -> None:
    job = read_job({"jobId": "job-1", "kind": "build", "result": None} | shown)
    assert job is not None
    with shop.ledger() as ledger:
        against = contradictions(ledger.purchases, job, ASKED, Stage.PRODUCT, STAGING)
        goes_on = {"job_of_another_kind", "failed_with_result"}
        assert [(contradiction.code, contradiction.stops) for contradiction in against] == (
            [(code, code not in goes_on)] if code else []
        )


def test_contradictions_of_the_ledger(shop: Workshop) -> None:
    """They are found by the owners of the job, the request ID and the result that are on record."""
    with shop.ledger() as ledger:
        theirs = at_state(ledger, "F-1", AttemptState.SUCCEEDED, stage=Stage.PRODUCT)
        shown = {"requestId": theirs.request_id, "result": {"productId": theirs.result_id}}
        job = read_job({"jobId": theirs.job_id, **DONE, **shown})
        assert job is not None
        own = at_state(ledger, "H-1", AttemptState.INTENDED, stage=Stage.PRODUCT)
        asked = replace(own, body=ASKED.body)
        against = contradictions(ledger.purchases, job, asked, Stage.PRODUCT, STAGING)
        assert [contradiction.code for contradiction in against] == [
            "job_of_another_item",
            "request_of_another_item",
            "result_of_another_item",
        ]


@pytest.mark.parametrize(
    ("name", "shown", "code"),
    [
        ("F-1", {**failed(), "result": {"productId": "pro_job-4"}}, "failed_with_result"),
        ("F-1", {**DONE, "patternId": "pat_job-1"}, "job_of_another_pattern"),
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


def test_results_of_refinements_are_compared(shop: Workshop) -> None:
    """They are compared with patterns and refinements; but a pattern may be refined in place."""
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


@pytest.mark.parametrize(("stage", "owner"), [(Stage.PRODUCT, None), (Stage.CHECKOUT, "one/1")])
def test_same_result_of_the_same_content(shop: Workshop, stage: Stage, owner: str | None) -> None:
    """It is believed of products, which may differ only in their skus; each checkout is paid for by itself."""
    with shop.ledger() as ledger:
        at_state(ledger, "one", AttemptState.SUCCEEDED, stage=stage, content='{"lines":[]}')
        asked = at_state(ledger, "other", AttemptState.ACCEPTED, stage=stage, content='{"lines":[]}')
        assert owner_of_result(ledger.purchases, "made-one/1", asked, stage, STAGING) == owner
