"""Files that a run wrote and that come back: as they were, corrected, or saved by a spreadsheet. Nothing is bought."""

import csv
import io
import json
import random
from pathlib import Path

import pytest

from patternmill.errors import InputRefused
from patternmill.items import choice_of, pattern_item, product_item
from patternmill.states import Outcome, Status
from patternmill.tables.kept import header_of, kept_cells
from patternmill.tables.results import Result, results_frame, write_catalog, write_results
from tests.test_runs import HEADER, catalog, double, made, results, row, run, sheet, table  # noqa: F401
from tests.test_tables import checked, codes
from tests.test_tables_results import catalog_row

MADE = Result("succeeded", "prd_1", "pat_1")


def states():
    """Return what of each row is no matter of the file that it came from last, by key."""
    return {key: (one.position, one.sku, one.status, one.wants, one.has_product_id, one.retired)
            for key, one in catalog().items()}  # fmt: skip


def lines(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def without_run(path):
    """Return the cells of a file without our columns `error` and `run`, which name rows and files."""
    header, *rows = lines(path)
    ours = {header.index("run"), header.index("error")}
    return [[cell for at, cell in enumerate(line) if at not in ours] for line in (header, *rows)]


ODD = (
    row(1), row(2, "herons [unsafe]"), row(3, size="huge"), *[("", "waves", "Tote", "m", "")] * 2,
    row(4, "ferns", sku="A-1"), (*row(5), "beyond"), ("A-6", "moss", "Tote"), ("A-7", "owls", "Tote", "m", "=1+1"),
    row(8, label="NA"), ("A-9", "reeds"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sheet.csv", "copy of it.csv"])
def test_the_whole_sheet_of_a_catalog_comes_back_without_a_change(double, name):  # noqa: F811
    sheet(*ODD)
    run()
    before, bought, whole = states(), made(double), without_run("results/spring/sheet.csv")
    assert [line[0] for line in whole[1:]] == [one[0] for one in ODD]
    for _ in range(2):
        Path(name).write_bytes(Path("results/spring/sheet.csv").read_bytes())
        end = run(file=name)
        assert end.summary.catalog == "spring"
        assert (states(), made(double)) == (before, bought)
        assert without_run("results/spring/sheet.csv") == whole
    run("refresh")
    assert (states(), made(double)) == (before, bought)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sheet.csv", "failures.csv"])
def test_files_of_a_sheet_with_a_mapping_need_none(double, name):  # noqa: F811
    header = ("Art.-Nr.", "Motiv", "Typ", "Maß", "Bemerkung")
    columns = dict(zip(header, ("sku", "prompt", "category", "option:size", "note"), strict=True))
    text = "[columns]\n" + "".join(f'"{name}" = "{meant}"\n' for name, meant in columns.items())
    Path("spring.mapping.toml").write_text(text + '[values]\n"Tasche" = "Tote"\n', encoding="utf-8")
    rows = [("A-1", "herons", "Tasche", "m", "x"), ("A-2", "ferns", "Tasche", "huge", "y")]
    sheet(*rows, header=header)
    end = run()
    assert made(double) == (1, 1)
    path = Path("results/spring" if name == "sheet.csv" else end.summary.folder) / name
    before = states()
    run(file=str(path))
    assert (states(), made(double)) == (before, (1, 1))
    Path("mailed.csv").write_text(path.read_text("utf-8-sig").replace("huge", "s"), encoding="utf-8")
    assert run(file="mailed.csv").outcome is Outcome.COMPLETED
    assert made(double) == (2, 2)
    assert lines("results/spring/sheet.csv")[0][:5] == list(header)


@pytest.mark.slow
def test_a_missing_cell_stays_missing_until_somebody_says_that_it_is_empty(double):  # noqa: F811
    sheet(row(1), ("A-2", "ferns", "Tote"))
    failures = Path(run().summary.folder) / "failures.csv"
    assert run(file=str(failures)).summary.counts == {"refused": 1}
    header, line = lines(failures)
    line[header.index("error")] = ""
    sheet(line, name="corrected.csv", header=header)
    assert run(file="corrected.csv").outcome is Outcome.COMPLETED
    bought = made(double)
    assert run("refresh").outcome is Outcome.COMPLETED
    assert made(double) == bought == (2, 2)


@pytest.mark.slow
def test_a_sku_that_was_corrected_takes_the_place_of_the_row_without_one(double):  # noqa: F811
    sheet(row(1), ("", "waves", "Tote", "m", ""), row(3), row(4, sku="A-3"))
    failures = Path(run().summary.folder) / "failures.csv"
    header, empty, one, other = lines(failures)
    sheet(["B-7", *empty[1:]], one, ["A-4", *other[1:]], name="corrected.csv", header=header)
    assert run(file="corrected.csv").outcome is Outcome.COMPLETED
    keys = ["a-1", "b-7", "a-3", "a-4"]
    for verb in ("import", "refresh"):
        assert [(key, one.status, one.position) for key, one in catalog().items()] == [
            (key, Status.SUCCEEDED, at) for at, key in enumerate(keys)
        ]
        assert run(verb).outcome is Outcome.COMPLETED
    assert made(double) == (4, 4)


@pytest.mark.slow
def test_a_correction_falls_with_its_source_row(double):  # noqa: F811
    sheet(row(1), row(2, size="huge"))
    failures = Path(run().summary.folder) / "failures.csv"
    header, line = lines(failures)
    sheet([*line[:3], "s", *line[4:]], name="corrected.csv", header=header)
    run(file="corrected.csv")
    end = run("refresh")
    assert (end.outcome, results(end)["A-2"]["option:size"]) == (Outcome.COMPLETED, "s")
    sheet(row(1), row(2, size="enormous"))
    assert results(run("refresh"))["A-2"]["status"] == "refused"
    sheet(row(1), row(2, size="huge"))
    assert results(run("refresh"))["A-2"]["status"] == "refused"
    assert made(double) == (2, 2)


@pytest.mark.slow
def test_skus_that_a_spreadsheet_took_for_numbers_are_those_of_the_catalog(double):  # noqa: F811
    skus = ("0042", "0000000001230000000123", "043", "0043", "0", "0044")
    sheet(*(row(number, sku=sku) for number, sku in enumerate(skus)))
    run()
    before, bought = states(), made(double)
    header, *rows = lines("results/spring/sheet.csv")
    eaten = ("42", "1,23E+12", "43", "0043", "0", "44")
    saved = [[sku, *line[1:]] for sku, line in zip(eaten, rows, strict=True)]
    by_hand = ["7", "waves", "Tote", "m", "", *[""] * (len(header) - 5)]
    sheet(*saved, rows[-1], by_hand, name="saved.csv", header=header)
    end = run(file="saved.csv")
    found, doubtful = table(Path(end.summary.folder) / "results.csv"), "number_as_shown"
    became = [(line["sku"], line["error_code"]) for line in found]
    assert became == [("0042", ""), ("0000000001230000000123", ""), ("43", doubtful), ("0043", ""), ("0", ""),
                      ("44", doubtful), ("0044", ""), ("7", "")]  # fmt: skip
    assert {key: one for key, one in states().items() if key in before} == before
    assert made(double) == (bought[0] + 1, bought[1] + 1)


@pytest.mark.slow
def test_what_a_replaced_product_was_made_of_is_told(double):  # noqa: F811
    sheet(row(1), row(2))
    run()
    sheet(row(1), row(2, "owls [unsafe]", size="s"))
    run(change=1)
    header, *rows = lines("results/spring/catalog.csv")
    told = dict(zip(header, rows[1], strict=True))
    assert (told["prompt"], told["category"], told["selections"]) == ("herons 2", "cat_tote", '{"size": "m"}')


# --- by chance


def written(chance, signs, width):
    """Return a text of rows with cells by chance, and the rows that show anything."""
    rows = [["".join(chance.choices(signs, k=chance.randrange(5))) for _ in range(chance.choice((width, width, 2, 7)))]
            for _ in range(9)]  # fmt: skip
    table = io.StringIO(newline="")
    csv.writer(table).writerows(rows)  # which leaves a lone CR without quotes where lines end with LF
    return table.getvalue(), [line for line in rows if "".join(line).strip()]


def rows_lost(tmp_path, seed):
    """Return how many records of a sheet by chance come back neither fit nor with a problem."""
    chance = random.Random(seed)
    signs = ["a", " ", ",", ";", "|", '"', '""', "\n", "\r", "\r\n", "=", "é", "0", "Cushion", "50x50", "sku"]
    body, filled = written(chance, signs, 4)
    try:
        found = checked(tmp_path, "sku,prompt,category,option:size\n" + body)
    except InputRefused as refusal:
        return int(refusal.code not in ("open_quote", "header_only"))
    return len(filled) - len(found.rows) - found.problems["row"].nunique()


def raw_lost(tmp_path, seed):
    """Return how many lines of a text without quotes, broken by chance, come back neither fit nor with a problem."""
    chance = random.Random(seed)
    tab = chance.choice(",;|\t")
    quote = '"' if tab == "\t" else "'"
    signs = ["a", tab, tab, " ", "\n", "\r\n", "\r", quote, "é", "Cushion", "50x50", "x\n"]
    body = "".join(chance.choices(signs, k=chance.randrange(5, 90)))
    filled = [line for line in io.StringIO(body, newline=None) if line.replace(tab, "").strip()]
    try:
        found = checked(tmp_path, tab.join(("sku", "prompt", "category", "option:size")) + "\n" + body)
    except InputRefused as refusal:
        return int(refusal.code not in ("open_quote", "header_only"))
    has_quotes = len(found.sheet.rows) < len(filled) and '"' in body
    return 0 if has_quotes else len(filled) - len(found.rows) - found.problems["row"].nunique()


@pytest.mark.parametrize("lost", [rows_lost, raw_lost])
def test_no_record_of_a_sheet_is_lost(tmp_path, lost):
    assert not [seed for seed in range(100) if lost(tmp_path, seed)]


@pytest.mark.soak
@pytest.mark.parametrize("lost", [rows_lost, raw_lost])
def test_no_record_of_many_sheets_is_lost(tmp_path, lost):
    assert not [seed for seed in range(100, 1500) if lost(tmp_path, seed)]


def product_ids(found):
    """Return the identities of what the rows that are fit ask for."""
    return [product_item(pattern_item("production", one.prompt), one.sku,
                         choice_of(one.category_id, json.loads(one.selections))).id
            for one in found.rows.itertuples()]  # fmt: skip


def comes_back(tmp_path, seed):
    """Return whether results and the whole sheet of a sheet by chance are read as the sheet that they came from."""
    chance = random.Random(seed)
    signs = ["a", " ", ",", '"', "\n", "\r", "\t", "'", "=", "+", "@", "-", "é", "NA", "0", ";"]
    cell = lambda: "".join(chance.choices(signs, k=chance.randrange(5)))  # noqa: E731
    more = chance.sample(["note", "note", "Status", "", "=x"], 3)
    header = ["sku", "prompt", "category", "option:size", *more]
    rows = [[chance.choice((f"S-{at}", "S-1", cell())), chance.choice(("herons", cell())), "Cushion",
             chance.choice(("50x50", "", "60x60")), cell(), cell(), cell(), cell()][: chance.choice((7, 7, 7, 3, 8))]
            for at in range(8)]  # fmt: skip
    table = io.StringIO(newline="")
    csv.writer(table).writerows([header, *rows])
    try:
        first = checked(tmp_path, table.getvalue())
    except InputRefused as refusal:
        return refusal.code in ("open_quote", "wrong_header")
    cells, titles = kept_cells(first.sheet, first.columns), header_of(first.columns)
    write_results(results_frame(first, dict.fromkeys(first.rows.index, MADE), "run-1"), first, tmp_path, {})
    faults = {at: {"code": "x", "message": "; ".join(those["message"]), "remedy": "", "column": ""}
              for at, those in first.problems.groupby("row")}  # fmt: skip
    kept = [catalog_row(key=str(at), position=at, number=at, header=titles, cells=one,
                        refusal=json.dumps(faults[at]) if at in faults else "",
                        message=faults[at]["message"] if at in faults else "")
            for at, one in cells.items()]  # fmt: skip
    write_catalog(tmp_path, kept)
    for name in ("results.csv", "sheet.csv"):
        again = checked(tmp_path, (tmp_path / name).read_bytes())
        assert again.columns.run is not None
        assert [*map(without_missing, kept_cells(again.sheet, again.columns).values())] == [
            *map(without_missing, cells.values())
        ]
        assert header_of(again.columns) == titles
        assert product_ids(again) == product_ids(first)
        assert {code for _, code in codes(again)} == {code for _, code in codes(first)}
    return True


def without_missing(cells):
    """Return kept cells with those that are missing as empty ones: only a needed one stays missing."""
    return [cell or "" for cell in json.loads(cells)]


def test_what_a_run_wrote_is_the_sheet_that_it_came_from(tmp_path):
    assert all(comes_back(tmp_path, seed) for seed in range(20))


@pytest.mark.soak
def test_what_many_runs_wrote_is_the_sheet_that_it_came_from(tmp_path):
    assert all(comes_back(tmp_path, seed) for seed in range(20, 170))
