"""A refresh makes the catalog what its source says: every case, as a table.

Each line is a command, what is bought by it, and what there is afterwards: by sku the prompt of its product, and rows
that the run left in another state. `a=owls!` is a row with a misspelled category, which is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.requests import unsettled
from patternmill.planning.offer import Category, Offer
from patternmill.runs.settlement import Decision
from patternmill.settings import load_settings
from patternmill.states import Decided, RowStatus
from tests.hostile.in_process import ANSWER_LOST, OFFER, Service, failed, refused

from .shop import Cells, Shop
from .shop import shop as shop

OFFERS = {
    "known": OFFER,
    "blind": Offer(None, "no categories", False),
    "other": Offer((Category("cat_mug", "Mug", None),), None),
}

CASES = {
    "A to B to A": """
        refresh a=herons               | herons a | a=herons
        refresh a=owls                 | owls a   | a=owls
        refresh a=herons               |          | a=herons
        refresh a=owls                 |          | a=owls""",
    "the offer cannot be read any more": """
        refresh a=herons               | herons a | a=herons
        offer blind                    |          | a=herons
        refresh a=herons b=owls        | owls b   | a=herons b=owls
        refresh a=owls b=owls          | a        | a=owls b=owls
        offer known                    |          | a=owls b=owls
        refresh a=herons b=owls        |          | a=herons b=owls""",
    "what exists stays, whatever is offered": """
        refresh a=herons               | herons a | a=herons
        offer other                    |          | a=herons
        refresh a=herons b=owls        |          | a=herons a:refused b:refused
        offer known                    |          | a=herons a:refused b:refused
        refresh                        | owls b   | a=herons b=owls""",
    "not made, as a request is in doubt": """
        lose herons                    |          |
        refresh a=herons               | herons   | a:in_doubt
        refresh                        | a        | a=herons""",
    "refused": """
        refresh a=herons!              |          | a:refused
        refresh                        |          | a:refused
        refresh a=herons               | herons a | a=herons
        refresh a=owls!                |          | a=herons a:refused
        refresh a=herons               |          | a=herons""",
    "rejected by the service": """
        refuse a                       |          |
        refresh a=herons b=herons      | herons b | b=herons a:failed
        refresh                        |          | b=herons a:failed
        failures                       | a        | a=herons b=herons""",
    "failed, and changed": """
        refresh a=herons               | herons a | a=herons
        fail owls                      |          | a=herons
        refresh a=owls                 | owls     | a=herons a:failed
        refresh                        |          | a=herons a:failed
        refresh a=herons               |          | a=herons""",
    "failures.csv as it is": """
        fail herons                    |          |
        refresh a=herons b=owls        | herons owls b | b=owls a:failed
        failures                       | herons a | a=herons b=owls
        refresh                        |          | a=herons b=owls""",
    "corrected, the source row refused": """
        refresh a=herons! b=owls       | owls b   | b=owls a:refused
        failures a=herons              | herons a | a=herons b=owls
        refresh                        |          | a=herons b=owls a:refused
        refresh a=herons! b=cranes     | cranes b | a=herons b=cranes a:refused""",
    "corrected, the source row failed, and remade": """
        fail herons                    |          |
        refresh a=herons               | herons   | a:failed
        failures a=owls                | owls a   | a=owls
        refresh                        |          | a=owls a:failed
        remake a                       | owls a   | a=owls""",
    "corrected, the source row valid": """
        refresh a=herons               | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        refresh                        |          | a=herons
        results a=owls                 |          | a=owls""",
    "corrected, and the source changed": """
        refresh a=herons!              |          | a:refused
        failures a=owls                | owls a   | a=owls
        refresh a=cranes               | cranes a | a=cranes
        refresh a=owls                 |          | a=owls""",
    "results of an older run": """
        refresh a=herons b=owls        | herons a owls b | a=herons b=owls
        refresh a=cranes b=owls        | cranes a | a=cranes b=owls
        oldest b=geese                 | geese b  | a=herons b=geese
        refresh                        |          | a=cranes b=owls""",
    "corrected, and not made yet": """
        refresh a=herons!              |          | a:refused
        lose owls                      |          | a:refused
        failures a=owls                | owls     | a:in_doubt
        refresh                        |          | a:refused
        again                          | a        | a=owls""",
    "corrected, and the budget reached": """
        refresh a=herons! b=geese!     |          | a:refused b:refused
        budget 2                       |          | a:refused b:refused
        failures a=herons b=geese      | herons a | a=herons b:not_started
        budget                         |          | a=herons b:not_started
        again                          | geese b  | a=herons b=geese""",
    "held, written off and retried": """
        lose a                         |          |
        refresh a=herons               | herons a | a:in_doubt
        write off                      |          | a:in_doubt
        refresh                        |          | a:failed
        failures                       |          | a:failed
        retry                          | a        | a=herons""",
    "gone, and back": """
        refresh a=herons b=owls        | herons a owls b | a=herons b=owls
        refresh a=herons               |          | a=herons
        refresh a=herons b=owls        |          | a=herons b=owls
        refresh a=herons               |          | a=herons
        retry                          |          | a=herons""",
    "gone, and back but refused": """
        refresh a=herons b=owls!       | herons a | a=herons b:refused
        failures b=owls                | owls b   | a=herons b=owls
        refresh a=herons               |          | a=herons
        refresh a=herons b=owls!       |          | a=herons b:refused""",
    "another file of the same catalog": """
        import a=herons                | herons a | a=herons
        other b=owls                   | owls b   | a=herons b=owls
        results b=geese                | geese b  | a=herons b=geese
        other a=herons b=owls          |          | a=herons b=owls
        refresh a=herons               |          | a=herons""",
    "a plain import is a source too": """
        import a=herons                | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        import a=herons                |          | a=herons
        import a=cranes                | cranes a | a=cranes
        refresh                        |          | a=cranes""",
    "a process that dies": """
        refresh a=herons!              |          | a:refused
        dies 1 failures a=herons       |          | a:refused
        again                          | herons a | a=herons
        dies 2 refresh a=owls          | owls     | a=herons
        refresh                        | a        | a=owls""",
    "case and spaces of the sku": """
        refresh a=herons               | herons a | a=herons
        refresh A=herons               |          | a=herons
        results A=owls                 | owls a   | a=owls
        refresh a=owls                 |          | a=owls""",
    "the rest of an older run, retried": """
        fail b                         |          |
        refresh a=herons b=owls        | herons owls a b | a=herons b:failed
        refresh a=geese b=owls         | geese a  | a=geese b:failed
        retry first                    | b        | a=geese b=owls""",
    "retried, though another run has it otherwise": """
        fail herons                    |          |
        refresh a=herons b=owls        | herons owls b | b=owls a:failed
        refresh a=geese b=owls         | geese a  | a=geese b=owls
        retry first                    |          | a=geese b=owls""",
}


@pytest.mark.parametrize("name", CASES)
def test_case(shop: Shop, service: Service, name: str) -> None:
    for line in CASES[name].strip().splitlines():
        command, bought, after = (part.strip() for part in line.split("|"))
        before = len(service.bought)
        do(shop, command)
        assert sorted(service.bought[before:]) == sorted(bought.split()), line
        assert state(shop) == after, line
        assert_same_products(shop)


def test_request_in_doubt_of_a_row_that_is_refused_by_now_is_for_a_person(shop: Shop) -> None:
    shop.service.on_create["a"] = [ANSWER_LOST]
    for category in ("Tote", "Tot"):
        shop.refresh({"a": {"prompt": "herons", "category": category}})
    with open_ledger(load_settings()) as ledger:
        assert unsettled(ledger, load_settings().in_doubt_limit)


def test_correction_in_doubt_of_a_row_whose_source_has_failed_is_for_a_person(shop: Shop) -> None:
    """The source's row asks for its own content again, which stays failed: no run resends the correction."""
    shop.service.on_follow["herons"] = [failed()]
    shop.refresh({"a": {"prompt": "herons"}})
    shop.service.on_create["a"] = [ANSWER_LOST]
    shop.correct("failures.csv", {"a": {"prompt": "owls"}})
    with open_ledger(load_settings()) as ledger:
        assert not unsettled(ledger, load_settings().in_doubt_limit)
    shop.refresh()
    with open_ledger(load_settings()) as ledger:
        assert unsettled(ledger, load_settings().in_doubt_limit)
    shop.load(shop.folder / "corrected.csv")
    assert state(shop) == "a=owls"


