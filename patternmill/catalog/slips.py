"""What a spreadsheet or a person left where something else was meant: errors, short numbers, placeholders, totals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from patternmill.catalog.order_marks import says_do_not_order
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import Columns
from patternmill.text import shown

#: By the language of the program; English ones appear in all.
_ERRORS_OF = {
    "English": "#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT! #BUSY! "
    "#UNKNOWN! #EXTERNAL! #PYTHON! #GETTING_DATA #ERROR!",
    "German": "#WERT! #BEZUG! #ZAHL! #NV #ÜBERLAUF! #KALK! #FELD! #BLOCKIERT! #VERBINDEN!",
    "French": "#NUL! #VALEUR! #NOM? #NOMBRE! #PROPAGATION! #EPARS! #CHAMP!",
    "Spanish": "#¡NULO! #¡DIV/0! #¡VALOR! #¡REF! #¿NOMBRE? #¡NUM! #N/D #¡DESBORDAMIENTO! #¡CALC! #¡CAMPO!",
    "Italian": "#NULLO! #VALORE! #RIF! #NOME? #ESPANSIONE!",
    "Portuguese": "#NULO! #VALOR! #NÚM! #DESPEJAR!",
    "Romanian": "#VALOARE! #NUME?",
    "Dutch": "#LEEG! #DEEL/0! #WAARDE! #VERW! #NAAM? #GETAL! #N/B #OVERLOPEN!",
    "Swedish": "#SKÄRNING! #DIVISION/0! #VÄRDEFEL! #REFERENS! #NAMN? #OGILTIGT! #SAKNAS!",
    "Danish, Norwegian": "#VÆRDI! #REFERENCE! #NAVN? #TAL! #I/T #VERDI!",
    "Finnish": "#TYHJÄ! #JAKO/0! #ARVO! #VIITTAUS! #NIMI? #LUKU! #PUUTTUU!",
    "Polish": "#ZERO! #DZIEL/0! #ARG! #ADR! #NAZWA? #LICZBA! #ROZLANIE!",
    "Czech, Slovak": "#DĚLENÍ_NULOU! #HODNOTA! #ODKAZ! #NÁZEV? #ČÍSLO! #PŘESAH! #DELENIENULOU! #NÁZOV? #NEDOSTUPNÝ",
    "Hungarian": "#NULLA! #ZÉRÓOSZTÓ! #ÉRTÉK! #HIV! #NÉV? #SZÁM! #HIÁNYZIK",
    "Russian": "#ПУСТО! #ДЕЛ/0! #ЗНАЧ! #ССЫЛКА! #ИМЯ? #ЧИСЛО! #Н/Д #ПЕРЕНОС!",
    "Greek": "#ΚΕΝΟ! #ΔΙΑΙΡ/0! #ΤΙΜΗ! #ΑΝΑΦ! #ΟΝΟΜΑ? #ΑΡΙΘ! #Δ/Υ",
    "Turkish": "#BOŞ! #SAYI/0! #DEĞER! #BAŞV! #AD? #SAYI! #YOK #TAŞMA!",
}
_ERRORS = frozenset(word for words in _ERRORS_OF.values() for word in words.split())
_CODED_ERROR = re.compile(r"Err:[1-9]\d\d")
_TOO_NARROW = re.compile("#{3,}")
#: Excel writes a capital E, a sign, and two digits or more; it shortens no text.
_SHORTENED = re.compile(r"\d(?:[.,\u066b]\d+)?E\+\d{2,3}")


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


#: In characters, of what is looked at as a placeholder.
_LONGEST = 60
_WORDS = re.compile(r"[^\W_]+")
#: Nobody pays for a picture of these words.
_TO_DO = _phrases(
    "tbd, tba, tbc, todo, fixme, t b d, to do, to be done, to be decided, to be defined, to be determined, "
    "to be confirmed, to be announced, xxx, lorem ipsum, lorem ipsum dolor sit amet"
)
#: What people write below a text that they mean once more.
_DITTO = re.compile(r"[-\s]*(?:[\"'\u3003\u2033]|,,)+[-\s]*")
#: Few want one of these.
_DOUBTFUL = _phrases(
    "prompt, prompts, your prompt here, enter prompt, description, text, placeholder, untitled, test, testing, "
    "a test, example, sample, dummy, foo, bar, baz, asdf, qwerty, abc, n a, n v, na, undefined, loading, nan, "
    "null, none, nil, unknown, empty, missing, pending, same, ditto, idem, same as above, see above, as above, "
    "siehe oben, wie oben, dito, not applicable, not available, no prompt, no pattern, no design, no image, skip, "
    "draft, deleted, removed, discontinued, on hold, k a, keine, keines, keine angabe, ohne, ohne muster, kein muster, "
    "entfällt, gelöscht, aucun, aucune, sans motif, ninguno, ninguna, sin estampado, nessuno, nessuna, geen, n v t, nvt"
)
#: As programs shorten them: English, German, French, Spanish, Italian, Portuguese, Dutch, Scandinavian.
_MONTHS = (
    "jan feb mar apr may jun jul aug sep sept oct nov dec mär mrz märz mai juni juli okt dez janv févr mars avr "
    "juin juil août déc ene abr ago dic gen mag giu lug ott fev mrt mei maj des"
)
_MONTH = f"(?:{'|'.join(_MONTHS.split())})"
_YEAR = r"(?:\d\d){1,2}"
_TIME = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.0+)?)?)?"
#: A date as programs write it in place of a text like it: `2026-05-01`, `12.03.2026`, `03-Apr`, `May-26`, `5月1日`.
_DATE = re.compile(
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{4}}/\d\d?/\d\d?|\d\d?([./])\d\d?\1{_YEAR}|\d\d?-\d\d?-(?:19|20)\d\d){_TIME}"
    rf"|\d\d?(?:[-/ ]|\. ?){_MONTH}\.?(?:[- ]{_YEAR})?|{_MONTH}\.?[-/ ]{_YEAR}"
    r"|(?:\d{4}年)?\d\d?月(?:\d\d?日)?",
    re.IGNORECASE,
)
#: What a row of totals is called; `Total: 24` too.
_TOTALS = _phrases(
    "sum, summe, gesamt, gesamtsumme, zwischensumme, total, totals, grand total, subtotal, sub total, somme, "
    "sous total, total général, totaal, totale, totali, somma, suma, total general, razem, toplam, summa, "
    "totalt, i alt, yhteensä, celkem, spolu, összesen, итого, всего, σύνολο, "
    "合計, 小計, 総計, 합계, 총계, 总计, 合计, 小计"
)
#: A number with a unit, currency or percent sign around it.
_AMOUNT = re.compile(r"[^\W\d_]{0,8}[^\w]{0,3}\d[\d.,'’\s]*[^\w]{0,3}[^\W\d_]{0,8}\.?")
#: A formula that is its own text: a function, a text, or a cell, of another worksheet too (`='Spring list'!$B$2`).
_FORMULA = re.compile(
    r"=[-+]?(?:[^\W\d_][\w.]*\(.*\)|\"[^\"]*\"\s*&.*)"
    r"|[=+][-+]?(?:(?:'[^']+'|\$?\w+)[!.])?\$?[A-Z]{1,3}\$?\d{1,7}(?:[-+*/&:;,!].*)?",
    re.DOTALL | re.IGNORECASE,
)
#: What stands for a picture, or numbers one.
_ADDRESS = re.compile(r"(?:(?:https?|ftp|file)://|www\.)\S+", re.IGNORECASE)
_FILE_NAME = re.compile(
    r"(?:\S+ ){0,3}\S*\w\.(?:png|jpe?g|webp|gif|tiff?|svg|bmp|heic|psd|ai|eps|pdf|indd|xlsx?|docx?|csv|txt)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"#?\d[\d.,' ]*")
#: Of what shops write into descriptions.
_MARKUP = re.compile(
    r"</?(?:p|br|b|i|u|em|strong|span|div|ul|ol|li|h[1-6]|a|img|table|tr|td)\b[^<>]*>|&(?:nbsp|amp|lt|gt|quot|#\d+);",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"<[^<>]+>|\[[^\[\]]+\]|\$?\{.+\}|%[^%]+%")


def error_finding(column: str, cell: str) -> Finding | None:
    """An error of a spreadsheet's formula in place of its result."""
    text = cell.strip()
    if not text.startswith(("#", "Err:")):
        return None
    if _TOO_NARROW.fullmatch(text):
        message = f"{shown(text)} is what a spreadsheet shows where a column is too narrow"
        return Finding(
            column, RowCode.SPREADSHEET_ERROR, message, "widen the column and save the file again", text
        )
    if unicodedata.normalize("NFC", text) not in _ERRORS and not _CODED_ERROR.fullmatch(text):
        return None
    message = f"{shown(text)} is a spreadsheet's error, not what its formula was to find"
    return Finding(
        column, RowCode.SPREADSHEET_ERROR, message, "correct the formula, or type what belongs there", text
    )


