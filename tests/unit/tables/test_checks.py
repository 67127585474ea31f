"""What is wrong with rows: one table of sheets, then the sentences that a person reads, then the report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import InputRefused
from patternmill.planning.extras import UPLOAD, Extras, Picture
from patternmill.planning.items import canonical_json
from patternmill.planning.offer import Category, Offer
from patternmill.planning.problems import Problem
from patternmill.planning.refinements import Refinement, read_refinement
from patternmill.service.offer_shapes import offer_of, read_page
from patternmill.tables.checks import UNCHECKED, Checked
from patternmill.tables.report import report_lines
from studio.offer import categories_get, categories_list

from .samples import HEADER, SHOP, cells, checked, checked_row, codes, problems, read

INPUTS = Path(__file__).parents[3] / "inputs"
PLAIN = "sku,prompt,category\n"
SIZED = "sku,prompt,category,option:size\n"
WIDE = "sku,prompt,category,option:size,option:fabric,option:trim,remark\n"
OURS = "sku,prompt,category,note,status,product_id,pattern_id,error_code,error,run\n"

NOTHING = (
    *("nan", "None", "NaN", "null", "undefined", "NA", "n/a", "<null>", "N.A.", "nil", "NaT", "keine Angabe"),
    *("TBD", "[TBD]", "To do", "xxx", "Lorem ipsum", "-", "???", "Loading..."),
)
DITTO = (
    "same as above",
    "Ditto",
    "dto.",
    "s.o.",
    "''",
    "〃",
    '-"-',
    "wie oben",
    "siehe oben",
    "idem",
    "同上",
)
PROMPTS = (
    *("nannies with prams", "none of the herons", "a null field", "na na na", "above the clouds", "O", "xx"),
    *("test", "the letters TBD", "#REF! in neon", "\U0001f9a9", "Größe naïve café Ã", "S\u00c3O \u2026"),
)
DECOMPOSED = "e\u0301"
ERRORS = (
    *("#REF!", "#NAME?", "#N/A", "#NV", "#WERT!", "#DIV/0!", "#VALEUR!", "#\u00a1REF!", "#GETTING_DATA"),
    *("Err:502", "########", " #REF! ", "#ÜBERLAUF!", "#VERW!", "#DEEL/0!", "#N/B", "#BUSY!"),
)


def table(*rows: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def prompts(*texts: str) -> str:
    return table(
        ("sku", "prompt", "category"), *((f"A-{at}", text, "Tote bag") for at, text in enumerate(texts))
    )


def chosen(*rows: tuple[str, ...]) -> str:
    """Return a sheet of these rows, whose selections are JSON."""
    return table(
        ("sku", "prompt", "category", "selections"), *((f"S{at}", "b", *row) for at, row in enumerate(rows))
    )


def every(code: str, *rows: int) -> dict[int, list[str]]:
    return {row: [code] for row in rows}


#: Sheets by what is in them, each with the codes of the rows that are refused by what the shop offers.
CASES: dict[str, tuple[str, dict[int, list[str]]]] = {
    "faults of every row in one pass": (
        SIZED + "A,b,Cushion,XL\nB,,Nope,\nC,b,Mug,11oz\nD,b,Mug,12oz\nd,b,Mug,15oz\n",
        {
            2: ["unknown_value", "missing_option"],
            3: ["empty_prompt", "unknown_category"],
            5: ["duplicate_sku", "unknown_value"],
            6: ["duplicate_sku"],
        },
    ),
    "lookalike texts": (
        PLAIN
        + "007,NAs,Tote bag\n1e5,1e5,Tote bag\nTRUE,TRUE,Tote bag\n-12,=1+1,Tote bag\nnull,b,Tote bag\n",
        {},
    ),
    "odd signs": (
        PLAIN + "A👩‍🎨,عصافير زرقاء 🐦,Tote bag\nB,one\u2028two\x85three\x0cher\x07on,Tote bag\n",
        {},
    ),
    # Separators of empty last columns may be left out; a cell that a row needs is not assumed to be empty.
    "short rows": (
        WIDE
        + "A,herons,Cushion,50x50,linen\nB,herons,Mug,11oz\nC,herons,Cushion,50x50\nD,b,Mug\nE,b\nF\nG,b,Nope\n",
        {**every("missing_cells", 4, 5, 6, 7), 8: ["unknown_category"]},
    ),
    "long rows": (PLAIN + "A,b,Tote bag,x\nB,b,Tote bag\nC,b,Tote bag,\n", every("surplus_cells", 2, 4)),
    "a sku again in a broken row": (
        PLAIN + "A,b,Tote bag\nA,b\n",
        {2: ["duplicate_sku"], 3: ["missing_cells", "duplicate_sku"]},
    ),
    "skus that are one": (
        PLAIN + "Ab 1,b,Tote bag\n aB1 ,c,Tote bag\ne\u0301,b,Tote bag\n\u00e9,c,Tote bag\nC,c,Tote bag\n",
        every("duplicate_sku", 2, 3, 4, 5),
    ),
    "nothing to be seen": (
        PLAIN + " ,b,Tote bag\n\u200b,b,Tote bag\nA, \t ,Tote bag\nB,\u200d\u00ad\u2028,Tote bag\nC,b,\n",
        {**every("empty_sku", 2, 3), **every("empty_prompt", 4, 5), 6: ["empty_category"]},
    ),
    "signs that nobody sees": (
        SIZED
        + '"A\nB",b,Tote bag,\nA\u202eB,b,Tote bag,\nC,b,Mu\u200bg,\nD,b,Mug,11\u2066oz\nE\x1a9,b,Mug,11oz\n',
        every("unsafe_characters", 2, 3, 4, 5, 6),
    ),
    "a prompt at its limit and one over it": (
        PLAIN + f"A,  {DECOMPOSED * 4000}  ,Tote bag\nB,{'é' * 4001},Tote bag\n",
        every("prompt_too_long", 3),
    ),
    "numbers in short": (
        PLAIN + '1.23E+05,b,Tote bag\n"4,00638E+12",b,Tote bag\n1E+12,b,Tote bag\n',
        every("number_as_shown", 2, 3, 4),
    ),
    "other skus": (
        PLAIN
        + "".join(f"{sku},b,Tote bag\n" for sku in ("1e6", "1E5", "5E-12", "4006381333931", "12E+05", "nan")),
        {},
    ),
    "no prompts": (
        prompts(*NOTHING, *DITTO, '"'),
        every("placeholder", *range(2, len((*NOTHING, *DITTO)) + 3)),
    ),
    "prompts with such words": (prompts(*PROMPTS), {}),
    "errors of formulas as prompts": (
        prompts(*ERRORS),
        every("spreadsheet_error", *range(2, len(ERRORS) + 2)),
    ),
    "an error in each column": (
        "sku,prompt,category,option:size,note\n#REF!,b,Mug,11oz,\nB,#REF!,Mug,11oz,\nC,b,#REF!,,\nD,b,Mug,#REF!,\n"
        "E,b,Mug,11oz,#REF!\n",
        every("spreadsheet_error", 2, 3, 4, 5),
    ),
    "errors in the columns of extras": (
        "sku,prompt,category,model,reference,refine:recolor\nA,b,Tote bag,#REF!,#REF!,#N/A\n",
        {2: ["spreadsheet_error"] * 3},
    ),
    "a text in the wrong encoding": (
        PLAIN + "LÃ¼neburg,LÃ¼neburg,Tote bag\na\ufffd,a\ufffd,Tote bag\n",
        {2: ["misread_text"] * 2, 3: ["misread_text"] * 2},
    ),
    "names in another case": (SIZED + "A,b, mUG ,11OZ\nB,b,TOTE_BAG,\nC,b,c-2,15oz\n", {}),
    "options": (
        WIDE + "A,b,Cushion,50x50,,,\nB,b,Mug,XL,silk,,\n",
        {2: ["missing_option"], 3: ["unknown_value", "unknown_option"]},
    ),
    "selections": (
        chosen(
            ("Tote bag", ""), ("Tote bag", "{}"), ("Mug", '{"size": "11oz"}'), ("Tote bag", '{"handles": ""}')
        ),
        {},
    ),
    "selections with faults": (
        chosen(
            ("Mug", '{"size": "11oz", "size": "15oz"}'),
            ("Mug", '{"size": "11oz", "SIZE": "15oz"}'),
            ("Mug", json.dumps({"size": "\ud800"})),
            ("Mug", "[" * 50_000),
            ("Mug", '{"size": ' + "9" * 5000 + "}"),
            ("Mug", '{" ": "11oz"}'),
            ("Mug", "{'size': '11oz'}"),
        ),
        {
            **every("malformed_selections", 2, 5, 6, 7, 8),
            3: ["duplicate_option"],
            4: ["unsafe_characters"],
        },
    ),
    "our own results": (
        OURS + "'-12,'=b,Tote bag,'@n,succeeded,p1,q1,,,r\nB,b,Nope,,refused,,,unknown_category,x,r\n",
        every("unknown_category", 3),
    ),
    "an empty column with the name of a result": ("sku,prompt,category,product_id\nA,b,Tote bag,\n", {}),
    # A column that holds an option without being one is never carried silently.
    **{
        f"a column {header!r} that is an option": (
            f"sku,prompt,category,option:size,{header}\nA,b,Mug,11oz,purple\nB,b,Mug,11oz,\nC,b,Mug,11oz,red\n",
            every("option_column", 2, 4),
        )
        for header in ("COLOUR ", "Colors", "Colour (inside)", "opt: colour", "Hue", "色")
    },
    "columns that are only carried": (
        "sku,prompt,category,option:size, NOTE : Colour,weight,colour scheme,collection\nA,b,Mug,11oz,navy,11oz,x,y\n",
        {},
    ),
    "a required option in another column is not missing too": (
        "sku,prompt,category,Size\nA,b,Mug,11oz\nB,b,Mug,\n",
        {2: ["option_column"], 3: ["missing_option"]},
    ),
    "an option beside selections that choose it": (
        table(
            ("sku", "prompt", "category", "selections", "Colour"),
            ("A", "b", "Mug", '{"size": "11oz"}', "navy"),
            ("B", "b", "Mug", '{"size": "11oz", "COLOUR": "navy"}', "navy"),
        ),
        every("option_column", 2),
    ),
    "selections under another name": (
        table(
            ("sku", "prompt", "category", "Options"),
            ("A", "b", "Tote bag", '{"handles": "black"}'),
            ("B", "b", "Tote bag", "x"),
        ),
        every("option_column", 2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_faulty_rows_are_refused(name: str) -> None:
    text, refused = CASES[name]
    found = checked(text, SHOP)
    assert codes(found) == refused
    assert len(found.accepted) + found.refused_count == len(found.catalog.sheet.rows)
    assert found.refused_count == len(refused)


def test_row_without_a_category_has_that_fault_alone() -> None:
    """Faults of options are told once the category is known, and so not for a category that nobody offers."""
    columns = {"Nr": "sku", "Titel": "prompt", "Typ": "category", "Wahl 1": "option", "Wahl 2": "option"}
    text = "Nr,Titel,Typ,Wahl 1,Wahl 2,Size\nA,herons,,50x50,linen,x\nB,ferns,Nope,50x50,linen,x\nC,,,50x50,#REF!,\n"
    assert codes(checked(read(text, columns), SHOP)) == {
        2: ["empty_category"],
        3: ["unknown_category"],
        # Faults of their own remain.
        4: ["empty_prompt", "empty_category", "spreadsheet_error"],
    }


def test_column_for_any_option() -> None:
    """The option that offers the cell is chosen; a value that two options offer is refused, and both are named."""
    cells = {
        ("Cushion", "50x50", "velvet"): {"fabric": "velvet"},
        ("Mug", "11oz", "Glossy"): {"finish": "glossy"},
        ("Tote bag", "", "natur"): {"handles": "natural"},
        # Several values in a cell are those of several options.
        ("Mug", "15oz", "Glossy; white"): {"finish": "glossy", "colour": "white"},
        ("Cushion", "50x50", ""): "missing_option",
        ("Tote bag", "", "natur / large"): "unknown_value",
        ("Mug", "11oz", "matte"): "ambiguous_option",
        ("Mug", "11oz", "velvet"): "unknown_value",
    }
    rows = "".join(f"A{at},x,{','.join(row)}\n" for at, row in enumerate(cells))
    text = f"sku,prompt,category,option:size,Material/Finish\n{rows}"
    found = checked(read(text, {"Material/Finish": "option"}, {"natur": "natural"}), SHOP)
    assert codes(found) == {at: [code] for at, code in enumerate(cells.values(), 2) if isinstance(code, str)}
    for row, ((_, size, _), selections) in zip(found.accepted, cells.items(), strict=False):
        assert row.selections == selections | ({"size": size} if size else {})
    assert "`finish` and `colour`" in next(
        one.message for one in problems(found) if one.code == "ambiguous_option"
    )


@pytest.mark.parametrize("offer", [None, Offer(None, "Unreadable."), Offer((Category("c", "Lamp"),), None)])
def test_usual_option_names_are_refused_when_the_offer_is_unknown(offer: Offer | None) -> None:
    """They are refused until the file says whether an option or a remark is meant; empty cells select nothing."""
    found = checked("sku,prompt,category,Colours,Finish,size,shelf\nA,b,Lamp,navy,,S,3\n", offer)
    assert [problem.column for problem in problems(found)] == ["Colours", "size"]
    assert "to `option:size`, or to `note:size`" in problems(found)[1].remedy
    assert not codes(checked("sku,prompt,category,note:Colours,option:size\nA,b,Lamp,navy,S\n", offer))


def test_accepted_row_is_what_will_be_bought() -> None:
    """Trimmed and composed texts, the category's ID, and selections sorted in the offered spelling."""
    found = checked_row(" A1 , cafe\u0301 herons ,CUSHION,s,Linen,x")
    (row,) = found.accepted
    assert (row.line, row.sku, row.prompt, row.category) == (2, "A1", "caf\u00e9 herons", "cat_1")
    assert list(row.selections.items()) == [("fabric", "linen"), ("size", "S")]
    assert cells(found.catalog)[0] == (" A1 ", " cafe\u0301 herons ", "CUSHION", "s", "Linen", "x")


