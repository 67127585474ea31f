"""Proposes encodings of a text that is neither UTF-8 nor UTF-16: a person says which one reads as words."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from patternmill.tables.mapping import Proposal

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


def encodings_of(raw: bytes) -> Iterator[Proposal]:
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
