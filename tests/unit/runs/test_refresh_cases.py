"""A refresh makes the catalog what its source says: every case, as a table; and which changes ask a person.

Each line is a command, what is bought by it, and what there is afterwards: by sku the prompt of its product, and rows
that the run left in another state. `a=owls!` is a row with a misspelled category, which is refused.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patternmill.errors import ApprovalNeeded
from patternmill.ledger.reports.requests import unsettled
from patternmill.planning.offer import Category, Offer
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.runs.preview import change_lines
from patternmill.runs.results_files import rebuild
from patternmill.runs.settlement import Resolution
from patternmill.settings import load_settings
from patternmill.states import Decided, Outcome, RowStatus
from tests.hostile.in_process import ANSWER_LOST, OFFER, Service, failed, refused

from .workshop import Cells, Workshop, read_rows

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
    "its take rejected while its product is in doubt": """
        refresh a=herons               | herons a | a=herons
        lose a                         |          | a=herons
        remake a                       | herons a | a=herons a:in_doubt
        reject herons 2                |          | a=herons a:in_doubt
        retry                          |          | a=herons a:discarded
        refresh                        |          | a=herons a:discarded""",
    "gone, and back": """
        refresh a=herons b=owls        | herons a owls b | a=herons b=owls
        refresh a=herons               |          | a=herons
        refresh a=herons b=owls        |          | a=herons b=owls
        refresh a=herons               |          | a=herons
        retry                          |          | a=herons""",
    "another file of the same catalog": """
        import a=herons                | herons a | a=herons
        other b=owls                   | owls b   | a=herons b=owls
        results b=geese                | geese b  | a=herons b=geese
        other a=herons b=owls          |          | a=herons b=owls
        refresh a=herons               |          | a=herons""",
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
}


@pytest.mark.parametrize("name", CASES)
def test_case(shop: Workshop, service: Service, name: str) -> None:
    for line in CASES[name].strip().splitlines():
        command, bought, after = (part.strip() for part in line.split("|"))
        before = len(service.bought)
        do(shop, command)
        assert sorted(service.bought[before:]) == sorted(bought.split()), line
        assert state(shop) == after, line
        assert_same_products(shop)


def test_doubt_that_no_row_asks_for_any_more_is_for_a_person(shop: Workshop) -> None:
    """Its row is refused by now; or the source's own row, which has failed, asks again where it was corrected."""

    def is_for_a_person() -> bool:
        with shop.ledger() as ledger:
            return bool(unsettled(ledger, load_settings().in_doubt_limit))

    shop.service.on_create["b"] = [ANSWER_LOST]
    shop.service.on_follow["herons"] = [failed()]
    shop.refresh({"a": {"prompt": "herons"}, "b": {"prompt": "geese"}})
    assert not is_for_a_person()
    shop.refresh({"a": {"prompt": "herons"}, "b": {"prompt": "geese", "category": "Tot"}})
    assert is_for_a_person()
    shop.refresh({"a": {"prompt": "herons"}, "b": {"prompt": "geese"}})
    shop.service.on_create["a"] = [ANSWER_LOST]
    shop.correct("failures.csv", {"a": {"prompt": "owls"}})
    assert not is_for_a_person()
    shop.refresh()
    assert is_for_a_person()
    shop.load(shop.folder / "corrected.csv")
    assert state(shop) == "a=owls b=geese"


def assert_same_products(shop: Workshop) -> None:
    """The results of the latest run name the products that the catalog has."""
    folder = shop.folder / "results" / "spring"
    rows = read_rows(folder / "catalog.csv")
    catalog = {row["sku"].lower(): row["product_id"] for row in rows if row["status"] == "current"}
    for row in read_rows(folder / "latest" / "results.csv"):
        assert row["product_id"] in ("", catalog.get(row["sku"].lower())), f"{row['sku']}: {catalog}"


