"""What is corrected in failures.csv stays so while the source has the mistake; `latest` is the whole catalog."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from patternmill.catalog.row_corrections import CorrectionEnd
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.results.results_files import rebuild
from patternmill.results.summary import verify
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import import_spec
from patternmill.settings import load_settings
from tests.integration.refresh.conftest import Desk

Row = dict[str, str]
GOOD = [
    "C-1,Blue herons,Cushion,50x50,linen,x",
    "C-2,Lemon branches,Cushion,40x40,cotton,x",
]
#: An unknown category, an empty prompt, an unknown value, no sku, one sku twice, and a comma too many.
BAD = [
    "C-3,Blue herons,Cusion,50x50,linen,x",
    "C-4,,Cushion,50x50,linen,x",
    "C-5,Lemon branches,Cushion,99x99,linen,x",
    ",Red foxes,Cushion,50x50,linen,x",
    "C-7,Grey geese,Cushion,50x50,linen,x",
    "C-7,Grey geese at dusk,Cushion,50x50,linen,x",
    "C-9,Ferns, in rain,Cushion,50x50,linen,x",
]
SOURCE = [*GOOD, *BAD]


def rows_of(file: Path) -> list[Row]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def latest(desk: Desk) -> Path:
    return desk.folder / "results" / desk.catalog / "latest"


def import_file(desk: Desk, file: Path) -> Path:
    """Import a file as the command line does; returns the folder of the run."""

    async def main() -> Path:
        async with Pipeline(import_spec(ImportRequest(file=file))) as work:
            await work.run_through()
            return work.published.out

    return asyncio.run(asyncio.wait_for(main(), 60))


def edit(file: Path, change: Callable[[Row], None], keep: Callable[[Row], bool] = lambda row: True) -> None:
    """As a person does in a spreadsheet."""
    rows = rows_of(file)
    for row in rows:
        change(row)
    with file.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(filter(keep, rows))


def correct(row: Row) -> None:
    """Every mistake of BAD."""
    changes = {
        ("C-3", ""): {"category": "Cushion"},
        ("C-4", ""): {"prompt": "Orange poppies"},
        ("C-5", ""): {"option:size": "50x50"},
        ("", "Red foxes"): {"sku": "C-6"},
        ("C-7", "Grey geese at dusk"): {"sku": "C-8"},
    }
    for (sku, prompt), cells in changes.items():
        if row["sku"] == sku and prompt in ("", row["prompt"]):
            row.update(cells)
            break
    if row["sku"] == "C-9":
        row.update(prompt="Ferns, in rain", category="Cushion", error_code="")
        row.update({"option:size": "50x50", "option:fabric": "linen", "note": "x"})


@pytest.fixture
def corrected(desk: Desk) -> Desk:
    """A catalog with nine rows, seven of which were refused, and then corrected in failures.csv."""
    desk.write(*SOURCE)
    first = desk.refresh()
    assert first.ending.rows == {"succeeded": 2, "refused": 7}
    failures = first.out / "failures.csv"
    edit(failures, correct)
    import_file(desk, latest(desk) / "failures.csv")
    return desk


def with_ledger(see: Callable[[Ledger], object]) -> object:
    with open_ledger(load_settings()) as ledger:
        return see(ledger)


def test_refresh_from_an_unchanged_source_keeps_the_corrections(corrected: Desk) -> None:
    """Nothing is refused, nothing bought or retired; the results have the rows as corrected."""
    desk = corrected
    before, products = desk.creates(), desk.products()
    assert sorted(products) == [f"C-{number}" for number in range(1, 10)]
    night = desk.refresh()
    assert night.counts == {"unchanged": 9}
    assert (desk.creates(), desk.products()) == (before, products)
    assert [row["sku"] for row in rows_of(night.out / "results.csv")] == sorted(products)
    assert {row["status"] for row in rows_of(night.out / "results.csv")} == {"succeeded"}
    notes = " ".join(night.manifest()["options"]["notes"])
    assert "applied to the source's rows: C-3, category `Cusion` -> `Cushion`" in notes
    lines = [json.loads(line) for line in (night.out / "results.jsonl").read_text("utf-8").splitlines()]
    assert [line.get("corrected") for line in lines[:3]] == [None, None, {"category": "Cusion"}]
    assert desk.refresh().counts == {"unchanged": 9}


def test_latest_is_the_whole_catalog(corrected: Desk) -> None:
    """After an import of seven rows: all nine, in the source's order, each as it is now; rebuilt from the ledger."""
    folder = latest(corrected)
    rows = rows_of(folder / "results.csv")
    assert [row["sku"] for row in rows] == [f"C-{number}" for number in range(1, 10)]
    assert {row["status"] for row in rows} == {"succeeded"}
    assert rows[5]["prompt"] == "Red foxes" and rows[2]["category"] == "Cushion"
    assert rows_of(folder / "failures.csv") == []
    assert verify(folder.resolve()) == []
    assert len(rows_of(folder.resolve().parent / "results.csv")) == 7
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    run_id = folder.resolve().parent.name

    def again(ledger: Ledger) -> None:
        record = next(run for run in ledger.runs() if run.run_id == run_id)
        rebuild(ledger, record.run_id, folder.resolve().parent, links=["latest"])

    with_ledger(again)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_round_after_round_of_corrections(desk: Desk) -> None:
    """A correction of a correction leads from the source's text; `latest` has every row after each round."""
    desk.write(*SOURCE)
    desk.refresh()
    wrong = {"C-3": {"category": "Cushin"}, "C-5": {"option:size": "77x77"}}
    edit(
        latest(desk) / "failures.csv",
        lambda row: row.update(wrong.get(row["sku"], {})),
        lambda row: row["sku"] in wrong,
    )
    import_file(desk, latest(desk) / "failures.csv")
    rows = rows_of(latest(desk) / "results.csv")
    assert len(rows) == 9 and len(rows_of(latest(desk) / "failures.csv")) == 7
    assert (rows[2]["category"], rows[4]["option:size"]) == ("Cushin", "77x77")
    edit(latest(desk) / "failures.csv", correct)
    edit(
        latest(desk) / "failures.csv", lambda row: row.update({"category": "Cushion", "option:size": "50x50"})
    )
    import_file(desk, latest(desk) / "failures.csv")
    assert {row["status"] for row in rows_of(latest(desk) / "results.csv")} == {"succeeded"}
    before, products = desk.creates(), desk.products()
    assert desk.refresh().counts == {"unchanged": 9}
    assert (desk.creates(), desk.products()) == (before, products)


