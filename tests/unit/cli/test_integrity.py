"""What the judge of the tests finds in a ledger."""

from __future__ import annotations

import pytest

from patternmill.states import AttemptState
from tests.integrity import problems
from tests.unit.cli.ledgers import FERN, FOX, HERON, HERON_MUG, REFUSED, Past

#: A fault, by the SQL that makes it, and what the check says of it.
FAULTS = {
    "UPDATE attempts SET job_id = (SELECT min(job_id) FROM attempts) WHERE job_id IS NOT NULL": "belongs to",
    "UPDATE attempts SET result_id = (SELECT min(result_id) FROM attempts) "
    "WHERE result_id IS NOT NULL": "which asked for something else",
    "UPDATE attempts SET attempt = 3 WHERE attempt = 2": "is attempt 3, and the one before it did not fail",
    "UPDATE spending SET amount = amount + 1": "booked on",
    "UPDATE attempts SET state = 'failed' WHERE state = 'held'": "what is on record is",
    "DELETE FROM events WHERE kind = 'accepted'": "went from intended to succeeded",
    "DELETE FROM events WHERE kind = 'intended'": "what is on record is",
    "UPDATE events SET request_id = 'nobody' WHERE kind = 'held'": "its attempt is gone",
    "UPDATE events SET seq = -seq WHERE kind = 'intended' AND request_id IN (SELECT request_id FROM attempts a "
    "JOIN items i ON i.key = a.item_key WHERE i.stage = 'product')": "before what it is built on succeeded",
    "DELETE FROM documents": "The input of run run-1 is gone",
    "UPDATE run_rows SET product_key = 'nothing' WHERE position = 0": "names an item that is gone",
}


def busy(past: Past) -> None:
    """A past with every state, a further attempt, and a request that was withdrawn."""
    others = (f"{name}-1,{name} owls,Mug,11oz,," for name in "ODP")
    run = past.begin(HERON, HERON_MUG, FERN, FOX, REFUSED, *others)
    run.make("H-1")
    run.make("P-1")
    run.attempt(run.product("H-2"), AttemptState.FAILED)
    run.attempt(run.product("H-2"), AttemptState.ACCEPTED, 2)
    run.attempt(run.pattern("F-1"), AttemptState.REJECTED)
    run.attempt(run.pattern("X-1"), AttemptState.HELD)
    run.attempt(run.pattern("O-1"), AttemptState.WITHDRAWN)
    run.attempt(run.pattern("D-1"), AttemptState.INTENDED)
    run.end()


@pytest.mark.parametrize("fault", FAULTS)
def test_each_contradiction_is_found(past: Past, fault: str) -> None:
    """Of a ledger that was tampered with, or written by a faulty program; a sound one has none."""
    busy(past)
    assert list(problems(past.ledger)) == []
    past.ledger.database.execute("PRAGMA foreign_keys=OFF")
    past.ledger.database.execute(fault)
    assert any(FAULTS[fault] in problem for problem in problems(past.ledger))
