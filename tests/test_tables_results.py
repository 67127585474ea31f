"""What comes back: results, failures, the gallery, and the files of a catalog; and each of them read again."""

import hashlib
import json
import re

import pandas as pd
import pytest

from patternmill.files import point_at, write_whole
from patternmill.states import CatalogRow
from patternmill.tables.delimited import defused, restored
from patternmill.tables.kept import header_of, kept_cells, kept_sheet
from patternmill.tables.results import Result, results_frame, write_catalog, write_results
from patternmill.tables.sheet import SURPLUS
from tests import test_tables

HEADER = "sku,prompt,category,option:size,note\n"
MADE = Result("succeeded", "prd_1", "pat_1")
CHOICE = {"category_id": "cat_cushion", "category": "Cushion", "selections": {"size": "50x50"}}
ROW = {
    "key": "a1", "sku": "A1", "position": 0, "number": 2, "run": "run-1", "header": '["sku", "prompt", "note"]',
    "cells": '["A1", "herons", ""]', "content": json.dumps({"prompt": "herons", **CHOICE}), "likeness": "",
    "pattern": "q1", "take": 1, "refusal": "", "wants": "p1",
    "built_on": "q1", "has": "p1", "since": 0.0, "retired": None, "status": "succeeded", "code": "", "message": "",
    "verdict": "", "note": "",
    "product_id": "prd_1", "pattern_id": "pat_1", "has_product_id": "prd_1", "has_pattern_id": "pat_1",
}  # fmt: skip


def catalog_row(**other):
    return CatalogRow(**{**ROW, **other})


def checked(path, content=None):
    return test_tables.checked(path.parent, path.read_bytes() if content is None else content, name=path.name)


def written(tmp_path, found, results):
    frame = results_frame(found, results, "run-1")
    write_results(frame, found, tmp_path / "out", {"run": "run-1", "outcome": "Completed"})
    return frame


def table(path, sep=","):
    return pd.read_csv(path, sep=sep, dtype=str, keep_default_na=False, encoding="utf-8-sig")


def test_every_row_comes_back_in_its_order_with_what_became_of_it(tmp_path):
    rows = (
        "A-1,herons,Cushion,50x50,=1+1\nA-2,,Cushon,60x60,null\n\nA-3,ferns,Cushion,,\nA-4,moss,Cushion,,\n"
    )
    became = {2: MADE, 6: Result("failed", "", "pat_2", "job_failed", "no ink")}
    written(tmp_path, checked(tmp_path / "a.csv", HEADER + rows), became)
    results = table(tmp_path / "out/results.csv")
    assert list(results["sku"]) == ["A-1", "A-2", "A-3", "A-4"]
    assert list(results["status"]) == ["succeeded", "refused", "not_started", "failed"]
    assert list(results["note"]) == ["'=1+1", "null", "", ""]
    assert list(results["error_code"]) == ["", "empty_prompt", "", "job_failed"]
    said = "the prompt is empty; describe the pattern. unknown category `Cushon`"
    assert results["error"][1].startswith(said)
    assert set(results["run"]) == {"run-1"}
    assert list(table(tmp_path / "out/failures.csv")["sku"]) == ["A-2", "A-4"]
    lines = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert lines[0]["note"] == "=1+1"