def test_the_same_corrections_imported_twice(desk: Desk) -> None:
    """As after a kill: in the second round too, what is corrected stays so."""
    desk.write(*SOURCE[:-1])
    desk.refresh()
    edit(latest(desk) / "failures.csv", lambda row: row.update({"category": "Cushin"}))
    import_file(desk, latest(desk) / "failures.csv")
    failures = (latest(desk) / "failures.csv").resolve()
    edit(failures, correct)
    edit(failures, lambda row: row.update({"category": "Cushion"}))
    import_file(desk, failures)
    before, products = desk.creates(), desk.products()
    import_file(desk, failures)
    assert desk.refresh().counts == {"unchanged": 8}
    assert (desk.creates(), desk.products()) == (before, products)


def test_latest_has_each_row_once_when_an_older_file_comes_back(desk: Desk) -> None:
    """The file of a run before the newest refresh, with a row that had no sku: as it was, corrected, and once more."""
    desk.write(*SOURCE[:-1])
    failures = desk.refresh().out / "failures.csv"
    desk.refresh()
    uncorrected = failures.read_bytes()
    for change in (lambda row: None, correct, lambda row: None):
        edit(failures, change)
        import_file(desk, failures)
        assert len(rows_of(latest(desk) / "results.csv")) == 8
    for content in (uncorrected, failures.read_bytes()):
        for _ in range(2):
            failures.write_bytes(content)
            import_file(desk, failures)
            rows = rows_of(latest(desk) / "results.csv")
            assert [row["sku"] for row in rows] == [f"C-{number}" for number in range(1, 9)]
            desk.refresh()