def assert_same_products(shop: Shop) -> None:
    """The results of the latest run name the products that the catalog has."""
    folder = shop.folder / "results" / "spring"
    rows = table(folder / "catalog.csv")
    catalog = {row["sku"].lower(): row["product_id"] for row in rows if row["status"] == "current"}
    for row in table(folder / "latest" / "results.csv"):
        assert row["product_id"] in ("", catalog.get(row["sku"].lower())), f"{row['sku']}: {catalog}"


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8-sig").splitlines())) if path.is_file() else []


def state(shop: Shop) -> str:
    has = [f"{sku}={prompt}" for sku, prompt in sorted(shop.has().items())]
    others = [f"{sku}:{status}" for sku, status in sorted(shop.rows.items()) if status != RowStatus.SUCCEEDED]
    return " ".join([*has, *others])


def do(shop: Shop, command: str) -> None:
    if died := re.match(r"dies (\d) ", command):
        shop.die_after(int(died[1]))
        command = command.removeprefix(died[0])
    verb, *words = command.split()
    if words and verb in [*Decided]:
        shop.decide(Decided(verb), words[0], int(words[1]))
        return
    if verb in SCRIPTS:
        SCRIPTS[verb](shop, *words)
        return
    rows = {sku: cells(what) for sku, _, what in (word.partition("=") for word in words) if what}
    match verb:
        case "refresh":
            shop.refresh(rows)
        case "import" | "other":
            shop.load_source(rows, "other.csv" if verb == "other" else "spring.csv")
        case "takes":
            shop.load_source(rows, takes=int(words[0]))
        case "failures" | "results":
            shop.correct(f"{verb}.csv", rows)
        case "oldest":
            shop.correct("results.csv", rows, shop.runs[0])
        case _:
            raise AssertionError(command)


def remake(shop: Shop, sku: str = "", how: str = "", count: str = "") -> None:
    asked = {how: int(count) if count else True} if how else {}
    shop.remake(*filter(None, [sku]), **asked)


SCRIPTS: dict[str, Callable[..., object]] = {
    "again": lambda shop: shop.load(shop.folder / "corrected.csv"),
    "retry": lambda shop, run="latest": shop.retry(shop.runs[0] if run == "first" else run),
    "remake": lambda shop, *words: remake(shop, *words),
    "write": lambda shop, _: shop.settle(Decision.WRITE_OFF),
    "budget": lambda shop, most=None: setattr(shop, "most_items", None if most is None else int(most)),
    "offer": lambda shop, name: shop.offer(OFFERS[name]),
    "fail": lambda shop, name: shop.service.on_follow[name].append(failed()),
    "lose": lambda shop, name: shop.service.on_create[name].append(ANSWER_LOST),
    "refuse": lambda shop, name: shop.service.on_create[name].append(refused("Selections are wrong.")),
}


def cells(what: str) -> Cells:
    """A row's prompt, and its category."""
    named = {"!": "Tot", "~": " tote "}
    return {"prompt": what.rstrip("!~"), "category": named.get(what[-1], "Tote")}
