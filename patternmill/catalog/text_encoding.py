"""The encoding of a file, never guessed: UTF-8, UTF-16 by its mark, or the one that a person named."""

from __future__ import annotations

import codecs
import re

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a spreadsheet workbook or ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF-", "a PDF document"),
)
#: Of host names, and so slow that a small file would take hours.
_NOT_OF_FILES = frozenset({"punycode", "idna"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`"


def choose_encoding(raw: bytes, name: str, requested: str | None) -> str:
    """The codec to read `raw` with. Passing the result as `requested` chooses the same again."""
    _refuse_other_formats(raw, name)
    marked = next((codec for mark, codec in _MARKS if raw.startswith(mark)), None)
    if requested is None:
        return marked or "utf-8"
    named = _known_codec(requested, name)
    if marked is None:
        return "utf-8" if named == "utf-8-sig" else named
    if named.startswith("utf-32"):
        return named
    family = marked.removesuffix("-sig")
    if not named.startswith(family):
        raise refusal(
            FileCode.UNREADABLE_ENCODING,
            f"{name} begins with the mark of {family.upper()}, but {requested} was requested.",
            "Leave `--encoding` out.",
        )
    return marked


def check_text(raw: bytes, name: str, encoding: str) -> None:
    """Refuse bytes that are not text in this encoding, or hold NUL characters."""
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(raw, name, encoding, error) from None
    except UnicodeError as error:
        raise refusal(
            FileCode.UNREADABLE_ENCODING, f"{name} is not {encoding}: {error}.", f"{_SAVE}."
        ) from None
    _refuse_nul(text, name, encoding)
    if lone := _SURROGATE.search(text):
        line = text.count("\n", 0, lone.start()) + 1
        raise refusal(
            FileCode.UNREADABLE_ENCODING,
            f"{name} holds half a character (U+{ord(lone.group()):04X}) in line {line}.",
            f"{_SAVE}.",
        )


def _refuse_other_formats(raw: bytes, name: str) -> None:
    for magic, what in _OTHER_FORMATS:
        if raw.startswith(magic):
            raise refusal(FileCode.NOT_CSV, f"{name} is {what}, not a CSV file.", f"{_SAVE} and try again.")


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


def _undecodable(raw: bytes, name: str, encoding: str, error: UnicodeDecodeError) -> InputRefused:
    byte, line = raw[error.start], raw.count(b"\n", 0, error.start) + 1
    called = encoding.removesuffix("-sig").upper()
    return refusal(
        FileCode.UNREADABLE_ENCODING,
        f"{name} is not {called}: byte 0x{byte:02X} at offset {error.start}, in line {line} of the text file,"
        " cannot be read.",
        f"{_SAVE}; or, if you know how it was saved, name that: `--encoding cp1252` (Windows, Western"
        " Europe), `--encoding cp1250` (Central Europe), `--encoding mac_roman` (old Mac).",
    )


def _refuse_nul(text: str, name: str, encoding: str) -> None:
    position = text.find("\0")
    if position < 0:
        return
    line = text.count("\n", 0, position) + 1
    begin = text[:200]
    looks_wide = begin.count("\0") * 3 > len(begin)
    hint = "It looks like UTF-16 without its mark: `--encoding utf-16-le`. " if looks_wide else ""
    raise refusal(
        FileCode.NUL_BYTES,
        f"{name} holds a NUL character in line {line}, which no text has (read as {encoding}).",
        f"{hint}{_SAVE}.",
    )
