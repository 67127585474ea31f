"""What a sheet may mean: what is certain, what a person is asked, in which encodings a file may be written."""

import csv
import re
from pathlib import Path

import pytest

from cli.main import run as command
from patternmill.errors import InputRefused
from patternmill.offer import Category, Offer
from patternmill.states import Outcome
from patternmill.tables.delimited import decode
from patternmill.tables.mapping import Unsaid
from patternmill.vocabulary import likely
from tests.test_cli import asked
from tests.test_runs import catalog, double, made, run  # noqa: F401
from tests.test_tables import checked


@pytest.mark.parametrize(
    ("text", "offered", "kind", "meant"),
    [
        ("Kissen", ("Cushion", "Pillow"), "category", "Cushion"),
        ("KUSSEN", ("Cushion",), "category", "Cushion"),
        ("Cojín", ("Cushion",), "category", "Cushion"), ("cojin", ("Cushion",), "category", "Cushion"),
        ("Tragetasche", ("Tote bag", "Bag"), "category", "Tote bag"),
        ("cushion", ("Kissen",), "category", "Kissen"),
        ("Baumwolle", ("linen", "cotton"), "value", "cotton"),
        ("terciopelo", ("velvet",), "value", "velvet"),
        ("Bio-Baumwolle", ("cotton", "organic cotton"), "value", "organic cotton"),
        ("weiß", ("white",), "value", "white"),
        ("WEISS", ("white",), "value", "white"), ("fluweel", ("velvet", "wool"), "value", "velvet"),
        ("11 Unzen", ("11oz", "15oz"), "value", "11oz"), ("12 Zoll", ('12"', "12cm"), "value", '12"'),
        ("40 x 40 cm", ("40x40cm", "50x50cm"), "value", "40x40cm"),
        ("2 Stück", ("2 pcs", "4 pcs"), "value", "2 pcs"),
        ("30 centímetros", ("30cm",), "value", "30cm"), ("3 mètres", ("3m",), "value", "3m"),
        ("Größe", ("size", "colour"), "option", "size"), ("maat", ("size",), "option", "size"),
        ("Kleur", ("colour",), "option", "colour"), ("talla", ("size",), "option", "size"),
    ],
)  # fmt: skip
def test_what_the_trade_calls_the_same_is_certain(text, offered, kind, meant):
    assert likely(text, offered, kind) == ((meant,), True)


@pytest.mark.parametrize(
    ("text", "offered", "kind"),
    [
        ("Tasse", ("Mug", "Cup"), "category"), ("Tasse", ("Mug",), "category"),
        ("tassen", ("Bag", "Mug"), "category"),
        ("tapete", ("Wallpaper",), "category"), ("Serviette", ("Towel", "Napkin"), "category"),
        ("Cushon", ("Cushion",), "category"),
        ("Cushion", ("Cushion cover",), "category"), ("Kissenbezug", ("Cushion",), "category"),
        ("Lila", ("purple",), "value"),
        ("Baumwolle (bio)", ("cotton",), "value"), ("cotton (recycled)", ("cotton (organic)",), "value"),
        ("-Baumwolle", ("cotton",), "value"),
        ("Baumwolle", ("cotton", "Cotton blend", "coton"), "value"), ("12oz", ("11oz", "15oz"), "value"),
        ("11oz", ("11in",), "value"),
        ("40 x 40 cm", ("40x40",), "value"), ("40", ("40cm",), "value"), ("1,5 cm", ("1.5cm",), "value"),
        ("1.5 cm", ("15cm",), "value"),
        ("3-4", ("34",), "value"), ("1/2", ("12",), "value"), ("M-L", ("m", "l"), "value"),
        ("dunkelblau", ("blue",), "value"),
        ("Material", ("material", "fabric"), "option"), ("Mug (15oz)", ("Mug (11oz)",), "category"),
        ("note", ("noté",), "value"),
    ],
)  # fmt: skip
def test_what_may_be_mistaken_is_never_certain(text, offered, kind):
    assert not likely(text, offered, kind).is_certain


