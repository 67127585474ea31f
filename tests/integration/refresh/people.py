"""Ten sheets as people write them, each with the answers that its owner has to give once."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

ROWS = 24
#: Category, size, then what it is made of.
PRODUCTS = (
    ("Cushion", "50x50", "velvet"),
    ("Mug", "11oz", "glossy"),
    ("Tote bag", "large", "organic cotton"),
    ("Scarf", "90x90", "silk"),
    ("Poster", "A3", "matte"),
    ("Cushion", "40x40", "linen"),
)
_OPTION = {"Mug": "finish", "Poster": "paper"}
GERMAN = {
    "Cushion": "Kissen",
    "Mug": "Tasse",
    "Tote bag": "Stofftasche",
    "Scarf": "Tuch",
    "velvet": "Samt",
    "linen": "Leinen",
    "glossy": "glänzend",
    "organic cotton": "Bio-Baumwolle",
    "silk": "Seide",
    "matte": "matt",
    "large": "groß",
    "50x50": "50 × 50",
}
FRENCH = {
    "Cushion": "Coussin",
    "Mug": "Tasse",
    "Tote bag": "Sac cabas",
    "Scarf": "Foulard",
    "Poster": "Affiche",
    "velvet": "velours",
    "linen": "lin",
    "glossy": "brillant",
    "organic cotton": "coton bio",
    "silk": "soie",
    "matte": "mat",
    "large": "grand",
}
JAPANESE = {
    "Cushion": "クッション",
    "Mug": "マグカップ",
    "Tote bag": "トートバッグ",
    "Scarf": "スカーフ",
    "Poster": "ポスター",
    "velvet": "ベルベット",
    "linen": "リネン",
    "glossy": "光沢",
    "silk": "シルク",
    "organic cotton": "オーガニックコットン",
    "matte": "マット",
    "large": "大",
}


@dataclass(frozen=True)
class PeoplesSheet:
    name: str
    write: Callable[[Sequence[str]], bytes]
    #: What is typed on the terminal; Enter where there is nothing more.
    answers: tuple[str, ...] = ()


def prompts(changed: int = 0) -> list[str]:
    """So many of them are others than before."""
    return [f"blue herons number {number}{' anew' if number < changed else ''}" for number in range(ROWS)]


def _rows(
    texts: Sequence[str],
    sku: str = "A-{}",
    words: Mapping[str, str] | None = None,
    more: tuple[str, ...] = (),
) -> Iterator[list[str]]:
    """sku, prompt, category, size, fabric, finish, paper; then the same remarks in each."""
    words = words or {}
    for number, prompt in enumerate(texts):
        category, size, made_of = PRODUCTS[number % len(PRODUCTS)]
        option = _OPTION.get(category, "fabric")
        chosen = [
            words.get(made_of, made_of) if option == one else "" for one in ("fabric", "finish", "paper")
        ]
        first = [sku.format(number), prompt, words.get(category, category), words.get(size, size)]
        yield [*first, *chosen, *more]


def _text(rows: Sequence[Sequence[str]], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode(encoding)


def _german_excel(texts: Sequence[str]) -> bytes:
    header = "Art.-Nr.,Motivbeschreibung,Produktart,Größe,Stoff,Oberfläche,Papier,Preis,Bemerkung"
    rows = _rows(texts, "K-{:03}", GERMAN, ("12,90", "für Müller; eilt"))
    return _text([header.split(","), *rows], ";", "cp1252")


def _french_excel(texts: Sequence[str]) -> bytes:
    header = "Référence,Description,Catégorie,Taille,Tissu,Finition,Papier,Matière première"
    return _text([header.split(","), *_rows(texts, "F{}", FRENCH, ("à définir",))], ";", "cp1252")


def _japanese_excel(texts: Sequence[str]) -> bytes:
    header = "品番,柄の説明,商品カテゴリ,サイズ,生地,仕上げ,用紙"
    rows = _rows([f"{text}の柄" for text in texts], "JP-{}", JAPANESE)
    return _text([header.split(","), *rows], ",", "cp932")


def _google(texts: Sequence[str]) -> bytes:
    header = "SKU,Prompt,Product type,Size,Fabric,Finish,Paper,Notes 🎨"
    rows = _rows([f"{text} 🌸\nsoft, on white" for text in texts], "G-{}", more=("maybe 😀\nlater",))
    return _text([header.split(","), *rows])


def _several_options(texts: Sequence[str]) -> bytes:
    rows = ([*row[:4], "".join(row[4:])] for row in _rows(texts, "S-{}"))
    return _text([["Item no.", "Prompt text", "Product", "Size", "Material/Finish"], *rows])


def _unicode_text(texts: Sequence[str]) -> bytes:
    header = "Artikelnummer,Prompttext,Kategorie,Größe,Stoff,Oberfläche,Papier"
    return b"\xff\xfe" + _text([header.split(","), *_rows(texts, "{:05}", GERMAN)], "\t", "utf-16-le")


def _shop_export(texts: Sequence[str]) -> bytes:
    header = "Handle,Title,Body (HTML),Type,Variant SKU,Size,Fabric,Finish,Paper,Status"
    rows = (
        [f"h-{number % 7}", f"T{number}", row[1], row[2], row[0], *row[3:], "draft"]
        for number, row in enumerate(_rows(texts, "SH-{}"))
    )
    return _text([header.split(","), *rows])


def _slips(texts: Sequence[str]) -> bytes:
    header = "sku,prompt,category,option:size,option:fabric,option:finish,option:paper"
    slips = {"Cushion": "Cusion", "velvet": "Velvett", "linen": "linnen", "11oz": "11 oz", "A3": "DIN A3"}
    return _text([["Spring list", *[""] * 6], [""] * 7, header.split(","), *_rows(texts, "T-{}", slips)])


def _workbook(texts: Sequence[str]) -> bytes:
    """A title, two worksheets, a header of two rows, and categories merged down their rows."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append(["Sommer 2027"])
    sheet.merge_cells("A1:F1")
    sheet.append([])
    sheet.append(["Artikelnr.", "Motiv", "Warengruppe", "Ausführung", "", "Preis"])
    sheet.append(["", "", "", "Größe (cm)", "Stoff", ""])
    for column in "ABCF":
        sheet.merge_cells(f"{column}3:{column}4")
    sheet.merge_cells("D3:E3")
    for number, text in enumerate(texts):
        sheet.append([f"W-{number}", text, None if number % 6 else "Kissen", "50x50", "Leinen", 12.9])
        if number % 6 == 5:
            sheet.merge_cells(start_row=number, end_row=number + 5, start_column=3, end_column=3)
    notes = book.create_sheet("Hinweise")
    notes.append(["Spalte", "Bedeutung"])
    notes.append(["Motiv", "was zu sehen ist"])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _open_names(texts: Sequence[str]) -> bytes:
    """Names and words that nobody but their owner knows."""
    words = {"Cushion": "Typ K", "velvet": "V7"}
    return _text([["a", "b", "c", "d", "e", "f", "g"], *_rows(texts, "X-{}", words)], "|")


SHEETS = (
    PeoplesSheet("herbst.csv", _german_excel),
    PeoplesSheet("automne.csv", _french_excel),
    PeoplesSheet("aki.csv", _japanese_excel),
    PeoplesSheet("google.csv", _google),
    PeoplesSheet("several.csv", _several_options),
    PeoplesSheet("unicode.txt", _unicode_text),
    PeoplesSheet("shop.csv", _shop_export),
    PeoplesSheet("slips.csv", _slips),
    PeoplesSheet("sommer.xlsx", _workbook),
    PeoplesSheet("own.csv", _open_names, ("",) * 7 + ("Cushion", "velvet")),
)