def test_the_source_wins(corrected: Desk) -> None:
    """A correction ends when the source has the corrected text, or a third one; the others hold."""
    desk = corrected
    fixed = [*GOOD, BAD[0].replace("Cusion", "Cushion"), BAD[1].replace(",,", ",Purple thistles,"), *BAD[2:]]
    night = desk.night(*fixed)
    assert night.counts == {"unchanged": 8, "changed": 1}
    assert night.changes()["C-4"]["fields"] == "prompt"
    notes = " ".join(night.manifest()["options"]["notes"])
    assert "1 correction done, because the source has the corrected text itself: C-3" in notes
    assert "1 correction given up, because the source has another text now: C-4" in notes
    # Back to the mistake: what was overtaken is not applied again.
    back = desk.night(*SOURCE)
    assert back.counts == {"unchanged": 7, "refused": 2}
    assert len(desk.products()) == 9


def test_undone_corrections_are_refused_again(corrected: Desk) -> None:
    desk = corrected

    def undo(ledger: Ledger) -> None:
        scope = (load_settings().environment, desk.catalog)
        found = [one for one in ledger.corrections(*scope) if one.sku == "C-3"]
        with ledger.transaction():
            ledger.end_corrections(*scope, [(one, CorrectionEnd.UNDONE) for one in found])

    with_ledger(undo)
    products = desk.products()
    night = desk.refresh()
    assert night.counts == {"unchanged": 8, "refused": 1}
    assert desk.products() == products
    assert [row["sku"] for row in rows_of(latest(desk) / "failures.csv")] == ["C-3"]
    assert len(rows_of(latest(desk) / "results.csv")) == 9


def test_nothing_sticks_that_nobody_changed(desk: Desk) -> None:
    """The same file again, rows left out, other notes, ends of lines: no corrections; a new sku is a new row."""
    desk.write(*SOURCE)
    desk.refresh()
    results = latest(desk) / "results.csv"
    edit(
        results,
        lambda row: row.update(note="later", prompt=f" {row['prompt']} "),
        lambda row: row["sku"] != "C-4",
    )
    import_file(desk, results)
    edit(results, lambda row: row.update(sku="C-99") if row["sku"] == "C-1" else None)
    import_file(desk, results)
    held = with_ledger(lambda ledger: ledger.corrections(load_settings().environment, desk.catalog))
    assert held == []


COMMA = [*GOOD, "C-9,Ferns, in rain,Cushion,50x50,linen,x"]
FERNS = {"prompt": "Ferns, in rain", "category": "Cushion", "option:size": "50x50", "option:fabric": "linen"}


@pytest.mark.parametrize(
    "rounds",
    [
        [FERNS, {"error_code": ""}],
        [{"error_code": ""}, FERNS],
        [FERNS | {"error_code": "", "option:size": "77x77"}, {"option:size": "50x50"}],
        [
            {"prompt": "Ferns, in rain"},
            FERNS | {"error_code": "", "category": "Cushin"},
            {"category": "Cushion"},
        ],
        [{"category": "Cushion"}, {"prompt": "Ferns, in rain"}, FERNS | {"error_code": ""}],
    ],
    ids=["code last", "code first", "another mistake", "three rounds", "code last of three"],
)
def test_a_comma_too_many_in_several_rounds(desk: Desk, rounds: list[Row]) -> None:
    """Whichever cells are corrected in which round: in the end the row is right at each refresh."""
    desk.write(*COMMA)
    desk.refresh()
    for cells in rounds:
        edit(latest(desk) / "failures.csv", lambda row, cells=cells: row.update(cells))  # type: ignore[misc]
        import_file(desk, latest(desk) / "failures.csv")
    assert sorted(desk.products()) == ["C-1", "C-2", "C-9"]
    before = desk.creates()
    assert desk.refresh().counts == {"unchanged": 3}
    assert rows_of(latest(desk) / "results.csv")[2]["prompt"] == "Ferns, in rain"
    assert desk.creates() == before