@pytest.mark.parametrize(
    ("header", "lines", "certain"),
    [
        ("Artikelnummer;Motiv;Kategorie", ["Artikelnummer", "Motiv", "Kategorie"], [True, False, True]),
        ("Art.-Nr.;Musterbeschreibung;Warengruppe", ["Art.-Nr.", "Musterbeschreibung", "Warengruppe"], [True] * 3),
        ("Réf. article;Texte du prompt;Catégorie", ["Réf. article", "Texte du prompt", "Catégorie"], [True] * 3),
        ("Número de artículo;Estampado;prompt;Categoría", ["Número de artículo", "Categoría"], [True, True]),
        ("Artikelcode;Ontwerp;Productsoort", ["Artikelcode", "Ontwerp", "Productsoort"], [True, False, True]),
        ("Artikelnummer;EAN;prompt;category", ["Artikelnummer"], [False]),
        ("SKU No.;Item number;prompt;category", ["SKU No."], [False]),
        ("sku;Titel;Beschreibung;Typ", ["Titel", "Typ"], [False, False]),
        ("Artikel;prompt;category", ["Artikel"], [False]),
        ("Skuu;prompt;category", ["Skuu"], [False]),
    ],
)  # fmt: skip
def test_which_headers_are_certain(tmp_path, header, lines, certain):
    with pytest.raises(Unsaid) as refused:
        checked(tmp_path, f"{header}\nA-1;herons;Cushion;x\n")
    proposals = refused.value.proposals
    assert [one.written for one in proposals] == lines
    assert [one.is_certain for one in proposals] == certain


OFFER = Offer(categories=(
    Category.model_validate({"categoryId": "cat_1", "name": "Cushion", "options": [
        {"name": "size", "values": ["40x40cm", "50x50cm"], "required": True},
        {"name": "fabric", "values": ["cotton", "velvet"], "required": True},
        {"name": "colour", "values": ["red", "blue"]}]}),
    Category.model_validate({"categoryId": "cat_2", "name": "Mug", "options": [{"name": "size", "values": ["11oz"]}]}),
))  # fmt: skip
GERMAN = """Artikelnummer;Motiv;Kategorie;Größe;Stoff;Menge
KI-1;blaue Reiher;Kissen;40 x 40 cm;Baumwolle;3
KI-2;grüne Füchse;Kissen;50 x 50 cm;Samt;
TA-1;Bären;Tasse;11 Unzen;;
"""


def test_a_sheet_that_is_wrong_in_several_ways_hears_all_of_it_at_once(tmp_path):
    with pytest.raises(Unsaid) as refused:
        checked(tmp_path, GERMAN.encode("cp1252"), offer=OFFER)
    said, proposals = str(refused.value), refused.value.proposals
    columns = "no column `sku` or `prompt` or `category`"
    for text in ("is not UTF-8", columns, "`Kissen`", "option:fabric", "`Tasse`"):
        assert text in said
    assert [(one.line, one.is_certain) for one in proposals] == [
        ('encoding = "cp1252"', False),
        ('"Artikelnummer" = "sku"', True), ('"Motiv" = "prompt"', False), ('"Kategorie" = "category"', True),
        ('"Größe" = "option:size"', True), ('"Stoff" = "option:fabric"', True),
        ('"Kissen" = "Cushion"', True), ('"40 x 40 cm" = "40x40cm"', True), ('"Baumwolle" = "cotton"', True),
        ('"50 x 50 cm" = "50x50cm"', True), ('"Samt" = "velvet"', True), ('"Tasse" = "Mug"', False),
    ]  # fmt: skip


