"""Sheets as programs write them: `check` accepts what nobody can misunderstand, and names what nobody would pay for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from cli import main

HEADER = "sku,prompt,category,option:size,option:fabric"
ROWS = HERONS, FERNS, CHECKS = (
    "CU-001,blue herons at dawn,Cushion,50x50,linen",
    "CU-002,sage ferns in rain,Cushion,40x40,velvet",
    "CU-003,ochre checks,Cushion,60x40,cotton",
)


@dataclass(frozen=True)
class Report:
    json: Any

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many rows are accepted and refused."""
        return self.json["accepted"], self.json["refused"]

    @property
    def codes(self) -> dict[int, str]:
        """Return the codes of the problems by row."""
        found: dict[int, str] = {}
        for problem in self.json["problems"]:
            found[problem["row"]] = f"{found.get(problem['row'], '')} {problem['code']}".strip()
        return found


Check = Callable[..., Report]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check a sheet by what the embedded studio offers."""
    for name in ("PATTERNMILL_STUDIO_URL", "PATTERNMILL_API_KEY", "PATTERNMILL_PROFILES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(content: str | openpyxl.Workbook, *options: str) -> Report:
        name = "cat.csv" if isinstance(content, str) else "cat.xlsx"
        if isinstance(content, str):
            Path(name).write_bytes(content.encode())
        else:
            content.save(name)
        capsys.readouterr()
        code = main.run(["check", name, "--json", *options])
        report = Report(json.loads(capsys.readouterr().out))
        assert code == (3 if report.counts[1] else 0)
        return report

    return run


def sheet(*rows: str, header: str = HEADER) -> str:
    return "\r\n".join([header, *rows, ""])


EMPTY_LAST = sheet(HERONS, f"{FERNS},soft", CHECKS, header=f"{HEADER},remark,season")
#: What an export writes for no prompt.
NO_PROMPTS = ("nan", "NaN", "None", "null", "NULL", "undefined", "N/A", "n.a.", "NaT", "nil", "TBD")
PROMPTS = ("nannies with prams", "none of the herons fly", "a null set in ink", "nil desperandum", "na na na")
SKUS = ("NA", "nan", "null", "None", "007", "1e5")
SHOPIFY = "Variant SKU,Title,Type,Option1 Value,Option2 Value"
#: The text, how many rows are accepted, and the codes of the others by row.
TEXTS: dict[str, tuple[str, int, dict[int, str]]] = {
    **{
        f"separators of empty last columns may be missing: {delimiter!r}": (EMPTY_LAST.replace(",", delimiter), 3, {})
        for delimiter in ",;\t"
    },
    "nobody knows what was lost before a category or an option that has to be chosen": (
        sheet(HERONS, "CU-2,sage ferns", "CU-3,ochre checks,Cushion", "CU-4,red foxes,Cushion,50x50"),
        1,
        {3: "missing_cells", 4: "missing_cells", 5: "missing_cells"},
    ),
    **{
        f"a sign that ends a file of DOS is no row: {end!r}": (sheet(*ROWS) + end, 3, {})
        for end in ("\x1a", "\r\n\x1a", "\x1a\r\n", "\x1a\x1a\r\n\r\n")
    },
    "that sign within a sku": (sheet("CU\x1a9,blue herons,Cushion,50x50,linen", FERNS), 1, {2: "unsafe_characters"}),
    "nobody pays for a picture of nan": (
        sheet(*(f"N-{at},{prompt},Cushion,50x50,linen" for at, prompt in enumerate(NO_PROMPTS))),
        0,
        dict.fromkeys(range(2, len(NO_PROMPTS) + 2), "placeholder"),
    ),
    "an error of a spreadsheet": (sheet("A,#N/A,Cushion,50x50,linen"), 0, {2: "spreadsheet_error"}),
    "prompts with such a word": (
        sheet(*(f"P-{at},{prompt},Cushion,50x50,linen" for at, prompt in enumerate(PROMPTS))),
        len(PROMPTS),
        {},
    ),
    "such a word is a sku": (sheet(*(f"{sku},herons,Cushion,50x50,linen" for sku in SKUS)), len(SKUS), {}),
    # What its options are called cannot be known, and is not wrong.
    "a row without a category has that problem alone": (
        sheet("HC-40,herons,Cushion,40x40,linen", "HC-60,herons,,60x40,velvet", header=SHOPIFY),
        1,
        {3: "empty_category"},
    ),
    "a row with an unknown category has that problem alone": (
        sheet("HC-40,herons,Cushion,40x40,linen", "HC-60,herons,Zeppelin,60x40,velvet", header=SHOPIFY),
        1,
        {3: "unknown_category"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_texts(case: str, check: Check) -> None:
    text, accepted, codes = TEXTS[case]
    if text.startswith(SHOPIFY):
        Path("cat.mapping.toml").write_text(
            '[columns]\n"Variant SKU" = "sku"\nTitle = "prompt"\nType = "category"\n'
            '"Option1 Value" = "option"\n"Option2 Value" = "option"\n'
        )
    report = check(text)
    assert (report.counts, report.codes) == ((accepted, len(codes)), codes)


def workbook(rows: Sequence[Sequence[object]], number_format: str = "General") -> openpyxl.Workbook:
    """Return a workbook with the header, and with one format for its skus."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (HEADER.split(","), *rows):
        book.active.append(list(row))
    for number in range(2, len(rows) + 2):
        book.active.cell(number, 1).number_format = number_format
    return book


