"""A refresh follows what changed in its source, not what differs from it: every case, as a table.

Each line is a command, what is bought by it, and what there is afterwards: by sku the prompt of its product, and rows
that have none in another state. `a=owls!` is a row with a misspelled category, which is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from patternmill.catalog.offer import Category, Offer, Option
from patternmill.errors import PatternmillError
from patternmill.runs.settlement import Decision
from patternmill.service.outcomes import No
from patternmill.states import AttemptState, RowStatus

from .fake_studio import ANSWER_LOST, OFFER, Service, failed
from .followed import Cells, Shop
from .followed import shop as shop

OFFERS = {
    "known": OFFER,
    "blind": Offer(None, "no categories", False),
    "other": Offer((Category("cat_mug", "Mug", None),), None),
}

CASES = {
    "added": """
        refresh a=herons               | herons a | a=herons
        refresh a=herons b=owls        | owls b   | a=herons b=owls
        refresh                        |          | a=herons b=owls""",
    "changed": """
        refresh a=herons b=herons      | herons a b | a=herons b=herons
        refresh a=owls b=herons        | owls a     | a=owls b=herons""",
    "A to B to A": """
        refresh a=herons               | herons a | a=herons
        refresh a=owls                 | owls a   | a=owls
        refresh a=herons               |          | a=herons
        refresh a=owls                 |          | a=owls""",
    "A to B to A, knowing less": """
        offer known                    |          |
        refresh a=herons               | herons a | a=herons
        refresh a=owls                 | owls a   | a=owls
        offer blind                    |          | a=owls
        refresh a=herons               |          | a=herons
        offer known                    |          | a=herons
        refresh a=owls                 |          | a=owls""",
    "what exists stays, whatever is offered": """
        refresh a=herons               | herons a | a=herons
        offer other                    |          | a=herons
        refresh a=herons b=owls        |          | a=herons b:refused
        offer known                    |          | a=herons b:refused
        refresh                        | owls b   | a=herons b=owls""",
    "not made, as a request is in doubt": """
        lose herons                    |          |
        refresh a=herons               | herons   | a:in_doubt
        refresh                        | a        | a=herons""",
    "not made, and changed": """
        lose a                         |          |
        refresh a=herons               | herons a | a:in_doubt
        refresh a=owls                 | owls a   | a=owls
        refresh a=herons               |          | a=herons""",
    "refused": """
        refresh a=herons!              |          | a:refused
        refresh                        |          | a:refused
        refresh a=herons               | herons a | a=herons
        refresh a=owls!                |          | a=herons a:refused
        refresh a=herons               |          | a=herons""",
    "rejected by the service": """
        reject a                       |          |
        refresh a=herons               | herons   | a:failed
        refresh                        |          | a:failed
        failures                       | a        | a=herons""",
    "failed": """
        fail herons                    |          |
        refresh a=herons               | herons   | a:failed
        refresh                        |          | a:failed
        retry                          | herons a | a=herons""",
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
    "corrected": """
        refresh a=herons! b=owls       | owls b   | b=owls a:refused
        failures a=herons              | herons a | a=herons b=owls
        refresh                        |          | a=herons b=owls
        refresh a=herons! b=cranes     | cranes b | a=herons b=cranes""",
    "corrected, and the source corrected alike": """
        refresh a=herons!              |          | a:refused
        failures a=herons              | herons a | a=herons
        refresh a=herons               |          | a=herons
        refresh a=herons!              |          | a=herons a:refused""",
    "corrected, and the source changed there": """
        refresh a=herons               | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        refresh a=cranes               | cranes a | a=cranes
        note a, prompt `herons`, corrected `owls`, now `cranes` | | a=cranes
        refresh a=herons               |          | a=herons""",
    "corrected, and the source changed elsewhere": """
        refresh a=herons!              |          | a:refused
        failures a=herons              | herons a | a=herons
        refresh a=owls!                | owls a   | a=owls""",
    "corrected twice": """
        refresh a=herons               | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        results a=cranes               | cranes a | a=cranes
        refresh                        |          | a=cranes""",
    "corrected back": """
        refresh a=herons               | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        results a=herons               |          | a=herons
        refresh                        |          | a=herons""",
    "the same corrections twice": """
        refresh a=herons! b=owls       | owls b   | b=owls a:refused
        failures a=herons              | herons a | a=herons b=owls
        again                          |          | a=herons b=owls
        refresh                        |          | a=herons b=owls""",
    "another cell of a row that was corrected": """
        refresh a=herons!              |          | a:refused
        failures a=herons              | herons a | a=herons
        refresh                        |          | a=herons
        results a=owls                 | owls a   | a=owls
        refresh                        |          | a=owls""",
    "results of an older run": """
        refresh a=herons b=owls        | herons a owls b | a=herons b=owls
        refresh a=cranes b=owls        | cranes a | a=cranes b=owls
        oldest b=geese                 | geese b  | a=cranes b=geese""",
    "corrected, and not made yet": """
        refresh a=herons!              |          | a:refused
        lose owls                      |          | a:refused
        failures a=owls                | owls     | a:in_doubt
        refresh                        | a        | a=owls""",
    "corrected, and the budget reached": """
        refresh a=herons! b=geese!     |          | a:refused b:refused
        budget 2                       |          | a:refused b:refused
        failures a=herons b=geese      | herons a | a=herons b:not_started
        budget 0                       |          | a=herons b:not_started
        refresh                        |          | a=herons b:not_started
        budget                         |          | a=herons b:not_started
        refresh                        | geese b  | a=herons b=geese""",
    "corrected, and failed": """
        refresh a=herons               | herons a | a=herons
        fail owls                      |          | a=herons
        results a=owls                 | owls     | a=herons a:failed
        refresh                        |          | a=herons a:failed
        failures                       | owls a   | a=owls
        refresh                        |          | a=owls""",
    "corrected, and refused": """
        refresh a=herons               | herons a | a=herons
        results a=owls!                |          | a=herons a:refused
        refresh                        |          | a=herons""",
    "held, written off and retried": """
        lose a                         |          |
        refresh a=herons               | herons a | a:in_doubt
        write off                      |          | a:in_doubt
        refresh                        |          | a:failed
        failures                       |          | a:failed
        retry                          | a        | a=herons""",
    "budget reached": """
        budget 2                       |          |
        refresh a=herons b=owls        | herons a | a=herons b:not_started
        budget 0                       |          | a=herons b:not_started
        refresh                        |          | a=herons b:not_started
        budget                         |          | a=herons b:not_started
        refresh                        | owls b   | a=herons b=owls""",
    "retired": """
        refresh a=herons b=owls        | herons a owls b | a=herons b=owls
        refresh a=herons               |          | a=herons
        refresh a=herons b=owls        |          | a=herons b=owls
        refresh a=herons               |          | a=herons
        retry                          |          | a=herons""",
    "retired, and corrected before": """
        refresh a=herons b=owls!       | herons a | a=herons b:refused
        failures b=owls                | owls b   | a=herons b=owls
        refresh a=herons               |          | a=herons
        refresh a=herons b=owls!       |          | a=herons b=owls""",
    "a sku added in a results file": """
        refresh a=herons               | herons a | a=herons
        results b=owls                 |          | a=herons b:refused
        refresh                        |          | a=herons""",
    "another file of the same catalog": """
        import a=herons                | herons a | a=herons
        other b=owls                   | owls b   | a=herons b=owls
        results b=geese                | geese b  | a=herons b=geese
        other a=herons b=owls          |          | a=herons b=geese
        import a=herons                |          | a=herons b=geese
        refresh a=herons               |          | a=herons""",
    "a plain import is a source too": """
        import a=herons                | herons a | a=herons
        results a=owls                 | owls a   | a=owls
        import a=herons                |          | a=owls
        import a=cranes                | cranes a | a=cranes
        refresh                        |          | a=cranes""",
    "a process that dies": """
        refresh a=herons!              |          | a:refused
        dies 1 failures a=herons       |          | a:refused
        refresh                        | herons a | a=herons
        dies 2 refresh a=owls          | owls     | a=herons
        refresh                        | a        | a=owls""",
    "case and spaces": """
        refresh a=herons               | herons a | a=herons
        refresh A=herons               |          | a=herons
        results A=owls                 | owls a   | a=owls
        refresh A=herons               |          | a=owls""",
}


@pytest.mark.parametrize("name", CASES)
def test_case(shop: Shop, service: Service, name: str) -> None:
    for line in CASES[name].strip().splitlines():
        command, bought, after = (part.strip() for part in line.split("|"))
        before = len(service.bought)
        do(shop, command)
        assert sorted(service.bought[before:]) == sorted(bought.split()), line
        assert state(shop) == after, line


def state(shop: Shop) -> str:
    has = [f"{sku}={prompt}" for sku, prompt in sorted(shop.has().items())]
    others = [f"{sku}:{status}" for sku, status in sorted(shop.rows.items()) if status != RowStatus.SUCCEEDED]
    return " ".join([*has, *others])


def do(shop: Shop, command: str) -> None:
    if command.startswith("note "):
        assert any(command.removeprefix("note ") in note for note in shop.notes), shop.notes
        return
    if died := re.match(r"dies (\d) ", command):
        shop.die_after(int(died[1]))
        command = command.removeprefix(died[0])
    verb, *words = command.split()
    if verb in SCRIPTS:
        SCRIPTS[verb](shop, *words)
        return
    rows = {sku: cells(what) for sku, _, what in (word.partition("=") for word in words) if what}
    match verb:
        case "refresh":
            shop.refresh(rows)
        case "import" | "other":
            shop.load_source(rows, "other.csv" if verb == "other" else "spring.csv")
        case "failures" | "results":
            shop.correct(f"{verb}.csv", rows)
        case "oldest":
            shop.correct("results.csv", rows, shop.runs[0])
        case _:
            raise AssertionError(command)


SCRIPTS: dict[str, Callable[..., object]] = {
    "again": lambda shop: shop.load(shop.folder / "corrected.csv"),
    "retry": lambda shop: shop.retry(),
    "write": lambda shop, _: shop.settle(Decision.WRITE_OFF),
    "budget": lambda shop, most=None: setattr(shop, "most_items", None if most is None else int(most)),
    "offer": lambda shop, name: shop.offer(OFFERS[name]),
    "fail": lambda shop, name: shop.service.on_follow[name].append(failed()),
    "lose": lambda shop, name: shop.service.on_create[name].append(ANSWER_LOST),
    "reject": lambda shop, name: shop.service.on_create[name].append(
        No(AttemptState.REJECTED, "invalid_request", "no")
    ),
}


def cells(what: str) -> Cells:
    """A row's prompt, and its category."""
    return {"prompt": what.rstrip("!"), "category": "Tot" if what.endswith("!") else "Tote"}


