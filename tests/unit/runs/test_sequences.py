"""Random sequences of what sources, people, the service and kills may do, judged by a model of the rules (model.py)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.commands.status import Status
from cli.json_output import text_of
from patternmill.errors import ApprovalNeeded, InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.requests import in_doubt, unsettled
from patternmill.ledger.reports.story import stories
from patternmill.orders.picked_rows import read_order
from patternmill.planning.offer import Category, Offer, Option
from patternmill.runs.request import OrderRequest
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.service.outcomes import GAVE_UP, Refusal
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Decided, RowStatus, Stage
from tests.hostile.in_process import ANSWER_LOST, failed, refused
from tests.integrity import problems

from .model import Content, Model, Offered, folded
from .workshop import Cells, Workshop, read_rows

SKUS, PROMPTS = ("1-x", "1_x", "2x", "3x"), ("blue herons", "owls", "Owls")
SIDE, SIDES = "option:print side", ("Front", "Back-Print")
#: The number of products that a run may replace before it asks.
CHANGES = 1
OPEN = ("intended", "accepted", "held")
NAMES = {"cat_tote": "Tote-Bag", "cat_mug": "Mug"}
OFFERED: dict[str, Offered | None] = {
    "known": dict.fromkeys(NAMES, SIDES),
    "lost": {"cat_tote": SIDES},
    "open": dict.fromkeys(NAMES),
    "blind": None,
}


def offer(offered: Offered | None) -> Offer:
    if offered is None:
        return Offer(None, "no categories", False)
    options = (Option("name"), Option("Print side", SIDES))
    return Offer(tuple(Category(id, NAMES[id], options if of else None) for id, of in offered.items()), None)


class Story:
    """One random sequence, with its model."""

    def __init__(self, shop: Workshop, ledger: Ledger, seed: int) -> None:
        self.shop, self.ledger, self.chance, self.model = shop, ledger, random.Random(seed), Model()
        self.rows: dict[str, Cells] = {}
        self.past: list[Cells] = []
        self.log: list[str] = []
        self.limits: dict[str, int] = {}
        #: The skus that runs which died had in their rows or were to retire; the next run ends those runs.
        self.left: set[str] = set()
        self.offer = "known"

    def play(self, steps: int) -> None:
        self._offer("blind" if self.chance.random() < 0.2 else "known")
        for _ in range(3):
            self._edit()
        self._refresh()
        ways = [
            self._refresh,
            self._import,
            self._results,
            self._retry,
            self._remake,
            self._decide,
            self._settle,
        ]
        for _ in range(steps):
            self._disturb()
            if self.chance.random() < 0.4:
                self._edit()
            if self.chance.random() < 0.2:
                self.shop.die_at(self.chance.randint(1, 4))
                self.log.append("dies")
            self.chance.choices(ways, (2, 1, 2, 1, 2, 2, 1))[0]()
            self.shop.service.at_create = lambda create: None
        self._calm()

    # What happens

    def _offer(self, name: str) -> None:
        self.offer = name
        self.shop.service.offer = offer(OFFERED[name])
        self.log.append(f"offer {name}")

    def _edit(self) -> None:
        """Remove a row, rename it, or give it cells: new ones, or those that some row had before."""
        for sku in self.chance.sample(SKUS, self.chance.randint(1, 2)):
            others, what = [other for other in SKUS if other not in self.rows], self.chance.random()
            if sku in self.rows and what < 0.15 and len(self.rows) > 1:
                del self.rows[sku]
            elif sku in self.rows and what < 0.3 and others:
                self.rows[self.chance.choice(others)] = self.rows.pop(sku)
            else:
                self.rows[sku] = self._cells()

    def _cells(self) -> Cells:
        choice = self.chance.choice
        if self.past and choice((True, False)):
            return dict(choice(self.past))
        category, side = (
            ("Tote-Bag", "Tote-Bag", "Mug", "Tot"),
            ("Front", "Front", "Back-Print", "", "Inside"),
        )
        self.past.append({"prompt": choice(PROMPTS), "category": choice(category), "side": choice(side)})
        return dict(self.past[-1])

    def _disturb(self) -> None:
        service, chance = self.shop.service, self.chance
        self.shop.most_items = chance.choice([None, None, None, None, 1, 2])
        if chance.random() < 0.3:
            self._offer(chance.choice(["known", *OFFERED]))
        for name in (*SKUS, *PROMPTS):
            service.on_create[name].clear()
            service.on_follow[name].clear()
            if chance.random() < 0.1:
                held = Refusal(None, "in_doubt", "no")
                service.on_create[name].append(chance.choice([ANSWER_LOST, ANSWER_LOST, held, refused()]))
            if chance.random() < 0.1:
                service.on_follow[name].append(chance.choice([failed(), GAVE_UP]))

    # Steps

    def _sheet(self, rows: Mapping[str, Cells]) -> dict[str, Cells]:
        """Return the rows of a sheet, each in some spelling; categories as they are before any offer was read."""
        is_blind = self.model.offered is None and OFFERED[self.offer] is None
        ways: tuple[Callable[[str], str], ...] = (
            str,
            str.upper,
            lambda text: f" {text.replace('-', '_').lower()} ",
        )
        sheet = {}
        for sku, cells in rows.items():
            respelled = self.chance.choice(ways)
            category = cells["category"] if is_blind else respelled(cells["category"])
            named = self.chance.choice((sku, sku.upper(), f"{sku[:2]} {sku[2:]}"))
            sheet[named] = cells | {"category": category, SIDE: respelled(cells["side"])}
            sheet[named] |= {"option:name": sku}
            del sheet[named]["side"]
        return sheet

    def _refresh(self) -> None:
        sheet = self._sheet(self.rows)
        self.log.append(f"refresh {sheet}")
        terms = {"retire": None, "retire_at_most": "99,100%"}
        self._run(lambda: self.shop.refresh(sheet, **terms), self.rows, is_whole=True)

    def _import(self) -> None:
        some = self.chance.sample(sorted(self.rows), self.chance.randint(1, len(self.rows)))
        rows, takes = {sku: self.rows[sku] for sku in some}, self.chance.choice([1, 1, 2, 3])
        sheet = self._sheet(rows)
        self.log.append(f"import --takes {takes} {sheet}")
        self._run(lambda: self.shop.load_source(sheet, "some.csv", takes=takes), rows, takes=takes)

    def _results(self) -> None:
        """Import the results of any run that has written some, as they are or edited in part."""
        folder, name = (
            self.shop.folder / "results/spring",
            self.chance.choice(["results.csv", "failures.csv"]),
        )
        runs = [run for run in self.shop.runs if (folder / run / "results.csv").is_file()]
        run = self.chance.choice([runs[-1], self.chance.choice(runs)])
        sheet = sheet_of(folder / run / name)
        side = next((column for row in sheet.values() for column in row if folded(column) == SIDE), SIDE)
        cells = {sku: {**row, "side": row.get(side, "")} for sku, row in sheet.items()}
        edits = {sku: self._cells() for sku in sheet if self.chance.random() < 0.4}
        if sheet:
            self.log.append(f"{name} of {run}, edited {edits}")
            changed = {sku: {**new, side: new["side"]} for sku, new in edits.items()}
            self._run(lambda: self.shop.correct(name, changed, run), cells | edits)

    def _retry(self) -> None:
        run = self.chance.choice([self.shop.last, self.chance.choice(self.shop.runs)])
        self.log.append(f"retry {run}")
        self._run(lambda: self.shop.retry(run))

    def _remake(self) -> None:
        named = self.chance.sample(
            sorted(self.model.asked), self.chance.randint(0, min(2, len(self.model.asked)))
        )
        named = [sku for sku in named if sku not in self.model.gone and self.model.asked[sku]]
        ways: list[dict[str, Any]] = [
            {},
            {},
            {"takes": 2},
            {"take": self.chance.randint(1, 3)},
            {"again": True},
        ]
        asked = self.chance.choice(ways) if named else {}
        self.log.append(f"remake {named} {asked}")
        self._run(lambda: self.shop.remake(*named, **asked), takes=asked.get("takes", 1))

    def _decide(self) -> None:
        takes = sorted({(what[1][0], what[2]) for what, _ in self._requests().values()})
        if takes:
            (prompt, take), verdict = self.chance.choice(takes), self.chance.choice(list(Decided))
            self.shop.decide(verdict, prompt, take)
            self.log.append(f"{verdict} {prompt} {take}")
        self._judge()

    def _settle(self) -> None:
        """Decide as a person about some of what is open, as if it was too old to be sent again."""
        for item in unsettled(self.ledger, timedelta(0)):
            decision = self.chance.choice([None, Resolution.RESEND, Resolution.WRITE_OFF])
            if decision is not None:
                self.log.append(f"settle {decision} {item.stage} {item.content}")
                terms = Settlement(decision, "so", "A. Weaver")
                asyncio.run(settle(self.ledger, [item], terms, limit=timedelta(0)))
        self._judge()

    # The run

    def _run(
        self,
        command: Callable[[], object],
        rows: Mapping[str, Cells] | None = None,
        *,
        takes: int = 1,
        is_whole: bool = False,
    ) -> None:
        """Run a command, with a confirmation where it asks for one."""
        shop, model, before = self.shop, self.model, self._requests()
        runs, shop.terms, had = len(shop.runs), {"change_at_most": f"{CHANGES}"}, self._has()
        is_confirmed = False
        try:
            try:
                command()
            except ApprovalNeeded:
                self._require(
                    self._requests() == before and len(shop.runs) == runs, "a refused run did something"
                )
                self.log.append("--confirm changes")
                is_confirmed, shop.terms["confirm"] = True, "changes"
                command()
        except InputRefused as refusal:
            self.log.append(f"refused: {refusal.message}")
        if len(shop.runs) == runs:
            return
        if shop.most_items is not None:
            self.limits[shop.last] = shop.most_items
        model.learn(OFFERED[self.offer])
        model.most_takes = max(model.most_takes, takes)
        contents = {folded_sku(sku): model.read(cells) for sku, cells in (rows or {}).items()}
        for sku, content in contents.items():
            model.asked[sku] |= {content} if content else set()
            model.gone -= {sku} if content else set()
        retired = had.keys() - contents.keys() if is_whole and had.keys() & contents.keys() else set()
        bought = {what for request, (what, _) in self._requests().items() if request not in before}
        replaced = {sku for sku, content, _ in bought if sku in had and had[sku][:2] != (sku, content)}
        self._require(is_confirmed or len(replaced) <= CHANGES, f"{replaced} replaced unasked")
        self._judge()
        self.left |= retired | contents.keys()
        if not shop.is_dead:
            self._judge_catalog(had, contents, retired)
            self._judge_files()
            model.gone |= retired
            self.left.clear()

    # What there is

    def _requests(self) -> dict[str, tuple[tuple[str, Content, int], str]]:
        """Return by request ID what was asked for, a product or a pattern (without a sku), and its state."""
        requests = {}
        self.items: dict[str, tuple[str, Content, int]] = {}
        for request, state, key, stage, own, of in self.ledger.database.rows(
            "SELECT a.request_id, a.state, i.key, i.stage, i.content, p.content FROM attempts a "
            "JOIN items i ON i.key = a.item_key LEFT JOIN items p ON p.key = i.pattern_key ORDER BY a.attempt"
        ):
            content, pattern = json.loads(own), json.loads(of if stage == Stage.PRODUCT else own)
            sides = {folded(name): folded(value) for name, value in content.get("selections", {}).items()}
            row = (pattern["prompt"], content.get("category", ""), sides.get("print side", ""))
            what = folded_sku(content.get("sku", "")), row, pattern.get("take", 1)
            requests[request] = what, state
            self.items[key] = what
        return requests

    def _has(self) -> dict[str, tuple[str, Content, int]]:
        self._requests()
        rows = self.ledger.catalogs.rows("staging", "spring")
        return {folded_sku(row.sku): self.items[row.product_key] for row in rows if row.retired_at is None}

    # The judge

    def _require(self, condition: object, why: str) -> None:
        assert condition, "\n".join((why, *self.log))

    def _judge(self) -> None:
        """Require that nothing was bought twice, lost, bought unasked, or bought over budget."""
        requests, service, ledger = self._requests(), self.shop.service, self.ledger
        for own, detail in ledger.database.rows(
            "SELECT i.content, e.detail FROM events e JOIN attempts a ON a.request_id = e.request_id "
            "JOIN items i ON i.key = a.item_key WHERE e.decision > ''"
        ):
            pattern = json.loads(own)
            if json.loads(detail)["verdict"] == "again":
                again = self.model.again
                again[pattern["prompt"]] = max(again[pattern["prompt"]], pattern.get("take", 1))
        self._require(list(problems(ledger)) == [], "the ledger contradicts itself")
        for run, most in self.limits.items():
            self._require(ledger.purchases.spent_by_run(RunId(run)).items.total() <= most, "over budget")
        self._require(service.jobs.keys() <= requests.keys(), "a job is lost")
        bought = Counter(requests[job][0] for job in service.jobs if requests[job][1] != "failed")
        self._require(not {what: count for what, count in bought.items() if count > 1}, f"twice: {bought}")
        for what in bought:
            self._require(self.model.may_be_bought(*what), f"unasked: {what}")
        lines = text_of(Status(ledger, load_settings(), "spring").sections()).splitlines()
        shown = [re.search(r": (\d+) ", line) for line in lines if line.startswith("Open in")]
        is_open = sum(state in OPEN for _, state in requests.values())
        self._require(
            sum(int(count[1]) for count in shown if count) == is_open, f"status shows {shown}: {is_open}"
        )

    def _judge_catalog(
        self, had: Mapping[str, object], contents: Mapping[str, Content | None], retired: set[str]
    ) -> None:
        """Require that a sku has what was last made for it, and that retired rows are gone and stay so on retries."""
        has = self._has()
        for sku in {*had, *has} - self.left - set(contents):
            self._require(sku in has or sku in retired, f"{sku} is lost")
        for sku in has:
            self._require(sku not in self.model.gone | retired, f"{sku} is gone")
            self._require(has[sku][1] in self.model.asked[sku], f"{sku} has {has[sku]}")
        for sku, content in contents.items():
            if content and self._status(sku) is RowStatus.SUCCEEDED:
                self._require(has[sku][1] == content, f"{sku} has {has[sku]}, and not {content}")

    def _status(self, sku: str) -> RowStatus | None:
        return next((status for name, status in self.shop.rows.items() if folded_sku(name) == sku), None)

    def _judge_files(self) -> None:
        """Require that every file and command names the same product of a sku."""
        folder, ledger = self.shop.folder / "results/spring", self.ledger
        results, rows = sheet_of(folder / "latest/results.csv"), sheet_of(folder / "catalog.csv")
        catalog = {
            folded_sku(sku): row["product_id"] for sku, row in rows.items() if row["status"] == "current"
        }
        current = [row for row in ledger.catalogs.rows("staging", "spring") if row.retired_at is None]
        self._require(
            catalog == {folded_sku(row.sku): row.product_id for row in current}, f"{catalog}: {current}"
        )
        for sku, row in results.items():
            has = catalog.get(folded_sku(sku))
            self._require(
                row["product_id"] in ("", has), f"results have {row['product_id']} for {sku}: {has}"
            )
            (story,) = stories(ledger, sku.strip(), "spring") if sku.strip() else (None,)
            if story is not None and story.now is not None and story.now.status is RowStatus.SUCCEEDED:
                named = story.now.items[-1].result_id
                self._require(named == has, f"explain has {named} for {sku}: {has}")
        for row in current:
            try:
                (line,) = read_order(OrderRequest(sku=(row.sku,), catalog="spring")).planned(ledger).lines
            except InputRefused:
                continue
            self._require(line.product_id == row.product_id, f"{row.sku} is ordered as {line.product_id}")
        counts = Counter(RowStatus(row["status"]).words for row in results.values())
        lines = text_of(Status(ledger, load_settings(), "spring").sections(1)).splitlines()
        status = next(line for line in lines if "rows:" in line).partition("rows:")[2]
        shown = {words: int(count) for count, words in re.findall(r"(\d+) ([a-z ]+)", status)}
        self._require(shown == counts, f"status shows {shown}, and results.csv {counts}")

    def _calm(self) -> None:
        """Require that without faults all that was asked for is made in the end, and then nothing is left to do."""
        self.log.append("calm")
        self._offer("known")
        self.shop.most_items = None
        for script in (*self.shop.service.on_create.values(), *self.shop.service.on_follow.values()):
            script.clear()
        self._refresh()
        for item in unsettled(self.ledger, timedelta(0)):
            can_wait = item in in_doubt(self.ledger, timedelta(hours=12))
            can_resend = can_wait and item.attempt.state is not AttemptState.ACCEPTED
            terms = Settlement(Resolution.RESEND if can_resend else Resolution.WRITE_OFF, "so", "A. Weaver")
            asyncio.run(settle(self.ledger, [item], terms, limit=timedelta(0)))
        for _ in range(2):
            self._refresh()
            self._run(lambda: self.shop.retry(self.shop.last))
        count = len(self.shop.service.jobs)
        self._refresh()
        self._require(len(self.shop.service.jobs) == count, "something was left to do")
        fine = {RowStatus.SUCCEEDED, RowStatus.TO_CHOOSE, RowStatus.DISCARDED}
        for sku, cells in self.rows.items():
            is_fine = self._status(sku) in fine if self.model.read(cells) else True
            self._require(is_fine, f"{sku} is {self._status(sku)}")


def folded_sku(text: str) -> str:
    return "".join(text.split()).casefold()


def sheet_of(path: Path) -> dict[str, Cells]:
    return {row["sku"]: row for row in read_rows(path)}


def play(shop: Workshop, seed: int, steps: int) -> None:
    """Play a sequence with a ledger that stays open, to be read between the runs."""
    with shop.ledger() as ledger:
        Story(shop, ledger, seed).play(steps)


@pytest.mark.parametrize("seed", range(1, 6))
def test_sequences(shop: Workshop, seed: int) -> None:
    play(shop, seed, 8)


#: The seeds of the longer sequences, up to but not including the last: `SEQUENCES=17-18` plays one again.
FIRST, LAST = map(int, os.environ.get("SEQUENCES", "100-400").split("-"))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_many_sequences(shop: Workshop, seed: int) -> None:
    play(shop, seed, 16)
