"""Pure functions that tell what a refusal is about: a request ID that the service has already, the row, or neither."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from patternmill.service.outcomes import Answer

#: Fields of every request whose values are not the row's: our request ID, and IDs that the service gave.
GIVEN = frozenset({"requestId", "patternId", "referenceIds"})
#: A service that answers with this status has the request ID, whatever else it says.
CONFLICT = 409
#: The statuses with which it may say so in words, and the words, matched against one `plain` text at a time.
_IN_WORDS = frozenset({400, 412, 422})
_DONE = r"(used|processed|submitted|received|registered|created|accepted|handled|executed|completed|sent|seen|made)"
_KNOWN_ID = re.compile(
    r"duplicat"
    rf"|\balready (been |in )?({_DONE}|exist|taken|use|known|progress|claimed|consumed)"
    rf"|\b{_DONE}( \w+){{0,4}} (before|previously|earlier|twice)\b"
    rf"|\bpreviously {_DONE}"
    r"|\breused?\b|\breplay|\brepeated (request|order|id|key)"
    r"|\b(be|not) unique\b|\bunique (constraint|violation)"
    r"|\brequest id (exists|taken|known|used|conflict)"
    r"|^(?!.*\b(missing|required|header|invalid)\b).*\bidempoten"
)
#: The field itself, not the number that many services give each of their answers.
_NAMES_ID = re.compile(r"\brequest_?id\b(?!\s*[:=])", re.IGNORECASE)
#: Words of a refusal of the ID for its form, so that nothing can exist under it.
_FORM = re.compile(
    r"\b(missing|required|invalid|format|length|long|short|characters|digits|uuid|match|string|empty|blank)\b"
)
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
#: Numbers, and IDs that contain one.
_NUMBERED = re.compile(r"[\w-]*\d[\w-]*")
#: Fields in which a service may repeat the request: what is in them does not say what is refused.
_ECHOES = frozenset({"request", "input", "inputs", "params", "parameters", "arguments", "payload"})
#: Fields that say which field of the request is meant.
_PLACES = frozenset({"loc", "field", "param", "parameter", "path", "pointer", "property", "attribute"})
#: Words that refusals use without meaning an option or a value of that name.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """request order product pattern job id key code type name error message status number value field body title
        detail data item entry first last new old same other one two already duplicate invalid unknown missing
        required not the and for this that has was before""",
    )
)
_OTHER_NAMES = {"selections": ("option", "options", "selection")}
_DEEPEST = 8


def says_no(body: Any) -> bool:
    """Return whether a body refuses, whatever its status is."""
    refuses = isinstance(body, dict) and (body.get("success") is False or body.get("ok") is False)
    return refuses or (isinstance(body, dict) and bool(body.get("error") or body.get("errors")))


def has_id_already(answer: Answer, sent: bytes, given: Collection[str] = GIVEN) -> bool:
    """Return whether a refusal says that the service has this request ID already.

    A complaint about the ID, but not about its form or a field of the row, says so too.
    """
    if answer.status == CONFLICT:
        return True
    if answer.status not in _IN_WORDS and not answer.usable:
        return False
    texts = [text for text, _ in _texts_of(answer, sent)]
    plain_texts = list(map(plain, texts))
    if any(map(_KNOWN_ID.search, plain_texts)):
        return True
    is_of_id = any(map(_NAMES_ID.search, texts)) and not any(map(_FORM.search, plain_texts))
    return is_of_id and not names_row(answer, sent, given)


def names_row(answer: Answer, sent: bytes, given: Collection[str] = GIVEN) -> bool:
    """Return whether a refusal names a field or a value of the row. `given`: fields that are not the row's."""
    own = {name: value for name, value in _fields(sent).items() if name not in given}
    texts = [(plain(text), is_place) for text, is_place in _texts_of(answer, sent)]
    text = f" {' / '.join(text for text, _ in texts)} "
    places = {text for text, is_place in texts if is_place}
    names, values = set(_names(own)), set(map(plain, _values(own)))
    return any(name in places or (name not in _COMMON and f" {name} " in text) for name in names) or any(
        len(value) > 2 and value not in _COMMON and f" {value} " in text for value in values
    )


def shape_of(answer: Answer, sent: bytes) -> str:
    """Return a text that is equal for refusals that differ only in IDs, numbers, quoted words and values of rows."""
    if (code := _code_of(answer.body)) is not None:
        return f"{answer.status} {code}"
    text = _QUOTED.sub(" ", answer.detail)
    for value in sorted(set(_values(_fields(sent))), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " ", text)
    return f"{answer.status} {plain(_NUMBERED.sub(' ', text))}"


def _code_of(body: Any) -> str | None:
    """Return the code that a service gives a refusal, if it does."""
    if not isinstance(body, dict):
        return None
    codes = (body.get(name) for name in ("code", "type"))
    return next((code for code in codes if isinstance(code, str)), None) or _code_of(body.get("error"))


def plain(text: str) -> str:
    """Return the words of a text or a name, so that `categoryId`, `category_id` and `Category ID` are the same."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ")
    return " ".join(re.findall(r"\w+", apart)).casefold()


def _fields(sent: bytes) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = orjson.loads(sent or b"{}")
    return fields


def _texts_of(answer: Answer, sent: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a refusal, each with whether it says which field is meant."""
    return iter([(answer.detail, False)]) if answer.body is None else _texts(answer.body, _fields(sent))


def _texts(
    value: Any, sent: Mapping[str, Any], is_place: bool = False, depth: int = _DEEPEST
) -> Iterator[tuple[str, bool]]:
    """Yield each name and each text of a body, except what repeats the request or numbers the answer."""
    if isinstance(value, str):
        yield value, is_place
    elif isinstance(value, list) and depth:
        for part in value[:20]:
            yield from _texts(part, sent, is_place, depth - 1)
    elif isinstance(value, dict) and depth:
        for name, part in value.items():
            is_number = plain(name) == "request id" and isinstance(part, str) and " " not in part
            if name not in _ECHOES and not is_number and (name not in sent or part != sent[name]):
                yield name, is_place
                yield from _texts(part, sent, is_place or name in _PLACES, depth - 1)


def _names(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words by which a refusal may name the row's fields and options."""
    for name, value in fields.items():
        yield from (plain(name), plain(name).removesuffix(" id"), *_OTHER_NAMES.get(name, ()))
        if isinstance(value, dict):
            yield from _names(value)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _values(part)
