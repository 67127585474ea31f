"""The encodings of text files: which one a file is read with, what is refused, and what is proposed instead."""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterator, Sequence

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused
from patternmill.text import plain

#: Those of UTF-32 first: one begins as that of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a spreadsheet workbook or ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls), or a workbook with a password"),
    (b"\x1f\x8b", "a gzip archive"),
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


def encoding_of(raw: bytes, name: str, requested: str | None, quoting: bool) -> str:
    """The same, also for UTF-16 without its mark; a refusal proposes what the file may be, with words of it.

    `quoting`: the refusal may quote the file.
    """
    encoding = choose_encoding(raw, name, requested)
    if requested is not None or encoding != "utf-8":
        return encoding
    if wide := _unmarked(raw):
        return wide
    try:
        raw.decode(encoding)
    except UnicodeDecodeError as error:
        refused = _undecodable(raw, name, encoding, error)
        proposals = "; ".join(_proposals(raw)) if quoting and b"\0" not in raw else ""
        if not proposals:
            raise refused from None
        remedy = f"How was it saved? {proposals}. Add the one that reads right; or: {_SAVE}."
        raise refusal(FileCode.UNREADABLE_ENCODING, refused.message, remedy) from None
    return encoding


_LIKELY = (
    ("cp1252", "Windows, Western Europe"),
    ("cp1250", "Windows, Central Europe"),
    ("mac_roman", "old Mac"),
)
_JAPANESE = ("cp932", "Windows, Japanese")
_WORD = re.compile(rb"[^\s,;|\"]*[\x80-\xff][^\s,;|\"]*")
_WORDS_SHOWN = 3
_WORDS_JUDGED = 200
_SAMPLE = 1 << 20


def _proposals(raw: bytes) -> list[str]:
    """Each likely encoding with the words of the file that it reads otherwise than the others, the likeliest first."""
    found = (match.group() for match in itertools.islice(_WORD.finditer(raw[:_SAMPLE]), _WORDS_JUDGED))
    first = list(dict.fromkeys(word[:_LONGEST_WORD] for word in found))
    words = list(dict.fromkeys([*first, *_words_of_each_byte(raw)]))
    # What is not Japanese reads as single characters of it here and there.
    is_japanese = 2 * _natural(first, _JAPANESE[0]) > len(first)
    likely = [*_LIKELY, _JAPANESE] if is_japanese else [*_LIKELY]
    likely.sort(key=lambda one: -_natural(words, one[0]))
    telling = _telling(words, [codec for codec, _ in likely])
    alike: dict[str, list[str]] = {}
    for codec, where in likely:
        read = ", ".join(f"“{plain(word.decode(codec, 'replace'))}”" for word in telling)
        alike.setdefault(read, []).append(f"{codec} ({where})")
    return [_proposal(read, names) for read, names in alike.items()]


def _proposal(read: str, names: Sequence[str]) -> str:
    codec, space, where = names[0].partition(" ")
    same = f", as {' and '.join(names[1:])} does" if names[1:] else ""
    return f"`--encoding {codec}`{space}{where} reads {read}{same}"


def _telling(words: Sequence[bytes], codecs: Sequence[str]) -> list[bytes]:
    """The words to choose by: one at least for each two encodings that do not read the whole file alike."""
    differing = {
        word: {
            pair
            for pair in itertools.combinations(codecs, 2)
            if word.decode(pair[0], "replace") != word.decode(pair[1], "replace")
        }
        for word in words
    }
    chosen: list[bytes] = []
    every = set().union(*differing.values())
    left = set(every)
    while differing and len(chosen) < _WORDS_SHOWN:
        best = max(differing, key=lambda word: (len(differing[word] & left), len(differing[word])))
        told_apart = differing.pop(best)
        if not left and told_apart != every:
            break
        left -= told_apart
        chosen.append(best)
    return chosen


def _words_of_each_byte(raw: bytes) -> Iterator[bytes]:
    """For each byte that is none of ASCII the first word with it, however far down: encodings differ in few of them."""
    for byte in range(0x80, 0x100):
        if (at := raw.find(byte)) >= 0:
            begin = max(at - _LONGEST_WORD // 2, 0)
            around = _WORD.finditer(raw[begin : at + _LONGEST_WORD // 2])
            yield next(match.group() for match in around if match.end() > at - begin)


def _natural(words: Sequence[bytes], codec: str) -> int:
    return sum(_is_natural(word.decode(codec, "replace")) for word in words)


def _is_natural(word: str) -> bool:
    """Letters alone, in one case but for the first, or of Japanese."""
    letters = word.strip(_PUNCTUATION)
    if _JAPANESE_WORD.fullmatch(letters):
        return True
    return letters.replace("-", "").isalpha() and (
        letters.islower() or letters.isupper() or letters.istitle()
    )


#: Kana and kanji, and the marks in and after words.
_JAPANESE_WORD = re.compile("[\u3001-\u30ff\u4e00-\u9fff]{2,}")
_LONGEST_WORD = 30
_PUNCTUATION = "'.:!?()“”„‘’‚«»–—…"


def _unmarked(raw: bytes) -> str | None:
    """UTF-16 without its mark: no text has NUL characters, which every other byte of its ASCII is."""
    beginning = raw[:_SAMPLE_OF_WIDE]
    even, odd = beginning[::2].count(0), beginning[1::2].count(0)
    if max(even, odd) * 4 < len(beginning) or min(even, odd):
        return None
    return "utf-16-le" if odd else "utf-16-be"


_SAMPLE_OF_WIDE = 4096


def _refuse_other_formats(raw: bytes, name: str) -> None:
    for magic, what in _OTHER_FORMATS:
        if raw.startswith(magic):
            raise refusal(
                FileCode.NOT_CSV,
                f"{name} is {what}, which is not read here.",
                f"{_SAVE}, or as .xlsx without a password.",
            )


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
