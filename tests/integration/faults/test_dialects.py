"""A second machine, or one that has lost its ledger, at a service that refuses a request ID that it has."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Room, Zygote, some_rows
from tests.dialects import DIALECTS
from tests.hostile import Hostile, Plan, Rule, Times
from tests.hostile.plan import CREATES, LOOK_UP

QUICK = Times(median=0.05)
#: Each row's requests in another dialect.
RULES = tuple(
    Rule(create, "dialect", {"name": dialect}, matching=f"no. {number},", repeat=True)
    for number, dialect in enumerate(DIALECTS)
    for create in CREATES
)


def test_known_requests_are_held_in_each_dialect_and_bought_once(tmp_path: Path, zygote: Zygote) -> None:
    """Nobody is told to correct a row; where the operations file names a look-up, their jobs are followed."""
    rows = some_rows(len(DIALECTS), shared=0)
    with Hostile(Plan(rules=RULES, patterns=QUICK, products=QUICK), tmp_path / "service") as service:
        first, second, third = (Room(tmp_path / name, service, rows, zygote) for name in ("1", "2", "3"))
        assert first.run(inject=HURRY).code == 0
        bought = len(Evidence(first).audit.purchases)
        assert second.run(inject=HURRY).code == 3
        held = Evidence(second).results
        assert [(row["status"], row["error_code"]) for row in held] == [("held", "repeated_request")] * len(
            rows
        )
        assert not [row["error"] for row in held if "orrect" in row["error"]]
        third.operations.write_text(json.dumps({"staging": {"lookup": LOOK_UP}}))
        ended = third.run(inject=HURRY)
        assert ended.code == 0, ended.output
        ids = [[row["product_id"] for row in Evidence(room).results] for room in (first, third)]
        assert ids[0] == ids[1] and len(Evidence(third).audit.purchases) == bought