BLUE, RED = TWINS = ["C-1,Blue herons,Cushion,50x50,linen,x", "C-1,Red foxes,Cushion,50x50,linen,x"]
BLUE_IS_GOOD = [("C-2", "succeeded"), ("C-1 Blue herons", "succeeded"), ("C-1 Red foxes", "refused")]


def statuses(desk: Desk) -> list[tuple[str, str]]:
    """Of `latest`: its skus, those of twins with their prompts."""
    rows = rows_of(latest(desk) / "results.csv")
    return [
        (f"{row['sku']} {row['prompt']}" if row["sku"] == "C-1" else row["sku"], row["status"])
        for row in rows
    ]


def test_twins_of_a_product(desk: Desk) -> None:
    """A row is pasted once more, with another prompt: the one that is made already is the catalog's, and no other."""
    desk.write(GOOD[1], BLUE)
    desk.refresh()
    assert desk.night(GOOD[1], *TWINS).counts == {"unchanged": 1, "refused": 2}
    assert statuses(desk) == BLUE_IS_GOOD
    edit(latest(desk) / "failures.csv", lambda row: row.update(sku="C-5"))
    import_file(desk, latest(desk) / "failures.csv")
    assert statuses(desk) == [*BLUE_IS_GOOD[:2], ("C-5", "succeeded")]
    before = desk.creates()
    assert desk.refresh().counts == {"unchanged": 3}
    assert statuses(desk) == [*BLUE_IS_GOOD[:2], ("C-5", "succeeded")]
    assert desk.creates() == before


def test_the_same_row_twice(desk: Desk) -> None:
    """One of them is the product that there is; the other is refused still."""
    desk.write(GOOD[1], BLUE)
    desk.refresh()
    desk.night(GOOD[1], BLUE, BLUE)
    assert statuses(desk) == [*BLUE_IS_GOOD[:2], ("C-1 Blue herons", "refused")]
    desk.night(GOOD[1], BLUE)
    assert statuses(desk) == BLUE_IS_GOOD[:2]


def test_twins_of_which_one_is_left(desk: Desk) -> None:
    """Somebody deletes one of two rows with a sku from failures.csv: the other is made, and stays the catalog's."""
    desk.write(GOOD[1], *TWINS)
    desk.refresh()
    edit(latest(desk) / "failures.csv", lambda row: None, lambda row: row["prompt"] == "Blue herons")
    import_file(desk, latest(desk) / "failures.csv")
    assert statuses(desk) == BLUE_IS_GOOD
    desk.refresh()
    assert statuses(desk) == BLUE_IS_GOOD


def test_twins_that_are_both_other_rows(desk: Desk) -> None:
    """Neither is the product that there is: as with a single row that is refused, the refused ones are shown."""
    desk.write(GOOD[1], BLUE.replace("Blue", "Green"))
    desk.refresh()
    desk.night(GOOD[1], *TWINS)
    refused = [("C-2", "succeeded"), ("C-1 Blue herons", "refused"), ("C-1 Red foxes", "refused")]
    assert statuses(desk) == refused
    assert sorted(desk.products()) == ["C-1", "C-2"]


def test_a_corrected_twin_that_the_source_has_changed(desk: Desk) -> None:
    """Which of the two was meant nobody knows then: both are refused again, nothing is bought, and it is said."""
    desk.write(GOOD[1], *TWINS)
    desk.refresh()
    edit(
        latest(desk) / "failures.csv",
        lambda row: row.update(sku="C-5") if row["prompt"] == "Red foxes" else None,
    )
    import_file(desk, latest(desk) / "failures.csv")
    before = desk.creates()
    night = desk.night(GOOD[1], BLUE, RED.replace("foxes", "foxes at dusk"))
    assert night.counts["refused"] == 2 and desk.creates() == before
    assert statuses(desk)[1:] == [("C-1 Blue herons", "succeeded"), ("C-1 Red foxes at dusk", "refused")]
    notes = " ".join(night.manifest()["options"]["notes"])
    assert "1 correction not applied, because the source has no row with these very cells now: C-5" in notes
