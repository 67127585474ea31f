"""Remakes of a catalog, one command after another: what is bought, and which take each row has afterwards.

A step is a command, what is bought by it, and by sku the take of its product, or why there is none.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.commands.status import Status
from cli.json_output import text_of
from cli.main import run
from patternmill.ledger.reports.requests import in_doubt, unsettled
from patternmill.ledger.reports.story import stories
from patternmill.planning.offer import Category, Offer
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.plan_text import plan_remake
from patternmill.settings import load_settings
from patternmill.states import Decided, Outcome, RowStatus, Stage
from patternmill.text import plural
from tests.hostile.in_process import ANSWER_LOST, OFFER, failed
from tests.integrity import problems

from .test_refresh_cases import do
from .workshop import Workshop, read_rows

CASES = {
    "another take, and a refresh keeps it": """
        refresh a=herons b=owls          | herons owls a b | a1 b1
        remake a                         | herons a        | a2 b1
        remake a                         |                 | a2 b1
        refresh                          |                 | a2 b1
        refresh a=herons b=cranes        | cranes b        | a2 b1""",
    "one more needs a decision": """
        refresh a=herons                 | herons a | a1
        remake a                         | herons a | a2
        remake                           |          | a2
        reject herons 2                  |          | a2
        remake                           |          | a2
        remake a                         | herons a | a3
        remake a                         |          | a3
        remake a again                   | herons a | a4""",
    "a take that is picked, and the rest of its run retried": """
        refresh a=herons                 | herons a | a1
        remake a                         | herons a | a2
        remake a take 1                  |          | a1
        fail b                           |          |
        refresh a=herons b=owls          | owls b   | a1 b:product_failed
        pick herons 2                    |          |
        retry                            | b        | a2 b1""",
    "a shared pattern": """
        refresh a=herons b=herons        | herons a b | a1 b1
        remake a                         | herons a b | a2 b2
        remake b                         |            | a2 b2
        refresh                          |            | a2 b2
        reject herons 2                  |            | a2 b2
        refresh                          |            | a2 b2 a:discarded b:discarded
        remake b                         | herons a b | a3 b3
        remake a take 1                  |            | a1 b1""",
    "takes to choose from": """
        takes 3 a=herons b=herons        | herons herons herons | a:to_choose b:to_choose
        takes 3                          |                      | a:to_choose b:to_choose
        refresh                          |                      | a:to_choose b:to_choose
        pick herons 2                    |                      | a:to_choose b:to_choose
        results                          | a b                  | a2 b2
        refresh                          |                      | a2 b2
        pick herons 3                    |                      | a2 b2
        refresh                          | a b                  | a3 b3
        remake                           |                      | a3 b3""",
    "all takes rejected": """
        takes 2 a=herons                 | herons herons | a:to_choose
        reject herons 1                  |               | a:to_choose
        reject herons 2                  |               | a:to_choose
        refresh                          |               | a:discarded
        takes 2                          |               | a:discarded
        remake                           |               | a:discarded
        remake a                         | herons a      | a3""",
    "a row that waits for a choice keeps its product, whatever exists of its earlier content": """
        refresh a=herons                 | herons a | a1
        refresh a=owls                   | owls a   | a1
        remake a                         | owls a   | a2
        takes 2 b=herons                 | herons   | a2 b:to_choose
        refresh a=herons b=herons        |          | a2 a:to_choose b:to_choose""",
    "nothing is built on what was rejected": """
        fail a                           |          |
        refresh a=herons                 | herons a | a:product_failed
        reject herons 1                  |          | a:product_failed
        retry                            |          | a:product_failed
        refresh a=herons b=herons        |          | a:discarded b:discarded
        remake a                         | herons a b | a2 b2""",
    "a remake that was cut short": """
        refresh a=herons                 | herons a | a1
        budget 1                         |          | a1
        remake a                         |          |
        budget                           |          |
        remake a                         | herons a | a2
        remake a                         |          | a2""",
    "killed, and typed again": """
        refresh a=herons b=herons        | herons a b | a1 b1
        dies 2 remake a                  | herons |
        remake a                         | a b    | a2 b2
        dies 1 remake a again            |        |
        retry                            | herons a b | a3 b3
        remake                           |        | a3 b3""",
    "killed, and retried as many takes": """
        dies 2 takes 3 a=herons          | herons        |
        retry                            | herons herons | a:to_choose
        reject herons 1                  |               | a:to_choose
        takes 3                          |               | a:to_choose
        reject herons 3                  |               | a:to_choose
        takes 3                          | a             | a2""",
    "what was decided, killed at its last request": """
        refresh a=herons b=owls          | herons owls a b | a1 b1
        again herons 1                   |                 | a1 b1
        dies 2 remake                    | herons          |
        remake                           | a               | a2 b1
        refresh                          |                 | a2 b1""",
    "back from a take that failed": """
        refresh a=herons                 | herons a | a1
        fail herons                      |          | a1
        remake a                         | herons   | a1 a:pattern_failed
        remake a take 1                  |          | a1
        remake a take 1                  |          | a1
        refresh                          |          | a1""",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(shop: Workshop, case: str) -> None:
    shop.service.offer = Offer((*(OFFER.categories or ()), Category("cat_mug", "Mug", None)), note=None)
    for step in case.strip().splitlines():
        command, bought, there = (part.strip() for part in step.split("|"))
        before = len(shop.service.bought)
        do(shop, command)
        assert sorted(shop.service.bought[before:]) == sorted(bought.split()), step
        if there:
            assert _there(shop) == set(there.split()), step
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_what_waits_for_a_choice_is_no_change_of_the_source(shop: Workshop) -> None:
    """Only what the source itself has added counts as added; also where all takes were rejected."""
    rows = {"a": {"prompt": "herons"}, "b": {"prompt": "owls"}}
    shop.load_source(rows, takes=2)
    for take in (1, 2):
        shop.decide(Decided.REJECT, "herons", take)
    # As it is; a new row; and one that was gone meanwhile.
    more = rows | {"c": rows["b"]}
    for now, counts in ((rows, (0, 2)), (more, (1, 2)), ({"a": rows["a"]}, (0, 1)), (rows, (1, 1))):
        shop.refresh(now)
        assert (shop.changes["added"], shop.changes["unchanged"]) == counts


@pytest.mark.parametrize("status", ["to_choose", "discarded"])
def test_row_without_a_certain_take_keeps_the_product_that_it_has(shop: Workshop, status: str) -> None:
    """Its run is complete, its results name that product and its pattern, and nothing of it is a failure."""
    folder = shop.folder / "results" / "spring" / "latest"
    shop.refresh({"a": {"prompt": "herons"}})
    (before,) = read_rows(folder / "results.csv")
    shop.load_source({"a": {"prompt": "cranes"}}, takes=2)
    if status == "discarded":
        for take in (1, 2):
            shop.decide(Decided.REJECT, "cranes", take)
        shop.load_source({"a": {"prompt": "cranes"}}, takes=2)
    (now,) = read_rows(folder / "results.csv")
    assert now["status"] == status and now["error"] and not now["error_code"]
    assert (now["product_id"], now["pattern_id"]) == (before["product_id"], before["pattern_id"])
    assert not read_rows(folder / "failures.csv") and shop.retry() is None
    with shop.ledger() as ledger:
        (record, *_) = ledger.runs.find(catalog="spring")
        assert (record.outcome, record.reason) == (Outcome.COMPLETED, None)
        (story,) = stories(ledger, "a")
        assert story.now is not None and story.now.status == status


def test_takes_in_doubt_of_a_row_that_waits_for_a_choice_are_resent(shop: Workshop) -> None:
    """The next import makes them all, whichever of them the row is on record with; none is for a person."""
    shop.service.on_create["herons"] = [ANSWER_LOST] * 2
    shop.load_source({"a": {"prompt": "herons"}}, takes=2)
    with shop.ledger() as ledger:
        limit = timedelta(hours=12)
        assert (len(in_doubt(ledger, limit)), unsettled(ledger, limit)) == (2, [])


def test_failed_product_on_a_rejected_pattern_is_not_retried(shop: Workshop) -> None:
    """Nothing would be made: status, retry and the next run's results say that a person chooses first."""
    shop.service.on_follow["a"] = [failed()] * 3
    shop.refresh({"a": {"prompt": "herons"}})
    with shop.ledger() as ledger:
        assert "patternmill retry" in text_of(Status(ledger, load_settings()).sections())
    shop.decide(Decided.REJECT, "herons")
    with shop.ledger() as ledger:
        assert "patternmill retry" not in text_of(Status(ledger, load_settings()).sections())
    assert shop.retry() is None
    shop.refresh()
    assert _there(shop) == {"a:discarded"}