def state(shop: Workshop) -> str:
    has = [f"{sku}={prompt}" for sku, prompt in sorted(shop.has().items())]
    others = [f"{sku}:{status}" for sku, status in sorted(shop.rows.items()) if status != RowStatus.SUCCEEDED]
    return " ".join([*has, *others])


def do(shop: Workshop, command: str) -> None:
    if died := re.match(r"dies (\d) ", command):
        shop.die_at(int(died[1]))
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


def remake(shop: Workshop, sku: str = "", how: str = "", count: str = "") -> None:
    asked = {how: int(count) if count else True} if how else {}
    shop.remake(*filter(None, [sku]), **asked)


SCRIPTS: dict[str, Callable[..., object]] = {
    "again": lambda shop: shop.load(shop.folder / "corrected.csv"),
    "retry": lambda shop, run="latest": shop.retry(shop.runs[0] if run == "first" else run),
    "remake": lambda shop, *words: remake(shop, *words),
    "write": lambda shop, _: shop.settle(Resolution.WRITE_OFF),
    "budget": lambda shop, most=None: setattr(shop, "most_items", None if most is None else int(most)),
    "offer": lambda shop, name: setattr(shop.service, "offer", OFFERS[name]),
    "fail": lambda shop, name: shop.service.on_follow[name].append(failed()),
    "lose": lambda shop, name: shop.service.on_create[name].append(ANSWER_LOST),
    "refuse": lambda shop, name: shop.service.on_create[name].append(refused("Selections are wrong.")),
}


def cells(what: str) -> Cells:
    """Return the cells of a row: its prompt and its category."""
    return {"prompt": what.rstrip("!"), "category": "Tot" if what.endswith("!") else "Tote"}


# -- what a refresh writes, and what it retires


def test_files_of_a_refresh(shop: Workshop, tmp_path: Path) -> None:
    """Each change with what it replaces; they have the same bytes whenever they are rebuilt from the ledger."""
    shop.refresh({sku: {"prompt": "herons"} for sku in "abc"})
    old = shop.products()
    shop.refresh(
        {"a": {"prompt": "herons", "option:name": "x"}, "b": {"prompt": "owls"}, "d": {"prompt": "herons"}}
    )
    run, new = shop.work.record, shop.products()
    assert shop.changes == {"added": 1, "changed": 2, "retired": 1}
    changes = {row["sku"]: row for row in read_rows(shop.work.published.out / "changes.csv")}
    assert {sku: row["fields"] for sku, row in changes.items()} == {
        "a": "option:name",
        "b": "prompt",
        "c": "",
        "d": "",
    }
    for sku in "ab":
        row = changes[sku]
        assert (row["old_product_id"], row["old_pattern_id"]) == old[sku]
        assert (row["new_product_id"], row["new_pattern_id"]) == new[sku] != old[sku]
    assert new["a"][1] == old["a"][1] and changes["c"]["status"] == "retired"
    before = {file.name: file.read_bytes() for file in shop.work.published.out.iterdir()}
    shop.refresh({"a": {"prompt": "herons"}})
    with shop.ledger() as ledger:
        rebuild(ledger, run, tmp_path / "again")
    assert {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()} == before
    assert json.loads(before["manifest.json"])["options"]["changes"]["changed"] == 2


def test_spelling_of_a_source_changes_nothing(shop: Workshop) -> None:
    """Reordered rows and columns, another case and other notes: no call, and the same products."""
    shop.refresh({sku: {"prompt": "herons", "note": "y"} for sku in "abc"})
    before, had = len(shop.service.creates), shop.products()
    shop.file(
        "NOTE, Sku,Option: Name,CATEGORY,Prompt\nz, c ,C,tote, herons \nz,A,a,TOTE,herons\n,b,b,Tote,herons\n"
    )
    shop.refresh()
    assert (shop.changes, len(shop.service.creates)) == ({"unchanged": 3}, before)
    assert shop.products() == had


