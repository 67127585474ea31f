"""Random sequences of remakes, decisions, refreshes and kills: nothing twice, nothing undone, nothing rejected."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from patternmill.ledger.decisions import last_decisions
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.settlement import Decision as Settled
from patternmill.service.outcomes import No
from patternmill.settings import load_settings
from patternmill.states import UNWANTED, AttemptState, Decided, RowStatus, Stage
from tests.integrity import problems

from .fake_studio import ANSWER_LOST, failed
from .followed import Cells, Shop
from .followed import shop as shop

SKUS, PROMPTS = ("a", "b", "c"), ("herons", "owls")
STEPS = 16
SOAK = range(100, 140)


@dataclass
class Bought:
    """What the service executed, by request: the item, its sku, prompt and take, and the item that it is built on."""

    stage: str
    item: str
    sku: str | None
    prompt: str
    take: int
    parent: str | None
    state: str


@dataclass
class Sequence:
    shop: Shop
    chance: random.Random
    rows: dict[str, Cells] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    #: Prompts of which a take after the first was ever decided against.
    decided: set[str] = field(default_factory=set)

    def play(self) -> None:
        self.rows = {sku: self._cells() for sku in SKUS}
        self.shop.refresh(self.rows)
        for _ in range(STEPS):
            self._disturb()
            step = self.chance.choice(
                [
                    "refresh",
                    "refresh",
                    "changed",
                    "import",
                    "remake",
                    "remake",
                    "remake",
                    "decided",
                    "decide",
                    "take",
                ]
            )
            before, requests, unwanted = self._chosen(), set(self.shop.service.jobs), self._unwanted()
            asked = {create.request_id for create in self.shop.service.creates}
            dies = step not in ("decide",) and self.chance.random() < 0.3
            if dies:
                self.shop.die_after(self.chance.randint(1, 4))
            sku = self.chance.choice(SKUS)
            self.log.append(f"{step} {sku} {self.rows}{' dies' if dies else ''}")
            touched = self._step(step, sku)
            self.shop.service.at_create = lambda create: None
            self._judge(before, touched, requests | asked, unwanted)
        self._calm()

    def _cells(self) -> Cells:
        return {"prompt": self.chance.choice(PROMPTS)}

    def _disturb(self) -> None:
        service = self.shop.service
        for name in (*SKUS, *PROMPTS):
            service.on_create[name].clear()
            service.on_follow[name].clear()
            if self.chance.random() < 0.1:
                no = No(AttemptState.REJECTED, "invalid_request", "no")
                service.on_create[name].append(self.chance.choice([ANSWER_LOST, no]))
            if self.chance.random() < 0.1:
                service.on_follow[name].append(failed())

    def _step(self, step: str, sku: str) -> set[str]:
        """The skus whose take it may change."""
        sharing = {other for other in SKUS if self.rows[other] == self.rows[sku]}
        match step:
            case "refresh":
                self.shop.refresh()
            case "import":
                self.shop.load_source({}, takes=self.chance.choice([1, 2]))
            case "changed":
                self.rows[sku] = self._cells()
                self.shop.refresh(self.rows)
                return {sku}
            case "remake":
                self.shop.remake(sku, takes=self.chance.choice([1, 1, 2]))
                return sharing
            case "decided":
                self.shop.remake()
                return set(SKUS)
            case "take":
                self.shop.remake(sku, take=self.chance.randint(1, 3))
                return sharing
            case "decide":
                takes = [one for one in self._bought().values() if one.stage == "pattern"]
                one, verdict = self.chance.choice(takes), self.chance.choice(list(Decided))
                self.shop.decide(verdict, one.prompt, one.take)
                self.log.append(f"  {verdict} {one.prompt} {one.take}")
                if verdict in UNWANTED and one.take > 1:
                    self.decided.add(one.prompt)
        return set()

    def _judge(
        self, before: dict[str, set[int]], touched: set[str], known: set[str], unwanted: set[str]
    ) -> None:
        told, there, bought = "\n".join(self.log), self.shop.takes(), self._bought()
        with open_ledger(load_settings()) as ledger:
            assert list(problems(ledger)) == [], told
        for sku, takes in before.items():
            assert there.get(sku) in takes or sku in touched, f"{sku} was on {takes}\n{told}"
        made = Counter(one.item for one in bought.values() if one.state != "failed")
        assert set(made.values()) <= {1}, f"bought twice\n{told}"
        for request, one in bought.items():
            if request not in known:
                assert one.parent not in unwanted, f"{one.sku} was built on what was rejected\n{told}"
        for one in bought.values():
            # Two at a time, above a row's first take or a second one that nobody decided against.
            assert one.take <= 3 or one.prompt in self.decided, f"take {one.take} without a decision\n{told}"

    def _calm(self) -> None:
        """Without faults each row is made in the end, on a take that is wanted; and then there is nothing to do."""
        for scripts in (self.shop.service.on_create, self.shop.service.on_follow):
            scripts.clear()
        for one in list(self._bought().values()):
            if one.stage == "pattern":
                self.shop.decide(Decided.REJECT, one.prompt, one.take)
        self.log.append("all rejected")
        self.shop.settle(Settled.RESEND)
        self.shop.remake(*SKUS)
        self.shop.refresh()
        assert self.shop.remake(*SKUS), "\n".join(self.log)
        assert set(self.shop.rows.values()) == {RowStatus.SUCCEEDED}, f"{self.shop.codes}\n" + "\n".join(
            self.log
        )
        assert not {f"{cells['prompt']}" for cells in self.rows.values()} - set(self.shop.has().values())
        count, there = len(self.shop.service.jobs), self.shop.takes()
        self.shop.remake(*SKUS)
        self.shop.refresh()
        assert (len(self.shop.service.jobs), self.shop.takes()) == (count, there), "\n".join(self.log)

    def _chosen(self) -> dict[str, set[int]]:
        """By sku, the take that its product has, and the one that a run was begun to build it on."""
        with open_ledger(load_settings()) as ledger:
            kept = ledger.catalogs.source_rows("staging", "spring")
        begun = {key: row.content.take or 1 for key, row in kept.items() if row.content is not None}
        return {sku: {take, begun.get(sku, take)} for sku, take in self.shop.takes().items()}

    def _unwanted(self) -> set[str]:
        with open_ledger(load_settings()) as ledger:
            decisions = last_decisions(ledger, "staging", "spring")
        return {str(item) for item, one in decisions.items() if one.verdict in UNWANTED}

    def _bought(self) -> dict[str, Bought]:
        with open_ledger(load_settings()) as ledger:
            rows = ledger.database.rows(
                "SELECT a.request_id, i.stage, i.key, i.sku, i.content, p.content, i.pattern_key, a.state "
                "FROM attempts a JOIN items i ON i.key = a.item_key LEFT JOIN items p ON p.key = i.pattern_key"
            )
        found = {}
        for request, stage, item, sku, own, of, parent, state in rows:
            if request in self.shop.service.jobs:
                pattern = json.loads(of if stage == Stage.PRODUCT else own)
                taken = int(pattern.get("take", 1))
                found[request] = Bought(stage, item, sku, pattern["prompt"], taken, parent, state)
        assert found.keys() == self.shop.service.jobs.keys(), "a job is lost"
        return found


@pytest.mark.parametrize("seed", range(1, 7))
def test_sequences(shop: Shop, seed: int) -> None:
    Sequence(shop, random.Random(seed)).play()


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
def test_many_sequences(shop: Shop, seed: int) -> None:
    Sequence(shop, random.Random(seed)).play()