def test_the_manifest_counts_rows_and_names_each_file_by_its_checksum(tmp_path):
    written(
        tmp_path, checked(tmp_path / "a.csv", HEADER + "A-1,herons,Cushion,,\nA-2,,Cushion,,\n"), {2: MADE}
    )
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["outcome"], manifest["rows"]) == ("Completed", 2)
    assert manifest["counts"] == {"succeeded": 1, "refused": 1}
    assert set(manifest["files"]) == {"results.csv", "failures.csv", "results.jsonl", "gallery.html"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_results_have_the_delimiter_of_the_input(tmp_path, delimiter):
    content = (HEADER + "A-1,herons,Cushion,,\n").replace(",", delimiter)
    written(tmp_path, checked(tmp_path / "a.csv", content), {})
    assert list(table(tmp_path / "out/results.csv", delimiter)["sku"]) == ["A-1"]


def test_results_where_every_row_is_refused_or_none(tmp_path):
    written(tmp_path, checked(tmp_path / "a.csv", HEADER + ",,,,\nA-1,,Cushion,,x\n"), {})
    assert len(table(tmp_path / "out/failures.csv")) == 1
    written(tmp_path, checked(tmp_path / "a.csv", HEADER + "A-1,herons,Cushion,,\n"), {2: MADE})
    assert list(table(tmp_path / "out/failures.csv").columns[:2]) == ["sku", "prompt"]
    assert len(table(tmp_path / "out/failures.csv")) == 0


def test_surplus_cells_come_back_and_keep_their_row_refused_until_they_are_gone(tmp_path):
    written(tmp_path, checked(tmp_path / "a.csv", HEADER + "A-1,herons,Cushion,,n,extra,\n"), {})
    failures = tmp_path / "out/failures.csv"
    assert list(table(failures)["surplus"]) == ["extra,"]
    again = checked(failures)
    assert list(again.problems["code"]) == ["surplus_cells"]
    assert kept_cells(again.sheet, again.columns) == {2: '["A-1", "herons", "Cushion", "", "n", "extra,"]'}
    mended = checked(failures, failures.read_bytes().replace(b'"extra,"', b""))
    assert len(mended.rows) == 1


def test_columns_that_are_named_as_ours_stay_beside_ours(tmp_path):
    content = "sku,prompt,category,Status,Tag,Tag\nA-1,herons,Cushion,new,a,b\n"
    written(tmp_path, checked(tmp_path / "a.csv", content), {2: MADE})
    again = checked(tmp_path / "out/results.csv")
    assert json.loads(header_of(again.columns)) == ["sku", "prompt", "category", "Status", "Tag", "Tag"]
    line = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert (line["Status"], line["status"], line["Tag"], line["Tag (6)"]) == ("new", "succeeded", "a", "b")


def test_the_gallery_has_a_card_for_each_pattern_and_shows_texts_as_texts(tmp_path):
    content = HEADER + "A-1,<script>herons,Cushion,,\nA-2,<script>herons,Cushion,,\nA-3,ferns,Cushion,,\n"
    failed = Result("failed", "", "", "job_failed", "no ink")
    results = {2: MADE, 3: Result("succeeded", "prd_2", "pat_1"), 4: failed}
    written(tmp_path, checked(tmp_path / "a.csv", content), results)
    page = (tmp_path / "out/gallery.html").read_text()
    (data,) = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    (card,) = json.loads(data)["cards"]
    assert (card["prompt"], [line["sku"] for line in card["rows"]]) == ("<script>herons", ["A-1", "A-2"])
    assert "<script>herons" not in page


def test_formulas_are_defused_and_read_back():
    cells = pd.Series(
        ["=1+1", "'=1+1", "@x", "-3", " =1", "\ta", "\rb", "＝1", "plain", "", "'quoted'", "'"], dtype="str"
    )
    assert not defused(cells).str.match(r"\s*[=@+-]|\t|\r").any()
    assert list(restored(defused(cells))) == list(cells)


def test_the_products_of_a_catalog_are_what_its_rows_have_now(tmp_path):
    failed = {"has": "p0", "has_product_id": "prd_0", "product_id": "", "status": "failed"}
    none = dict.fromkeys(("has", "has_product_id", "has_pattern_id", "product_id"), "")
    rows = [
        catalog_row(key="b", sku="=B", position=0, **failed), catalog_row(position=1),
        catalog_row(key="c", sku="C", position=2, retired=1.0), catalog_row(key="d", sku="D", position=3, **none),
    ]  # fmt: skip
    write_catalog(tmp_path, rows)
    assert table(tmp_path / "catalog.csv").to_numpy().tolist() == [
        ["'=B", "prd_0", "pat_1", "", "", "", ""],
        ["A1", "prd_1", "pat_1", "herons", "Cushion", '{"size": "50x50"}', ""],
    ]
    assert list(table(tmp_path / "sheet.csv")["sku"]) == ["A1", "A1", "A1"]


def test_the_whole_sheet_is_what_its_source_had_and_can_be_imported_again(tmp_path):
    first = checked(
        tmp_path / "a.csv", HEADER + "A-1,herons,Cushion,50x50,=x\nA-2,ferns,Cushion\nA-3,,Cushion,,,beyond\n"
    )
    header, cells = header_of(first.columns), kept_cells(first.sheet, first.columns)
    rows = [catalog_row(key=str(at), number=at, position=at, header=header, cells=cells[at]) for at in cells]
    write_catalog(tmp_path, rows)
    again = checked(tmp_path / "sheet.csv")
    assert list(again.sheet.rows[4]) == ["=x", "", ""]
    assert list(again.problems["code"]) == ["surplus_cells"]
    assert list(again.rows["sku"]) == ["A-1", "A-2"]
    assert list(table(tmp_path / "sheet.csv")["product_id"]) == ["prd_1"] * 3


def test_kept_rows_are_the_same_value_as_a_sheet_that_was_checked():
    refusal = json.dumps(
        {"code": "empty_sku", "message": "the sku is empty", "remedy": "write one", "column": "sku"}
    )
    unsold = {"sku": "", "refusal": refusal}
    other = {"header": '["note", "prompt", "sku", "sku"]', "cells": '["n", null, "", "2", "x"]'}
    rows = [catalog_row(number=5), catalog_row(key="#2", number=2, **unsold, **other)]
    rows.append(catalog_row(key="#3", number=3, content="", **unsold))
    kept = kept_sheet(rows)
    assert kept.columns.header == ("sku", "prompt", "note", "sku")
    assert kept.rows.loc[5].tolist() == ["A1", "herons", "cat_cushion", "Cushion", '{"size": "50x50"}', ""]
    assert list(kept.unsold.index) == [2]
    assert kept.refused == 2
    assert kept.problems[["row", "column", "code", "suggestion"]].to_numpy().tolist() == [
        [2, "sku", "empty_sku", None], [3, "sku", "empty_sku", None]]  # fmt: skip
    assert kept.sheet.rows.loc[2].fillna("-").to_dict() == {0: "", 1: "-", 2: "n", 3: "2", SURPLUS: "x"}
    frame = results_frame(kept, {5: MADE}, "run-2")
    assert list(frame["status"]) == ["succeeded", "refused", "refused"]


def test_kept_rows_of_several_sheets_whose_numbers_clash_get_new_ones():
    assert list(kept_sheet([catalog_row(), catalog_row(key="b", sku="B")]).rows.index) == [2, 3]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, b"one")
    with pytest.raises(TypeError):
        write_whole(path, "two")  # type: ignore[arg-type]
    assert path.read_bytes() == b"one"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_points_at_the_newest(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_at(tmp_path / "latest", name)
    assert (tmp_path / "latest").resolve().name == "two"