@pytest.mark.parametrize("left", [0, 1])
def test_suddenly_smaller_source_retires_nothing(shop: Workshop, left: int) -> None:
    """Additions are made; retirements wait, and are reported until a person agrees."""
    many = {f"m-{number:02}": {"prompt": "herons"} for number in range(12)}
    rest = {sku: many[sku] for sku in [*many][:left]} | {"n": {"prompt": "owls"}}
    shop.refresh(many)
    shop.refresh(rest, retire=None)
    assert (shop.changes["added"], shop.changes["withheld"]) == (1, 12 - left)
    assert shop.work.ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert f"--retire {12 - left}" in (shop.work.record.reason or "")
    for retire, retired, withheld in ((2, 2, 10 - left), (12, 10 - left, 0)):
        shop.refresh(retire=retire)
        assert (shop.changes["retired"], shop.changes.get("withheld", 0)) == (retired, withheld)
    assert shop.work.ended.outcome is Outcome.COMPLETED


def test_refused_row_without_a_sku_is_named_by_its_number(shop: Workshop) -> None:
    shop.write({"a": {"prompt": "herons"}, "": {"prompt": "owls"}, "c": {"prompt": ""}})
    lines = list(change_lines(asyncio.run(shop.refresh_work().preview()).changes, 9))
    assert [line.split() for line in lines] == [["added", "a"], ["refused", "row", "3"], ["refused", "c"]]


# -- changes that ask

UNREADABLE = Offer(None, "no categories", False)
RENUMBERED = Offer((Category("cat_bag", "Tote", None),), note=None)


def eight(prompt: str) -> dict[str, Cells]:
    return {f"s-{number}": {"prompt": f"{prompt} {number}"} for number in range(8)}


def asked(shop: Workshop, source: dict[str, Cells]) -> ApprovalNeeded:
    """Return the refusal, having checked that nothing was requested."""
    before = len(shop.service.creates)
    with pytest.raises(ApprovalNeeded) as caught:
        shop.refresh(source)
    assert len(shop.service.creates) == before
    return caught.value


def proposal(shop: Workshop) -> Proposal:
    async def main() -> Proposal:
        async with shop.refresh_work() as work:
            return (await work.preview()).proposal

    return asyncio.run(main())


def test_many_replacements_are_refused_until_they_are_confirmed(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal says what and why, and both ways to agree; above another limit a confirmation is not enough."""
    shop.refresh(eight("herons"))
    refusal = asked(shop, eight("owls"))
    assert refusal.lines[1:3] == (
        "It would replace 8 products that the catalog has: s-0, s-1, s-2 … and 5 more.",
        "More are replaced than --change-at-most allows.",
    )
    assert f"--approve {proposal(shop).digest[:12]}` (or `--confirm changes`)" in refusal.remedy
    shop.refresh(confirm="changes")
    assert shop.has()["s-0"] == "owls 0"
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "3")
    assert "--confirm" not in asked(shop, eight("foxes")).remedy
    with pytest.raises(ApprovalNeeded):
        shop.refresh(confirm="changes")
    approval.approve(load_settings(), proposal(shop), "anna")
    shop.refresh()
    assert shop.has()["s-7"] == "foxes 7"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (OFFER, RENUMBERED, "The category has another ID under the same name: Tote (cat_tote -> cat_bag)."),
        (UNREADABLE, OFFER, "Made while the offer could not be read, which is readable now: 1 product."),
    ],
    ids=["another ID", "readable"],
)
def test_changes_that_always_ask(shop: Workshop, before: Offer, now: Offer, why: str) -> None:
    shop.service.offer = before
    shop.refresh({"s-0": {"prompt": "herons"}})
    shop.service.offer = now
    lines = asked(shop, {"s-0": {"prompt": "herons"}}).lines
    assert lines[1:3] == ("It would replace 1 product that the catalog has: s-0.", why)
