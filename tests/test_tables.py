"""Sheets as people and programs make them: what is read, what is refused, and with which words."""

import csv
import io
import json

import pytest

from patternmill.errors import InputRefused
from patternmill.files import read_file
from patternmill.offer import Category, Offer
from patternmill.tables.checks import check_rows, report_json, report_lines
from patternmill.tables.columns import read_columns
from patternmill.tables.mapping import Proposal, SheetMapping, Unsaid, read_mapping, write_mapping
from patternmill.tables.sheet import SURPLUS, read_sheet
from tests.spine import refuses

SIZES = {"name": "size", "values": ["40x40", "50x50"]}
CUSHION = {"categoryId": "cat_cushion", "name": "Cushion", "options": [SIZES]}
BAG = {
    "categoryId": "cat_bag", "name": "Tote bag", "options": [{"name": "handle", "values": ["short", "long"]}],
}  # fmt: skip
HEADER = "sku,prompt,category,option:size\n"
GOOD = "B-1,ferns,Cushion,40x40\n"


def offered(*records):
    return Offer(categories=tuple(Category.model_validate(record) for record in records or (CUSHION, BAG)))


def checked(tmp_path, content, mapping="", offer=None, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "a.mapping.toml").write_text(mapping)
    said = read_mapping(path)
    sheet = read_sheet(read_file(path), path.name, said)
    columns = read_columns(sheet, said)
    return check_rows(sheet, columns, offer or offered(), said.words)


def codes(found):
    return set(found.problems[["row", "code"]].itertuples(index=False, name=None))


# --- rows


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("A-1,herons,Cushion,50x50", None), ("A-1,herons,cat_cushion,50X50", None),
        ("A-1,herons,Cushion,50 x 50", None), ("A-1,herons,Cushion,50 × 50", None), ("A-1,herons,CUSHION,", None),
        ("A-1,herons,Cushion,50x50,,,", None), ('007,"a\nb",cushion ,50x50', None), ("NA,herons,Cushion,", None),
        ("1e5,herons,Cushion,", None), ("A-1,herons,tote-bag", None),
        ("A-1,= equals signs in a row,Cushion,", None), ("A-1,🦩,Cushion,", None),
        ("A-1,nanny goats,Cushion,", None), ("A-1,herons,Cushion,50x50,x", "surplus_cells"),
        ("A-1,herons", "missing_cells"), ("A-1,herons,Cushion", "missing_cells"),
        (",herons,Cushion,50x50", "empty_sku"), ("\u200b,herons,Cushion,50x50", "empty_sku"),
        ("A-1,,Cushion,50x50", "empty_prompt"), ("A-1,  ,Cushion,50x50", "empty_prompt"),
        ("A-1,#REF!,Cushion,50x50", "spreadsheet_error"), ("A-1,=A2&B2,Cushion,50x50", "spreadsheet_error"),
        ('A-1,"=CONCATENATE(A2;"" "";B2)",Cushion,50x50', "spreadsheet_error"),
        ("Err:502,herons,Cushion,50x50", "spreadsheet_error"),
        *((f'A-1,"{cell}",Cushion,50x50', "spreadsheet_error") for cell in (
            "#BEZUG!", "#NOM?", "#¡REF!", "#¿NOMBRE?", "#ИМЯ?", "#ДЕЛ/0!", "#Н/Д", "#N/A", "#NV", "#AD?", "#DZIEL/0!",
            "#SPILL!", "#ERROR!", "#########", "Err :508", "=Sheet1!B2", "='My sheet'!$B$2", "=+B2", "=-(B2)", "=B2:B9",
            "{=SUM(B2:B9)}", "=_xlfn.CONCAT(A2)", "=@A2", "=R[-1]C", '=""herons ""&B2', "=vlookup(a2;b:c;2;0)")),
        ("4.01E+12,herons,Cushion,50x50", "number_as_shown"), ("1-Mar,herons,Cushion,50x50", "date_as_shown"),
        ("A\u202e1,herons,Cushion,50x50", "unsafe_characters"),
        ("LÃ¼neburg,herons,Cushion,50x50", "misread_text"), ("A-1,foug\ufffdres,Cushion,50x50", "misread_text"),
        (f"A-1,{'x y' * 2000},Cushion,50x50", "prompt_too_long"), ("A-1,herons,,50x50", "empty_category"),
        ("A-1,herons,Cushon,50x50", "unknown_category"), ("A-1,herons,totebag,", "unknown_category"),
        ("A-1,herons,Cushion (large),", "unknown_category"), ("A-1,herons,Cushion,50x5O", "unknown_value"),
        ("A-1,herons,Tote bag,50x50", "unknown_option"),
    ],
)  # fmt: skip
def test_rows(tmp_path, row, code):
    found = checked(tmp_path, HEADER + GOOD + row + "\n")
    assert list(found.problems["code"]) == ([code] if code else [])
    assert len(found.rows) == (1 if code else 2)