def test_rows_without_an_offer_pass_with_a_note() -> None:
    """The category is used as its ID, and selections as written."""
    found = checked_row("A,b,Anything,XXL,,", None)
    assert (found.accepted[0].category, found.accepted[0].selections) == ("Anything", {"size": "XXL"})
    assert found.notes == (UNCHECKED,)
    found = checked_row("A,b,Anything,,,", Offer(None, note="The list cannot be read."))
    assert (len(found.accepted), found.notes) == (1, ("The list cannot be read.",))


def test_name_of_two_categories_is_refused_and_an_id_is_not() -> None:
    """An ID is tried before names."""
    offer = Offer((Category("1", "Mug"), Category("2", "mug "), Category("Cup", "Mug")), None)
    found = checked(f"{HEADER}\nA,b,MUG,,,\nB,b,Cup,,,\nC,b,2,,,\n", offer)
    assert codes(found) == {2: ["ambiguous_category"]}
    assert [row.category for row in found.accepted] == ["Cup", "2"]


def said(found: Checked) -> list[str]:
    """Return the messages about the first row, with their remedies."""
    return [f"{fault.message}; {fault.remedy}" for fault in problems(found) if fault.row == 2]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            "A1,b,Cushion,S,Linnen,",
            "unknown value `Linnen` for option `fabric`; offered: cotton, linen, velvet; did you mean `linen`?",
        ),
        (
            "A,b,Cushion,S,linen,x,,",
            "the row has 8 cells, but the header has 6; delete the separators at its end",
        ),
        (
            'A,b,Cushion,S,linen, "x, y"',
            "the row has 7 cells, but the header has 6; quote the cell that contains the comma"
            ' ("...", with no space before the quote)',
        ),
        # Nothing is converted, and nothing is bought under the formula's own name.
        ('"=""00123""",b,Mug,,,', '`="00123"` is a formula, not the text that it shows; write `00123`'),
        (
            "A,LÃ¼neburg,Mug,,,",
            "was read in the wrong encoding by a program, and saved like that; write `Lüneburg`",
        ),
        ("A,TBD,Mug,,,", "if these very signs are to be drawn, say so: `the letters TBD`"),
        ("A,???,Mug,,,", "if these very signs are meant, name them: `a row of dots`"),
        ("A,idem,Mug,,,", "write that row's prompt here too: rows with the same prompt share one pattern"),
        ('A,"=""a """"red"""" fox""",Mug,,,', 'write `a "red" fox`'),
    ],
)
def test_sentences_that_the_merchandiser_reads(row: str, expected: str) -> None:
    (sentence,) = said(checked_row(row))
    assert expected in sentence