def shortened_number_finding(column: str, sku: str) -> Finding | None:
    """A number as a spreadsheet shows a longer one: its last digits are lost, and others may read the same."""
    if not _SHORTENED.fullmatch(sku):
        return None
    message = f"{shown(sku)} is how a spreadsheet shows a long number in short: digits of it are missing"
    remedy = "format the column as Text, put the whole number in again, and save the file"
    return Finding(column, RowCode.NUMBER_AS_SHOWN, message, remedy, sku)


def placeholder_finding(column: str, prompt: str) -> Finding | None:
    """A normalised prompt that says no more than that there is none yet."""
    if not _is_to_do(prompt):
        return None
    if _DITTO.fullmatch(prompt):
        message = f"{shown(prompt)} does not repeat the prompt of the row above"
        return Finding(column, RowCode.PLACEHOLDER, message, "write the prompt in this row too", prompt)
    if not _WORDS.search(prompt):
        message = f"{shown(prompt)} says nothing that could be drawn"
        remedy = "describe the pattern; if these very signs are meant, name them: `a row of dots`"
        return Finding(column, RowCode.PLACEHOLDER, message, remedy, prompt)
    message = f"{shown(prompt)} stands for a prompt that is not written yet"
    remedy = "describe the pattern; if these very signs are to be drawn, say so: `the letters TBD`"
    return Finding(column, RowCode.PLACEHOLDER, message, remedy, prompt)


