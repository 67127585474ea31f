"""What the words of an answer say: that a request is known, under way, refused for its content, or for its row."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

#: Fields of a request that are not the row's: our own ID, and IDs that the service gave.
_GIVEN = frozenset({"requestId", "patternId", "referenceIds"})
#: Fields in which a service may repeat the request: what is in them does not say what is refused.
_ECHOES = frozenset({"request", "input", "inputs", "params", "parameters", "arguments", "payload", "body"})
#: Words that refusals use without meaning an option or a value of that name.
_COMMON = re.compile(
    r"request|order|product|pattern|job|id|key|code|type|name|error|errors|message|status|number|value"
    r"|field|body|title|detail|data|item|entry|first|last|new|old|same|other|one|two|already|duplicate"
    r"|invalid|unknown|missing|required|not|the|and|for|this|that|has|was|before"
)
_DONE = "((us|process|submitt|receiv|register|creat|accept|handl|execut|complet|generat)ed|sent|seen|made)"
_KNOWN = re.compile(
    r"duplic|\bdoppelt|\bdoublon|\ben double\b|\breplay|\breused?\b|\brepeated (request|order|id|key)"
    rf"|\b{_DONE}( \w+){{0,4}} (before|previously|earlier|twice)\b"
    r"|\b(be|not) unique\b|\bunique (constraint|violation)|\bonly be used once|\brequest id (known|used|conflict)"
    r"|^(?!.*\b(missing|required|header|invalid)\b).*\bidempoten"
    r"|已(经)?(存在|使用|处理|提交|创建)|重复|重複|既に|すでに|이미|중복"
    r"|^(?!.*(limit|quota|kontingent|guthaben|cr[eé]dit|plafond|cuota|saldo|allowance|balance)).*"
    rf"\b((previously |recently |ha(s|ve) (been )?){_DONE}|already|bereits|schon|déjà|deja|ya|già|já|reeds|bestaat al"
    r"|al (gebruikt|verwerkt)|redan|allerede|już|již|zaten|уже)\b"
)
_EXISTS = re.compile(
    r"\b(exist(s|e|en|ed|iert|ing)?|taken(?! (out|off|from|down))|in use|identical to|(same|another) \w+ (as|has)"
    r"|in your (catalog|library)|vorhanden|vergeben|esiste|bestaat)\b"
)
_DENIED = re.compile(
    r"\b(no|not|none|never|cannot|t|nicht|kein\w*|pas|non|não|niet|geen|ensure|sure|check|must|whether|if)\b"
)
_UNDER_WAY = re.compile(
    r"\b(in progress|in process|in flight|being (processed|created|handled|made|generated)|concurrent\w*"
    r"|(still|currently|already|is|are) (running|processing|executing|pending)"
    r"|in (bearbeitung|verarbeitung|corso)|wird (gerade|noch|bereits|derzeit) \w+|en (cours|curso)|em andamento)\b"
    r"|处理中|処理中"
)
_LATER = re.compile(
    r"\b(try|retry|again) (it )?(again )?(later|shortly|soon|in a|in \d)|\bspäter|\bplus tard|\bmás tarde"
)
#: A complaint about the request ID itself; many services give each of their answers a number of that name.
_NAMES_ID = re.compile(r"\brequest_?id\b(?!\s*[:=])", re.IGNORECASE)
#: Words about the form of an ID, under which then nothing can exist.
_FORM = re.compile(
    r"\b(missing|required|invalid|format|length|long|short|characters|digits|uuid|match|string|empty|blank)\b"
)
_CONTENT = re.compile(
    r"\b(safety|polic(y|ies)|moderat\w+|nsfw|inappropriate|unsafe|disallowed|prohibited|copyright\w*|trademark\w*"
    r"|sexual\w*|violen\w+|hateful|richtlinien?|sicherheits\w*|modération|politique|política)\b"
    r"|\bcontent (was |is |has been )?(filter|violat|block|flag|refus|not allowed)"
)
_REJECTED = re.compile(
    r"^(?!.*\b(queue|capacity|overload\w*|busy|full|time ?out|memory|worker|internal|server)\b).*\brejected\b"
)
_MARKUP = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]*>")


class Words:
    """The texts of an answer, each with the path of its field, without what merely repeats the request."""

    def __init__(self, data: Any, text: str, sent: Mapping[str, Any]) -> None:
        said = [("", text[:20_000])] if data is None else list(islice(_said(data, sent), 200))
        self._sent, self._said = sent, said
        self._plain = [plain(f"{path} {one}") for path, one in said]
        self._whole = " / ".join(self._plain)

    def __str__(self) -> str:
        return cleaned(": ".join(dict.fromkeys(text for _, text in self._said if text.strip())))

    @property
    def say_known(self) -> bool:
        """Return whether they say that the service has this request, or what it asks for, already."""
        if any(map(_KNOWN.search, self._plain)):
            return True
        if any(_EXISTS.search(text) and not _DENIED.search(text) for text in self._plain):
            return True
        is_of_id = any(_NAMES_ID.search(f"{path} {text}") for path, text in self._said)
        return is_of_id and not _FORM.search(self._whole) and not self.name_row

    @property
    def say_under_way(self) -> bool:
        whole = self._whole
        return bool(_UNDER_WAY.search(whole) or (_LATER.search(whole) and not self.say_known))

    @property
    def refuse_content(self) -> bool:
        return bool(_CONTENT.search(self._whole) or _REJECTED.search(self._whole))

    @property
    def name_row(self) -> bool:
        """Return whether they name a field or a value that comes from the row."""
        own = {name: value for name, value in self._sent.items() if name not in _GIVEN}
        words = {*_names(own), *filter(lambda value: len(value) > 2, map(plain, _values(own)))}
        whole = f" {self._whole} "
        return any(f" {word} " in whole for word in words if word and not _COMMON.fullmatch(word))


def plain(text: str) -> str:
    """Return the words of a text or a name, so that `categoryId`, `category_id` and `Category ID` are the same."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ")
    return " ".join(re.findall(r"\w+", apart)).casefold()


def cleaned(text: str, most: int = 300) -> str:
    """Return a text on one line, without markup and characters that cannot be shown or stored."""
    shown = _MARKUP.sub(" ", text[:20_000]) if "<" in text else text[: 4 * most]
    return " ".join("".join(mark if mark.isprintable() else " " for mark in shown).split())[:most]


def _said(value: Any, sent: Mapping[str, Any], path: str = "", depth: int = 8) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value[:2000]
    elif isinstance(value, list) and depth:
        for part in value[:20]:
            yield from _said(part, sent, path, depth - 1)
    elif isinstance(value, dict) and depth:
        for name, part in value.items():
            is_number = plain(name) == "request id" and isinstance(part, str) and " " not in part
            if not is_number and name not in _ECHOES and (name not in sent or part != sent[name]):
                yield from _said(part, sent, f"{path} {name}".strip(), depth - 1)


def _names(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        yield from (plain(name), plain(name).removesuffix(" id"))
        if isinstance(value, dict):
            yield from ("option", "options", "selection", *_names(value))


def _values(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _values(part)
