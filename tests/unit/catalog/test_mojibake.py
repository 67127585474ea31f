"""Text that some program misread and saved is found, with what it was; what people write is left alone."""

from __future__ import annotations

import pytest

from patternmill.catalog.garbled_text import unscrambled
from patternmill.catalog.offer import Category, Offer, Option

from .samples import checked, codes

#: As people write, among it whatever comes near to a text that was misread.
WRITTEN = [
    *("Lüneburg", "“ikat”", "naïve café", "Ærø – 5°", "50 €", "Ça va", "¿Qué?", "ß", "½″", "30 × 40 cm"),
    *("CAFÉ™", "«CAFÉ»", "« CAFÉ\u00a0»", "MAÇÃ”", "PÃO”", "“café”…", "voilà”—", "NIÑO…", "COSÌ…", "ROMÂ»"),
    *("„Ä“", "‚Äpfel‘", "‚Üben‘", "SMÖRGÅS”", "Ö…Ü…", "«Écru» – “Étoile”…", "a “é” b", "3×½", "√2 × √π"),
    *("ŁÓDŹ", "Ăştia", "東京", "Привет", "ελληνικά", "שלום", "🪿", "❤️ love", "™ ® ©", "u\u0308ber", "x ≈ 5"),
]


def read_as(text: str, encoding: str) -> str:
    """As a program shows it that takes UTF-8 for this encoding; Windows leaves undefined bytes as they are."""
    bytes_of = text.encode()
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in bytes_of)


@pytest.mark.parametrize("text", WRITTEN)
def test_correct_text_is_accepted(text: str) -> None:
    """Few would look for the fault in their own text."""
    assert unscrambled(text) is None


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "mac_roman"])
@pytest.mark.parametrize("text", [text for text in WRITTEN if text != "Ăştia"])
def test_misread_text_is_found(text: str, encoding: str) -> None:
    """Whatever encoding it was read in, with the original text."""
    assert unscrambled(read_as(text, encoding)) == text


def test_text_misread_twice_is_found() -> None:
    assert unscrambled("LÃƒÂ¼neburg") == "Lüneburg"
    assert unscrambled("Ã¢â‚¬Å“ikatÃ¢â‚¬Â\x9d") == "“ikat”"


#: What Excel for Windows wrote as `CSV UTF-8` after it had opened a file of UTF-8 without a mark.
EXCEL = (
    b"\xef\xbb\xbfsku,prompt,category,option:size\r\n"
    b"L\xc3\x83\xc2\xbcne-1,herons,Mug,S\r\n"
    b"B,\xc3\xa2\xe2\x82\xac\xc5\x93ikat\xc3\xa2\xe2\x82\xac\xc2\x9d herons,Mug,S\r\n"
    b"C,herons,M\xc3\x83\xc2\xbcg,S\r\n"
    b"D,herons,Mug,gro\xc3\x83\xc5\xb8\r\n"
    b"E,\xe2\x80\x9cikat\xe2\x80\x9d herons,Mug,gro\xc3\x9f\r\n"
)
OFFER = Offer((Category("c-1", "Mug", (Option("size", ("S", "groß")),)),), None)


def test_file_misread_by_excel_is_refused_row_by_row() -> None:
    """Sku, prompt, category and value, each with its original text; the valid row is accepted."""
    found = checked(EXCEL, OFFER)
    assert codes(found) == {line: ["mojibake"] for line in (2, 3, 4, 5)}
    messages = [str(problem) for problem in found.problems]
    for text, was in zip(messages, ("`Lüne-1`", "`“ikat” herons`", "`Müg`", "`groß`"), strict=True):
        assert f"it was probably {was}" in text
    assert r"`â€œikatâ€\u009d herons`" in messages[1]


def test_lost_character_is_refused() -> None:
    """Which it was is unknown; nothing is suggested."""
    found = checked("sku,prompt,category,option:size\nA,blue h\ufffdrons,Mug,S\nB,x ï¿½,Mug,S\n", OFFER)
    assert codes(found) == {2: ["mojibake"], 3: ["mojibake"]}
    assert "`blue h\ufffdrons`" in found.problems[0].message
    assert "probably" not in str(found.problems[0])


def test_option_names_are_checked() -> None:
    """In a header, and in JSON."""
    sized = Offer((Category("c-1", "Mug", (Option("Größe", ("S",)),)),), None)
    for header, cell in (("option:GrÃ¶ÃŸe", "S"), ("selections", '"{""GrÃ¶ÃŸe"": ""S""}"')):
        assert codes(checked(f"sku,prompt,category,{header}\nA,b,Mug,{cell}\n", sized)) == {2: ["mojibake"]}


def test_carried_cells_are_not_checked() -> None:
    """They are not bought."""
    assert codes(checked("sku,prompt,category,remark\nA,b,Mug,LÃ¼neburg\n", OFFER)) == {}
