"""Decisions in files, the page's and results: about which take, for which rows, each once; and all that is wrong."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cli.main import run
from patternmill.errors import InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.events import last_decisions, last_sequence
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.run_lookup import find_run
from patternmill.runs.decision_files import (
    PAGE_COLUMNS,
    DecisionsFile,
    decided_run,
    keep_decisions,
    read_decisions,
    record_file,
    user,
)
from patternmill.settings import load_settings
from patternmill.states import Decided, Stage
from patternmill.tables.columns import run_cell

from .workshop import Cells, Workshop, read_rows, write_rows

#: Two rows share a pattern, one of them in another colour; the third has one of its own.
ROWS: dict[str, Cells] = {
    "a": {"prompt": "herons"},
    "b": {"prompt": "herons", "refine:recolor": "#abc"},
    "c": {"prompt": "ferns"},
}


def results(shop: Workshop, run: str = "", note: str = "", **decisions: str) -> Path:
    """Return the results file of the last run with a person's decisions; `run` is the text in its column `run`."""
    rows = read_rows(shop.folder / "results" / "spring" / "latest" / "results.csv")
    for row in rows:
        word = decisions.get(row["sku"], "")
        row |= {"decision": word, "note": note if word else "", "run": run or row["run"]}
    return write_rows(shop.folder / "decided.csv", rows)


def page_file(shop: Workshop, run: str = "", take: str = "1", note: str = "", **decisions: str) -> Path:
    """Return a file of decisions as the page saves it."""
    path = shop.folder / "decisions.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(PAGE_COLUMNS)
        writer.writerows([run or shop.last, sku, take, word, note] for sku, word in decisions.items())
    return path


def now(shop: Workshop) -> str:
    """Return what a file that is written now has in its column `run`."""
    with shop.ledger() as ledger:
        return run_cell(RunId(shop.last), last_sequence(ledger, "staging", "spring"))


def read(shop: Workshop, path: Path) -> DecisionsFile:
    with shop.ledger() as ledger:
        return read_decisions(ledger, find_run(ledger, shop.runs[0]), path)


def kept(shop: Workshop, path: Path) -> str:
    with shop.ledger() as ledger:
        return keep_decisions(ledger, find_run(ledger, shop.runs[0]), read(shop, path))


def decided() -> dict[str, str]:
    """Return the last decision on each pattern, by prompt and take."""
    with open_ledger(load_settings()) as ledger:
        verdicts = {}
        for item, decision in last_decisions(ledger, "staging", "spring").items():
            stage, content = ledger.purchases.item(item)
            assert stage is Stage.PATTERN
            verdicts[f"{content['prompt']} {content.get('take', 1)}"] = decision.verdict.value
    return verdicts


def test_sheet_and_page_say_the_same_and_each_is_recorded_once(shop: Workshop) -> None:
    """A decision is about the take before any refinement; no file undoes what was decided since it was written."""
    shop.refresh(ROWS)
    sheet = results(shop, a="Pick", c="reject")
    assert decided_run(sheet) == shop.last
    assert read(shop, sheet).decided(Decided.PICK) == ("a",)
    for new in (2, 0):
        assert kept(shop, sheet) == (
            f"{new} decisions recorded, {2 - new} known before. "
            "They count for rows that share these patterns, too: also b."
        )
    assert decided() == {"herons 1": "pick", "ferns 1": "reject"}
    early = kept(shop, page_file(shop, b="again"))
    assert "0 decisions recorded, 0 known" in early and "since that file was written, and left so: b" in early
    assert kept(shop, page_file(shop, now(shop), b="again")).startswith("1 ")
    assert "left so: a" in kept(shop, sheet) and read(shop, sheet).decided(Decided.PICK) == ()
    assert decided() == {"herons 1": "again", "ferns 1": "reject"}
    both = kept(shop, results(shop, now(shop), a="pick", b="pick"))
    assert both.startswith("1 decision recorded") and "also" not in both
    assert decided()["herons 1"] == "pick"


