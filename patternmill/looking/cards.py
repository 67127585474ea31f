"""Makes what the page shows: a card for each pattern with its rows, and the page as one file beside the results."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

from patternmill.states import CatalogRow, Status

#: The most patterns that a gallery shows.
MOST = 2_000
#: What a status means to whoever looks at the page, said after the service's own words.
_WORDS = {
    Status.IN_DOUBT: "It may have been sent, and no clear answer came; the next run sends the same request again.",
    Status.WAITING: "Its job goes on at the service; this run, or the next one, follows it to its end.",
    Status.HELD: "A person must decide: `patternmill settle`.",
    Status.FAILED: "`patternmill retry` tries once more.",
    Status.NOT_STARTED: "It is not begun yet.",
}


class Line(NamedTuple):
    """A row on its card. `has`: the product that it has, which may be an earlier one than it wants."""

    key: str
    sku: str
    category: str
    selections: str
    status: str
    message: str
    product: str = ""
    has: str = ""


class Card(NamedTuple):
    """A pattern: its take that is wanted, what was decided about it, and its rows; `picture` is the service's ID.

    A refused row has a card without a take. `others` are rows of other catalogs that share the pattern.
    """

    id: str
    pattern: str
    prompt: str
    rows: tuple[Line, ...]
    picture: str = ""
    take: int = 0
    newest: int = 1
    verdict: str = ""
    note: str = ""
    person: str = ""
    others: tuple[str, ...] = ()


def cards_of(
    rows: Iterable[CatalogRow], decisions: Mapping[str, Any], others: Mapping[str, Sequence[str]]
) -> list[Card]:
    """Return the cards of a catalog in the order of its rows. `others`: by pattern, rows of other catalogs.

    Rows whose own cell names another take than the one that is decided have a card of their own.
    """
    shared: dict[str, list[CatalogRow]] = {}
    for row in rows:
        decided = decisions.get(row.pattern)
        is_own = row.take != (decided.take if decided else 1)
        name = f"{row.pattern} {row.take}" if is_own else row.pattern
        shared.setdefault(name if row.pattern else f"row {row.key}", []).append(row)
    return [
        _card(name, those, decisions.get(those[0].pattern), tuple(others.get(those[0].pattern, ())))
        for name, those in shared.items()
    ]


def _card(name: str, rows: Sequence[CatalogRow], decided: Any, others: tuple[str, ...]) -> Card:
    first, lines = rows[0], tuple(map(line_of, rows))
    prompt = json.loads(first.content).get("prompt", "") if first.content else ""
    if not first.pattern:
        return Card(name, "", prompt, lines)
    picture, newest = (
        first.pattern_id or first.has_pattern_id,
        max(first.take, decided.newest if decided else 1),
    )
    card = Card(name, first.pattern, prompt, lines, picture, first.take, newest, others=others)
    if not decided or decided.take != first.take or not (decided.verdict or decided.note):
        return card
    return card._replace(verdict=str(decided.verdict), note=decided.note, person=decided.person)


def line_of(row: CatalogRow) -> Line:
    """Return a row as its card shows it, with what happened and what to do."""
    said = json.loads(row.content) if row.content else {}
    message = row.message
    if row.refusal:
        refusal = json.loads(row.refusal)
        message = f"Row {row.number} of its sheet: {refusal['message']}; {refusal['remedy']}"
    elif words := _WORDS.get(Status(row.status)):
        message = f"{message.removesuffix('.')}. {words}" if message else words
    chosen = selections_in_words(said.get("selections", {}))
    category = said.get("category", "")
    return Line(row.key, row.sku, category, chosen, row.status, message, row.product_id, row.has_product_id)


def selections_in_words(selections: Mapping[str, str]) -> str:
    return ", ".join(map("{}: {}".format, selections, selections.values()))


def counts_of(rows: Iterable[CatalogRow]) -> dict[str, int]:
    """Return how many rows have each status, in the order of statuses."""
    counts = Counter(row.status for row in rows)
    return {status: counts[status] for status in Status if counts[status]}


def as_json(card: Card) -> str:
    return _encode({**card._asdict(), "rows": list(map(Line._asdict, card.rows))})


_encode: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Made(NamedTuple):
    """A row that has a pattern, as it is in results; `selections` is a JSON object."""

    pattern: str
    prompt: str
    sku: str
    category: str
    selections: str
    status: str
    product: str
    message: str


def gallery(catalog: str, rows: Iterable[Made]) -> str:
    """Return the page of the first patterns that these rows have, with all that it shows inside."""
    patterns: dict[str, list[Made]] = {}
    for row in rows:
        patterns.setdefault(row.pattern, []).append(row)
    cards = list[str]()
    for name, those in islice(patterns.items(), MOST):
        cards.append(as_json(Card(name, name, those[0].prompt, tuple(map(_line, those)), name, 1)))
    script, style = part("page.js"), part("page.css")
    policy = (
        f"default-src 'none'; img-src * file: data:; script-src {_digest(script)}; style-src {_digest(style)}"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style>'
    start = {"catalog": catalog, "patterns": len(patterns)}
    data = f'{json.dumps(start)[:-1]}, "cards": [{",".join(cards)}]}}'
    return filled(data, head).replace("</body>", f"<script>{script}</script></body>")


def _line(row: Made) -> Line:
    chosen = selections_in_words(json.loads(row.selections))
    return Line(row.sku, row.sku, row.category, chosen, row.status, row.message, row.product, row.product)


def filled(data: str, head: str) -> str:
    """Return the page with its data, as JSON that no text of others can end, and what its head holds."""
    text = part("page.html").replace("<!--data-->", data.replace("<", "\\u003c"))
    return text.replace("<!--head-->", head)


@cache
def part(name: str) -> str:
    """Return a file of the page."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
