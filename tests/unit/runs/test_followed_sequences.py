"""Random sequences of what sources, people, services and kills may do, judged by a model of what a refresh follows."""

from __future__ import annotations

import csv
import json
import os
import random
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from patternmill.catalog.offer import Offer
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.settlement import Decision
from patternmill.service.outcomes import No
from patternmill.settings import load_settings
from patternmill.states import AttemptState, RowStatus
from tests.integrity import problems

from .fake_studio import ANSWER_LOST, OFFER, Service, failed
from .followed import Cells, Shop
from .followed import shop as shop

SKUS, PROMPTS = ("a", "b", "c", "d"), ("herons", "owls", "geese", "cranes")
BLIND = Offer(None, "no categories", False)
STEPS = 20
#: What was bought: the sku of a product, the prompt, and the category of a product.
Bought = tuple[str | None, str, str | None]


@dataclass
class Model:
    """The rules: what a file says now where that is not what it said before counts, and everything else stays."""

    said: dict[str, Cells] = field(default_factory=dict)
    answered: dict[str, Cells] = field(default_factory=dict)
    #: Of each run, what it shows of its rows.
    shown: dict[str, dict[str, Cells]] = field(default_factory=dict)
    #: Whatever was asked for.
    ever: set[Bought] = field(default_factory=set)
    in_source: set[str] = field(default_factory=set)
    is_blind: bool = False

    def accepts(self, row: Cells) -> bool:
        return self.is_blind or row["category"] == "Tote"

    def source(self, run: str, rows: dict[str, Cells], *, is_whole: bool) -> None:
        for sku, now in rows.items():
            changes = _changes(self.said.get(sku, {}), now)
            self._answer(sku, self.answered.get(sku, {}) | changes)
        self.said |= rows
        self.in_source = set(rows) if is_whole else self.in_source | set(rows)
        self._show(run, rows)

    def results(self, run: str, of: str, rows: dict[str, Cells]) -> None:
        shown = {}
        for sku, now in rows.items():
            changes = _changes(self.shown[of][sku], now)
            shown[sku] = self.answered[sku] | changes
            if self.accepts(shown[sku]) and sku in self.in_source:
                self._answer(sku, shown[sku])
        self._show(run, rows)
        self.shown[run] |= shown

    def retried(self, run: str, of: str) -> None:
        self.shown[run] = self.shown[of]

    def _answer(self, sku: str, row: Cells) -> None:
        self.answered[sku] = row
        if self.accepts(row):
            self.ever |= {(sku, row["prompt"], row["category"]), (None, row["prompt"], None)}

    def _show(self, run: str, rows: dict[str, Cells]) -> None:
        self.shown[run] = {sku: dict(self.answered[sku]) for sku in rows}


def _changes(before: Cells, now: Cells) -> Cells:
    return {name: text for name, text in now.items() if before.get(name) != text}


def seeds() -> range:
    """The longer ones, from the first to the one before the last: `SEQUENCES=17-18` plays one again."""
    first, last = os.environ.get("SEQUENCES", "100-150").split("-")
    return range(int(first), int(last))


