"""A catalog's whole sheet comes back with its products, and imported again it buys nothing."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from patternmill.states import Decided

from .workshop import Workshop, read_rows, write_rows

HEADER = ("Lagerplätze", "sku", "Motiv", "category", "option:name", "=Preis")
OWN = len(HEADER)
SHEET = (
    HEADER,
    ("klein", "007", "blaue Reiher", "Tote", "a", "=1+1"),
    ("'=x", "B-1", "grüne Eulen; nachts", "Tote", "b", "1e5"),
    ("NA", "", "rote Füchse", "Tote", "c", "0,5"),
    ("", "D", "ein Farn", "Tote", "d", "-3"),
    ("", "D", "zwei Farne", "Tote", "e", "\tx"),
    ("ß", "F", "drei Farne", "Mug", "f", "@x"),
)


def write(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    return path


def read(path: Path) -> list[list[str]]:
    """Return a table as its file has it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=";"))


def test_whole_sheet_comes_back_and_buys_nothing(shop: Workshop) -> None:
    """In its format and its order, with every own column; rows that were not made say why."""
    (shop.folder / "spring.mapping.toml").write_text('[columns]\n"Motiv" = "prompt"\n', "utf-8")
    shop.load(write(shop.folder / "spring.csv", SHEET), catalog="spring")
    place = shop.folder / "results" / "spring" / "sheet.csv"
    first = read(place)
    assert first[0][OWN:] == [
        *("status", "product_id", "pattern_id", "picture_url", "error_code", "error"),
        *("decided", "since", "decision", "note", "run"),
    ]
    quoted = {text: f"'{text}" for text in ("=Preis", "=1+1", "-3", "\tx", "@x", "'=x")}
    assert [line[:OWN] for line in first] == [[quoted.get(text, text) for text in line] for line in SHEET]
    assert [line[OWN] for line in first[1:]] == ["succeeded"] * 2 + ["refused"] * 4
    products = {sku: product for sku, (product, _) in shop.products().items()}
    assert [line[OWN + 1] for line in first[1:]] == [products["007"], products["B-1"], "", "", "", ""]
    assert [line[OWN + 4] for line in first[3:]] == ["empty_sku", *["duplicate_sku"] * 2, "unknown_category"]

    bought = len(shop.service.bought)
    (shop.folder / "elsewhere").mkdir()
    shop.load(place.rename(shop.folder / "elsewhere" / place.name))
    assert len(shop.service.bought) == bought
    again = read(place)
    same = [at for at, column in enumerate(first[0]) if column not in ("run", "error")]
    assert [[line[at] for at in same] for line in again] == [[line[at] for at in same] for line in first]


def test_corrected_failures_are_in_their_places(shop: Workshop) -> None:
    """Skus that were missing or double get new ones, and a row that a semicolon split is put together."""
    header = ["sku", "prompt", "category", "option:name", "remark"]
    whole = [
        ["A", "herons", "Tote", "a", "one"],
        ["B", "owls", "Tote", "b", "two"],
        ["C-2", "ferns", "Tote", "c", "three"],
        ["C", "foxes", "Tote", "d", "four"],
        ["E", "hens; at night", "Tote", "e", "five"],
    ]
    split = ["E", "hens", " at night", "Tote", "e", "five"]
    broken = [whole[0], ["", *whole[1][1:]], ["C", *whole[2][1:]], whole[3]]
    lines = [";".join(line) for line in (header, *broken, split)]
    shop.load(shop.file("\n".join(lines) + "\n"))
    failures = read(shop.folder / "results/spring/latest/failures.csv")
    assert [line[:6] for line in failures[1:]] == [*([*line, ""] for line in broken[1:]), split]
    corrected = [[*line, "", *failures[1][6:]] for line in whole[1:]]
    shop.load(write(shop.folder / "corrected.csv", [failures[0], *corrected]))
    assert set(shop.rows.values()) == {"succeeded"}
    assert [line[:5] for line in read(shop.folder / "results/spring/sheet.csv")[1:]] == whole
    bought = len(shop.service.bought)
    shop.load(shop.folder / "results/spring/sheet.csv")
    shop.refresh(retire=None)
    assert len(shop.service.bought) == bought
    # What was corrected lasts while its source is refused.
    assert shop.has().keys() == {"A", "B", "C", "C-2", "E"}


def test_sheet_names_what_was_made_anew_and_decided(shop: Workshop) -> None:
    """A decision in its empty column is about the take that its row shows; what is told of one is not read."""
    shop.load_source({"a": {"prompt": "herons"}, "b": {"prompt": "owls"}})
    shop.decide(Decided.PICK, "owls")
    assert shop.remake("a")
    place = shop.folder / "results/spring/sheet.csv"
    rows = {row["sku"]: row for row in read_rows(place)}
    assert (rows["a"]["decided"], rows["b"]["decided"]) == ("", "pick")
    assert [rows[sku]["run"].partition("@")[0] for sku in "ab"] == [shop.runs[-1], shop.runs[0]]
    bought = len(shop.service.bought)
    shop.load(place)
    assert len(shop.service.bought) == bought and shop.takes() == {"a": 2, "b": 1}

    decided = [row | {"decision": "reject" if row["sku"] == "a" else ""} for row in read_rows(place)]
    shop.load(write_rows(shop.folder / "decided.csv", decided))
    rows = {row["sku"]: row for row in read_rows(place)}
    assert rows["a"]["decided"] == "reject" and rows["a"]["status"] == "discarded"
