"""The report of a check can be read from top to bottom, and is safe to print."""

from __future__ import annotations

from patternmill.catalog.check_report import report_lines

from .samples import HEADER, checked


def test_valid_file_takes_one_line() -> None:
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n")) == ["spring.csv: 1 row, all accepted."]


def test_causes_come_before_the_list() -> None:
    """Counts and row numbers by cause, the most frequent first; then each problem; the list is capped."""
    rows = "A,b,Nope,,,\nB,b,Nope,,,\nC,,Mug,,,\n\nD,b,Mug,,,\n"
    assert report_lines(checked(f"{HEADER}\n{rows}"), limit=1) == [
        "spring.csv: 4 rows, 1 accepted, 3 refused, 1 blank row skipped.",
        "",
        "Causes:",
        "  unknown_category `Nope` in `category`: 2 rows (2-3)",
        "  empty_prompt in `prompt`: 1 row (4)",
        "",
        "Problems:",
        "  row 2 (A), category: unknown category `Nope`; offered: Cushion, Mug, Tote bag; choose one of them"
        " [unknown_category]",
        "  and 2 more problems; `patternmill check --all` lists them",
    ]


def test_causes_are_counted_by_what_is_wrong() -> None:
    """Each wrong word is a cause of its own, with what was probably meant."""
    rows = "A,b,Cusion,,linen,\nB,b,Cusion,,linen,\nC,b,Mugg,,,\nD,b,Mug,12oz,,\n"
    report = report_lines(checked(f"{HEADER}\n{rows}"))
    assert report[2:7] == [
        "Causes:",
        "  unknown_category `Cusion` in `category`: 2 rows (2-3), did you mean `Cushion`?",
        "  unknown_category `Mugg` in `category`: 1 row (4), did you mean `Mug`?",
        "  unknown_value `12oz` in `option:size`: 1 row (5), did you mean `15oz`?",
        "",
    ]


def test_notes_are_reported() -> None:
    """Each once."""
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n", None))[1].startswith(
        "Note: Categories and options"
    )


def test_control_characters_of_cells_are_escaped() -> None:
    """Escape sequences and direction marks of the file are shown, not obeyed."""
    text = "sku,prompt,category,option:si ze\n\x1b[31mA\u202e,,\x1b]0;x\x07,\x9b2J\n"
    printed = "\n".join(report_lines(checked(text)))
    assert not set(printed) & set("\x1b\x07\x9b\u202e")
    assert "\\u001b" in printed
