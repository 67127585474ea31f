"""Whether an answer has further pages, and the requests that may get the next one; unknown shapes are not guessed at.

Pure functions on parsed JSON, which never raise. Names are compared without case, `_` and `-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class PageStep:
    """One request that may get the next page. `method` is the same from page to page: one that worked comes first."""

    method: str
    question: Fields
    #: The answer itself has the value; else it is counted.
    stated: bool = False


@dataclass(frozen=True, slots=True)
class PagingProgress:
    pages: int
    records: int
    last_id: str | None
    #: Values that were sent, as texts: an answer that repeats one has no next page.
    sent: frozenset[str] = frozenset()


def plain_name(name: str) -> str:
    """`has_more` and `hasMore` as `hasmore`."""
    return re.sub(r"[_-]", "", name).lower()


def next_steps(answer: Json, wrappers: Sequence[str], so_far: PagingProgress) -> list[PageStep]:
    """The requests that may get the next page, the likeliest first; none where the answer shows no further page.

    `so_far` includes this answer; `wrappers`: what it may be wrapped in.
    """
    levels = list(_levels(answer, {*PAGING, *wrappers}, _DEEPEST))
    if not any(_shows_more({plain_name(key): fields[key] for key in fields}, so_far) for fields in levels):
        return []
    return [*(step for fields in levels for step in _stated(fields)), *_counted(levels, so_far)]


def _levels(answer: Json, names: set[str], depth: int) -> Iterator[Fields]:
    """The answer, and the objects in it that may describe its pages."""
    if not isinstance(answer, dict) or depth == 0:
        return
    yield answer
    for key, value in answer.items():
        if plain_name(key) in names:
            yield from _levels(value, names, depth - 1)


def _shows_more(fields: Fields, so_far: PagingProgress) -> bool:
    ends = any(fields.get(name) is False for name in _MORE)
    return (
        any(fields.get(name) is True for name in (*_MORE, *_CUT_OFF))
        or (not ends and any(_CURSOR.fullmatch(key) and _is_new(fields[key], so_far) for key in fields))
        or any(_exceeds(fields.get(name), so_far.records) for name in _TOTALS)
        or any(_exceeds(fields.get(name), so_far.pages) for name in _PAGE_TOTALS)
    )


def _is_new(value: Json, so_far: PagingProgress) -> bool:
    return value not in (None, "", False, [], {}) and str(value) not in so_far.sent


def _exceeds(total: Json, count: int) -> bool:
    return isinstance(total, int) and not isinstance(total, bool) and total > count


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
                    yield PageStep(f"{key} as {one}", {one: value}, True)


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
        yield PageStep(f"{name} as address", numbers, True)
        yield PageStep(f"{name} as address in texts", fields, True)


def _counted(levels: Sequence[Fields], so_far: PagingProgress) -> Iterator[PageStep]:
    """Steps by counting. Pages from 0 come first: where they are from 1, the first page comes again."""
    pages = so_far.pages
    named = (fields[key] for fields in levels for key in fields if plain_name(key) in _PAGE_NUMBERS)
    numbers = [one for one in named if isinstance(one, int) and not isinstance(one, bool)]
    if numbers:
        yield PageStep("page after the one named", {"page": numbers[0] + 1})
    for name in ("page", "pageNumber"):
        yield PageStep(f"{name} from 0", {name: pages})
        yield PageStep(f"{name} from 1", {name: pages + 1})
    for name in ("offset", "skip"):
        yield PageStep(name, {name: so_far.records})
    for name in ("after", "startingAfter", "starting_after") if so_far.last_id is not None else ():
        yield PageStep(name, {name: so_far.last_id})
    for name in ("limit", "pageSize"):
        yield PageStep(name, {name: _LARGE})
