"""Refinements and uploads at a service that recognises repeated patterns and products, and nothing else.

Nothing promises that these may be sent again: one that may have been made is a person's to settle, with its price.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.settings import Settings
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, some_rows, wait_for
from tests.hostile import ExpectedRow, Hostile, Plan, Rule, Times
from tests.integrity import problems

RECOLOR, UPLOAD = "refine/recolor", "references/create"
EXTRAS = {"refine:recolor": '{"palette": ["#1f3a5f"]}'}
#: Text of every prompt: rules fall on requests, not on the look at whether an operation is there.
ABOUT = "ink"
#: Known by its request ID neither before nor after: the same request again is a second purchase.
FORGETS = tuple(Rule(operation, "forget", repeat=True) for operation in (RECOLOR, UPLOAD))
PRICES = {
    f"PATTERNMILL_{stage}_PRICE": str(price)
    for stage, price in {"REFERENCE": 1, "PATTERN": 10, "REFINEMENT": 5, "PRODUCT": 3}.items()
}


def rows(count: int, **extras: str) -> list[ExpectedRow]:
    return [
        ExpectedRow(row.sku, row.prompt, row.category, row.selections, extras or EXTRAS)
        for row in some_rows(count, shared=0)
    ]


class Shop:
    """A room at the forgetful service."""

    def __init__(self, folder: Path, zygote: Zygote, rows: list[ExpectedRow]) -> None:
        self.service = Hostile(self.plan(), folder / "service")
        self.room = Room(folder / "room", self.service, rows, zygote, dict(PRICES), repeatable=False)

    @staticmethod
    def plan(*rules: Rule) -> Plan:
        short = Times(median=0.05)
        return Plan(rules=(*FORGETS, *rules), patterns=short, products=short)

    def fails(self, operation: str, fault: str, **params: object) -> None:
        """From now on, each time."""
        about = ABOUT if operation == RECOLOR else "data"
        self.service.change(self.plan(Rule(operation, fault, params, matching=about)))

    def recovers(self) -> None:
        self.service.change(self.plan())

    def statuses(self, *options: str, code: int = 3) -> Counter[str]:
        ended = self.room.run(*options)
        assert ended.code == code, ended.output
        assert self.evidence.faults(all_made=False) == []
        with open_ledger(Settings(home=self.room.folder / "home")) as ledger:
            assert list(problems(ledger)) == []
        return Counter(self.evidence.statuses)

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.room)

    def executed(self, operation: str) -> int:
        lines = (json.loads(line) for line in self.service.record.read_text("utf-8").splitlines())
        return sum(line["event"] == "created" and line["operation"] == operation for line in lines)

    def sent(self, operation: str) -> Counter[str]:
        """How often each request reached the service; without the look at whether it is there."""
        lines = (json.loads(line) for line in self.service.record.read_text("utf-8").splitlines())
        asked = (line for line in lines if line["event"] == "request" and line["operation"] == operation)
        return Counter(line["requestId"] for line in asked if line["requestId"])

    @property
    def booked(self) -> int:
        return self.evidence.ledger("SELECT coalesce(sum(amount), 0) FROM spending")[0][0]


@pytest.fixture
def shop(tmp_path: Path, zygote: Zygote) -> Iterator[Shop]:
    with (it := Shop(tmp_path, zygote, rows(3))).service:
        yield it


def test_outage_holds_one_and_buys_it_once(shop: Shop) -> None:
    """The others are left for the next run, which holds one more while the outage lasts; none is ever sent twice."""
    assert "Note: 3 refinements: each is sent once" in shop.room.run("--plan-only").out
    shop.fails(RECOLOR, "answer_lost")
    assert shop.statuses("--budget", "54") == {"held": 1, "cancelled": 2}
    assert shop.executed(RECOLOR) == 1
    assert shop.booked == 3 * 10 + 5
    assert shop.statuses() == {"held": 2, "cancelled": 1}
    shop.recovers()
    assert shop.statuses() == {"held": 2, "succeeded": 1}
    assert set(shop.sent(RECOLOR).values()) == {1} and shop.executed(RECOLOR) == 3
    assert shop.booked == 3 * 10 + 3 * 5 + 3


def test_kill_in_flight_holds_one(shop: Shop) -> None:
    """Of many that are due at once, one is in flight; the next run holds it and makes the others."""
    shop.fails(RECOLOR, "late", delay=5.0)
    started = shop.room.start()
    wait_for(shop.service.record, '"late"')
    started.kill()
    shop.recovers()
    assert shop.statuses() == {"held": 1, "succeeded": 2}
    assert shop.executed(RECOLOR) == 3 and set(shop.sent(RECOLOR).values()) == {1}


def test_upload_is_held_and_its_patterns_are_not_begun(tmp_path: Path, zygote: Zygote) -> None:
    with (shop := Shop(tmp_path, zygote, rows(2, reference="guide.png"))).service:
        shop.fails(UPLOAD, "no_content")
        assert shop.statuses() == {"held": 2}
        assert shop.statuses() == {"held": 2}
        assert shop.executed(UPLOAD) == 1 and shop.executed("patterns/create") == 0
