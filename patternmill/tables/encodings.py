"""The text of a file: UTF-8 and UTF-16 are certain; of other encodings a person says which one reads as words."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

from patternmill.errors import InputRefused
from patternmill.tables.mapping import Doubt, Proposal, either

_NO_TABLES = {
    rb"PAR1": "a Parquet file",
    rb"%PDF-": "a PDF document",
    rb"\s*<[!?a-zA-Z]": "a web page or XML",
    rb"\s*(\{|\[\s*[\[{\"\]])": "JSON",
}
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`."
_WESTERN, _CENTRAL = "äöüßéèàçñóáíêâôîúûëïœæåøùãõìòÿ", "áčďéěíňóřšťúůýžąćęłńśźżöüőűăâîşţđäôĺľŕß"
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъёіїєґўђјљњћџ"
#: The letters that people write in an encoding; in order where others have as many. Usual encodings come first.
_LETTERS = {
    "cp1252": _WESTERN, "cp1250": _CENTRAL, "cp1251": _RUSSIAN, "cp1253": "αοιετσνηυρπκμλςίόάέήύώγδβθφχξζψωϊϋ",
    "cp1254": "ıçğöşüâîûİ", "cp1257": "āčēģīķļņšūžąęėįųõäöü", "cp1255": "יוהלאתרבמשנדחקעפגסטכצזםןךףץ",
    "cp1256": "اليمنرتوبةعدسفهكقحجأشطصخإىذزضثغئءظؤآپچژگک،؛؟", "cp932": "", "cp949": "", "gb18030": "", "big5": "",
    "cp874": "".join(map(chr, range(0x0E01, 0x0E4F))), "cp850": _WESTERN, "cp437": _WESTERN, "cp852": _CENTRAL,
    "cp866": _RUSSIAN, "mac_roman": _WESTERN,
}  # fmt: skip
#: Of encodings with two bytes a sign: the first and last first byte of usual signs, and the first second one.
_PAIRS = {"cp932": (0x81, 0x97, 0x40), "cp949": (0xA1, 0xC8, 0xA1), "gb18030": (0xA1, 0xD7, 0xA1),
          "big5": (0xA1, 0xC6, 0x40)}  # fmt: skip
_SIGNS = frozenset("–—‘’‚“”„«»‹›…•·°€£¥§©®™×½¼¾²³º¿¡±µ№\xa0")
_MOST_LINES, _MOST_CANDIDATES, _MOST_ODD, _FREQUENT = 300, 6, 0.25, 12


def decode(raw: bytes, name: str, asked: str | None) -> tuple[str, str, tuple[Doubt, ...]]:
    """Return the text of a file, its encoding, and the doubt where another one may be meant. Raises InputRefused.

    `asked` is the encoding that a person named.
    """
    for magic, what in _NO_TABLES.items():
        if re.match(magic, raw):
            raise InputRefused("not_csv", f"{name} is {what}.", "Save it as CSV or .xlsx; those are read.")
    encoding = _unmistakable(raw) or asked or "utf-8"
    try:
        return _cleaned(raw.decode(encoding), name), encoding, ()
    except LookupError:
        message = f"{asked!r}, in the mapping of {name}, is no encoding."
        raise InputRefused("unknown_encoding", message, "Correct it.") from None
    except UnicodeError as error:
        line = raw.count(b"\n", 0, getattr(error, "start", 0)) + 1
    message = f"{name} is not {encoding.upper()}: line {line} cannot be read."
    lines = [] if asked else list(_proposed(raw))
    if not lines:
        remedy = f"{_SAVE} Or name its encoding under [reading] of its mapping."
        raise InputRefused("unreadable_encoding", message, remedy)
    encoding = lines[0].meant
    message += f" It is read as {encoding} for this report."
    doubt = Doubt("unreadable_encoding", message, f"{_SAVE} Or say how it is read.", [either(lines)])
    return _cleaned(raw.decode(encoding), name), encoding, (doubt,)


def _unmistakable(raw: bytes) -> str | None:
    """Return the UTF-16 of a mark, or of a beginning in which every other byte is NUL."""
    even, odd = raw[:64:2], raw[1:64:2]
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    is_plain = len(odd) > 4 and any(even) != any(odd) and 0 not in (even if any(even) else odd)
    return ("utf-16-le" if any(even) else "utf-16-be") if is_plain else None


def _cleaned(text: str, name: str) -> str:
    """Return the text without marks and the end sign of DOS. Raises InputRefused for NUL, or where nothing is left."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputRefused("nul_bytes", f"{name} has a NUL character in line {line}, as no text has.", _SAVE)
    # The mark stands at the beginning of each file that was joined to this one.
    text = re.sub("(?m)^\ufeff+", "", text) if "\ufeff" in text else text
    text = text.rstrip("\x1a\r\n ") if "\x1a" in text[-9:] else text
    if not text.strip():
        raise InputRefused("empty_file", f"{name} is empty.", "Is it the right file?")
    return text