@pytest.mark.parametrize(
    "prompt",
    ["nan", "None", "null", "N/A", "undefined", "TBD", "to do", "xxxx", "???", "ditto", "same as above", '"', "%s",
     "[object Object]", "{{ product.title }}", "${prompt}", "\\N", "None, None", "<insert prompt here>", "1.#QNAN",
     "[object Object],[object Object]", "[Function: title]", "function String() { [native code] }",
     "Promise { <pending> }", "System.Collections.Generic.List`1[System.String]", "System.Object[]",
     "com.shop.Prompt@5e9f23b4", "nan(ind)", "-inf", "array", "true", "string", "0", "0,00", "{{{title}}}",
     "{% prompt %}", "[[prompt]]", "#{prompt}", "$prompt", "%prompt%", "%(prompt)s", "__PROMPT__", "{0}",
     "<%= prompt %>", "<p></p>", "<p>&nbsp;</p>", "<br><br>", "Loading...", "Wird geladen …",
     "Chargement en cours...", "Cargando…", "Bezig met laden...", "Lorem ipsum",
     "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor", "k. A.", "n.v.t.", "(leer)",
     "vacío", "à définir", "por definir", "nog te bepalen", "folgt", "N. N.", "see row 12", "same as row 5",
     "wie Zeile 4", "s. o.", "Siehe oben!", "dito.", "idem", "comme ci-dessus", "même que ci-dessus",
     "igual que arriba", "lo mismo", "zie hierboven", "hetzelfde", "zelfde als hierboven", "voir ligne 3",
     "igual que fila 2", "zie regel 7", "\u2033", "↑", "^", "(same)", "Your prompt here"],
)  # fmt: skip
def test_what_stands_for_a_prompt_is_none(tmp_path, prompt):
    cell = '"' + prompt.replace('"', '""') + '"'
    assert codes(checked(tmp_path, f"{HEADER}A-1,{cell},Cushion,\n")) == {(2, "placeholder")}


@pytest.mark.parametrize(
    "prompt",
    ["{red|blue} heron in reeds", "a sign that says {{ HELLO }} in neon", "100% cotton flowers", "objects",
     "NA moor", "none of the above", "do re mi", "синие цапли", "- reeds -", "loading dock at night",
     "[herons] in reeds", "a {frame}", "like rows of tulips", "same as it ever was", "see rowing boats",
     "string lights", "true love", "array of lights", "object permanence", "system of rivers", "prompt the fox",
     "idem herons", "folgt dem Fluss", "<3 herons", "5", "1950s", "$5 notes", "A", "lorem flowers", "@herons",
     "a@b", "= herons", "#summer", "#1 fan", "#A/B tests", "function follows form"],
)  # fmt: skip
def test_what_only_looks_like_a_placeholder_is_a_prompt(tmp_path, prompt):
    assert not codes(checked(tmp_path, f"{HEADER}A-1,{prompt},Cushion,\n"))


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("3-4", ["34"]), ("1.5cm", ["15cm"]), ("1/2", ["12"]), ("-1.50", ["1.50"]), ("15oz", ["11oz"]),
        ("12 oz", ["12oz"]), ("cotton (recycled)", ["cotton (organic)"]), ("50x50 cm", ["50x50"]), ("1,5", ["15"]),
        ("a/b", ["a b"]), ("tot ebag", ["totebag"]),
    ],
)  # fmt: skip
def test_a_sign_a_unit_or_an_aside_makes_another_word(tmp_path, written, values):
    offer = offered({**CUSHION, "options": [{"name": "size", "values": values}]})
    found = checked(tmp_path, f'{HEADER}A-1,herons,Cushion,"{written}"\n', offer=offer)
    assert codes(found) == {(2, "unknown_value")}


