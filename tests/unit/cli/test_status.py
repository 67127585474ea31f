"""What `status` says of the process that holds a lease, and how a row is found by each of its IDs."""

from __future__ import annotations

import json
import os

import pytest

from cli import main
from patternmill.ledger.leases import this_process
from patternmill.states import AttemptState
from tests.unit.cli.ledgers import HERON, HERON_MUG, Past


@pytest.mark.parametrize("alive", [True, False])
def test_holder_on_this_machine_is_known_by_its_process(
    past: Past, alive: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run whose process is gone crashed; one whose process lives is running."""
    me = this_process()
    run = past.begin(HERON).record
    holder = json.dumps(me if alive else {**me, "born": "long ago"})
    with past.ledger.transaction():
        past.ledger.catalogs.claim_lease(run.environment, run.catalog, run.run_id, holder, over=None)
    assert main.run(["status"]) == 0
    text = capsys.readouterr().out
    assert f"is held by {run.run_id}: {'alive' if alive else 'dead'} (process {os.getpid()})" in text
    assert (": running" if alive else ": crashed") in text.splitlines()[0]


def test_row_is_found_by_each_of_its_ids(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The sku, the product's ID, its jobs and its requests have the same story."""
    run = past.begin(HERON, HERON_MUG)
    run.make("H-1")
    product = run.product("H-2")
    attempts = [run.attempt(product, AttemptState.FAILED), run.attempt(product, AttemptState.SUCCEEDED, 2)]
    ids = {name for one in attempts for name in (one.result_id, one.job_id, one.request_id) if name}
    texts = set()
    for name in ("H-2", product.key, *ids):
        assert main.run(["explain", name]) == 0
        texts.add(capsys.readouterr().out)
    (text,) = texts
    assert len(ids) == 5 and [name for name in ids if name not in text] == []