def test_a_column_may_be_a_remark_where_nothing_needs_it_or_it_has_other_cells_or_another_may_be_it(tmp_path):
    def proposed(extra, cells):
        found = checked(
            tmp_path,
            f"sku,prompt,category,option:size,{extra}\nA,herons,Cushion,40x40cm,{cells}\n",
            offer=OFFER,
        )
        return {one.line: one.is_certain for one in found.proposals if one.section == "columns"}

    assert proposed("Stoff", "Samt") == {'"Stoff" = "option:fabric"': True}
    assert proposed("Farbe", "rot") == {'"Farbe" = "option:colour"': False}
    assert proposed("Stoff", "wie immer") == {'"Stoff" = "option:fabric"': False}
    assert proposed("Stoff,Fabric", "Samt,cotton") == {'"Stoff" = "option:fabric"': False}
    assert proposed("Stoff,option:fabric", "Samt,") == {}


def test_a_column_of_an_option_that_is_called_otherwise_is_one_line(tmp_path):
    header = "sku,prompt,category,option:size,option:Stoff,option:colr"
    found = checked(tmp_path, f"{header}\nA,herons,Cushion,40x40cm,Samt,red\n", offer=OFFER)
    lines = {one.line: one.is_certain for one in found.proposals}
    assert lines == {'"option:Stoff" = "option:fabric"': True, '"option:colr" = "option:colour"': False}
    pasted = "[columns]\n" + "\n".join(lines) + '\n[values]\nSamt = "velvet"\n'
    again = checked(tmp_path, f"{header}\nA,herons,Cushion,40x40cm,Samt,red\n", pasted, offer=OFFER)
    assert list(again.rows["selections"]) == ['{"colour": "red", "fabric": "velvet", "size": "40x40cm"}']


def test_a_note_is_said_once(tmp_path):
    found = checked(tmp_path, f"sku;prompt;category;option:size\n{'A;herons;Cushion;40x40cm'}\n", offer=OFFER)
    assert len(found.notes) == len(set(found.notes))


TEXTS = {
    "cp1252": ["blaue Reiher im Schilf, größer", "hérons bleus près de l'étang", "cigüeña en otoño, ñandú"],
    "cp1250": ["modrá volavka v rákosí, žluté květy", "żółta łąka i świerk", "kék gémek, őszi erdő"],
    "cp1251": ["синие цапли в камышах", "Рыжая лиса в лесу"], "cp1253": ["μπλε ερωδιοί", "αλεπού στο δάσος"],
    "cp1254": ["balıkçıl ve sazlık", "yeşil eğrelti otu, ışık"], "cp932": ["青い鷺と葦", "赤い狐が森を走る"],
    "cp949": ["푸른 왜가리와 갈대", "붉은 여우"], "gb18030": ["蓝色苍鹭与芦苇", "绿色蕨类植物", "红狐狸"],
    "big5": ["藍色蒼鷺與蘆葦", "花卉圖案抱枕"], "cp850": ["blaue Grüße, Vögel", "garçon à la crème"],
    "cp437": ["blaue Grüße, Vögel", "garçon"], "cp852": ["modrá volavka v rákosí", "żółta łąka, gęś"],
    "cp866": ["синие цапли в камышах", "рыжая лиса"], "mac_roman": ["blaue Grüße, Vögel", "fougères vertes"],
    "cp1255": ["אנפות כחולות", "שועל אדום"], "cp1257": ["mėlyni garniai nendrėse", "žalias paparčių miškas"],
    "cp874": ["นกกระสาสีน้ำเงิน"], "cp1256": ["مالك الحزين الأزرق"],
}  # fmt: skip
HEADER = "sku,prompt,category,option:size\n"


@pytest.mark.parametrize("codec", TEXTS)
def test_an_encoding_is_one_question_with_a_line_of_each_that_reads_words(codec):
    text = HEADER + "".join(f'A-{at},"{one}",Cushion,\n' for at, one in enumerate(TEXTS[codec]))
    raw = text.encode(codec)
    read, encoding, (doubt,) = decode(raw, "a.csv", None)
    assert doubt.code == "unreadable_encoding"
    (proposal,) = doubt.proposals
    assert (read, proposal.meant, proposal.is_certain) == (text, encoding, False)
    lines = [proposal, *proposal.others]
    assert len({one.about for one in lines}) == len(lines) <= 6
    assert any(one.about.strip('", ')[:8] in text for one in lines)


