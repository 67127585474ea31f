"""The report of a check can be read from top to bottom, and is safe to print."""

from __future__ import annotations

from patternmill.tables.report import report_lines

from .samples import HEADER, checked


def test_valid_file_takes_one_line() -> None:
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n")) == ["spring.csv: 1 row, all accepted."]


def test_summary_comes_last_after_the_causes() -> None:
    """The most frequent first, each once with its rows. Each problem before, where asked for."""
    rows = "A,b,Nope,,,\nB,b,Nope,,,\nC,,Mug,,,\n\nD,b,Mug,,,\nE,,Mug,,,\nF,,Mug,,,\nG,b,Mug,12oz,,\n"
    offered = "offered: Cushion, Mug, Tote bag"
    nope = f"category: unknown category `Nope`; {offered}; use one of these [unknown_category]"
    causes = [
        "Causes:",
        "  3 rows (4, 7-8), prompt: the prompt is empty; describe the pattern [empty_prompt]",
        f"  2 rows (2-3), {nope}",
        "  row 9, option:size: unknown value `12oz` for option `size`; offered: 11oz, 15oz; "
        "use one of these [unknown_value]",
    ]
    first = "spring.csv: 7 rows, 1 accepted, 6 refused, 1 blank row skipped."
    assert report_lines(checked(f"{HEADER}\n{rows}")) == [*causes, "", first]
    report = report_lines(checked(f"{HEADER}\n{rows}"), everything=True)
    assert report[:3] == ["Problems:", f"  row 2 (A), {nope}", f"  row 3 (B), {nope}"]
    assert report[-len(causes) - 2 :] == [*causes, "", first]


def test_sku_that_is_repeated_is_said_once_with_its_rows() -> None:
    """However its rows spell it, and with two skus each."""
    rows = "A,b,Mug,,,\na,b,Mug,,,\nC,b,Mug,,,\nA ,b,Mug,,,\nD,b,Mug,,,\nd,b,Mug,,,\n"
    cause, *examples = report_lines(checked(f"{HEADER}\n{rows}"))[1:-2]
    assert cause == "  5 rows (2-3, 5-7), sku: duplicate_sku, as in"
    shown = [example.partition(";")[0].strip() for example in examples]
    assert shown == [
        "row 2 (A), sku: the sku `A` is in 3 rows (2-3, 5)",
        "row 6 (D), sku: the sku `D` is in 2 rows (6-7)",
    ]


def test_notes_are_reported() -> None:
    """Each once."""
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n", None))[0].startswith(
        "Note: Categories and options"
    )


def test_control_characters_of_cells_are_escaped() -> None:
    """Escape sequences and direction marks of the file are shown, not obeyed."""
    text = "sku,prompt,category,option:si ze\n\x1b[31mA\u202e,,\x1b]0;x\x07,\x9b2J\n"
    printed = "\n".join(report_lines(checked(text)))
    assert not set(printed) & set("\x1b\x07\x9b\u202e")
    assert "\\u001b" in printed
