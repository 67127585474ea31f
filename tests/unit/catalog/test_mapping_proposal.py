"""What columns are taken for: headers as spreadsheets, shops and people write them, and what is left to a person."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.offered import embedded_offer
from patternmill.catalog.column_mapping import ColumnMapping, checked_columns
from patternmill.catalog.mapping_file import mapping_text
from patternmill.catalog.mapping_proposal import MappingProposal, propose
from patternmill.catalog.rows import header_key, read_columns
from patternmill.catalog.sheet_choices import NO_CHOICES
from patternmill.errors import ConfigurationError, InputRefused

OFFER = embedded_offer("staging")


def proposal(
    header: str, *rows: str, offered: bool = True, remembered: dict[str, str] | None = None
) -> MappingProposal:
    mapping = ColumnMapping.of(remembered or {})
    return propose(header.split("|"), [row.split("|") for row in rows], OFFER if offered else None, mapping)


def targets(found: MappingProposal) -> dict[str, str]:
    """What is read of the columns, by header."""
    return {one.header: one.target for one in found.columns if one.target != "carried"}


REAL = [
    (
        "Art.-Nr.|Prompt-Text|Produktart|Größe (cm)|Stoff|Preis (€)|Bemerkung",
        ("K-1|blaue Reiher im Schilf|Cushion|50x50|linen|39,90|neu", "K-2|rote Rosen|Cushion|40x40|cotton|34,90|"),
        "Art.-Nr.=sku, Prompt-Text=prompt, Produktart=category, Größe (cm)=option:size, Stoff=option:fabric",
    ),
    (
        "Artikelnummer|Beschreibung|Warengruppe|Farbe|Größe|Ausführung",
        ("T-1|blaue Reiher im Schilf|Mug|navy|11oz|glossy",),
        "Artikelnummer=sku, Beschreibung=prompt, Warengruppe=category, Farbe=option:colour, Größe=option:size,"
        "Ausführung=option:finish",
    ),
    (
        "品番|プロンプト|カテゴリ|サイズ|素材|備考",
        (
            "A-1|青いサギと葦、水彩|Cushion|５０ｘ５０|linen|",
            "A-2|赤いバラ|Cushion|40x40|コットン|新作",
            "A-3|桜|Cushion|40x40|cotton|",
        ),
        "品番=sku, プロンプト=prompt, カテゴリ=category, サイズ=option:size, 素材=option:fabric",
    ),
    (
        "SKU|Prompt text|Product type|Colour|Size|Finish|Qty",
        ("M-1|blue herons among reeds|Mug|navy|11oz|glossy|3",),
        "SKU=sku, Prompt text=prompt, Product type=category, Colour=option:colour, Size=option:size,"
        "Finish=option:finish",
    ),
    (
        "Référence article|Description du motif|Catégorie|Taille|Tissu",
        ("C-1|hérons bleus dans les roseaux|Cushion|50x50|linen",),
        "Référence article=sku, Description du motif=prompt, Catégorie=category, Taille=option:size,"
        "Tissu=option:fabric",
    ),
    (
        "Código|Descripción|Tipo de producto|Tamaño|Tejido",
        ("C-1|garzas azules en los juncos|Cushion|50x50|linen",),
        "Código=sku, Descripción=prompt, Tipo de producto=category, Tamaño=option:size, Tejido=option:fabric",
    ),
    (
        "Codice articolo|Descrizione|Tipo prodotto|Misura|Tessuto",
        ("C-1|aironi azzurri tra le canne|Cushion|50x50|linen",),
        "Codice articolo=sku, Descrizione=prompt, Tipo prodotto=category, Misura=option:size, Tessuto=option:fabric",
    ),
    (
        "Artikelcode|Omschrijving|Productgroep|Maat|Stof",
        ("C-1|blauwe reigers in het riet|Cushion|50x50|linen",),
        "Artikelcode=sku, Omschrijving=prompt, Productgroep=category, Maat=option:size, Stof=option:fabric",
    ),
    (
        "Handle|Title|Vendor|Type|Option1 Name|Option1 Value|Variant SKU|Variant Price|Size",
        (
            "reiher|Blue herons among reeds|Us|Cushion|Size|50x50|C-1|39.90|50x50",
            "reiher|Blue herons|Us|Cushion|Size|40x40|C-2|34.90|40x40",
        ),
        "Title=prompt, Type=category, Variant SKU=sku, Size=option:size",
    ),
    (
        "item_no|ProductType|pattern_prompt|fabric_option",
        ("C-1|Cushion|blue herons|linen",),
        "item_no=sku, ProductType=category, pattern_prompt=prompt, fabric_option=option:fabric",
    ),
    (
        "№|PROMPT|Warengruppe|Papierart|Rahmen|Format",
        ("P-1|blue herons among reeds|Poster|matte|oak|A3",),
        "№=sku, PROMPT=prompt, Warengruppe=category, Papierart=option:paper, Rahmen=option:frame, Format=option:size",
    ),
    (
        "sku|prompt|category|Colour|finish|Size",
        ("M-1|blue herons|Mug|navy|glossy|11oz",),
        "sku=sku, prompt=prompt, category=category, Colour=option:colour, finish=option:finish, Size=option:size",
    ),
    ("sku|prompt|category_id|selections|Size", ("M-1|herons|Mug|{}|11oz",), "sku=sku, prompt=prompt,"
     "category_id=category_id, selections=selections"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "rows", "expected"), REAL, ids=[row[0][:30] for row in REAL])
def test_columns_are_found(header: str, rows: tuple[str, ...], expected: str) -> None:
    """Those that are needed, and the options; nothing twice."""
    found = proposal(header, *rows)
    wanted = dict(pair.strip().rsplit("=", 1) for pair in expected.split(","))
    assert targets(found) == wanted
    assert (found.missing, found.questions) == ((), ())


@pytest.mark.parametrize(
    ("header", "rows", "both"),
    [
        (
            "SKU|Title|Description|Type",
            ("A|blue herons|by a pond|Mug", "B|red roses|in a vase|Mug"),
            {"Title", "Description"},
        ),
        (
            "Artikelnummer|Bestellnummer|Prompt|Kategorie",
            ("A1|B1|herons|Mug", "A2|B2|roses|Mug"),
            {"Artikelnummer", "Bestellnummer"},
        ),
        ("sku|prompt|category|Colour|Farbe", ("A|herons|Mug|navy|red",), {"Colour", "Farbe"}),
    ],
)  # fmt: skip
def test_two_columns_for_one_are_a_question(header: str, rows: tuple[str, ...], both: set[str]) -> None:
    """Only one of them is proposed, and both are shown; a person's answer settles it, either way."""
    found = proposal(header, *rows)
    assert {one.header for one in found.questions} == both
    named = [one for one in found.questions if one.target != "carried"]
    assert len(named) == 1
    for chosen in found.questions:
        answered = found.with_target(chosen.index, named[0].target)
        assert answered.questions == ()
        assert answered.columns[chosen.index].target == named[0].target
        assert [one.target for one in answered.columns].count(named[0].target) == 1


