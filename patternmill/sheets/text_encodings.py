"""The encodings of text files: which one a file is read with, what is refused, and what is proposed instead."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused
from patternmill.text import plain

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a workbook or ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls), or a workbook with a password"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PAR1", "a Parquet file"),
    (b"%PDF-", "a PDF document"),
    # What some shops call .xls.
    (b"<html", "a web page"),
    (b"<!DOCTYPE", "a web page"),
    (b"<table", "a web page"),
    (b"<?xml", "an XML document"),
)
#: Of host names, and so slow that a small file would take hours.
_NOT_OF_FILES = frozenset({"punycode", "idna"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`"


def not_read(name: str, what: str) -> InputRefused:
    """The refusal of a format that is none of those that are read."""
    return refusal(
        FileCode.NOT_CSV,
        f"{name} is {what}, which is not read here.",
        "CSV, JSON lines, .xlsx and .ods are read, without a password: export it as CSV.",
    )


def choose_encoding(raw: bytes, name: str, requested: str | None) -> str:
    """The codec to read `raw` with. Passing the result as `requested` chooses the same again. Raises InputRefused."""
    for magic, what in _OTHER_FORMATS:
        if raw.startswith(magic):
            raise not_read(name, what)
    marked = next((codec for mark, codec in _MARKS if raw.startswith(mark)), None)
    if requested is None:
        return marked or "utf-8"
    named = _known_codec(requested, name)
    if marked is None:
        return "utf-8" if named == "utf-8-sig" else named
    family = marked.removesuffix("-sig")
    if not named.startswith(family):
        raise refusal(
            FileCode.UNREADABLE_ENCODING,
            f"{name} begins with the mark of {family.upper()}, but {requested} was requested.",
            "Leave `--encoding` out.",
        )
    return marked


def check_text(raw: bytes, name: str, encoding: str, *, quoting: bool = False) -> str:
    """The text; bytes that are none in this encoding, or hold NUL characters, raise InputRefused.

    `quoting`: the refusal may quote the file, and proposes how it may have been saved.
    """
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(raw, name, encoding, error, quoting) from None
    except UnicodeError as error:
        raise refusal(
            FileCode.UNREADABLE_ENCODING, f"{name} is not {encoding}: {error}.", f"{_SAVE}."
        ) from None
    if (at := text.find("\0")) >= 0:
        raise refusal(
            FileCode.NUL_BYTES,
            f"{name} holds a NUL character in line {_line(text, at)}, which no text has (read as {encoding}).",
            f"If it is UTF-16 without its mark, name that: `--encoding utf-16-le`. {_SAVE}.",
        )
    if lone := None if text.isascii() else _SURROGATE.search(text):
        half = f"half a character (U+{ord(lone.group()):04X}) in line {_line(text, lone.start())}"
        raise refusal(FileCode.UNREADABLE_ENCODING, f"{name} holds {half}.", f"{_SAVE}.")
    return text


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


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
            f"{requested!r}, requested for {name}, is not a known text encoding.",
            "Examples: `--encoding cp1252` (Windows, Western Europe), cp1250, mac_roman, shift_jis.",
        ) from None


def _undecodable(
    raw: bytes, name: str, encoding: str, error: UnicodeDecodeError, quoting: bool
) -> InputRefused:
    line = raw.count(b"\n", 0, error.start) + 1
    message = (
        f"{name} is not {encoding.removesuffix('-sig').upper()}: byte 0x{raw[error.start]:02X} at offset {error.start},"
        f" in line {line} of the text file, cannot be read."
    )
    proposals = "; ".join(_proposals(raw)) if quoting and encoding == "utf-8" else ""
    remedy = f"{_SAVE}; or, if you know how it was saved, name that, as in `--encoding cp1252`."
    if proposals:
        remedy = f"How was it saved? {proposals}. Add the one that reads right; or: {_SAVE}."
    return refusal(FileCode.UNREADABLE_ENCODING, message, remedy)


#: Of the programs that save sheets: Windows in Western and Central Europe, old Macs, Windows in Japan.
_LIKELY = ["cp1252", "cp1250", "mac_roman", "cp932"]
_BETWEEN_WORDS = re.compile(rb"[\s,;|\"]+")
_WORDS_SHOWN = _MOST_PROPOSED = 3
_LONGEST_WORD = 30
_JUDGED = 1 << 16


def _proposals(raw: bytes) -> Iterator[str]:
    """The likeliest encodings that read words of the file differently, each with those words."""
    # Slow to import, and needed for such a file alone.
    from charset_normalizer import from_bytes

    words = list(dict.fromkeys(word for word in _BETWEEN_WORDS.split(raw) if not word.isascii()))
    found = from_bytes(b" ".join(words)[:_JUDGED], cp_isolation=_LIKELY, enable_fallback=False)
    read: dict[tuple[str, ...], str] = {}
    for codec in (*(match.encoding for match in found), *_LIKELY):
        texts = tuple(word.decode(codec, "replace") for word in words)
        if not any("\ufffd" in text for text in texts):
            # Of two that read the whole file alike the more usual one is named.
            read[texts] = min(codec, read.get(texts, codec), key=_LIKELY.index)
    likely = list(read.items())[:_MOST_PROPOSED]
    # First the words that tell most of them apart.
    order = sorted(range(len(words)), key=lambda index: -len({texts[index] for texts, _ in likely}))
    for texts, codec in likely:
        yield f"`--encoding {codec}` reads " + ", ".join(
            f"“{plain(texts[i], _LONGEST_WORD)}”" for i in order[:_WORDS_SHOWN]
        )
