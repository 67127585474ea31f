"""Remakes of a catalog, one command after another: what is bought, and which take each row has afterwards.

A step is a command, what is bought by it, and by sku the take of its product, or why there is none.
"""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest

from cli.commands.status import status_lines
from patternmill.catalog.offer import Category, Offer
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.unsettled import in_doubt, unsettled
from patternmill.settings import load_settings
from patternmill.states import Decided, RowStatus
from tests.integrity import problems

from .fake_studio import ANSWER_LOST, OFFER, failed
from .followed import Cells, Shop
from .followed import shop as shop

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
        remake                           | herons a | a3
        remake                           |          | a3
        remake a again                   | herons a | a4""",
    "an earlier take costs nothing": """
        refresh a=herons                 | herons a | a1
        remake a                         | herons a | a2
        remake a take 1                  |          | a1
        refresh                          |          | a1
        remake a take 2                  |          | a2
        remake a take 3                  |          | a2""",
    "a shared pattern": """
        refresh a=herons b=herons        | herons a b | a1 b1
        remake a                         | herons a b | a2 b2
        remake b                         |            | a2 b2
        refresh                          |            | a2 b2
        reject herons 2                  |            | a2 b2
        remake b                         | herons a b | a3 b3
        remake a take 1                  |            | a1 b1""",
    "a shared pattern, of which rows have different takes": """
        refresh a=herons                 | herons a   | a1
        remake a                         | herons a   | a2
        refresh a=herons b=herons        |            | a2 b:undecided
        pick herons 1                    |            |
        refresh                          | b          | a2 b1
        undecided herons 1               |            |
        remake a                         | b          | a2 b2""",
    "another cell of a remade row": """
        refresh a=herons                 | herons a | a1
        remake a                         | herons a | a2
        refresh a=herons/Mug             | a        | a2
        refresh a=owls/Mug               | owls a   | a1""",
    "takes to choose from": """
        import 3 a=herons b=herons       | herons herons herons | a:undecided b:undecided
        import 3                         |                      | a:undecided b:undecided
        refresh                          |                      | a:undecided b:undecided
        pick herons 2                    |                      | a:undecided b:undecided
        results                          |                      | a:undecided b:undecided
        refresh                          | a b                  | a2 b2
        pick herons 3                    |                      | a2 b2
        refresh                          |                      | a2 b2
        remake                           | a b                  | a3 b3""",
    "all takes rejected": """
        import 2 a=herons                | herons herons | a:undecided
        reject herons 1                  |               | a:undecided
        reject herons 2                  |               | a:undecided
        refresh                          |               | a:undecided
        import 2                         |               | a:undecided
        remake                           | herons a      | a3""",
    "one take left": """
        import 2 a=herons                | herons herons | a:undecided
        again herons 1                   |               | a:undecided
        refresh                          | a             | a2""",
    "takes to choose from, of what exists": """
        refresh a=herons                 | herons a      | a1
        remake a takes 2                 | herons herons | a1
        remake a takes 2                 |               | a1
        refresh                          |               | a1
        pick herons 3                    |               | a1
        refresh                          |               | a1
        remake                           | a             | a3""",
    "nothing is built on what was rejected": """
        fail a                           |          |
        refresh a=herons                 | herons a | a:product_failed
        reject herons 1                  |          | a:product_failed
        retry                            |          | a:product_failed
        refresh a=herons b=herons        |          | a:undecided b:undecided
        remake a                         | herons a b | a2 b2""",
    "a remake that was cut short": """
        refresh a=herons                 | herons a | a1
        reject herons 1                  |          | a1
        limit 1                          |          | a1
        remake                           |          |
        limit                            |          |
        remake                           | herons a | a2""",
    "a take that failed": """
        refresh a=herons                 | herons a | a1
        fail herons                      |          | a1
        remake a                         | herons   | a1 a:pattern_failed
        refresh                          |          | a1 a:pattern_failed
        remake a                         | herons a | a2""",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(shop: Shop, case: str) -> None:
    shop.service.offer = Offer((*(OFFER.categories or ()), Category("cat_mug", "Mug", None)), note=None)
    for step in case.strip().splitlines():
        command, bought, there = (part.strip() for part in step.split("|"))
        before = len(shop.service.bought)
        _run(shop, command.split())
        assert sorted(shop.service.bought[before:]) == sorted(bought.split()), step
        if there:
            assert _there(shop) == set(there.split()), step
    with open_ledger(load_settings()) as ledger:
        assert list(problems(ledger)) == []


def test_what_waits_for_a_choice_is_no_change_of_the_source(shop: Shop) -> None:
    """Only what the source itself has added counts as added; also where all takes were rejected."""
    rows = {"a": {"prompt": "herons"}, "b": {"prompt": "owls"}}
    shop.load_source(rows, takes=2)
    for _ in range(2):
        shop.refresh()
        assert (shop.changes["added"], shop.changes["unchanged"]) == (0, 2)
        for take in (1, 2):
            shop.decide(Decided.REJECT, "herons", take)
    # A new row, and one that was gone meanwhile.
    for now, counts in ((rows | {"c": rows["b"]}, (1, 2)), ({"a": rows["a"]}, (0, 1)), (rows, (1, 1))):
        shop.refresh(now)
        assert (shop.changes["added"], shop.changes["unchanged"]) == counts


def test_takes_in_doubt_of_a_row_that_waits_for_a_choice_are_resent(shop: Shop) -> None:
    """The next import makes them all, whichever of them the row is on record with; none is for a person."""
    shop.service.on_create["herons"] = [ANSWER_LOST] * 2
    shop.load_source({"a": {"prompt": "herons"}}, takes=2)
    with open_ledger(load_settings()) as ledger:
        limit = timedelta(hours=12)
        assert (len(in_doubt(ledger, limit)), unsettled(ledger, limit)) == (2, [])


def test_failed_product_on_a_rejected_pattern_is_not_retried(shop: Shop) -> None:
    """Nothing would be made: status, retry and the next run's results say that a person chooses first."""
    shop.service.on_follow["a"] = [failed()] * 3
    shop.refresh({"a": {"prompt": "herons"}})
    with open_ledger(load_settings()) as ledger:
        assert any(
            "patternmill retry" in line for line in status_lines(ledger, load_settings(), None, None, None)
        )
    shop.decide(Decided.REJECT, "herons")
    with open_ledger(load_settings()) as ledger:
        lines = status_lines(ledger, load_settings(), None, None, None)
        assert not any("patternmill retry" in line for line in lines)
    assert shop.retry() is None
    shop.refresh()
    assert _there(shop) == {"a:undecided"}