def _there(shop: Workshop) -> set[str]:
    made = {f"{sku}{take}" for sku, take in shop.takes().items()}
    return made | {
        f"{sku}:{shop.codes[sku] or status}"
        for sku, status in shop.rows.items()
        if status is not RowStatus.SUCCEEDED
    }


def test_row_that_is_not_there_is_named_as_it_was_written(shop: Workshop) -> None:
    shop.refresh({"a": {"prompt": "herons"}})
    assert not shop.remake("A", "Nope")
    assert shop.notes == ("There is no row Nope to remake in catalog spring.",)


PROMPTS = {"a": "herons", "b": "owls", "c": "foxes", "d": "ferns", "e": "ferns"}
#: The number of takes that were made before, the decisions about them, and what a remake then buys.
SUMS = {
    "three picked and one rejected, with their products": (
        1,
        "pick herons 1, pick owls 1, pick foxes 1, reject ferns 1",
        "",
    ),
    "three picked of several, and one rejected": (
        3,
        "pick herons 2, pick owls 1, pick foxes 3, reject ferns 1, reject ferns 2, reject ferns 3",
        "3 products",
    ),
    "another one of a pattern that two rows share": (1, "again ferns 1", "1 pattern and 2 products"),
    "another one of three": (3, "again herons 3", "1 pattern and 1 product"),
    "again, and picked since": (3, "again herons 3, pick herons 2", "1 product"),
    "undecided": (3, "later herons 1, undecided owls 2", ""),
}


