"""Chooses the encoding that a text file is read with, refuses what is no text, and proposes likely encodings."""

from __future__ import annotations

import codecs
import re
import unicodedata

from patternmill.errors import InputRefused
from patternmill.reading import FileCode, refusal

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FORMATS = (
    (rb"PK\x03\x04", "a workbook or ZIP archive"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls), or a workbook with a password"),
    (rb"\x1f\x8b", "a gzip archive"),
    (rb"PAR1", "a Parquet file"),
    (rb"%PDF-", "a PDF document"),
    # Some shops call these .xls.
    (rb"(?i:<html|<!doctype|<table)", "a web page"),
    (rb"<\?xml", "an XML document"),
    (rb'\{\s*"|\[\s*\{', "JSON"),
)
_BEFORE_TEXT = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
#: Codecs of host names, so slow that a small file would take hours, and those that may decode to half a character.
_NOT_OF_FILES = frozenset({"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape"})
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`"


def not_read(name: str, what: str) -> InputRefused:
    """Return the refusal of a format that is not read here."""
    return refusal(
        FileCode.NOT_CSV,
        f"{name} is {what}, which is not read here.",
        "CSV, .xlsx and .ods are read, without a password: export it as CSV.",
    )


def choose_encoding(raw: bytes, name: str, requested: str | None) -> str:
    """Return the codec to read `raw` with; `requested` is for bytes that are not UTF-8 and have no byte order mark.

    Passing the result as `requested` chooses the same again. Raises InputRefused.
    """
    begin = _BEFORE_TEXT.match(raw).end()  # type: ignore[union-attr]  # it matches nothing too
    for pattern, what in _OTHER_FORMATS:
        if re.compile(pattern).match(raw, begin):
            raise not_read(name, what)
    marked = next((codec for mark, codec in _MARKS if raw.startswith(mark)), None)
    if marked is not None or requested is None:
        return marked or "utf-8"
    named = _known_codec(requested, name)
    try:
        return "utf-8" if "\0" not in raw.decode() else named
    except UnicodeDecodeError:
        return named


def check_text(raw: bytes, name: str, encoding: str) -> str:
    """Return the text. Raises InputRefused for bytes that are not valid in this encoding, or hold NUL characters."""
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = (
            f"{name} is not {encoding.removesuffix('-sig').upper()}: byte 0x{raw[error.start]:02X} at offset"
            f" {error.start}, in line {line} of the text file, cannot be read."
        )
        raise refusal(FileCode.UNREADABLE_ENCODING, message, f"{_SAVE}.") from None
    except UnicodeError as error:
        raise refusal(
            FileCode.UNREADABLE_ENCODING, f"{name} is not {encoding}: {error}.", f"{_SAVE}."
        ) from None
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise refusal(
            FileCode.NUL_BYTES,
            f"{name} holds a NUL character in line {line}, which no text has (read as {encoding}).",
            f'If it is UTF-16 without its mark, say so in its mapping: `encoding = "utf-16-le"`. {_SAVE}.',
        )
    return text


def _known_codec(requested: str, name: str) -> str:
    try:
        "".encode(requested)
        b"".decode(requested)
        codec = codecs.lookup(requested).name
        if codec in _NOT_OF_FILES:
            raise LookupError
        return codec
    except (LookupError, ValueError):
        raise refusal(
            FileCode.UNKNOWN_ENCODING,
            f"{requested!r}, which the mapping of {name} names, is not a known text encoding.",
            "Examples: cp1252 (Windows, Western Europe), cp1250, mac_roman, shift_jis.",
        ) from None


#: The encodings of programs that save sheets: Windows in Western and Central Europe, old Macs, Windows in Japan.
_LIKELY = ("cp1252", "cp1250", "mac_roman", "cp932")
_BETWEEN_WORDS = re.compile(rb"[\s,;\"]+")


def likely_encodings(raw: bytes) -> list[tuple[str, tuple[str, ...], bool]]:
    """Return the likely encodings of a text, the likeliest first: codec, words as it reads them, whether all are words.

    A word mixes no alphabets, and has no signs where letters belong.
    """
    words = list(dict.fromkeys(word for word in _BETWEEN_WORDS.split(raw) if not word.isascii()))
    read: dict[tuple[str, ...], str] = {}
    for codec in _LIKELY:
        texts = tuple(word.decode(codec, "replace") for word in words)
        if not any("\ufffd" in text for text in texts):
            # Of two codecs that read the whole file alike, the more usual one is named.
            read.setdefault(texts, codec)
    # The words that tell the most codecs apart come first.
    order = sorted(range(len(words)), key=lambda index: -len({texts[index] for texts in read}))
    likely = [
        (codec, tuple(texts[i] for i in order), all(map(_is_word, texts))) for texts, codec in read.items()
    ]
    return sorted(likely, key=lambda reading: (not reading[2], _LIKELY.index(reading[0])))


def _is_word(text: str) -> bool:
    letters = [sign for sign in text if not sign.isascii() and unicodedata.category(sign)[0] in "LM"]
    alphabets = {unicodedata.name(sign, "?").split()[0] for sign in letters}
    if any(sign in _ODD or unicodedata.category(sign) == "Co" for sign in text) or _UNUSUAL.search(text):
        return False
    return alphabets <= {"LATIN"} or not (alphabets & {"LATIN", "?"} or _LATIN.search(text))


_LATIN = re.compile("[a-z]{2}")
#: A capital or a sign after a small letter, which a wrong codec makes.
_UNUSUAL = re.compile("[a-z](?:[\u00c0-\u00d6\u00d8-\u00de\u0160\u017d\u0178\u0141]|[§£±©®µ]\\w)")
#: Signs that letters of another encoding turn into, and that nobody writes within a word.
_ODD = frozenset("‰ˆ¸˘˙˝˛ﬂﬁ¬√∫∂∆≈¥¶¤¦¯ƒ÷‹‡")