@pytest.mark.parametrize(
    ("hidden", "filters", "said"), [((3, 4), True, "filter"), ((3, 4), False, "2 rows"), ((), True, None)]
)
def test_hidden_rows_are_named_and_read(
    hidden: tuple[int, ...], filters: bool, said: str | None, check: Check
) -> None:
    """A person who sees one row does not expect to pay for three. A hidden column hides no row."""
    book = workbook([row.split(",") for row in ROWS])
    assert book.active is not None
    book.active.column_dimensions["E"].hidden = True
    for row in hidden:
        book.active.row_dimensions[row].hidden = True
    if filters:
        book.active.auto_filter.ref = "A1:E4"
    report = check(book)
    notes = [note for note in report.json["notes"] if "hidden" in note]
    assert report.counts == (3, 0) and len(notes) == bool(said)
    assert not notes or ("2 rows" in notes[0] and ("filter" in notes[0]) is (said == "filter"))


EANS = [[5901234123457 + number, *row.split(",")[1:]] for number, row in enumerate(ROWS)]
SHORT = [[12 + number, *row.split(",")[1:]] for number, row in enumerate(ROWS)]


@pytest.mark.parametrize("rows", [EANS, SHORT], ids=["EANs", "padded with zeros"])
def test_skus_that_are_numbers_are_refused_until_somebody_says_how_they_read(
    rows: list[list[object]], check: Check
) -> None:
    """With a remedy for a whole column: not "type it again", 2,000 times."""
    report = check(workbook(rows, "00000"))
    assert report.counts == (0, 3) and set(report.codes.values()) == {"not_text"}
    remedies = {problem["remedy"] for problem in report.json["problems"]}
    assert all("CSV" in remedy and "Text to Columns" in remedy for remedy in remedies)


@pytest.mark.parametrize(
    ("rows", "number_format", "first"),
    [
        (EANS, "General", "5901234123457"),
        (EANS, "0", "5901234123457"),
        (SHORT, "00000", "00012"),
        (SHORT, "0000-0", "0001-2"),
        (SHORT, '"CU-"000', "CU-012"),
        # A format with a condition or a scale: nothing is guessed, with the answer too.
        (SHORT, "[>100]000;00", None),
    ],
)
def test_one_answer_is_for_the_whole_column_and_is_kept(
    rows: list[list[object]], number_format: str, first: str | None, check: Check
) -> None:
    """As the sheet shows them: never 12 for 00012. A wrong category makes the report name the sku."""
    assert check(workbook(rows, number_format), "--yes").counts == ((3, 0) if first else (0, 3))
    if first is None:
        Path("cat.mapping.toml").write_text('[reading]\nsku_numbers = "as shown"\n')
    again = check(workbook([[*rows[0][:2], "Zeppelin", *rows[0][3:]]], number_format))
    assert first is None or {problem["sku"] for problem in again.json["problems"]} == {first}
    assert again.counts == (0, 1)