@pytest.mark.parametrize("written", ["Off-White", "off white", "OFF_WHITE"])
def test_two_offered_values_with_one_key_refuse_the_row(tmp_path, written):
    offer = offered({**CUSHION, "options": [{"name": "size", "values": ["Off-White", "off white"]}]})
    assert codes(checked(tmp_path, f"{HEADER}A-1,herons,Cushion,{written}\n", offer=offer)) == {
        (2, "ambiguous_option")
    }


def test_two_categories_of_one_name_are_told_apart_by_their_ids(tmp_path):
    offer = offered(CUSHION, {"categoryId": "cat_other", "name": "cushion", "options": [SIZES]})
    found = checked(tmp_path, HEADER + "A-1,herons,Cushion,\nA-2,herons,cat_other,\n", offer=offer)
    assert codes(found) == {(2, "ambiguous_category")}
    assert "`cat_cushion` or `cat_other`" in found.problems["message"][0]
    assert list(found.rows["category_id"]) == ["cat_other"]


def test_every_fault_of_every_row_with_its_number_and_nearest_word(tmp_path):
    found = checked(tmp_path, HEADER + "\nA-1,,Cushon,50x50\n\na-1 ,tbd,Cushion,60x60\n")
    assert codes(found) == {
        (3, "empty_prompt"), (3, "unknown_category"), (3, "duplicate_sku"),
        (5, "placeholder"), (5, "unknown_value"), (5, "duplicate_sku"),
    }  # fmt: skip
    assert "did you mean `Cushion`?" in set(found.problems["remedy"])
    assert found.sheet.blank_rows == 2
    (line, *_) = (line for line in report_lines(found) if "unknown_category" in line)
    assert line == ("  row 3 (A-1, category): unknown category `Cushon`; offered: Cushion, Tote bag; "
                    "did you mean `Cushion`? [unknown_category]")  # fmt: skip


def test_a_row_without_a_category_has_that_fault_alone(tmp_path):
    mapping = '[columns]\n"One" = "option"\n"Two" = "option"\n'
    assert codes(checked(tmp_path, "sku,prompt,category,One,Two\nA-1,herons,,short,50x50\n", mapping)) == {
        (2, "empty_category")
    }


def test_rows_refused_for_their_sku_alone_are_known_by_what_they_ask_for(tmp_path):
    found = checked(tmp_path, HEADER + GOOD + ",herons,Cushion,\nA,ferns,Cushion,\nA,nan,Cushion,\n")
    assert list(found.unsold.index) == [3, 4]
    assert list(found.unsold["prompt"]) == ["herons", "ferns"]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ('{"size": "50x50"}', None), ("", None), ("{}", None), ("{oops", "malformed_selections"),
        ("[1]", "malformed_selections"), ('{"size": 3}', "malformed_selections"),
        ('{"size": "40x40", "Size": "50x50"}', "malformed_selections"), ('{"colour": "red"}', "unknown_option"),
        ('{"size": "60x60"}', "unknown_value"),
    ],
)  # fmt: skip
def test_selections_as_json(tmp_path, cell, code):
    table = io.StringIO()
    csv.writer(table).writerows(
        [["sku", "prompt", "category_id", "selections"], ["A-1", "herons", "cat_cushion", cell]]
    )
    found = checked(tmp_path, table.getvalue())
    assert list(found.problems["code"]) == ([code] if code else [])