class Sequence:
    """One random sequence, with its model."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop, self.chance, self.model = shop, random.Random(seed), Model()
        self.rows: dict[str, Cells] = {}
        self.log: list[str] = []
        #: Of runs that had a limit of items.
        self.limits: dict[str, int] = {}

    def play(self) -> None:
        self._edit()
        self._source("refresh")
        for _ in range(STEPS):
            self.limits.setdefault(self.shop.last, 99)
            self._disturb()
            step = self.chance.choice(
                ["refresh", "refresh", "import", "results", "results", "retry", "settle"]
            )
            if self.chance.random() < 0.4:
                self._edit()
            if self.chance.random() < 0.2 and step != "settle":
                self.shop.die_after(self.chance.randint(1, 4))
                self.log.append("dies")
            self.log.append(
                f"{step} {self.rows}{' blind' * self.model.is_blind}, limit {self.shop.most_items}"
            )
            self._step(step)
            if self.shop.most_items is not None:
                self.limits.setdefault(self.shop.last, self.shop.most_items)
            self.shop.service.at_create = lambda create: None
            self.judge()
        self._calm()

    def _step(self, step: str) -> None:
        match step:
            case "refresh" | "import":
                self._source(step)
            case "results":
                self._results()
            case "retry":
                self._retry()
            case "settle":
                self.shop.settle(self.chance.choice([Decision.RESEND, Decision.WRITE_OFF]))

    def _edit(self) -> None:
        for sku in self.chance.sample(SKUS, self.chance.randint(1, 2)):
            if sku in self.rows and self.chance.random() < 0.2 and len(self.rows) > 1:
                del self.rows[sku]
            else:
                self.rows[sku] = self._cells()

    def _cells(self) -> Cells:
        category = "Tot" if self.chance.random() < 0.25 else "Tote"
        return {"prompt": self.chance.choice(PROMPTS), "category": category}

    def _disturb(self) -> None:
        """Faults of the service to come, a limit, and an offer that can be read or not."""
        service, chance = self.shop.service, self.chance
        self.shop.most_items = chance.choice([None, None, None, 1, 2])
        self.model.is_blind = chance.random() < 0.2
        self.shop.offer(BLIND if self.model.is_blind else OFFER)
        for name in (*SKUS, *PROMPTS):
            service.on_create[name].clear()
            service.on_follow[name].clear()
            if chance.random() < 0.15:
                service.on_create[name].append(
                    chance.choice(
                        [
                            ANSWER_LOST,
                            No(None, "in_doubt", "no answer"),
                            No(AttemptState.REJECTED, "invalid_request", "no"),
                        ]
                    )
                )
            if chance.random() < 0.15:
                service.on_follow[name].append(failed())

    def _source(self, step: str) -> None:
        file = self.shop.write(self.rows)
        if step == "refresh":
            self.shop.refresh()
        else:
            self.shop.load(file, catalog="spring")
        rows = {sku: dict(cells) for sku, cells in self.rows.items()}
        self.model.source(self.shop.last, rows, is_whole=step == "refresh")

    def _results(self) -> None:
        """Of any run that has written some, in part edited."""
        folder = self.shop.folder / "results" / "spring"
        of = self.chance.choice([run for run in self.shop.runs if (folder / run / "results.csv").is_file()])
        name = self.chance.choice(["results.csv", "failures.csv"])
        with (folder / of / name).open(encoding="utf-8-sig", newline="") as lines:
            file = {
                row["sku"]: {key: row[key] for key in ("prompt", "category")} for row in csv.DictReader(lines)
            }
        if not file:
            return
        assert file.items() <= self.model.shown[of].items(), "results show what counts"
        edits = {sku: self._cells() for sku in file if self.chance.random() < 0.4}
        self.log.append(f"{name} of {of}: {edits}")
        self.shop.correct(name, edits, of)
        self.model.results(self.shop.last, of, file | edits)

    def _retry(self) -> None:
        of = self.shop.retry()
        if of is not None:
            self.model.retried(self.shop.last, of)

    def judge(self) -> None:
        """0 bought twice or without being asked for, 0 above the limit, 0 lost, 0 undone."""
        model, told = self.model, "\n".join(self.log)
        with open_ledger(load_settings()) as ledger:
            assert list(problems(ledger)) == [], told
            for run_id, most in self.limits.items():
                spent = ledger.purchases.spent_by_run(RunId(run_id))
                assert spent.items.total() <= most, f"above its limit\n{told}"
        has = self.shop.has()
        for sku, prompt in has.items():
            assert any((sku, prompt) == asked[:2] for asked in model.ever), f"{sku} undone\n{told}"
        if not self.shop.is_dead:
            made = [sku for sku, status in self.shop.rows.items() if status is RowStatus.SUCCEEDED]
            for sku in made:
                assert has.get(sku) == model.answered[sku]["prompt"], f"{sku} undone\n{told}"
        for what, requests in bought(self.shop.service).items():
            assert what in model.ever, f"{what} was not asked for\n{told}"
            assert len(requests) == 1, f"{what} was bought twice\n{told}"

    def _calm(self) -> None:
        """Without faults everything that was asked for is made in the end."""
        service = self.shop.service
        self.model.is_blind, self.shop.most_items, service.offer = False, None, OFFER
        for scripts in (service.on_create, service.on_follow):
            scripts.clear()
        self._source("refresh")
        for _ in range(2):
            self.shop.settle(Decision.RESEND)
            self._retry()
            self.judge()
        has = self.shop.has()
        assert has.keys() <= set(self.rows), "\n".join(self.log)
        for sku in self.rows:
            row = self.model.answered[sku]
            if row["category"] == "Tote":
                assert has.get(sku) == row["prompt"], f"{sku} lost\n" + "\n".join(self.log)


def bought(service: Service) -> dict[Bought, list[str]]:
    """What the service executed and did not fail, nor a person wrote off: for each thing its requests."""
    found: dict[Bought, list[str]] = defaultdict(list)
    with open_ledger(load_settings()) as ledger:
        rows = ledger.database.rows(
            "SELECT a.request_id, a.state, i.stage, i.sku, i.content, p.content FROM attempts a "
            "JOIN items i ON i.key = a.item_key LEFT JOIN items p ON p.key = i.pattern_key"
        )
    known = {request: rest for request, *rest in rows}
    assert service.jobs.keys() <= known.keys(), "a job is lost"
    for request in service.jobs:
        state, stage, sku, content, pattern = known[request]
        if state != "failed":
            own, prompt = json.loads(content), json.loads(pattern or content)["prompt"]
            category = own["category"].replace("cat_tote", "Tote") if stage == "product" else None
            found[sku, prompt, category].append(request)
    return found


@pytest.mark.parametrize("seed", range(1, 8))
def test_sequences(shop: Shop, seed: int) -> None:
    Sequence(shop, seed).play()


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds())
def test_many_sequences(shop: Shop, seed: int) -> None:
    Sequence(shop, seed).play()
