"""Cells with what nobody writes on purpose: text that some program garbled, signs that cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import tidy
from patternmill.catalog.slips import error_finding
from patternmill.text import UNSAFE, contrasted, shown

_AS_UTF_8 = "a spreadsheet has to open and save the file as UTF-8"


def unfit_finding(column: str, cell: str) -> Finding | None:
    """The fault of a cell, or a name, with what is never written on purpose."""
    if found := mojibake_finding(column, cell) or error_finding(column, cell):
        return found
    if not UNSAFE.search(cell.strip(" \t\r\n")):
        return None
    message = f"invisible or control characters in {shown(cell)}"
    remedy = "type it by hand instead of pasting it"
    return Finding(column, RowCode.UNSAFE_CHARACTERS, message, remedy, cell, _visible_only(cell) or None)


def _visible_only(cell: str) -> str:
    """The cell without what cannot be seen; a line break or tab in it is a space."""
    return " ".join(UNSAFE.sub("", re.sub(r"\s", " ", cell)).split())


def mojibake_finding(column: str, cell: str) -> Finding | None:
    """A text that a program read in the wrong encoding and saved again, or in which it lost a character."""
    if cell.isascii():
        return None
    meant = unscrambled(cell) or cell
    if LOST in meant:
        message = f"a character was lost (U+FFFD) in {shown(cell[max(cell.find(LOST) - 20, 0) :])}"
        return Finding(column, RowCode.MOJIBAKE, message, f"write it again; {_AS_UTF_8}", cell)
    if meant == cell:
        return None
    was, suggested = contrasted(cell, tidy(meant))
    message = f"{was} was read in the wrong encoding by some program, and saved like that"
    remedy = f"it was probably {suggested}: write that; {_AS_UTF_8}"
    return Finding(column, RowCode.MOJIBAKE, message, remedy, cell, tidy(meant))


LOST = "\ufffd"
#: How often a text may have gone through it.
_MOST_TIMES = 3

#: Windows and Latin-1 in one: what cp1252 leaves undefined stays a control character, as in Latin-1.
_WINDOWS = {ord(bytes([byte]).decode("cp1252", "ignore") or chr(byte)): byte for byte in range(0x80, 0xA0)}
#: Every character of Latin-1 is another one in Mac Roman.
_MAC = dict.fromkeys(range(0x80, 0x100), 0xFFFF) | {
    ord(bytes([byte]).decode("mac_roman")): byte for byte in range(0x80, 0x100)
}

_TAIL = "[\x80-\xbf]"
_TWO, _THREE, _EMOJI = (
    f"[\xc2-\xdf]{_TAIL}",
    f"(?:\xe0[\xa0-\xbf]|[\xe1-\xef]{_TAIL}){_TAIL}",
    f"\xf0\x9f{_TAIL}{{2}}",
)
_ANY = re.compile(f"{_TWO}|{_THREE}|{_EMOJI}")
# By which bytes of UTF-8, as an encoding shows them, a text is known to be misread: letters with accents (C2 to C5),
# punctuation and signs (E2), marks (EF), emoji. Other scripts by some characters in a row: one may be `é”…`.
_SIGNS = (
    f"\xe2[\x80\x82\x84\x86\x88\x89\x98\x99\x9c\x9d]{_TAIL}|\xef\xbb\xbf|\xef\xbf\xbd|\xef\xb8\x8f|{_EMOJI}"
)
_SCRIPTS = f"(?:[\xce-\xd1\xd7-\xd9]{_TAIL}){{3,}}|(?:{_THREE}){{2,}}"
_IN_WINDOWS = re.compile(f"[\xc2-\xc5]{_TAIL}|(?<=[A-Za-z])\xcc{_TAIL}|{_SIGNS}|{_SCRIPTS}")
_IN_MAC = re.compile(
    f"\xc3[\x80-\x9f]|(?<=[A-Za-z])\xc3{_TAIL}|\xc3{_TAIL}(?=[A-Za-z])|\xc2[\xa0-\xbf]|{_SIGNS}"
    f"|(?<=[a-z])\xcc[\x80-\x9f]|{_SCRIPTS}"
)
#: Nearly every text is done with by this: what begins a misread character, in either encoding, before another sign.
_LEADS = re.escape(bytes({*range(0xC2, 0xD2), *range(0xD7, 0xDA), *range(0xE0, 0xF1)}).decode("mac_roman"))
_SUSPECT = re.compile(f"[\xc2-\xd1\xd7-\xd9\xe0-\xf0{_LEADS}][^\x00-\x7f]")
#: What may follow a capital letter with an accent at the end of a word: `NIÑO É…`, `«MAÇÃ»`.
_AFTER_A_WORD = frozenset("\x85\x91\x92\x93\x94\x96\x97\x99\xa0\xab\xae\xbb")


def unscrambled(text: str) -> str | None:
    """What the text was before it was misread; None when it does not look misread."""
    found = text
    for _ in range(_MOST_TIMES):
        before = found
        found = _undone(_undone(before, _MAC, _IN_MAC), _WINDOWS, _IN_WINDOWS)
        if found == before:
            break
    return found if found != text else None


def _undone(text: str, shown_as: Mapping[int, int], misread: re.Pattern[str]) -> str:
    if text.isascii() or not _SUSPECT.search(text):
        return text
    read = text.translate(shown_as)
    if all(_is_end_of_word(text, match) for match in misread.finditer(read)):
        return text
    parts, end = [], 0
    for match in _ANY.finditer(read):
        parts += [text[end : match.start()], match.group().encode("latin-1").decode("utf-8", "replace")]
        end = match.end()
    return "".join(parts) + text[end:]


def _is_end_of_word(text: str, match: re.Match[str]) -> bool:
    """A capital letter with an accent, and what may follow a word, rather than one letter misread."""
    lead = text[match.start()]
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return (
        match.end() - match.start() == 2
        and match.group()[1] in _AFTER_A_WORD
        and not after.isalpha()
        and (
            before.isupper()
            or (lead in "\u00c4\u00c5" and (not before or before in " \t\"'(\u201e\u201a\u00ab"))
        )
    )