def test_a_required_option_has_to_be_chosen(tmp_path):
    offer = offered({**CUSHION, "options": [{**SIZES, "required": True}]})
    found = checked(tmp_path, HEADER + GOOD + "A-2,herons,Cushion,\n", offer=offer)
    assert codes(found) == {(3, "missing_option")}


def test_an_option_that_hides_in_a_carried_column_refuses_its_row(tmp_path):
    rows = "A-1,herons,Cushion,50x50\nA-2,herons,Cushion,\nA-3,herons,Tote bag,big\n"
    content = f"sku,prompt,category,Size\n{rows}"
    found = checked(tmp_path, content)
    assert codes(found) == {(2, "option_column")}
    (proposal,) = found.proposals
    assert (proposal.line, proposal.is_certain) == ('"Size" = "option:size"', False)
    assert [one.line for one in proposal.others] == ['"Size" = "note"']
    assert not codes(checked(tmp_path, content, '[columns]\nSize = "note"\n'))
    assert not codes(checked(tmp_path, content.replace("Size", "note:Size")))


def test_an_offer_that_cannot_be_read_is_not_checked(tmp_path):
    found = checked(tmp_path, HEADER + "A-1,herons,Anything,12 oz\n", offer=Offer())
    assert found.rows.loc[2, ["category_id", "selections"]].tolist() == ["Anything", '{"size": "12 oz"}']


def test_html_in_prompts_is_noted(tmp_path):
    prompts = ("<p>herons</p>", "reeds &amp; ferns", "a < b")
    rows = (f"A-{at},{prompt},Cushion,\n" for at, prompt in enumerate(prompts))
    found = checked(tmp_path, HEADER + "".join(rows))
    assert found.notes == ("2 prompts with HTML such as <p> or &amp;, which is sent as written.",)


def test_the_report_for_programs(tmp_path):
    report = json.loads(json.dumps(report_json(checked(tmp_path, HEADER + GOOD + "A-1,herons,Cushon,\n"))))
    assert (report["rows"], report["accepted"], report["refused"]) == (2, 1, 1)
    (problem,) = report["problems"]
    said = {"row": 3, "column": "category", "code": "unknown_category", "suggestion": "Cushion"}
    assert said.items() <= problem.items()


# --- files


@pytest.mark.parametrize(
    "content",
    [
        (HEADER + "A-1,herons,Cushion,50x50\n").encode("utf-16"),
        ("\ufeff\ufeff" + HEADER + "A-1,herons,Cushion,50x50\n").encode(),
        (HEADER + "A-1,herons,Cushion,50x50\n").replace("\n", "\r").encode(),
        ("sep=;\n" + HEADER + "A-1,herons,Cushion,50x50\n").replace(",", ";").encode(),
        (HEADER + "A-1,herons,Cushion,50x50").replace(",", "|").encode(),
        ("Our spring sheet,,,\n\n" + HEADER + "A-1,herons,Cushion,50x50\n\x1a").encode(),
        ("[Draft] spring,,,\n" + HEADER + "A-1,herons,Cushion,50x50\n").encode(),
        ("sku\tprompt\tcategory_id\tselections\n" + 'A-1\therons\tcat_cushion\t{"size": "50x50"}\n').encode(),
        (b" SKU , Prompt ,Category ID,OPTION : Size,\nA-1,herons,cat_cushion,50x50,\n"),
    ],
)
def test_the_same_row_in_many_layouts(tmp_path, content):
    (row,) = checked(tmp_path, content).rows.itertuples(index=False)
    assert tuple(row) == ("A-1", "herons", "cat_cushion", "Cushion", '{"size": "50x50"}', "")


