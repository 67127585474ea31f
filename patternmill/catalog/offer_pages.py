"""Whether an answer has further pages, and the requests that may get the next one; unknown shapes are not guessed at.

Pure functions on parsed JSON, which never raise. Names are compared without case, `_` and `-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

Json = object
Fields = Mapping[str, Json]

#: The objects of an answer that may describe its pages, apart from the top.
PAGING = ("pagination", "paging", "page", "pageinfo", "meta", "links")
_MORE = ("hasmore", "hasnext", "hasnextpage", "more")
_CUT_OFF = ("truncated", "istruncated")
_TOTALS = ("total", "totalcount")
_PAGE_TOTALS = ("totalpages", "pagecount")
_PAGE_NUMBERS = ("page", "currentpage", "pagenumber")
_CURSOR = re.compile(r"next.*|cursor|continuationtoken")
#: Also on the last page, so that it alone does not show that more exists.
_END_CURSOR = "endcursor"
_BEGINS = re.compile(r"^(?:next|end)_?", re.IGNORECASE)
#: What a request may call its cursor, besides the name that the answer has for it.
_ASKED_AS = ("cursor", "after", "pageToken", "page", "offset", "token")
_LARGE = 1000
_DEEPEST = 4


#: A request that may get the next page: its kind, which is the same from page to page, the request, and whether the
#: answer itself has its value; else that is counted.
PageStep = tuple[str, Fields, bool]


def plain_name(name: str) -> str:
    """`has_more` and `hasMore` as `hasmore`."""
    return re.sub(r"[_-]", "", name).lower()


def next_steps(
    answer: Json,
    wrappers: Sequence[str],
    *,
    pages: int,
    records: int,
    last_id: str | None,
    sent: frozenset[str] = frozenset(),
) -> Iterator[PageStep]:
    """The requests that may get the next page, the likeliest first; none where the answer shows no further page.

    `wrappers`: what it may be wrapped in. `pages`, `records`, `last_id`: of all that was read, with this answer.
    `sent`: values that were sent, as texts: an answer that repeats one has no next page.
    """
    levels = list(_levels(answer, {*PAGING, *wrappers}, _DEEPEST))
    plain = [{plain_name(key): value for key, value in fields.items()} for fields in levels]
    if any(_shows_more(fields, pages, records, sent) for fields in plain):
        for fields in levels:
            yield from _stated(fields)
        yield from _counted(plain, pages, records, last_id)


def _levels(answer: Json, names: set[str], depth: int) -> Iterator[Fields]:
    """The answer, and the objects in it that may describe its pages."""
    if not isinstance(answer, dict) or depth == 0:
        return
    yield answer
    for key, value in answer.items():
        if plain_name(key) in names:
            yield from _levels(value, names, depth - 1)


def _shows_more(fields: Fields, pages: int, records: int, sent: frozenset[str]) -> bool:
    ends = any(fields.get(name) is False for name in _MORE)
    cursors = [value for name, value in fields.items() if _CURSOR.fullmatch(name)]
    totals = [(fields.get(name), records) for name in _TOTALS]
    totals += [(fields.get(name), pages) for name in _PAGE_TOTALS]
    return (
        any(fields.get(name) is True for name in (*_MORE, *_CUT_OFF))
        or (not ends and any(value and str(value) not in sent for value in cursors))
        or any(type(total) is int and total > count for total, count in totals)
    )


def _stated(fields: Fields) -> Iterator[PageStep]:
    for key, stated in fields.items():
        name = plain_name(key)
        value = _link_address(stated)
        if not (_CURSOR.fullmatch(name) or name == _END_CURSOR) or isinstance(value, bool) or not value:
            continue
        if isinstance(value, str):
            yield from _addressed(key, value)
        if not (isinstance(value, str) and value.startswith(("http://", "https://"))):
            own = _BEGINS.sub("", key)
            for one in dict.fromkeys((own[:1].lower() + own[1:], key, *_ASKED_AS)):
                if one:
                    yield f"{key} as {one}", {one: value}, True


def _link_address(value: Json) -> Json:
    if isinstance(value, dict):
        return next((value[name] for name in ("href", "url") if isinstance(value.get(name), str)), value)
    return value


def _addressed(name: str, value: str) -> Iterator[PageStep]:
    """Steps with the query of an address. The address itself is never called."""
    try:
        fields = dict(parse_qsl(urlsplit(value).query))
    except ValueError:
        return
    if fields:
        numbers = {
            one: int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text for one, text in fields.items()
        }
        yield f"{name} as address", numbers, True
        yield f"{name} as address in texts", fields, True


def _counted(levels: Sequence[Fields], pages: int, records: int, last_id: str | None) -> Iterator[PageStep]:
    """Steps by counting. Pages from 0 come first: where they are from 1, the first page comes again."""
    named = (fields[name] for fields in levels for name in _PAGE_NUMBERS if name in fields)
    if (number := next((one for one in named if type(one) is int), None)) is not None:
        yield "page after the one named", {"page": number + 1}, False
    for name in ("page", "pageNumber"):
        yield f"{name} from 0", {name: pages}, False
        yield f"{name} from 1", {name: pages + 1}, False
    for name in ("offset", "skip"):
        yield name, {name: records}, False
    for name in ("after", "startingAfter", "starting_after") if last_id is not None else ():
        yield name, {name: last_id}, False
    for name in ("limit", "pageSize"):
        yield name, {name: _LARGE}, False
