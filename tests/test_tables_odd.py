"""What people put in place of a sheet, and sheets that are results: of another catalog, environment, or corrected."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cli.main import run as command
from patternmill.errors import InputRefused
from patternmill.files import read_file
from patternmill.states import Outcome, Status
from patternmill.tables.mapping import SheetMapping
from patternmill.tables.sheet import read_sheet
from tests.test_cli import asked
from tests.test_runs import catalog, double, made, results, row, run, sheet, table  # noqa: F401


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (Path.mkdir, "file_missing"),
        (os.mkfifo, "file_missing"),
        (lambda path: path.symlink_to("nowhere.csv"), "file_missing"),
        (lambda path: (path.touch(), os.truncate(path, 300 << 20)), "file_too_large"),
        (lambda path: path.symlink_to("/dev/zero"), "file_missing"),
    ],
    ids=["folder", "pipe", "dangling link", "huge", "device"],
)
@pytest.mark.timeout(20)
def test_what_is_no_sheet_is_refused_at_once(tmp_path, make, code):
    path = tmp_path / "summer.csv"
    make(path)
    with pytest.raises(InputRefused, match=r"summer\.csv") as refused:
        read_sheet(read_file(path), path.name, SheetMapping())
    assert refused.value.code == code


# What Excel writes beside an open workbook, and macOS beside each file on a disk of another system.
LOCK = b"\x06Alex K" + b" " * 48 + b"\x06\0A\0l\0e\0x\0 \0K\0" + b" \0" * 49
FORK = b"\0\x05\x16\x07\0\x02\0\0Mac OS X        \0\x02\0\0\0\x09\0\0\x002\0\0\x0e\xb0" + b"\0" * 60


@pytest.mark.parametrize(
    ("name", "content"), [("~$summer.xlsx", LOCK), ("._summer.csv", FORK)], ids=["Excel", "macOS"]
)
def test_a_file_that_a_program_left_beside_the_sheet_names_the_sheet(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputRefused) as refused:
        read_sheet(read_file(path), path.name, SheetMapping())
    assert "summer" in refused.value.remedy
    assert "UTF-8" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "header"),
    [
        ({}, ("Artikel", "prompt", "category", "option:size", "option:label")),
        ({2: "Toat"}, ("sku", "prompt", "category", "option:size", "option:label")),
    ],
    ids=["column", "word"],
)
def test_on_a_terminal_enter_is_no_for_what_is_doubtful(double, change, header):  # noqa: F811
    cells = [change.get(at, cell) for at, cell in enumerate(row(1))]
    sheet(cells, header=header)
    said, code = asked(["import", "spring.csv"], [("Is that so?", "\n")])
    assert code in (2, 3), said
    assert not Path("spring.mapping.toml").exists()
    assert made(double) == (0, 0)


def corrected(end, old, new):
    """Correct the failures of a run, and return their file."""
    path = Path(end.summary.folder) / "failures.csv"
    path.write_text(path.read_text("utf-8-sig").replace(old, new), "utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "old", "new"),
    [(row(2, size="huge"), "huge", "s"), (row(2, "herons [unsafe]"), "herons [unsafe]", "herons")],
    ids=["refused", "failed"],
)
def test_a_correction_stays_while_its_source_row_is_refused_or_has_failed(double, bad, old, new):  # noqa: F811
    sheet(row(1), bad, row(3))
    assert run(file=corrected(run(), old, new)).outcome is Outcome.COMPLETED
    before, bought = catalog()["a-2"], made(double)
    run("refresh")
    assert made(double) == bought
    assert catalog()["a-2"].has_product_id == before.product_id
    assert catalog()["a-2"].status == Status.SUCCEEDED


@pytest.mark.slow
def test_a_corrected_row_keeps_its_product_whatever_the_source_says(double):  # noqa: F811
    sheet(row(1), row(2, size="huge"), row(3))
    run(file=corrected(run(), "huge", "s"))
    product, bought = catalog()["a-2"].product_id, made(double)
    run("refresh")
    assert catalog()["a-2"].has_product_id == product
    assert made(double) == bought
    lines = table("results/spring/catalog.csv")
    assert [line["product_id"] for line in lines if line["sku"] == "A-2"] == [product]


@pytest.mark.slow
def test_a_source_row_that_is_good_counts_more_than_an_earlier_correction(double):  # noqa: F811
    sheet(row(1), row(2, size="huge"), row(3))
    run(file=corrected(run(), "huge", "s"))
    sheet(row(1), row(2, size="m"), row(3))
    assert run("refresh").outcome is Outcome.COMPLETED
    assert json.loads(catalog()["a-2"].content)["selections"]["size"] == "m"
    assert made(double) == (3, 4)


@pytest.mark.slow
def test_results_of_another_catalog_go_to_that_catalog(double):  # noqa: F811
    sheet(row(1), row(2, size="huge"))
    first = run()
    sheet(row(7), name="summer.csv")
    second = run(file="summer.csv")
    mixed = Path("summer.csv")
    shutil.copy(Path(first.summary.folder) / "results.csv", mixed)
    end = run(file="summer.csv")
    assert end.summary.catalog == "spring"
    assert made(double) == (2, 2)
    both = [(Path(end.summary.folder) / "results.csv").read_text("utf-8-sig") for end in (first, second)]
    text = both[0] + both[1].partition("\n")[2]
    mixed.write_text(text, "utf-8")
    end = run(file="summer.csv")
    assert (end.outcome, end.summary.causes[0].code) == (Outcome.REFUSED, "unknown_run")
    assert made(double) == (2, 2)


@pytest.mark.slow
def test_results_of_another_environment_are_refused_before_money(double, monkeypatch):  # noqa: F811
    sheet(row(1), row(2, size="huge"))
    shutil.copy(Path(run().summary.folder) / "results.csv", "spring.csv")
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "staging")
    end = run(file="spring.csv")
    assert end.outcome is Outcome.REFUSED
    assert "staging" in end.message
    assert made(double) == (1, 1)
    assert run(file="spring.csv", catalog="spring").summary.environment == "staging"
    assert results(run(file="spring.csv", catalog="spring"))["A-1"]["status"] == "succeeded"


def test_the_history_of_a_row_whose_pattern_failed_or_that_is_refused_is_known(double, capsys):  # noqa: F811
    sheet(row(1), row(2, "herons [unsafe]"), row(3, size="huge"))
    run()
    for sku in ("A-2", "A-3"):
        assert command(["explain", sku]) == 0, capsys.readouterr().err