@pytest.mark.parametrize(
    "row", ["A-1,herons,Cushion,50x50,x\n", "A-1,herons,Cushion\n", '"A\n1",herons,Cushion,50x50\n']
)
def test_rows_keep_their_numbers_whatever_is_above_them(tmp_path, row):
    sheet = checked(tmp_path, "title\n" + HEADER + "\n" + row + GOOD).sheet
    assert list(sheet.rows.index) == [4, 5]
    assert list(sheet.rows.loc[5, [0, 1, 2, 3]]) == ["B-1", "ferns", "Cushion", "40x40"]


def test_a_surplus_cell_in_every_row_shifts_no_column(tmp_path):
    found = checked(tmp_path, HEADER + "A-1,herons,Cushion,50x50,x\nA-2,ferns,Cushion,50x50,y\n")
    assert list(found.sheet.rows[SURPLUS]) == ["x", "y"]
    assert codes(found) == {(2, "surplus_cells"), (3, "surplus_cells")}


def test_texts_are_exact(tmp_path):
    texts = ["007", "NA", "null", "1e5", "TRUE", " sp ", 'say "hi"', "two\r\nlines", "\xa0x", "a, b\nc, d"]
    table = io.StringIO(newline="")
    csv.writer(table).writerows(
        [["sku", "prompt", "category", "a", "a", "a.1"], *([t, t, t, t, t, t] for t in texts)]
    )
    sheet = checked(tmp_path, table.getvalue()).sheet
    assert sheet.header == ("sku", "prompt", "category", "a", "a", "a.1")
    assert all(list(sheet.rows[at]) == texts for at in range(6))
    assert sheet.rows[0].dtype.storage == "python"


def test_a_missing_cell_is_not_an_empty_one(tmp_path):
    sheet = checked(tmp_path, "sku,prompt,category,remark\nA-1,herons,Cushion\nA-2,ferns,Cushion,\n").sheet
    assert sheet.rows[3].isna().tolist() == [True, False]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_quote_that_swallows_rows_is_refused_with_its_lines(tmp_path, delimiter):
    prompts = ['"La Vie print', "foxes", 'owls each 12"', "cats"]
    rows = "".join(f"C-{at},{prompt},Cushion,50x50\n" for at, prompt in enumerate(prompts))
    content = (HEADER + GOOD + '"A\n1",herons,Cushion,\n' + rows).replace(",", delimiter)
    with pytest.raises(InputRefused, match=r"row 4 \(lines 5 to 7 of the file\)") as refused:
        checked(tmp_path, content)
    assert refused.value.code == "open_quote"
    tabs = checked(tmp_path, (HEADER + rows).replace(",", "\t"))
    assert list(tabs.rows["prompt"]) == prompts


def test_quotes_in_tabs_are_read_where_all_are_well_formed(tmp_path):
    content = (HEADER + "A-1,#,Cushion,\n").replace(",", "\t").replace("#", '"say ""hi"""')
    assert list(checked(tmp_path, content).rows["prompt"]) == ['say "hi"']


# --- mappings


def test_columns_and_words_of_a_mapping(tmp_path):
    mapping = """
[columns]
Art = "sku"
Muster = "prompt"
Typ = "category"
"Maß" = "option"
[values]
Kissen = "Cushion"
"""
    found = checked(
        tmp_path, "Art;Muster;Typ;Maß\nA-1;Wellen;Kissen;40x40\nA-2;Wellen;Kissen;41x41\n", mapping
    )
    assert list(found.rows["selections"]) == ['{"size": "40x40"}']
    assert codes(found) == {(3, "unknown_value")}


def test_a_value_that_two_options_offer_is_ambiguous(tmp_path):
    offer = offered({**CUSHION, "options": [SIZES, {"name": "back", "values": ["40x40"]}]})
    found = checked(
        tmp_path, "sku,prompt,category,any\nA-1,herons,Cushion,40x40\n", '[columns]\nany = "option"\n', offer
    )
    assert codes(found) == {(2, "ambiguous_option")}