def test_again_in_a_sheet_is_about_the_highest_take_of_then(shop: Workshop) -> None:
    """Takes that were made since came after it. Between takes that it does not show, a sheet does not choose."""
    shop.load_source({"a": {"prompt": "herons"}}, takes=3)
    for word in ("pick", "reject"):
        with pytest.raises(InputRefused, match=r"`a` has several takes; decide with `patternmill look`"):
            read(shop, results(shop, a=word))
    sheet = results(shop, a="again")
    assert kept(shop, sheet).startswith("1 ") and decided() == {"herons 3": "again"}
    shop.remake("a")
    assert kept(shop, sheet).startswith("0 ") and decided() == {"herons 3": "again"}
    shop.remake("a", again=True)
    assert read(shop, sheet).left == () and shop.takes() == {"a": 5}


def test_decision_of_the_input_itself_is_none(shop: Workshop) -> None:
    """A source may have a column of that name; only what a person changed in the results says something."""
    own: dict[str, Cells] = {
        sku: {"prompt": sku, "decision": text} for sku, text in (("a", "by Anna"), ("b", "again"))
    }
    shop.refresh(own)
    path = shop.folder / "results" / "spring" / "latest" / "results.csv"
    assert read(shop, path).decisions == ()
    path.write_text(path.read_text("utf-8-sig").replace("by Anna", "pick"))
    assert read(shop, path).decided(*Decided) == ("a",)


@pytest.mark.parametrize(
    ("decisions", "note", "named"),
    [
        ({"a": "pick", "b": "reject"}, "", "row 3: `b` says reject, and row 2"),
        ({"a": "keep"}, "", "row 2, column decision: `keep` is no decision"),
        ({"a": "pick"}, "x" * 2001, "longer than a decision may be"),
        ({"a": "pick"}, "@9", "names decision 9, and the last one here is 0"),
    ],
)
def test_everything_wrong_in_a_file_is_named(
    shop: Workshop, decisions: dict[str, str], note: str, named: str
) -> None:
    """In a sheet, and in the page's file; none is newer than the ledger, as anybody can write one."""
    shop.refresh(ROWS)
    run = shop.last + note if note == "@9" else ""
    for path in results(shop, run, note, **decisions), page_file(shop, run, note=note, **decisions):
        with pytest.raises(InputRefused) as refused:
            read(shop, path)
        assert named in str(refused.value)


def test_page_file_names_the_take_and_nobody_else_decides(shop: Workshop) -> None:
    """The take must exist in the configured environment; who imports the file decides, whoever wrote it."""
    shop.refresh(ROWS)
    for take, sku in ("2", "a"), ("1", "z"):
        with pytest.raises(InputRefused, match=f"has no take {take} for `{sku}`; empty the cell"):
            read(shop, page_file(shop, take=take, **{sku: "pick"}))
    path = page_file(shop, note="dim", a="pick", b="pick")
    (decision,) = read(shop, path).decisions
    assert (decision.by, decision.note, decision.picture) == (user(), "dim", "")
    assert read(shop, path).decided(Decided.PICK) == ("a", "b") and read(shop, path).also == ()
    mailed = load_settings().model_copy(update={"environment": "production"})
    with pytest.raises(InputRefused, match=r"environment staging.*'production' is configured"):
        record_file(mailed, path)
    assert run(("import", str(path), "--plan-only")) == 0 and decided() == {}
    assert "1 decision recorded, 0 known before." in str(record_file(load_settings(), path))
    assert record_file(load_settings(), results(shop, a="pick")) is None
    gone = page_file(shop, "20200101-000000-abcdef", a="pick")
    with pytest.raises(InputRefused, match="no ledger here has run"):
        record_file(load_settings(), gone)
    assert "0 decisions" in str(record_file(load_settings(), page_file(shop)))


def test_decisions_of_a_file_are_recorded_as_the_run_begins(shop: Workshop) -> None:
    """Not by its plan, which follows them; and also where nothing is to be made by them."""
    shop.refresh(ROWS)
    file = results(shop, a="reject", b="reject", c="pick")
    assert run(("remake", "--picks", str(file), "--plan-only")) == 0
    assert decided() == {}
    had = len(shop.service.bought)
    assert shop.remake(picks=file) and not shop.remake(picks=file)
    assert decided() == {"herons 1": "reject", "ferns 1": "pick"}
    assert len(shop.service.bought) == had
    again = results(shop, now(shop), c="again")
    assert run(("import", str(again), "--plan-only")) == 0 and decided()["ferns 1"] == "pick"
    shop.load(again)
    assert shop.service.bought[had:] == ["ferns", "c"] and decided()["ferns 1"] == "again"