@pytest.mark.parametrize("case", SUMS.values(), ids=SUMS)
def test_page_command_and_run_agree(
    shop: Workshop, case: tuple[int, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What the page says that a remake would buy is what the command says, and what it then buys."""
    takes, decisions, expected = case
    shop.load_source({sku: {"prompt": prompt} for sku, prompt in PROMPTS.items()}, takes=takes)
    for decision in decisions.split(", "):
        verdict, prompt, take = decision.split()
        shop.decide(Decided(verdict), prompt, int(take))
    planned = plan_remake(load_settings(), "spring", "staging")
    code, shown = run(("remake", "--catalog", "spring", "--plan-only")), capsys.readouterr()
    had = len(shop.service.bought)
    has_work = shop.remake()
    bought = shop.service.bought[had:]
    if not expected:
        assert (planned, code, has_work, bought) == (None, 2, False, [])
        assert "Nothing to remake" in shown.err
        return
    assert planned is not None and code == 0
    products = len([name for name in bought if name in PROMPTS])
    counts = {Stage.PATTERN: len(bought) - products, Stage.PRODUCT: products}
    assert planned.sum == expected == " and ".join(plural(n, stage) for stage, n in counts.items() if n)
    assert all(line in shown.out for line in planned.lines)
    assert f"Digest of this plan: {planned.digest[:LEAST_DIGEST]}" in shown.out


def test_rows_that_are_refined_in_another_order_are_remade_one_by_one(shop: Workshop) -> None:
    """As no sheet has both of them; each is named for itself."""
    steps = {"refine:recolor": "#abc", "refine:edit": "calmer"}
    shop.load_source({"a": {"prompt": "herons", **steps}})
    shop.load_source({"b": {"prompt": "owls", **dict(reversed(steps.items()))}}, "more.csv")
    assert not shop.remake("a", "b") and "b is refined in another order" in shop.notes[0]
    assert shop.remake("a") and shop.remake("b") and shop.takes() == {"a": 2, "b": 2}
