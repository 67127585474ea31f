"""Whether an answer has further pages, and the requests that may get the next one; unknown shapes are not guessed at.

Pure functions on parsed JSON, which never raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

Json = object
Fields = Mapping[str, Json]

#: The objects of an answer that may describe its pages, apart from the top.
PAGING = ("pagination", "paging", "page", "pageInfo", "page_info", "meta", "links", "_links")
_MORE = ("hasMore", "has_more", "hasNext", "has_next", "hasNextPage", "has_next_page")
_CUT_OFF = ("truncated", "isTruncated", "is_truncated")
_TOTALS = ("total", "totalCount", "total_count")
_PAGE_TOTALS = ("totalPages", "total_pages", "pageCount", "page_count")
_PAGE_NUMBERS = ("page", "currentPage", "current_page", "pageNumber", "page_number")

_BY_CURSOR = ("cursor", "after", "nextCursor", "next_cursor", "pageToken", "page_token", "token")
_BY_TOKEN = ("pageToken", "page_token", "nextPageToken", "nextToken", "token", "cursor", "continuationToken")
_BY_PAGE = ("page", "pageNumber", "page_number", "pageToken", "cursor")
_BY_OFFSET = ("offset", "skip", "start")
#: The cursor's name in the answer, and its possible names in the request, the likeliest first.
_CURSORS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("nextCursor", "next_cursor"), _BY_CURSOR),
    **dict.fromkeys(("nextPageToken", "next_page_token", "nextToken", "next_token"), _BY_TOKEN),
    **dict.fromkeys(("nextPage", "next_page"), _BY_PAGE),
    **dict.fromkeys(("nextOffset", "next_offset"), _BY_OFFSET),
    **dict.fromkeys(
        ("continuationToken", "continuation_token"), ("continuationToken", "continuation_token", *_BY_TOKEN)
    ),
    "next": ("cursor", "next", "after", "pageToken", "page", "offset", "token"),
    "cursor": _BY_CURSOR,
}
#: Also on the last page, so that they alone do not show that more exists.
_ENDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("endCursor", "end_cursor"), ("after", "cursor", "endCursor")
)
_LARGE = 1000
_DEEPEST_PAGING = 4


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


def more_to_come(answer: Json, wrappers: Sequence[str], so_far: PagingProgress) -> bool:
    """Whether the answer shows that the list has more than `so_far`, which includes this answer."""
    return any(_shows_more(fields, so_far) for fields in _levels(answer, wrappers, _DEEPEST_PAGING))


def next_steps(answer: Json, wrappers: Sequence[str], so_far: PagingProgress) -> list[PageStep]:
    """The requests that may get the next page, the likeliest first."""
    levels = list(_levels(answer, wrappers, _DEEPEST_PAGING))
    stated = (step for names in (_CURSORS, _ENDS) for fields in levels for step in _stated(fields, names))
    return [*stated, *_counted(levels, so_far)]


def _levels(answer: Json, wrappers: Sequence[str], depth: int) -> Iterator[Fields]:
    """The answer, and the objects in it that may describe its pages."""
    if not isinstance(answer, dict) or depth == 0:
        return
    yield answer
    for name in dict.fromkeys((*PAGING, *wrappers)):
        yield from _levels(answer.get(name), wrappers, depth - 1)


def _shows_more(fields: Fields, so_far: PagingProgress) -> bool:
    ends = any(fields.get(name) is False for name in _MORE)
    return (
        any(fields.get(name) is True for name in (*_MORE, *_CUT_OFF))
        or (not ends and any(_is_new(fields.get(name), so_far) for name in _CURSORS))
        or any(_exceeds(fields.get(name), so_far.records) for name in _TOTALS)
        or any(_exceeds(fields.get(name), so_far.pages) for name in _PAGE_TOTALS)
    )


def _is_new(value: Json, so_far: PagingProgress) -> bool:
    return value not in (None, "", False, [], {}) and str(value) not in so_far.sent


def _exceeds(total: Json, count: int) -> bool:
    return isinstance(total, int) and not isinstance(total, bool) and total > count


def _stated(fields: Fields, names: Mapping[str, tuple[str, ...]]) -> Iterator[PageStep]:
    for name, wanted in names.items():
        value = _link_address(fields.get(name))
        if value in (None, "", [], {}) or isinstance(value, bool):
            continue
        if isinstance(value, str):
            yield from _addressed(name, value)
        if not (isinstance(value, str) and value.startswith(("http://", "https://"))):
            for one in dict.fromkeys((*wanted, name)):
                yield PageStep(f"{name} as {one}", {one: value}, True)


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
        numbers = {one: int(text) if _is_number(text) else text for one, text in fields.items()}
        yield PageStep(f"{name} as address", numbers, True)
        yield PageStep(f"{name} as address in texts", fields, True)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and str(int(text)) == text


def _counted(levels: Sequence[Fields], so_far: PagingProgress) -> Iterator[PageStep]:
    """Steps by counting. Pages from 0 come first: where they are from 1, the first page comes again."""
    pages = so_far.pages
    named = (fields.get(name) for fields in levels for name in _PAGE_NUMBERS)
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