def test_duplicate_skus_name_one_another_and_both_ways_out() -> None:
    found = checked(f"{HEADER}\nA,b,Mug,,,\na,c,Mug,,,\nB,b,Mug,,,\nA ,d,Mug,,,\n")
    assert said(found) == [
        "the sku `A` is in 3 rows (2-3, 5); if that is a mistake, keep one of these rows and delete the others; if you"
        " want them all, give each a sku of its own (case and spaces do not distinguish skus)"
    ]


def test_short_row_is_mended_with_the_separator_of_its_file() -> None:
    """A row whose sku cannot be read may be about any, whatever its shape: no gone sku is retired for it."""
    found = checked("sku;prompt;category\n#REF!;b\nB;b\n", SHOP)
    assert codes(found) == {2: ["missing_cells", "spreadsheet_error"], 3: ["missing_cells"]}
    assert problems(found)[0].remedy == "write a semicolon for each empty cell"
    assert [entry.is_sku_readable for entry in found.entries] == [False, True]


def test_option_column_is_named_with_both_ways_out() -> None:
    """Six mugs would be bought without a colour."""
    (problem,) = problems(checked("sku,prompt,category,option:size, Hue\nA,b,Mug,11oz,purple\n", SHOP))
    assert "`purple`" in problem.message and "`colour` is an option of category `Mug`" in problem.message
    assert "`option:colour`" in problem.remedy and "`note:Hue`" in problem.remedy


