"""Decisions on a run in files, the page's and results: each once, and all that is wrong is named."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from patternmill.errors import InputRefused
from patternmill.ledger.events import last_decisions, last_sequence
from patternmill.looking.page import gallery
from patternmill.looking.pictures import picture_cache, picture_name
from patternmill.runs.decision_files import (
    PAGE_COLUMNS,
    DecisionsFile,
    decided_run,
    keep_decisions,
    read_decisions,
    record_file,
    user,
)
from patternmill.runs.results_files import rebuild
from patternmill.states import Decided, Stage
from patternmill.tables.columns import run_cell
from tests.hostile.in_process import made

from .workshop import Ended, Workshop, rows

HERONS, FERNS = "http://127.0.0.1:9/herons", "http://127.0.0.1:9/ferns"


@pytest.fixture
def ended(shop: Workshop) -> Ended:
    """Two rows share a pattern, a third has one of its own; both pictures are at hand."""
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-herons", patternUrl=HERONS)]
    shop.service.on_follow["ferns"] = [made(Stage.PATTERN, "pat-ferns", patternUrl=FERNS)]
    for url, colour in ((HERONS, "blue"), (FERNS, "green")):
        put_picture(shop, url, colour)
    return shop.run(rows(("A", "herons"), ("B", "herons"), ("C", "ferns")))


def put_picture(shop: Workshop, url: str, colour: str) -> None:
    folder = picture_cache(shop.home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / picture_name(url)).write_bytes(colour.encode())


def cell(shop: Workshop, ended: Ended) -> str:
    """What a file has in its column `run` that is written now."""
    with shop.ledger() as ledger:
        return run_cell(ended.run.record.run_id, last_sequence(ledger, "staging", "spring"))


def sheet(folder: Path, ended: Ended, *decisions: tuple[str, str, str], run: str = "") -> Path:
    """A results file in which a person wrote."""
    run = run or ended.run.record.run_id
    text = "".join(f"{sku},{decision},{note},{run}\n" for sku, decision, note in decisions)
    (folder / "results.csv").write_text(f"sku,decision,note,run\n{text}")
    return folder / "results.csv"


def page_file(folder: Path, ended: Ended, *decisions: Mapping[str, str], run: str = "") -> Path:
    """As the page saves it."""
    given = {"run": run or ended.run.record.run_id, "sku": "A", "take": "1", "note": ""}
    with (folder / "decisions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, PAGE_COLUMNS, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows({**given, **decision} for decision in decisions)
    return folder / "decisions.csv"


def item(ended: Ended, sku: str) -> str:
    pattern = ended.rows[sku].pattern
    assert pattern is not None
    return pattern.key


def read(shop: Workshop, ended: Ended, path: Path) -> DecisionsFile:
    with shop.ledger() as ledger:
        return read_decisions(ledger, ended.run.record, path)


def kept(shop: Workshop, ended: Ended, path: Path) -> str:
    with shop.ledger() as ledger:
        return keep_decisions(ledger, ended.run.record, read(shop, ended, path))


def verdicts(shop: Workshop) -> set[str]:
    with shop.ledger() as ledger:
        return {
            f"{one.verdict} {one.note}".strip()
            for one in last_decisions(ledger, "staging", "spring").values()
        }


def test_sheet_and_page_say_the_same_and_each_is_recorded_once(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    """A row's decision is its pattern's; neither file undoes what was decided since it was written."""
    path = sheet(tmp_path, ended, ("A", "Pick", ""), ("C", "reject", "too dark"), ("B", "", ""))
    assert decided_run(path) == ended.run.record.run_id
    assert read(shop, ended, path).decided(Decided.PICK) == ("A",)
    for new in (2, 0):
        assert kept(shop, ended, path) == (
            f"{new} decisions recorded, {2 - new} known before. "
            "They count for rows that share these patterns, too: also B."
        )
    assert verdicts(shop) == {"pick", "reject too dark"}
    again = {"decision": "again", "note": "brighter"}
    early = kept(shop, ended, page_file(tmp_path, ended, again))
    assert "0 decisions recorded, 0 known" in early and "since that file was written, and left so: A" in early
    assert verdicts(shop) == {"pick", "reject too dark"}
    assert kept(shop, ended, page_file(tmp_path, ended, again, run=cell(shop, ended))).startswith("1 ")
    assert "left so: A" in kept(shop, ended, path)
    assert read(shop, ended, path).decided(Decided.PICK) == ()
    assert verdicts(shop) == {"again brighter", "reject too dark"}
    now = sheet(tmp_path, ended, ("A", "Pick", ""), run=cell(shop, ended))
    assert kept(shop, ended, now).startswith("1 ") and "pick" in verdicts(shop)


def test_decision_of_the_input_itself_is_none(shop: Workshop, tmp_path: Path) -> None:
    """A source may have a column of that name; only what a person changed in the results says something."""
    ended = shop.run("sku,prompt,category,option:name,decision\nA,owls,Tote,A,by Anna\nB,does,Tote,B,again\n")
    with shop.ledger() as ledger:
        rebuild(ledger, ended.run.record.run_id, tmp_path / "out", gallery)
    path = tmp_path / "out" / "results.csv"
    assert read(shop, ended, path).decisions == ()
    path.write_text(path.read_text("utf-8-sig").replace("by Anna", "pick"))
    assert read(shop, ended, path).decided(*Decided) == ("A",)


def test_everything_wrong_in_a_file_is_named(shop: Workshop, ended: Ended, tmp_path: Path) -> None:
    """In a sheet, and in the page's file; none is newer than the ledger, as anybody can write one."""
    wrong: list[tuple[list[tuple[str, str, str]], str]] = [
        ([("A", "pick", ""), ("B", "reject", "")], "row 3: `B` says reject, and row 2"),
        ([("A", "keep", "")], "row 2, column decision: `keep` is no decision"),
        ([("Z", "pick", "")], "for `Z`; empty the cell"),
        ([("A", "pick", "x" * 2001)], "longer than a decision may be"),
    ]
    later = f"{ended.run.record.run_id}@9"
    for decisions, named in [*wrong, ([("A", "pick", "")], "names decision 9, and the last one here is 0")]:
        run = later if "decision 9" in named else ""
        lines = [{"sku": sku, "decision": decision, "note": note} for sku, decision, note in decisions]
        for path in sheet(tmp_path, ended, *decisions, run=run), page_file(tmp_path, ended, *lines, run=run):
            with pytest.raises(InputRefused) as refused:
                read(shop, ended, path)
            assert named in str(refused.value)


def test_page_file_names_the_take_and_nobody_else_decides(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    """Of a take that there is; and who imports it decides, whoever wrote it."""
    path = page_file(
        tmp_path, ended, {"decision": "pick", "note": "dim"}, {"sku": "B", "decision": "pick", "note": "dim"}
    )
    file = read(shop, ended, path)
    (decision,) = file.decisions
    assert (decision.item, decision.by, decision.note, file.also) == (item(ended, "A"), user(), "dim", ())
    assert file.decided(Decided.PICK) == ("A", "B")
    with pytest.raises(InputRefused, match="has no take 2 for `A`"):
        read(shop, ended, page_file(tmp_path, ended, {"decision": "pick", "take": "2"}))


def test_file_of_decisions_never_chooses_the_environment(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    """It was mailed: its run was in staging, and this machine is set to production."""
    path = page_file(tmp_path, ended, {"decision": "pick"})
    with pytest.raises(InputRefused, match=r"environment staging.*'production' is configured"):
        record_file(shop.settings.model_copy(update={"environment": "production"}), path)
    assert "1 decision recorded, 0 known before." in str(record_file(shop.settings, path))
