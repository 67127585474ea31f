"""Faults that a text has by itself: what programs and people leave where a sku or a prompt should be."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import NamedTuple

from patternmill.text import UNSAFE, normal, shown
from patternmill.vocabulary import Likely

PROMPT_LIMIT = 4000
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(rf"\d{{1,2}}-(?:{_MONTHS})(?:-\d\d)?|(?:{_MONTHS})-\d\d", re.IGNORECASE)
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?E\+\d{2,3}")
_ERROR = re.compile(
    r"#[¡¿]?[^\W\d_a-z]{2,}(?:[/_][^\W_a-z]+)*[!?]|#\w/\w!?|#NV|#YOK|#HIÁNYZIK|#NENÍ_K_DISPOZICI|#ERROR|#GETTING_DATA"
    r"|Err ?:[1-9]\d\d|#{3,}|\{?=[-+@({]*(?:\"(?:[^\"]|\"\")*\"(?:[&)].*)?|[\w.]+\(.*|\$?[A-Za-z]{1,3}\$?\d+\b.*"
    r"|(?:'[^']+'|[\w.\[\]]+)!\$?[A-Z]+.*|RC?\[.*)",
    re.DOTALL,
)
#: What programs leave where a value should be, and what says that the row is like another one.
_BLANK = re.compile(
    r"\[(?:object|function|array|circular)\b.*\]|\{{2,3}[^{}]*\}{2,3}|\{%.*%\}|\[\[[^][]*\]\]|[$#]?\{[\w.]*\}"
    r"|%(?:\(\w+\))?[sd]|%\w+%|\$[a-z_]\w*|__\w+__|\\N|(?:<[^<>]{,200}>|&#?\w+;|\s)+|-?\d\.#\w+|-?nan\(\w+\)|x{3,}"
    r"|-?0(?:[.,]0+)?|\S+@[0-9a-f]{5,8}|system\.[\w.`\[\]]+|function\b.*\[native code\].*|promise \{.*\}"
    r"|lorem ipsum\b.*|(?:same as|see|like|as in|copy of|wie|siehe|wie in|comme|voir|ver|igual que|zie|zoals) (?:in )?"
    r"(?:row|line|cell|zeile|zelle|ligne|fila|celda|rij|regel) ?[#\w-]*",
    re.IGNORECASE | re.DOTALL,
)
_MARKS = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sk")
_WORDS = re.compile(r"[^\W_]+")
#: What is surely well: a program's look at 100,000 texts has to be a short one.
_PLAIN_SKU = re.compile(rf"(?!(?i:{_DATE.pattern})$|{_ROUNDED.pattern}$|Err:)[A-Za-z0-9](?:[ -~]*[!-~])?")
_PLAIN = re.compile(r"(?!Err ?:|\S+@|(?i:lorem ipsum))([A-Za-z]+)(?:[ -~]*[!-~])?")


_NOTHING = frozenset(("nan", "none", "null", "nil", "na", "nat", "undefined"))
#: What people and programs write for "nothing", "to be done" and "what the row above says".
_PLACEHOLDERS = _NOTHING.union(re.split(r",\s+",
    """n a, not available, not applicable, no data, no prompt, no description, missing, empty, blank, unknown,
    keine angabe, k a, keine daten, keine, kein, leer, fehlt, unbekannt, entfällt, vide, aucun, aucune, inconnu,
    non disponible, pas de données, ninguno, ninguna, vacío, en blanco, sin datos, desconocido, leeg, geen, onbekend,
    niet beschikbaar, nvt, n v t, nd, n d, n n, inf, true, false, array, object, string,
    tba, tbc, tbd, t b d, todo, to do, fixme, wip, pending, placeholder, placeholder text, dummy, to be done,
    to be decided, to be defined, to be determined, to be confirmed, to be announced, to be added, to follow,
    coming soon, loading, loading data, wird geladen, chargement, chargement en cours, cargando, bezig met laden,
    folgt, wird nachgereicht, à définir, à venir, a determinar, por definir, pendiente, nog te bepalen, ntb, n t b,
    prompt, your prompt, your prompt here, prompt here, insert prompt, insert prompt here, enter prompt here,
    ditto, dito, dto, do, idem, ídem, id, ibid, ibidem, same, same as above, same as the above, as above, see above,
    same as before, as before, same as previous, same as previous row, same again, as previous, see previous,
    like above, s o, w o, so, siehe oben, wie oben, wie zuvor, wie vorher, genau wie oben, gleich wie oben, dasselbe,
    desgl, desgleichen, ci dessus, voir ci dessus, comme ci dessus, idem ci dessus, même que ci dessus, voir plus haut,
    le même, la même, même chose, pareil, pareil que ci dessus, vedi sopra, come sopra, ver arriba, como arriba,
    igual que arriba, igual que el anterior, igual al anterior, lo mismo, lo mismo que arriba, mismo que arriba,
    zie boven, zie hierboven, als boven, als hierboven, zoals hierboven, hetzelfde, hetzelfde als hierboven,
    zelfde als boven, zelfde als hierboven, 同上"""
))  # fmt: skip
#: First words of these, and of what else is none.
_BEGINNINGS = frozenset((
    *map(itemgetter(0), map(str.split, _PLACEHOLDERS)), "system", "function", "promise", "nan", "like", "copy",
    "comme", "voir", "ver", "igual", "zie", "zoals",
))  # fmt: skip


class Fault(NamedTuple):
    """A fault of a row; `written` is the word that is `likely` to mean what is offered."""

    column: str | None
    code: str
    message: str
    remedy: str
    suggestion: str | None = None
    written: str = ""
    likely: Likely = Likely()


class Rule(NamedTuple):
    """A fault that a text can have; `finds` is given the text without spaces around it."""

    code: str
    finds: Callable[[str], object]
    message: str
    remedy: str


def _is_empty(text: str) -> bool:
    return not UNSAFE.sub("", text).strip()


def _is_placeholder(text: str) -> bool:
    words = _WORDS.findall(text[:60].casefold())
    if len(text) > 60 or words:
        return " ".join(words) in _PLACEHOLDERS or set(words) <= _NOTHING or bool(_BLANK.fullmatch(text))
    return all(unicodedata.category(sign)[:2] in _MARKS for sign in text if not sign.isspace())


def _is_misread(text: str) -> bool:
    """Return whether a program read UTF-8 as Windows-1252, or lost letters, and saved that."""
    if text.isascii() or "\ufffd" in text:
        return not text.isascii()
    try:
        return bool(text.encode("cp1252").decode())
    except UnicodeError:
        return False


_FORMULA = Rule("spreadsheet_error", _ERROR.fullmatch, "{} is a spreadsheet's error", "correct its formula")
_MISREAD = Rule("misread_text", _is_misread, "{} was read in a wrong encoding by a program, and saved like that",
                "write it again, and save the file as UTF-8")  # fmt: skip
_UNSAFE = Rule("unsafe_characters", UNSAFE.search, "{} holds invisible characters", "type it by hand")
#: By column; a text is told only of the first rule that it breaks.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "sku": (
        Rule("empty_sku", _is_empty, "the sku is empty", "write a sku of its own"),
        _FORMULA,
        Rule("number_as_shown", _ROUNDED.fullmatch, "{} is a long number as a spreadsheet shortens it",
             "format the column as Text and put the whole number in again"),
        Rule("date_as_shown", _DATE.fullmatch, "{} is a date that a spreadsheet made of a sku",
             "format the column as Text and type it again"),
        _UNSAFE,
        _MISREAD,
    ),
    "prompt": (
        Rule("empty_prompt", _is_empty, "the prompt is empty", "describe the pattern"),
        _FORMULA,
        Rule("placeholder", _is_placeholder, "{} is a placeholder",
             "describe the pattern; to have the letters themselves drawn, write `the letters TBD`"),
        _MISREAD,
        Rule("prompt_too_long", lambda text: len(normal(text)) > PROMPT_LIMIT,
             f"the prompt has more than {PROMPT_LIMIT:,} characters", "shorten it"),
    ),
    "word": (_FORMULA, _UNSAFE, _MISREAD),
}  # fmt: skip


def fault_of(rules: str, column: str, text: str) -> Fault | None:
    """Return the fault of a text by the first rule that it breaks."""
    for rule in RULES[rules]:
        if rule.finds(text):
            return Fault(column, rule.code, rule.message.format(shown(text)), rule.remedy)
    return None


def _is_plain_prompt(text: str) -> bool:
    found = _PLAIN.fullmatch(text)
    if found is None or len(text) > PROMPT_LIMIT:
        return False
    return len(text) > 60 or not (found[1].casefold() in _BEGINNINGS or len(set(found[1])) == 1)


#: By column: a quick look that says whether a text surely breaks no rule.
IS_PLAIN: Mapping[str, Callable[[str], object]] = {"sku": _PLAIN_SKU.fullmatch, "prompt": _is_plain_prompt}