def test_missing_option_is_filled_in_under_the_name_that_its_column_has() -> None:
    """A column `option:size` next to `Größe`, which was confirmed as that, would be refused (`mapping_changed`)."""
    names = {"Art.": "sku", "Text": "prompt", "Typ": "category", "Größe": "option:size"}
    text = "Art.,Text,Typ,Größe\nA,herons,Mug,11oz\nB,ferns,Mug,\n"
    (missing,) = problems(checked(read(text, names), SHOP))
    assert (missing.code, missing.remedy) == ("missing_option", "fill in `Größe`")
    selections = {**names, "Größe": "note", "Auswahl": "selections"}
    (missing,) = problems(checked(read("Art.,Text,Typ,Auswahl\nB,ferns,Mug,\n", selections), SHOP))
    assert missing.remedy == "write `size` into the selections"


# --- models, references, refinements


@pytest.mark.parametrize("header", ["refine:recolour", "refine recolor", "refine_crop", "refine:"])
def test_unknown_refinement_is_refused_by_name(header: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read(f"sku,prompt,category,{header}\nS-1,a heron,Tote,x\n")
    assert refused.value.code == "unknown_refinement" and header in refused.value.message
    assert "There are refine:recolor, refine:crop, refine:extend, refine:edit." in refused.value.remedy


@pytest.mark.parametrize(
    ("operation", "cell", "parameters"),
    [
        ("recolor", "#1f3a5f #F2E8CF", {"palette": ["#1f3a5f", "#f2e8cf"]}),
        ("recolor", "abc; 112233", {"palette": ["#aabbcc", "#112233"]}),
        ("recolor", '{"palette": ["#1F3A5F", " #abc "]}', {"palette": ["#1f3a5f", "#aabbcc"]}),
        ("recolor", '{"palette": "warm", "soft": true}', {"palette": "warm", "soft": True}),
        ("crop", "0, 0.50, 1.0, 2", {"x": 0, "y": 0.5, "width": 1, "height": 2}),
        (
            "crop",
            '{"x": 0.0, "y": -0.0, "width": 0.50, "height": 2.0}',
            {"x": 0, "y": 0, "width": 0.5, "height": 2},
        ),
        ("extend", "2 × 3", {"columns": 2, "rows": 3}),
        ("extend", '{"columns": 2.0, "rows": 3}', {"columns": 2, "rows": 3}),
        ("edit", "more reeds", {"prompt": "more reeds"}),
        (
            "edit",
            '{"prompt": " more \u00a0reeds", "of": [{"is": 0.25}]}',
            {"prompt": "more reeds", "of": [{"is": 0.25}]},
        ),
    ],
)
def test_cell_becomes_parameters(operation: str, cell: str, parameters: dict[str, Any]) -> None:
    """The JSON and the short form of one refinement are one request: they are compared, and sent, as JSON."""
    refinement = read_refinement(operation, cell, "c")
    assert isinstance(refinement, Refinement)
    assert canonical_json(refinement.parameters) == canonical_json(parameters)


@pytest.mark.parametrize(
    ("operation", "cells"),
    [
        ("recolor", ["teal", ",;"]),
        ("crop", ["0,0,1", "0,0,-1,1", "0,0,nan,1", '{"patternId": "another"}']),
        ("extend", ["0x3"]),
        ("edit", ["{}", '{"a": NaN}', '{"a": "\\ud800"}', "{not json"]),
    ],
)
def test_nonsense_is_refused_with_the_form(operation: str, cells: list[str]) -> None:
    for cell in cells:
        fault = read_refinement(operation, cell, "c")
        assert isinstance(fault, Problem), cell
        assert (fault.code, fault.column) == ("malformed_refinement", "c") and "JSON object" in fault.remedy


def test_extras_of_a_row_are_what_the_service_and_the_disk_have() -> None:
    """Refinements in the order of their columns, a model by its ID, a reference by its bytes."""
    header = "sku,prompt,category,Refine : Crop ,refine:recolor,model,reference\n"
    extras = Extras(Offer((Category("m-1", "Linocut"),), None), pictures={"a.png": Picture("5" * 64, b"png")})
    text = f"{header}S-1,a heron,Tote,0 0 1 1,#abcdef,linocut,a.png\nS-2,b,Tote,,,Linokut,b.png\nS-3,b,Tote,x,,,\n"
    found = checked(text, None, extras=extras)
    (row,) = found.accepted
    assert [step.operation for step in row.refinements] == ["crop", "recolor"]
    assert (row.model, row.reference) == ("m-1", "5" * 64)
    assert codes(found) == {3: ["unknown_model", "unreadable_reference"], 4: ["malformed_refinement"]}
    assert "did you mean `Linocut`?" in problems(found)[0].remedy


def test_operation_that_the_service_lacks_refuses_its_cells_alone() -> None:
    header = "sku,prompt,category,refine:crop,reference\n"
    extras = Extras(unavailable={"crop": "no crop here", UPLOAD: "no upload here"})
    found = checked(f"{header}A,b,Tote,0 0 1 1,a.png\nB,b,Tote,,\n", None, extras=extras)
    assert codes(found) == {2: ["unavailable_operation"] * 2}
    assert {fault.message for fault in problems(found)} == {"no crop here", "no upload here"}


# --- the report


def test_report_has_each_cause_once_and_the_summary_last() -> None:
    """The most frequent cause is first, with its rows. Each problem comes before them where that is asked for."""
    rows = "A,b,Nope,,,\nB,b,Nope,,,\nC,,Mug,,,\n\nD,b,Mug,,,\nE,,Mug,,,\nF,,Mug,,,\nG,b,Mug,12oz,,\n"
    offered = "offered: Cushion, Mug, Tote bag"
    nope = f"category: unknown category `Nope`; {offered}; use one of these [unknown_category]"
    causes = [
        "Causes:",
        "  3 rows (4, 7-8), prompt: the prompt is empty; describe the pattern [empty_prompt]",
        f"  2 rows (2-3), {nope}",
        "  row 9, option:size: unknown value `12oz` for option `size`; offered: 11oz, 15oz; "
        "use one of these [unknown_value]",
        "",
        "spring.csv: 7 rows, 1 accepted, 6 refused, 1 blank row skipped.",
    ]
    assert report_lines(checked(f"{HEADER}\n{rows}")) == causes
    report = report_lines(checked(f"{HEADER}\n{rows}"), everything=True)
    assert report[:3] == ["Problems:", f"  row 2 (A), {nope}", f"  row 3 (B), {nope}"]
    assert report[-len(causes) :] == causes
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n")) == ["spring.csv: 1 row, all accepted."]
    assert report_lines(checked(f"{HEADER}\nA,b,Mug,,,\n", None))[0] == f"Note: {UNCHECKED}"


def test_cause_whose_rows_differ_is_said_by_two_examples() -> None:
    rows = "A,b,Mug,,,\na,b,Mug,,,\nC,b,Mug,,,\nA ,b,Mug,,,\nD,b,Mug,,,\nd,b,Mug,,,\n"
    cause, *examples = report_lines(checked(f"{HEADER}\n{rows}"))[1:-2]
    assert cause == "  5 rows (2-3, 5-7), sku: duplicate_sku, as in"
    assert [example.partition(";")[0].strip() for example in examples] == [
        "row 2 (A), sku: the sku `A` is in 3 rows (2-3, 5)",
        "row 6 (D), sku: the sku `D` is in 2 rows (6-7)",
    ]


def test_control_characters_of_cells_are_escaped() -> None:
    """Escape sequences and direction marks of the file are shown, not obeyed."""
    text = "sku,prompt,category,option:si ze\n\x1b[31mA\u202e,,\x1b]0;x\x07,\x9b2J\n"
    printed = "\n".join(report_lines(checked(text)))
    assert not set(printed) & set("\x1b\x07\x9b\u202e")
    assert "\\u001b" in printed


# --- the samples and the contract in inputs/


def test_samples_are_what_they_say() -> None:
    """One sample has no fault; the other has the typical mistakes and one valid row."""
    page = read_page(categories_list("staging"))
    assert page is not None
    details: dict[str, Any] = {one.id: categories_get("staging", one.id) for one in page.categories}
    offer = offer_of(page.categories, details)
    good, bad = (
        checked((INPUTS / name).read_bytes(), offer) for name in ("spring_catalog.csv", "with_mistakes.csv")
    )
    assert (problems(good), good.notes, len(good.accepted)) == ([], (), 24)
    assert (
        len({row.prompt for row in good.accepted}) <= 21 and len({row.category for row in good.accepted}) > 3
    )
    assert [row.sku for row in bad.accepted] == ["MIS-001"]
    assert {problem.code for problem in problems(bad)} >= {
        *("unknown_value", "unknown_category", "empty_prompt", "empty_sku", "surplus_cells", "missing_cells"),
        *("duplicate_sku", "unknown_option", "missing_option"),
    }