def _proposed(raw: bytes) -> Iterator[Proposal]:
    """Yield the encodings that read a text as words, the likeliest first, with the line that differs most in them."""
    lines = list(dict.fromkeys(line for line in raw.splitlines() if not line.isascii()))
    readings: dict[tuple[str, ...], str] = {}
    for codec in _LETTERS:
        with suppress(UnicodeError):
            readings.setdefault(tuple(line.decode(codec) for line in lines), codec)
    scores = {texts: _score(codec, texts[:_MOST_LINES]) for texts, codec in readings.items()}
    fit = (texts for texts in readings if scores[texts][0] <= _MOST_ODD)
    best = sorted(fit, key=scores.__getitem__)[:_MOST_CANDIDATES]
    at = max(range(len(lines[:_MOST_LINES])), key=lambda at: len({texts[at] for texts in best}))
    for texts in best:
        start = next(start for start, sign in enumerate(texts[at]) if not sign.isascii())
        yield Proposal("reading", "encoding", readings[texts], texts[at][max(0, start - 20) :][:60])


def _score(codec: str, texts: Sequence[str]) -> tuple[float, float]:
    """Return the shares of signs that nobody writes like that, and of letters that are not the frequent ones."""
    frequent = _LETTERS[codec][:_FREQUENT] if codec in ("cp1251", "cp1253", "cp1255") else ""
    signs = odd = rare = 0
    for text in texts:
        for before, sign, after in zip(f" {text}", text, f"{text[1:]} ", strict=False):
            if not sign.isascii():
                signs += 1
                odd += _is_odd(before, sign, after, _letters(codec))
                rare += sign.lower() not in frequent
    return odd / signs, rare / signs * bool(frequent)


def _is_odd(before: str, sign: str, after: str, letters: frozenset[str]) -> bool:
    """Return whether a sign is none of an alphabet, or not of this place: `Gr³n`, `grЬn`, `fougŽres`, `ñèíèå`."""
    if sign in _SIGNS:
        return before.isalpha() and after.isalpha() and sign not in "’·"
    is_latin, around = sign < "\u0250", before + after
    if sign not in letters or (sign.isupper() and before.islower()):
        return True
    return around.isalpha() and min(around) > "\x7f" if is_latin else any("a" <= one <= "z" for one in around)


@cache
def _letters(codec: str) -> frozenset[str]:
    """Return the letters that people write in an encoding."""
    if codec not in _PAIRS:
        return frozenset(_LETTERS[codec] + _LETTERS[codec].upper())
    first, last, second = _PAIRS[codec]
    pairs = (bytes((lead, trail)) for lead in range(first, last + 1) for trail in range(second, 0xFF))
    return frozenset(text for pair in pairs if len(text := pair.decode(codec, "replace")) == 1)