@pytest.mark.parametrize(
    ("text", "asked", "encoding"),
    [
        ("Grüße".encode(), None, "utf-8"), ("\ufeffGrüße".encode(), "cp1252", "utf-8"),
        ("Grüße".encode("utf-16"), "cp1252", "utf-16"), ("Grüße".encode("cp1252"), "cp1252", "cp1252"),
        ("Grüße".encode("utf-16-le"), "utf-16-le", "utf-16-le"), (b"plain", "cp1251", "utf-8"),
    ],
)  # fmt: skip
def test_utf_8_and_utf_16_are_certain_whatever_was_asked_for(text, asked, encoding):
    read, found, doubts = decode(text, "a.csv", asked)
    assert (found, doubts) == (encoding, ())
    assert read == text.decode(encoding).lstrip("\ufeff")


def test_one_broken_line_of_utf_8_is_no_other_encoding():
    raw = (
        "".join(f"A-{at},hérons près de l'étang,Cushion,\n" for at in range(9)).encode()
        + b"B,\xe9t\xe9,Cushion,\n"
    )
    with pytest.raises(InputRefused, match="line 10"):
        decode(raw, "a.csv", None)


def test_encodings_that_differ_in_a_late_line_alone_are_both_shown():
    raw = ("müde\n" * 2000 + "șură\n" + "öde\n" * 900).encode("cp1250", "replace") + "łąka\n".encode("cp1250")
    _, _, (doubt,) = decode(raw, "a.csv", None)
    assert "cp1250" in {one.meant for one in (doubt.proposals[0], *doubt.proposals[0].others)}


COLUMNS = ("Artikelnummer", "Motiv", "Kategorie", "Größe", "Hinweis")


def german(name="spring.csv", codec="cp1252", *, rows, header=COLUMNS):
    lines = [";".join(line) for line in (header, *rows)]
    Path(name).write_bytes("\r\n".join([*lines, ""]).encode(codec))