MAPPED = "sku,Text,Motif,category,option:name\na,herons,owls,Tote,a\nb,{},owls,Tote,b\n"


def test_change_of_the_mapping_alone_waits(shop: Shop, service: Service) -> None:
    """Until it is confirmed; a row that has changed itself does not."""
    source, mapping = shop.folder / "spring.csv", shop.folder / "spring.mapping.toml"
    source.write_text(MAPPED.format("herons"), encoding="utf-8")
    mapping.write_text('[columns]\n"Text" = "prompt"\n', encoding="utf-8")
    shop.refresh()
    mapping.write_text('[columns]\n"Motif" = "prompt"\n', encoding="utf-8")
    for _ in range(2):
        shop.refresh()
        assert service.bought == ["herons", "a", "b"] and state(shop) == "a=herons b=herons"
        assert any("2 rows read otherwise" in note and "--confirm mapping" in note for note in shop.notes)
    source.write_text(MAPPED.format("cranes").replace("cranes,owls", "cranes,geese"), encoding="utf-8")
    shop.refresh()
    assert service.bought[3:] == ["geese", "b"] and state(shop) == "a=herons b=geese"
    shop.refresh(confirm="mapping")
    assert service.bought[5:] == ["owls", "a"] and state(shop) == "a=owls b=geese"