def _run(shop: Shop, words: list[str]) -> None:
    verb, *rest = words
    rows = dict(word.split("=") for word in rest if "=" in word)
    match verb:
        case "refresh":
            shop.refresh(_rows(rows))
        case "import":
            shop.load_source(_rows(rows), takes=int(rest[0]))
        case "remake":
            _remake(shop, rest)
        case "limit":
            shop.most_items = int(rest[0]) if rest else None
        case "results":
            shop.correct("results.csv", {})
        case "retry":
            shop.retry()
        case "fail":
            shop.service.on_follow[rest[0]].append(failed())
        case _:
            shop.decide(Decided(verb), rest[0], int(rest[1]))


def _remake(shop: Shop, words: list[str]) -> None:
    match words:
        case []:
            shop.remake()
        case [sku]:
            shop.remake(sku)
        case [sku, "takes", count]:
            shop.remake(sku, takes=int(count))
        case [sku, "take", number]:
            shop.remake(sku, take=int(number))
        case [sku, "again"]:
            shop.remake(sku, again=True)


def _rows(texts: dict[str, str]) -> dict[str, Cells]:
    rows = {}
    for sku, text in texts.items():
        prompt, _, category = text.partition("/")
        rows[sku] = {"prompt": prompt, "category": category or "Tote"}
    return rows


def _there(shop: Shop) -> set[str]:
    made = {f"{sku}{take}" for sku, take in shop.takes().items()}
    return made | {
        f"{sku}:{shop.codes[sku]}" for sku, status in shop.rows.items() if status is not RowStatus.SUCCEEDED
    }


def test_file_of_decisions_remakes_what_it_decides_against(shop: Shop) -> None:
    """What it picks stays as it is; the same file again resumes the same take."""
    shop.refresh({"a": {"prompt": "herons"}, "b": {"prompt": "owls"}})
    text = (shop.folder / "results" / "spring" / "latest" / "results.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    file = shop.folder / "decided.csv"
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"decision": {"a": "pick", "b": "again"}[row["sku"]]} for row in rows)
    for _ in range(2):
        shop.remake(picks=file)
        assert shop.takes() == {"a": 1, "b": 2}
    assert shop.service.bought[4:] == ["owls", "b"]


def test_row_that_is_not_there_is_named_as_it_was_written(shop: Shop) -> None:
    shop.refresh({"a": {"prompt": "herons"}})
    assert not shop.remake("A", "Nope")
    assert shop.notes == ("There is no row Nope to remake in catalog spring.",)