@pytest.mark.slow
def test_yes_takes_what_is_certain_alone(double, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    header = ("Artikelnummer", "Motiv", "category", "Größe", "Hinweis")
    german(codec="utf-8", header=header, rows=[("A-1", "Vögel", "Tote", "m", "")])
    assert command(["import", "spring.csv", "--yes"]) == 2
    said = capsys.readouterr().err
    assert '"Motiv" = "prompt"' in said
    text = Path("spring.mapping.toml").read_text("utf-8")
    assert text.splitlines() == ["[columns]", '"Artikelnummer" = "sku"']
    assert made(double) == (0, 0)
    with Path("spring.mapping.toml").open("a", encoding="utf-8") as file:
        file.write('"Motiv" = "prompt"\n"Größe" = "option:size"\n')
    assert command(["import", "spring.csv", "--yes"]) == 0, capsys.readouterr().err
    assert made(double) == (1, 1)


@pytest.mark.slow
def test_what_is_printed_without_a_terminal_gives_the_same_when_it_is_pasted(double, capsys):  # noqa: F811
    rows = [("A-1", "blaue Vögel", "Tote", "m", "für Süd"), ("A-2", "Füchse", "Tote", "s", "")]
    for codec in ("utf-8", "cp1252"):
        german(f"{codec}.csv", codec, rows=rows)
        assert command(["check", f"{codec}.csv"]) == 2
        said = capsys.readouterr().err
        pasted = re.split(r"mapping\.toml:\n", said)[1].partition(f"\n{codec}.csv ")[0]
        Path(f"{codec}.mapping.toml").write_text(pasted, "utf-8")
        assert command(["check", f"{codec}.csv"]) == 0, capsys.readouterr()
        assert "2 rows, all accepted" in capsys.readouterr().out


@pytest.mark.slow
def test_a_german_sheet_of_excel_is_understood_with_a_few_answers(double):  # noqa: F811
    rows = [("A-1", "blaue Vögel", "Tote", "m", "für Süd"), ("A-2", "Füchse", "Tote", "s", "")]
    german(rows=rows)
    replies = [('encoding = "cp1252"', "y\n"), ('"Artikelnummer" = "sku"', "\n"), ('"Motiv" = "prompt"', "y\n"),
               ('"Kategorie" = "category"', "\n"), ('"Größe" = "option:size"', "1\n")]  # fmt: skip
    said, code = asked(["check", "spring.csv"], replies)
    assert (code, "2 rows, all accepted" in said) == (0, True), said
    assert said.count("Is that so?") == len(replies)
    assert command(["check", "spring.csv"]) == 0


@pytest.mark.slow
def test_enter_takes_no_encoding(double):  # noqa: F811
    german(rows=[("A-1", "żółta łąka", "Tote", "m", "")], codec="cp1250")
    said, code = asked(["check", "spring.csv"], [("Is that so?", "\n")])
    assert (code, Path("spring.mapping.toml").exists()) == (2, False), said


@pytest.mark.slow
def test_failures_that_excel_saved_are_asked_about_once(double, capsys):  # noqa: F811
    header = ("sku", "prompt", "category", "option:size", "Hinweis")
    rows = [("A-1", "blaue Vögel", "Tote", "m", "für Süd"), ("A-2", "Füchse", "Tote", "riesig", "größer")]
    german(codec="utf-8", rows=rows, header=header)
    failures = Path(run().summary.folder) / "failures.csv"

    def saved_by_excel(old, new):
        with failures.open(encoding="utf-8-sig", newline="") as file:
            lines = [[cell.replace(old, new) for cell in line] for line in csv.reader(file, delimiter=";")]
        with Path("fehler.csv").open("w", encoding="cp1252", newline="") as file:
            csv.writer(file, delimiter=";").writerows(lines)

    saved_by_excel("riesig", "riesiger")
    assert command(["import", "fehler.csv", "--yes"]) == 2
    assert 'encoding = "cp1252"' in capsys.readouterr().err
    Path("fehler.mapping.toml").write_text('[reading]\nencoding = "cp1252"\n')
    assert run(file="fehler.csv").outcome is Outcome.COMPLETED_WITH_FAILURES
    Path("fehler.mapping.toml").unlink()
    raw = Path("fehler.csv").read_bytes()
    Path("polish.csv").write_bytes(raw.replace("größer".encode("cp1252"), "żółta łąka".encode("cp1250")))
    assert run(file="polish.csv").outcome is Outcome.REFUSED
    saved_by_excel("riesig", "s")
    end = run(file="fehler.csv")
    assert end.outcome is Outcome.COMPLETED, end.message
    assert catalog()["a-2"].cells == '["A-2", "Füchse", "Tote", "s", "größer"]'
    assert made(double) == (2, 2)


@pytest.mark.slow
def test_a_sheet_in_an_encoding_that_was_answered_is_remembered_for_what_comes_back(double):  # noqa: F811
    header = ("sku", "prompt", "category", "option:size", "Größe")
    german(rows=[("A-1", "Vögel", "Tote", "m", "")], header=header)
    Path("spring.mapping.toml").write_text(
        '[reading]\nencoding = "cp1252"\n[columns]\n"Größe" = "note"\n', "utf-8"
    )
    end = run()
    text = (Path(end.summary.folder) / "results.csv").read_text("utf-8-sig")
    Path("back.csv").write_bytes(text.encode("cp1252"))
    assert run(file="back.csv").outcome is Outcome.COMPLETED
    assert made(double) == (1, 1)