def _is_to_do(prompt: str) -> bool:
    if len(prompt) > _LONGEST:
        return False
    words = " ".join(_WORDS.findall(prompt.casefold()))
    if words:
        return words in _TO_DO or (len(words) > 3 and not words.strip("x"))
    return all(unicodedata.category(sign).startswith("P") for sign in prompt if not sign.isspace())


def stray_row_finding(cells: Sequence[str], header: Sequence[str], columns: Columns) -> Finding | None:
    """A row that is none of a catalog's: the header once more, or totals. What an earlier run wrote there is none."""
    needed = (columns.sku, columns.prompt, columns.category)
    is_full = all(index < len(cells) and cells[index].strip() for index in needed)
    if is_full and not _is_same(cells[columns.sku], header[columns.sku]):
        return None
    own = [cell if index not in columns.results else "" for index, cell in enumerate(cells)]
    if repeats_header(own, header):
        message = "the row is the header once more, as where sheets were put together"
        return Finding(None, RowCode.REPEATED_HEADER, message, "delete the row")
    if is_full:
        return None
    written = [cell.strip() for cell in own if cell.strip()]
    texts = [cell for cell in written if _is_total(cell)]
    if not texts or not all(cell in texts or _AMOUNT.fullmatch(cell) for cell in written):
        return None
    message = f"the row is one of totals ({shown(texts[0])}), not of a product"
    return Finding(None, RowCode.TOTALS_ROW, message, "delete the row", texts[0])


def repeats_header(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether what is written there is what the columns are called; of columns that were added later it has none."""
    named = [(cell, name) for cell, name in zip_longest(cells, header, fillvalue="") if cell.strip()]
    return len(named) > 1 and all(_is_same(cell, name) for cell, name in named)


def _is_same(cell: str, name: str) -> bool:
    return cell.strip().casefold() == name.strip().casefold()


def _is_total(text: str) -> bool:
    words = (word for word in _WORDS.findall(text.casefold()) if not word.isdecimal())
    return len(text) <= _LONGEST and " ".join(words) in _TOTALS


def is_date(sku: str) -> bool:
    """Whether a sku is written as programs write a day; none writes a month in capitals."""
    return _DATE.fullmatch(sku) is not None and not any(
        len(word) > 2 and word.isalpha() and word.isupper() for word in _WORDS.findall(sku)
    )


def has_markup(prompt: str) -> bool:
    """Whether it has tags or entities of HTML."""
    return ("<" in prompt or "&" in prompt) and _MARKUP.search(prompt) is not None


def is_doubtful(prompt: str) -> bool:
    """Whether a normalised prompt seems to describe no pattern, though it may be meant."""
    if says_do_not_order(prompt[:_LONGEST]) or any(one.fullmatch(prompt) for one in (_FORMULA, _ADDRESS)):
        return True
    if len(prompt) > _LONGEST:
        return False
    words = " ".join(_WORDS.findall(prompt.casefold()))
    return words in _DOUBTFUL or any(
        one.fullmatch(prompt) for one in (_IN_BRACKETS, _DATE, _FILE_NAME, _NUMBER)
    )