def test_what_was_confirmed_comes_first() -> None:
    """Before names and cells; a remark stays one."""
    remembered = {"Nr": "sku", "Text": "prompt", "Was": "category", "Farbe": "note:Farbe"}
    found = proposal("Nr|Prompt text|Text|Was|Farbe", "A1|x|herons|Mug|navy", remembered=remembered)
    assert targets(found) == remembered
    assert found.is_decided


def test_own_names_win() -> None:
    found = proposal("sku|Artikelnummer|prompt|Description|category|Type", "A|B|x|y|Mug|Mug")
    assert targets(found) == {"sku": "sku", "prompt": "prompt", "category": "category"}
    assert not found.is_needed


def test_answer_that_is_no_column_is_refused() -> None:
    found = proposal("Nr|Prompt|Type", "A1|herons|Mug")
    with pytest.raises(ConfigurationError, match="`colour`, for the column `Nr`, is no column"):
        found.with_target(0, "colour")


HEADERS = st.lists(
    st.one_of(
        st.sampled_from(
            ["sku", "Prompt", "Type", "Size", "Colour", "note:x", "option:size", "Status", "Nr", ""]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
    unique_by=header_key,
)
CELLS = st.one_of(st.sampled_from(["Mug", "navy", "11oz", "A-1", "blue herons", ""]), st.text(max_size=6))


@given(HEADERS, st.data())
def test_any_sheet_gets_a_proposal_that_can_be_kept(header: list[str], data: st.DataObject) -> None:
    """Every column once, no two for one place; written as a file, it is read back as it was."""
    width = len(header)
    rows = data.draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4))
    found = propose(header, rows, OFFER)
    assert [one.header for one in found.columns] == header
    places = [header_key(one.target) for one in found.columns if one.target != "carried"]
    assert len(places) == len(set(places))
    try:
        mapping = found.mapping
    except ConfigurationError:
        # A column that calls itself an option, and names none.
        return
    record = tomllib.loads(mapping_text("spring.csv", found.named, NO_CHOICES))
    assert checked_columns(record["columns"], "it") == mapping
    with contextlib.suppress(InputRefused):
        columns = read_columns(mapping.applied(header), "spring.csv")
        assert found.missing == ()
        assert found.columns[columns.prompt].target == "prompt"
