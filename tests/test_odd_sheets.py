"""Sheets as programs and people write them: what is accepted, which rows are refused, and that none is lost."""

import pytest

from tests.spine import refuses
from tests.test_tables import checked, codes

H, TABS = "sku,prompt,category,option:size", "sku\tprompt\tcategory\toption:size"
A, B, C, D = (
    f"{sku},{what},Cushion,50x50"
    for sku, what in zip("ABCD", ("herons", "ferns", "moss", "owls"), strict=True)
)
REMARK = f"{H},remark"


def text(*lines, end="\n"):
    return end.join(lines) + end


def tabs(*lines):
    return text(*lines).replace(",", "\t")


def cell(prompt):
    return text(H, f'A,"{prompt}",Cushion,50x50', B)


#: Bytes or text, and the refusal: of rows by number, or of the whole file. Nothing: every row is fit.
SHEETS = {
    # --- ends of lines and of files
    "LF": (text(H, A, B), {}),
    "CRLF": (text(H, A, B, end="\r\n"), {}),
    "mixed ends": (f"{H}\r\n{A}\n{B}\r{C}\r\n", {}),
    "no last end": (text(H, A, B)[:-1], {}),
    "many last ends": (text(H, A, B) + "\r\n" * 9, {}),
    "a fault after CR": (f"{H}\r{A}\r,x,Cushion,\r", {3: "empty_sku"}),
    "Ctrl-Z": (text(H, A, B) + "\x1a", {}),
    "Ctrl-Z and its padding": (text(H, A, B) + "\x1a" * 90, {}),
    "Ctrl-Z where files were joined": (text(H, A) + "\x1a" + text(B), {3: "unsafe_characters"}),
    "form feed": (text(H, A, "\f", B), {}),
    # --- marks of encodings
    "BOM": ("\ufeff" + text(H, A), {}),
    "BOM before quotes": ('\ufeff"sku","prompt","category","option:size"\n' + text(A), {}),
    "BOM in mid-file": ("\ufeff" + text(H, A) + "\ufeff" + text(B), {}),
    "UTF-16 BE": (b"\xfe\xff" + text(H, A).encode("utf-16-be"), {}),
    "UTF-16 with tabs, as Excel's Unicode text": (tabs(H, A).encode("utf-16"), {}),
    "Windows-1252": (text(H, "A,fougères,Cushion,").encode("cp1252"), "unreadable_encoding"),
    "NUL": (text(H, A, "B,fe\0rns,Cushion,"), "nul_bytes"),
    "a file of NULs": (bytes(64), "nul_bytes"),
    # --- rows that show nothing
    "blank lines": (text(H, "", A, "", "", ",b,Cushion,"), {6: "empty_sku"}),
    "lines of spaces": (text(H, "   ", A, " , ,\t,", ",b,Cushion,"), {5: "empty_sku"}),
    "lines of separators": (text(H, ",,,", A, ",,,", ",,,,,,", ",b,Cushion,"), {6: "empty_sku"}),
    "a thousand separators": (text(H, A, "," * 1000, B), {}),
    "nothing but separators": (text(",,,", ",,,"), "wrong_header"),
    "nothing": ("", "empty_file"),
    "nothing but spaces": ("\n \n", "empty_file"),
    "a separator that is said, alone": ("sep=;\n", "wrong_header"),
    "a header alone": (text(H), "header_only"),
    "a header and separators": (text(H, ",,,", ""), "header_only"),
    # --- cells that are missing or too many
    "no separators of empty last cells": (text(REMARK, A, B), {}),
    "only some rows have them": (text(REMARK, f"{A},x", B, f"{C},"), {}),
    "a needed option is missing": (text(H, A, "B,ferns,Cushion"), {3: "missing_cells"}),
    "an option of other categories is missing": (text(f"{H},option:handle", A, "B,x,Tote bag,,long"), {}),
    "a category is missing": (text(H, A, "B,ferns"), {3: "missing_cells"}),
    "a sku alone": (text(H, A, "B"), {3: "missing_cells"}),
    "the sum of a column": (text(H, A, "2 rows"), {3: "missing_cells"}),
    "one separator more in each row": (text(H, f"{A},", f"{B},"), {}),
    "one separator more in each line": (text(f"{H},", f"{A},", f"{B},"), {}),
    "two separators more, and something": (text(H, f"{A},,x", B), {2: "surplus_cells"}),
    "a comma without quotes": (text(H, "A,herons, reeds,Cushion,50x50", B), {2: "surplus_cells"}),
    "a surplus cell in each row": (text(H, f"{A},x", f"{B},y"), {2: "surplus_cells", 3: "surplus_cells"}),
    "an unnamed column with remarks": (text(f"{H},,remark", f"{A},x,y"), {}),
    "an unnamed first column, as pandas writes": (text(f",{H}", f"0,{A}", f"1,{B}"), {}),
    "a separator before each line": (text(f",{H}", f",{A}", f",{B}"), {}),
    # --- separators
    "semicolons": (text(H, A, B).replace(",", ";"), {}),
    "semicolons and commas in prompts": (text(H, A).replace(",", ";") + "B;a, b, c, d, e;Cushion;50x50\n", {}),
    "tabs": (tabs(H, A, B), {}),
    "sep=;": ("sep=;\n" + text(H, A, ",b,Cushion,").replace(",", ";"), {3: "empty_sku"}),
    "SEP=; with CRLF": ("SEP=;\r\n" + text(H, A, end="\r\n").replace(",", ";"), {}),
    '"sep=|"': ('"sep=|"\n' + text(H, A).replace(",", "|"), {}),
    "sep= and a separator of nobody": ("sep=~\n" + text(H, A).replace(",", "~"), {}),
    "sep= and BOM": ("\ufeffsep=\t\n" + tabs(H, A), {}),
    "rows of another separator": (text(H, A, B.replace(",", ";")), {3: "missing_cells"}),
    "a space behind each separator": (text(H, A, B).replace(",", ", "), {}),
    # --- headers
    "a title above": (text("Spring", "", H, A, ",b,Cushion,"), {5: "empty_sku"}),
    "a title with separators": (text("Spring,,,", "as of May,,,", H, A), {}),
    "a note of several cells above": (text("Owner,Ann,May,2", H, A), {}),
    "names of people above names of columns": (text("SKU,Prompt,Category,Größe", H, A), {}),
    "case and spaces": (text(" SKU ,PROMPT,Category_ID,Option: Size ", A.replace("Cushion", "cat_cushion")), {}),
    "a line break in the header": (text('sku,prompt,category,"option:\nsize"', A, ",b,Cushion,"), {3: "empty_sku"}),
    "the header again": (text(H, A, H, B), {}),
    "the header again, and blank lines": (text(H, A, "", "", H, ",b,Cushion,"), {6: "empty_sku"}),
    "a file joined behind another": ("\ufeff" + text(H, A, end="\r\n") + "\ufeff" + text(H, B, end="\r\n"), {}),
    "a header of other columns": (text(H, A, "prompt,sku,category,option:size", "x,B,Cushion,"), "wrong_header"),
    "a longer header below": (text("sku,prompt,category", "A,x,Cushion", H, B), "wrong_header"),
    "a sorted header": (text(A, B, H, D), "wrong_header"),
    "no header": (text(A, B), "missing_column"),
    "a column twice": (text("sku,prompt,prompt,category", "A,x,y,Cushion"), "duplicate_header"),
    "a column in two spellings": (text("sku,prompt,category,category_id", "A,b,c,d"), "duplicate_header"),
    "a column is missing": (text("sku,prompt", "A,b"), "missing_column"),
    "two ways to select": (text("sku,prompt,category,selections,option:size", "A,b,c,,d"), "conflicting_columns"),
    "a prompt that is called sku": (text(H, "A,sku,Cushion,50x50"), {}),
    # --- quotes
    "all in quotes": (text(*('"' + one.replace(",", '","') + '"' for one in (H, A, B))), {}),
    "quotes within quotes": (cell('say ""hi""'), {}),
    "a line break in quotes": (cell("two\nlines") + ",b,Cushion,\n", {4: "empty_sku"}),
    "CRLF in quotes": (cell("two\r\nlines"), {}),
    "separators in quotes": (cell("a, b, c, d, e"), {}),
    "a list of sentences in quotes": (cell("a, b, c, d\nb, c, d, e\nc, d, e, f"), {}),
    "sizes with decimal commas": (cell("2,5 cm\n3,5 cm\n4,5 cm"), {}),
    "pretty JSON": (
        'sku,prompt,category,selections\nA,herons,Cushion,"{\n  ""size"":\n  ""50x50""\n}"\n', {}),
    "inches": (text(H, 'A,each 12" wide,Cushion,50x50'), {}),
    "a space before quotes": (text(H, 'A, "herons",Cushion,50x50'), {}),
    "a quote that is never closed": (text(H, 'A,"herons,Cushion,50x50', B, C), "open_quote"),
    "a quote that ends too early": (text(H, 'A,"herons" and reeds,Cushion,50x50'), "open_quote"),
    "a single quote in quotes": (cell('each 12" wide'), "open_quote"),
    "backslashes before quotes, as MySQL writes": (cell(r"say \"hi\""), "open_quote"),
    "a quote that swallows a row": (text(H, 'A,"herons,Cushion,50x50', 'B,12",Cushion,50x50', C), "open_quote"),
    "it swallows many": (text(H, 'A,"herons,Cushion,50x50', B, C, 'D,12",Cushion,50x50'), "open_quote"),
    "it swallows rows and blank lines": (
        text(H, 'A,"herons,Cushion,50x50', "", B, "", 'D,12",Cushion,50x50'), "open_quote"),
    "it swallows rows without their last separators": (
        text(f"{REMARK},season", 'A,"herons,Cushion,50x50', B, 'C,12",Cushion,50x50', D), "open_quote"),
    "it swallows all rows of such a file": (
        text(f"{REMARK},season", 'A,"herons,Cushion,50x50', 'B,12",Cushion,50x50'), "open_quote"),
    "it swallows in the last column": (text(REMARK, f'{A},"nice', f'{B},12"', C), "open_quote"),
    "it swallows from one column into another": (
        text(REMARK, f'{A},"nice', f"{B},", 'C,12",Cushion,50x50,'), "open_quote"),
    "it swallows in the first column": (text(H, '"A,herons,Cushion,50x50', 'B",ferns,Cushion,50x50'), "open_quote"),
    "it swallows between semicolons": (
        text(H, 'A,"herons,Cushion,50x50', 'B,12",Cushion,50x50').replace(",", ";"), "open_quote"),
    "it swallows after CR": (text(H, 'A,"herons,Cushion,50x50', 'B,12",Cushion,50x50', end="\r"), "open_quote"),
    "tabs and a quote that is never closed": (tabs(H, 'A,"herons,Cushion,50x50', B), {}),
    "tabs and inches": (tabs(H, 'A,12",Cushion,50x50', 'B,"La Vie,Cushion,50x50', 'C,15",Cushion,50x50'), {}),
    "tabs and quotes that are well-formed": (tabs(H, 'A,"two\nlines",Cushion,50x50', ",b,Cushion,"), {3: "empty_sku"}),
    "tabs and a quote open for very long": (
        tabs(H, 'A,"x,Cushion,', *(B.replace("B", f"B{n}") for n in range(9000))), {}),
    "a cell that is too long": (text(H, f"A,{'x' * 140_000},Cushion,50x50"), "cell_too_long"),
    # --- what programs leave
    "an error as a sku": (text(H, "#N/A,herons,Cushion,50x50", B), {2: "spreadsheet_error"}),
    "an error as a category": (text(H, "A,herons,#REF!,50x50", B), {2: "spreadsheet_error"}),
    "an error as a size": (text(H, "A,herons,Cushion,#VALUE!", B), {2: "spreadsheet_error"}),
    "the same sku in another case": (text(H, A, A.replace("A", "a ")), {2: "duplicate_sku", 3: "duplicate_sku"}),
    "skus that differ by a zero": (text(H, A.replace("A", "007"), A.replace("A", "7")), {}),
    "a soft hyphen in a sku": (text(H, "A\u00ad1,herons,Cushion,50x50"), {2: "unsafe_characters"}),
    "UTF-8 read as Windows-1252": (text(H, "A,fougÃ¨res,Cushion,50x50"), {2: "misread_text"}),
    "no-break spaces around words": (text(H, "A,\u00a0herons\u00a0,\u00a0Cushion,50\u00a0x\u00a050"), {}),
    # --- other files
    "a web page": ("<html><body>Sign in</body></html>", "not_csv"),
    "a whole web page": ("<!DOCTYPE html><table>", "not_csv"),
    "JSON with a margin": ('  {"sku": 1}', "not_csv"),
    "JSON": ('[{"sku": "A"}]', "not_csv"),
    "gzip": (b"\x1f\x8b\x08\0\0", "file_unreadable"),
    "PDF": (b"%PDF-1.7\n", "not_csv"),
    "a workbook that is cut off": (b"PK\x03\x04" + bytes(200), "file_unreadable"),
    "prose": ("Dear all, here is the sheet.\nSee you.\n", "missing_column"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHEETS)
def test_odd_sheets(tmp_path, name):
    content, refused = SHEETS[name]
    if isinstance(refused, str):
        with refuses(refused) as refusal:
            checked(tmp_path, content)
        assert refusal.value.remedy
    else:
        assert codes(checked(tmp_path, content)) == set(refused.items())