def test_run_that_read_before_another_changed_the_catalog_begins_nothing(shop: Shop) -> None:
    """What a person corrected in between would be undone."""
    shop.refresh({"a": {"prompt": "herons"}})
    late = shop.refresh_work()
    asyncio.run(late.read())
    asyncio.run(late.check())
    shop.correct("results.csv", {"a": {"prompt": "owls"}})
    with pytest.raises(PatternmillError, match="was changed by another run"):
        asyncio.run(late.plan())
    assert state(shop) == "a=owls"


def test_corrected_rows_of_any_shape_stay(shop: Shop, service: Service) -> None:
    """One with a comma too many, one that lacks a cell, and one that needs a column which the source lacks."""
    name = Option("name", ("a", "b", "c", "d"), required=True)
    size = Option("size", ("S", "M"), required=True)
    service.offer = Offer((Category("tote", "Tote", (name,)), Category("mug", "Mug", (name, size))), None)
    source = "sku,prompt,category,option:name,note\na,ferns, in rain,Tote,a,x\nb,owls,Tote\nc,geese,Mug,c,y\n"
    (shop.folder / "spring.csv").write_text(source, encoding="utf-8")
    shop.refresh()
    assert state(shop) == "a:refused b:refused c:refused"
    shop.correct("failures.csv", {})
    assert state(shop) == "a:refused b:refused c:refused" and service.bought == []
    whole = {"prompt": "ferns, in rain", "category": "Tote", "option:name": "a"}
    shop.correct("failures.csv", {"a": whole, "b": {"option:name": "b"}, "c": {"option:size": "M"}})
    for rows in (source, source + "d,newts,Tote,d,\n"):
        assert state(shop).startswith("a=ferns, in rain b=owls c=geese")
        (shop.folder / "spring.csv").write_text(rows, encoding="utf-8")
        shop.refresh()
    assert sorted(service.bought[6:]) == ["d", "newts"]
    shop.correct("results.csv", {"c": {"prompt": "swans"}})
    assert sorted(service.bought[8:]) == ["c", "swans"]
