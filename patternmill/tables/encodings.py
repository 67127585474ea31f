"""The text of a file: UTF-8 and UTF-16 are certain; of other encodings a person says which one reads as words."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from patternmill.errors import InputRefused
from patternmill.tables.mapping import Proposal, Unsaid, either

_NO_TABLES = {
    rb"PAR1": "a Parquet file",
    rb"%PDF-": "a PDF document",
    rb"\s*<[!?a-zA-Z]": "a web page or XML",
    rb"\s*(\{|\[\s*[\[{\"\]])": "JSON",
}
_SAVE = "Save it as `CSV UTF-8 (comma delimited)`"
_WESTERN, _CENTRAL = "éüäößèàçñóáíêôâîûúåøæëïœãõìòùÿ", "áéíóřěšžčýůúłąęśżćńöüőűźňťďăâîşţäľôđßĺŕ"
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъёіїєґўђјљњћџ"
#: The letters that people write in an encoding, the usual ones first; and the usual encodings first.
_LETTERS = {
    "cp1252": _WESTERN, "cp1250": _CENTRAL, "cp1251": _RUSSIAN, "cp1253": "αοιετσνηυρπκμλςίόάέήύώγδβθφχξζψωϊϋ",
    "cp1254": "ıüşçğöİâîû", "cp1257": "āšėēžīūčąņļģķęįųäöõü", "cp1255": "יוהלאתרבמשנדחקעפגסטכצזםןךףץ",
    "cp1256": "اليمنرتوبةعدسفهكقحجأشطصخإىذزضثغئءظؤآپچژگک،؛؟", "cp874": "".join(map(chr, range(0x0E01, 0x0E4F))),
    "cp850": _WESTERN, "cp437": _WESTERN, "cp852": _CENTRAL, "cp866": _RUSSIAN, "mac_roman": _WESTERN,
}  # fmt: skip
#: Of encodings with two bytes a sign: the first and last first byte of usual signs, and the first second one.
_PAIRS = {"cp932": (0x81, 0x97, 0x40), "cp949": (0xA1, 0xC8, 0xA1), "gb18030": (0xA1, 0xD7, 0xA1),
          "big5": (0xA1, 0xC6, 0x40)}  # fmt: skip
_SIGNS = frozenset("–—‘’‚“”„«»‹›…•·°€£¥§©®™×½¼¾²³º¿¡±µ№\xa0")
_MOST_LINES, _MOST_CANDIDATES, _MOST_ODD, _USUAL = 300, 6, 0.25, 10


def decode(raw: bytes, name: str, asked: str | None) -> tuple[str, str, tuple[Unsaid, ...]]:
    """Return the text of a file, its encoding, and the doubt where another one may be meant. Raises InputRefused.

    `asked` is the encoding that a person named, for a text that is not UTF-8.
    """
    for magic, what in _NO_TABLES.items():
        if re.match(magic, raw):
            raise InputRefused("not_csv", f"{name} is {what}.", "Save it as CSV or .xlsx; those are read.")
    is_marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    first = "utf-16" if is_marked else asked if asked and b"\0" in raw else "utf-8"
    try:
        "".encode(asked or first)
    except LookupError:
        message = f"{asked!r}, in the mapping of {name}, is no encoding."
        raise InputRefused("unknown_encoding", message, "Correct it.") from None
    for encoding in dict.fromkeys((first, asked or first)):
        try:
            return _cleaned(raw.decode(encoding), name), encoding, ()
        except UnicodeError as error:
            line = raw.count(b"\n", 0, getattr(error, "start", 0)) + 1
            message = f"{name} is not {encoding.upper()}: line {line} cannot be read."
    lines = tuple(_proposed(raw))
    remedy = f"{_SAVE}, or name its `encoding` under [reading] of its mapping."
    if not lines:
        raise InputRefused("unreadable_encoding", message, remedy)
    message += f" Here it is read as {lines[0].meant}."
    doubt = Unsaid("unreadable_encoding", message, remedy, [either(lines)])
    return _cleaned(raw.decode(lines[0].meant), name), lines[0].meant, (doubt,)


def _cleaned(text: str, name: str) -> str:
    """Return the text without marks and the end sign of DOS. Raises InputRefused for NUL, or where nothing is left."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        message = f"{name} has a NUL character in line {line}, as no text has."
        raise InputRefused("nul_bytes", message, f"{_SAVE}.")
    # The mark stands at the beginning of each file that was joined to this one.
    text = re.sub("(?m)^\ufeff+", "", text) if "\ufeff" in text else text
    text = text.rstrip("\x1a\r\n ") if "\x1a" in text[-9:] else text
    if not text.strip():
        raise InputRefused("empty_file", f"{name} is empty.", "Is it the right file?")
    return text


def _proposed(raw: bytes) -> Iterator[Proposal]:
    """Yield the encodings that read a text as words, the likeliest first, with the line that differs most in them."""
    lines = [line for line in raw.splitlines() if not line.isascii()]
    lines = lines[:: len(lines) // _MOST_LINES + 1]
    codecs = dict[int, str]()
    for codec in (*_LETTERS, *_PAIRS):
        with suppress(UnicodeError):
            codecs.setdefault(hash(raw.decode(codec)), codec)
    texts = {codec: [line.decode(codec) for line in lines] for codec in codecs.values()}
    scores = {codec: _score(codec, those) for codec, those in texts.items()}
    fit = (codec for codec in scores if scores[codec][0] <= _MOST_ODD)
    best = sorted(fit, key=scores.__getitem__)[:_MOST_CANDIDATES]
    at = max(range(len(lines)), key=lambda at: len({texts[codec][at] for codec in best}))
    for codec in best:
        text = texts[codec][at]
        start = next(start for start, sign in enumerate(text) if not sign.isascii())
        yield Proposal("reading", "encoding", codec, text[max(0, start - 20) :][:60])


def _score(codec: str, texts: Sequence[str]) -> tuple[float, float]:
    """Return the share of signs that nobody writes like that, and of letters that are not among the usual ones."""
    letters, signs, odd, rare = _LETTERS.get(codec, ""), 0, 0, 0
    for text in texts:
        for before, sign, after in zip(f" {text}", text, f"{text[1:]} ", strict=False):
            if not sign.isascii():
                signs += 1
                odd += _is_odd(before, sign, after, codec)
                rare += letters.find(sign.lower()) >= _USUAL
    return odd / signs, rare / signs


def _is_odd(before: str, sign: str, after: str, codec: str) -> bool:
    """Return whether a sign is none of an alphabet, or not of this place: `Gr³n`, `grЬn`, `fougŽres`, `ñèíèå`."""
    around = before + after
    if sign in _SIGNS:
        return before.isalpha() and after.isalpha() and sign not in "’·"
    if codec in _PAIRS:
        pair, (first, last, second) = sign.encode(codec), _PAIRS[codec]
        return not first <= pair[0] <= last or pair[-1] < second or any("a" <= one <= "z" for one in around)
    is_known = sign in _LETTERS[codec] or sign.lower() in _LETTERS[codec]
    if not is_known or (sign.isupper() and before.islower()):
        return True
    if sign < "\u0250":
        return around.isalpha() and min(around) > "\x7f"
    return any("a" <= one <= "z" for one in around)