def test_columns_that_are_named_otherwise_are_proposed_line_by_line(tmp_path):
    content = "Artikelnummer;Motiv;Produktart;option:size\nA-1;herons;Cushion;50x50\n"
    with pytest.raises(Unsaid) as refused:
        checked(tmp_path, content)
    proposals = refused.value.proposals
    lines = ['"Artikelnummer" = "sku"', '"Motiv" = "prompt"', '"Produktart" = "category"']
    assert [one.line for one in proposals] == lines
    assert [one.is_certain for one in proposals] == [True, False, True]
    write_mapping(tmp_path / "b.mapping.toml", SheetMapping().plus(proposals))
    assert len(checked(tmp_path, content, (tmp_path / "b.mapping.toml").read_text()).rows) == 1


def test_an_unknown_word_is_proposed_once_however_many_rows_have_it(tmp_path):
    found = checked(tmp_path, HEADER + "A-1,herons,Cushon,\nA-2,herons,Cushon,\nA-3,herons,Qqqq,\n")
    assert found.proposals == (Proposal("values", "Cushon", "Cushion"),)


def test_confirmed_lines_are_added_and_others_stay(tmp_path):
    path = tmp_path / "a.mapping.toml"
    before = '# ours\n[columns] # of May\n"Art" = "sku"\n\n[reading]\nheader = 2\n'
    path.write_text(before)
    confirmed = [Proposal("columns", 'Na"me\\', "prompt"), Proposal("values", "Kissen", "Cushion")]
    write_mapping(path, read_mapping(tmp_path / "a.csv").plus(confirmed))
    found = read_mapping(tmp_path / "a.csv")
    assert found.columns == {"Art": "sku", 'Na"me\\': "prompt"}
    assert (found.values, found.reading.header) == ({"Kissen": "Cushion"}, 2)
    assert set(before.splitlines()) <= set(path.read_text().splitlines())


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ('[columns]\nFarbe = "colour"\n', "wrong_mapping"), ("[columns\n", "wrong_mapping"),
        ("[colums]\n", "wrong_mapping"), ('[reading]\ndelimiter = "ab"\n', "wrong_mapping"),
        ("[reading]\nheader = 9\n", "wrong_header"), ('[reading]\nencoding = "utf-9"\n', "unknown_encoding"),
        ('[columns]\nFarbe = "option:colour"\n', "mapping_changed"),
        ('[columns]\n"option:size" = "sku"\n', "duplicate_header"),
    ],
)  # fmt: skip
def test_mappings_that_do_not_fit(tmp_path, mapping, code):
    with refuses(code):
        checked(tmp_path, HEADER + GOOD, mapping)


@pytest.mark.parametrize(
    ("extra", "mapping"), [("Tag,Tag", ""), ("Run", '"Run" = "note"'), ("run", ""), ("Status", "")]
)
def test_columns_of_the_shops_own_are_carried_under_their_position(tmp_path, extra, mapping):
    content = f"{HEADER.strip()},{extra}\n{GOOD.strip()}{',x' * (extra.count(',') + 1)}\n"
    found = checked(tmp_path, content, f"[columns]\n{mapping}\n")
    assert len(found.rows) == 1
    assert found.columns.run is None
    assert len(found.columns.carried) == len(found.sheet.header)


@pytest.mark.parametrize("column", ["refine:recolor", "model", "Reference"])
def test_a_column_for_what_the_service_does_not_promise_is_refused(tmp_path, column):
    sheet = f"sku,prompt,category,option:size,{column}\nA-1,herons,Cushion,50x50,blue\n"
    with pytest.raises(InputRefused, match="does not promise"):
        checked(tmp_path, sheet)
    mapping = f'[columns]\n"{column}" = "note"\n'
    assert len(checked(tmp_path, sheet, mapping).rows) == 1
